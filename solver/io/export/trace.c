/** Chrome trace event format: complete events per span, counters for memory. */
#include "solver/io/export/gantt.h"

#include <stdio.h>

#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include "solver/sim/pipeline/pipeline.h"

static void add_number(struct hv_str *out, double x)
{
    char buf[HV_FMT_CAP];
    hv_str_adds(out, isfinite(x) ? hv_fmt_double(buf, sizeof buf, x) : "null");
}

static void add_text(struct hv_str *out, const char *text)
{
    json_t *s = json_string(text);
    hv_json_write(out, s, false);
    json_decref(s);
}

static void add_name(struct hv_str *out, const char *what, size_t pid, size_t tid, const char *name)
{
    hv_str_addf(out,
                "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%zu,\"tid\":%zu,\"args\":{\"name\":", what,
                pid, tid);
    add_text(out, name);
    hv_str_adds(out, "}},\n");
}

static void add_span(struct hv_str *out, const struct hv_timeline *t, const struct hv_span *s,
                     size_t pid, size_t tid)
{
    const struct hv_timeline_op *op = &t->ops[s->id];
    hv_str_addf(out, "{\"ph\":\"X\",\"name\":\"%s",
                hv_span_kind_letter((enum hv_span_kind)op->kind));
    if (op->micro_batch >= 0) {
        hv_str_addf(out, "%d", op->micro_batch);
    }
    hv_str_adds(out, "\",\"cat\":");
    add_text(out, hv_span_kind_text((enum hv_span_kind)op->kind));
    hv_str_addf(out, ",\"pid\":%zu,\"tid\":%zu,\"ts\":", pid, tid);
    add_number(out, s->start_s * 1e6);
    hv_str_adds(out, ",\"dur\":");
    add_number(out, (s->end_s - s->start_s) * 1e6);
    hv_str_addf(out, ",\"args\":{\"stage\":%d,\"micro_batch\":%d,\"critical\":%s,\"slack_us\":",
                op->stage, op->micro_batch, op->critical ? "true" : "false");
    add_number(out, op->slack_s * 1e6);
    if (op->kind == HV_SPAN_HOP) {
        hv_str_adds(out, ",\"bytes\":");
        add_number(out, t->hops[op->paired].bytes);
    }
    hv_str_adds(out, "}},\n");
}

/** One lane as a thread. */
static void add_lane(struct hv_str *out, const struct hv_timeline *t, size_t lane, size_t pid,
                     size_t tid)
{
    const struct hv_lane *l = &t->lanes.items[lane];
    for (size_t s = 0; s < l->n_spans; s++) {
        add_span(out, t, &l->spans[s], pid, tid);
    }
}

/** Transfers between stages: one thread per link, after the threads of the rows. */
static void add_links(struct hv_str *out, const struct hv_timeline *t)
{
    for (size_t i = 0; i < t->n_links; i++) {
        const struct hv_timeline_link *k = &t->links[i];
        size_t pid = t->rows[k->from_row].replica, tid = 2 * t->n_rows + i;
        struct hv_str label = {0};
        hv_str_addf(&label, "%s to %s", t->rows[k->from_row].name, t->rows[k->to_row].name);
        add_name(out, "thread_name", pid, tid, hv_str_cstr(&label));
        hv_str_free(&label);
        add_lane(out, t, k->lane, pid, tid);
    }
}

static void add_memory(struct hv_str *out, const struct hv_timeline_row *row, size_t pid,
                       size_t i_row)
{
    for (size_t i = 0; i < row->memory.n; i++) {
        hv_str_addf(out,
                    "{\"ph\":\"C\",\"name\":\"memory of row %zu (GiB)\",\"pid\":%zu,\"ts\":", i_row,
                    pid);
        add_number(out, row->memory.steps[i].at_s * 1e6);
        hv_str_adds(out, ",\"args\":{\"GiB\":");
        add_number(out, row->memory.steps[i].bytes / HV_GIB);
        hv_str_adds(out, "}},\n");
    }
}

void hv_gantt_trace(const struct hv_timeline *t, const struct hv_gantt_text *text,
                    struct hv_str *out)
{
    hv_str_adds(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"title\":");
    add_text(out, text->title);
    hv_str_adds(out, ",\"summary\":");
    add_text(out, text->subtitle);
    hv_str_adds(out, "},\n\"traceEvents\":[\n");
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct hv_timeline_row *row = &t->rows[i];
        size_t pid = row->replica, lanes[2] = {row->compute_lane, row->link_lane};
        char name[64];
        (void)snprintf(name, sizeof name, "replica %zu", pid);
        add_name(out, "process_name", pid, 0, name);
        for (size_t k = 0; k < 2; k++) {
            struct hv_str label = {0};
            hv_str_addf(&label, "%s %s", row->name, k == 0 ? "compute" : "network");
            add_name(out, "thread_name", pid, 2 * i + k, hv_str_cstr(&label));
            hv_str_free(&label);
            add_lane(out, t, lanes[k], pid, 2 * i + k);
        }
        add_memory(out, row, pid, i);
    }
    add_links(out, t);
    /* a last event without a comma after it */
    hv_str_addf(
        out, "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"end of iteration\",\"pid\":0,\"tid\":0,\"ts\":");
    add_number(out, t->end_s * 1e6);
    hv_str_adds(out, "}\n]}\n");
}
