/** Chrome trace event format: complete events per span, flow events for transfers between stages,
 * counters for memory. Times are whole nanoseconds: the spans of a thread never overlap, since
 * start and end are rounded and the duration is their difference. Source: Trace Event Format;
 * Perfetto's documentation of its JSON importer. */
#include "solver/io/export/gantt.h"

#include <stdio.h>

#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include "solver/io/export/trace_flow.h"
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

/** Nanoseconds of a time. */
static long long ns_of(double s)
{
    return isfinite(s) && s > 0 ? llround(fmin(s * 1e9, 9e18)) : 0;
}

/** Nanoseconds as the microseconds of the format. */
static void add_us(struct hv_str *out, long long ns)
{
    hv_str_addf(out, "%lld", ns / 1000);
    if (ns % 1000 != 0) {
        hv_str_addf(out, ".%03lld", ns % 1000);
    }
}

/** A lane being written: its thread, and the end of what is written. */
struct thread {
    size_t pid, tid;
    long long until_ns;
};

static void add_span(struct hv_str *out, const struct hv_timeline *t, const struct hv_span *s,
                     struct thread *on)
{
    const struct hv_timeline_op *op = &t->ops[s->id];
    /* spans of a lane do not overlap but by the last digit of a sum */
    long long start = ns_of(s->start_s), end = ns_of(s->end_s);
    start = start > on->until_ns ? start : on->until_ns;
    end = end > start ? end : start;
    on->until_ns = end;
    hv_str_addf(out, "{\"ph\":\"X\",\"name\":\"%s",
                hv_span_kind_letter((enum hv_span_kind)op->kind));
    if (op->micro_batch >= 0) {
        hv_str_addf(out, "%d", op->micro_batch);
    }
    hv_str_adds(out, "\",\"cat\":");
    add_text(out, hv_span_kind_text((enum hv_span_kind)op->kind));
    hv_str_addf(out, ",\"pid\":%zu,\"tid\":%zu,\"ts\":", on->pid, on->tid);
    add_us(out, start);
    hv_str_adds(out, ",\"dur\":");
    add_us(out, end - start);
    hv_str_addf(out, ",\"args\":{\"stage\":%d,\"micro_batch\":%d,\"critical\":%s,\"slack_us\":",
                op->stage, op->micro_batch, op->critical ? "true" : "false");
    add_number(out, op->slack_s * 1e6);
    if (hv_span_is_transfer(op->kind)) {
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
    struct thread on = {pid, tid, 0};
    for (size_t s = 0; s < l->n_spans; s++) {
        add_span(out, t, &l->spans[s], &on);
    }
}

/* ---- transfers ------------------------------------------------------------------------------ */

/** Process and thread of a row's operations. */
static struct thread thread_of(const struct hv_timeline *t, size_t row)
{
    return (struct thread){t->rows[row].replica, 2 * row, 0};
}

/** One end or the middle of an arrow, inside its span. */
static void add_point(struct hv_str *out, char ph, size_t id, struct thread on, long long ns)
{
    hv_str_addf(
        out,
        "{\"ph\":\"%c\",\"name\":\"transfer\",\"cat\":\"transfer\",\"id\":%zu,%s\"pid\":%zu,"
        "\"tid\":%zu,\"ts\":",
        ph, id, ph == 'f' ? "\"bp\":\"e\"," : "", on.pid, on.tid);
    add_us(out, ns);
    hv_str_adds(out, "},\n");
}

/** The first and the last nanosecond inside a span; false where it is shorter than one. */
static bool inside(const struct hv_span *s, long long *first, long long *last)
{
    *first = ns_of(s->start_s);
    *last = ns_of(s->end_s) - 1;
    return *last > *first;
}

/** The arrow of a transfer: from the operation that sends it over the link to the one that waits
 * for it. A part that is not drawn, or shorter than a nanosecond, has no point. */
static void add_flow(struct hv_str *out, const struct hv_timeline *t, const struct hv__flows *f,
                     const struct hv_span *hop, struct thread on, size_t *id)
{
    const struct hv_timeline_link *link = &t->links[t->hops[t->ops[hop->id].paired].i_link];
    const struct hv_span *from = hv__flow_from(f, hop), *to = hv__flow_to(f, hop);
    long long first, last, none, begin, end;
    if (!from || !to || !inside(from, &none, &last) || !inside(to, &first, &none)) {
        return;
    }
    ++*id;
    add_point(out, 's', *id, thread_of(t, link->from_row), last);
    if (inside(hop, &begin, &end)) {
        add_point(out, 't', *id, on, begin + (end - begin) / 2);
    }
    add_point(out, 'f', *id, thread_of(t, link->to_row), first + 1);
}

/** Transfers between stages: one thread per link, after the threads of the rows. */
static void add_links(struct hv_str *out, const struct hv_timeline *t)
{
    struct hv_arena arena = {0};
    struct hv__flows *flows = hv__flows_new(&arena, t);
    size_t id = 0;
    for (size_t i = 0; i < t->n_links; i++) {
        const struct hv_timeline_link *k = &t->links[i];
        const struct hv_lane *lane = &t->lanes.items[k->lane];
        struct thread on = {t->rows[k->from_row].replica, 2 * t->n_rows + i, 0};
        struct hv_str label = {0};
        hv_str_addf(&label, "%s to %s", hv_timeline_end(t, k, false), hv_timeline_end(t, k, true));
        add_name(out, "thread_name", on.pid, on.tid, hv_str_cstr(&label));
        hv_str_free(&label);
        add_lane(out, t, k->lane, on.pid, on.tid);
        for (size_t s = 0; s < lane->n_spans; s++) {
            if (t->ops[lane->spans[s].id].kind == HV_SPAN_HOP) {
                add_flow(out, t, flows, &lane->spans[s], on, &id);
            }
        }
    }
    hv_arena_free(&arena);
}

static void add_memory(struct hv_str *out, const struct hv_timeline_row *row, size_t pid,
                       size_t i_row)
{
    for (size_t i = 0; i < row->memory.n; i++) {
        hv_str_addf(out,
                    "{\"ph\":\"C\",\"name\":\"memory of row %zu (GiB)\",\"pid\":%zu,\"ts\":", i_row,
                    pid);
        add_us(out, ns_of(row->memory.steps[i].at_s));
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
    add_us(out, ns_of(t->end_s));
    hv_str_adds(out, "}\n]}\n");
}
