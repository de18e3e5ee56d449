/* The summary of a trace: streams, kernels, collectives, steps, and hidden communication. */
#include "solver/io/import/text/words.h"
#include "solver/io/import/trace/trace.h"
#include <stdlib.h>
#include <string.h>

#define MAX_KERNELS 200
#define MAX_STEPS   1000

static const char *const kind_names[HV__SPAN_KIND_N] = {"compute", "communication", "copy", "host",
                                                        "label"};

/* Time as files have it: three decimals of a millisecond are nanoseconds. */
static json_t *ms(double us)
{
    return hv_json_num(round(us) == us && us < 1e15 ? us / 1e3 : round(us * 1e3) / 1e6);
}

static int by_track(const void *a, const void *b)
{
    const struct hv__span *x = a, *y = b;
    if (x->track != y->track) {
        return x->track < y->track ? -1 : 1;
    }
    return x->start_us < y->start_us ? -1 : x->start_us > y->start_us;
}

/* Time that any of the spans [from, to) of a kind covers; kind N: all but labels. The spans are
 * sorted by start. */
static double covered(const struct hv__span *s, size_t from, size_t to, enum hv__span_kind kind)
{
    double sum = 0, until = -1e300;
    for (size_t i = from; i < to; i++) {
        bool counts = kind == HV__SPAN_KIND_N ? s[i].kind != HV__SPAN_LABEL : s[i].kind == kind;
        if (counts && s[i].end_us > until) {
            sum += s[i].end_us - fmax(s[i].start_us, until);
            until = s[i].end_us;
        }
    }
    return sum;
}

static void set_ms(json_t *o, const char *key, double us)
{
    if (us > 0) {
        json_object_set_new(o, key, ms(us));
    }
}

static const char *name_of(const struct hv__trace *t, const struct hv__track *x, bool process)
{
    struct hv_str key = {0};
    hv_str_addf(&key, process ? "%s" : "%s/%s", x->pid, x->tid);
    const char *s = json_string_value(json_object_get(t->names, hv_str_cstr(&key)));
    hv_str_free(&key);
    return s ? s : process ? x->pid : x->tid;
}

static json_t *stream_json(const struct hv__trace *t, size_t track, size_t from, size_t to)
{
    const struct hv__span *s = t->spans.items;
    const struct hv__track *x = &t->tracks.items[track];
    double busy = covered(s, from, to, HV__SPAN_KIND_N), first = s[from].start_us, last = 0;
    for (size_t i = from; i < to; i++) {
        last = fmax(last, s[i].end_us);
    }
    json_t *o = json_pack("{s:s, s:s, s:b, s:o}", "process", name_of(t, x, true), "stream",
                          name_of(t, x, false), "device", x->device, "events",
                          hv_json_num((double)(to - from)));
    json_object_set_new(o, "busy_ms", ms(busy));
    json_object_set_new(o, "idle_ms", ms(fmax(last - first - busy, 0)));
    if (x->device) {
        set_ms(o, "compute_ms", covered(s, from, to, HV__SPAN_COMPUTE));
        set_ms(o, "communication_ms", covered(s, from, to, HV__SPAN_COMMUNICATION));
        set_ms(o, "copy_ms", covered(s, from, to, HV__SPAN_COPY));
    }
    return o;
}

static json_t *streams_json(struct hv__trace *t)
{
    json_t *list = json_array();
    for (size_t i = 0, to; i < t->spans.n; i = to) {
        size_t track = t->spans.items[i].track;
        to = i;
        while (to < t->spans.n && t->spans.items[to].track == track) {
            to++;
        }
        if (json_array_size(list) < MAX_STEPS) {
            json_array_append_new(list, stream_json(t, track, i, to));
        }
    }
    return list;
}

/* ---- kernels ----------------------------------------------------------------------------------
 */

struct kernel {
    const char *name;
    enum hv__span_kind kind;
    double n, total_us, most_us, bytes, group;
};

static int by_time(const void *a, const void *b)
{
    const struct kernel *x = a, *y = b;
    if (x->total_us > y->total_us || x->total_us < y->total_us) {
        return x->total_us > y->total_us ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

static bool is_counted(const struct hv__trace *t, const struct hv__span *s, bool device)
{
    return s->kind != HV__SPAN_LABEL && t->tracks.items[s->track].device == device;
}

/* Spans of device streams by name; of the threads where there is no device. */
static struct kernel *collect(struct hv__trace *t, bool device, size_t *n)
{
    HV_VEC(struct kernel) all = {0};
    json_t *index = json_object();
    for (size_t i = 0; i < t->spans.n; i++) {
        const struct hv__span *s = &t->spans.items[i];
        if (!is_counted(t, s, device)) {
            continue;
        }
        json_t *at = json_object_get(index, s->name);
        size_t k = at ? (size_t)json_integer_value(at) : all.n;
        if (!at) {
            json_object_set_new(index, s->name, json_integer((json_int_t)k));
            hv_vec_push(&all, (struct kernel){.name = s->name,
                                              .kind = s->kind,
                                              .group = HV_UNKNOWN,
                                              .bytes = HV_UNKNOWN});
        }
        struct kernel *x = &all.items[k];
        double us = s->end_us - s->start_us, bytes = s->bytes;
        x->n++;
        x->total_us += us;
        x->most_us = fmax(x->most_us, us);
        x->group = hv_or(x->group, s->group);
        x->bytes = hv_known(bytes) ? hv_or(x->bytes, 0) + bytes : x->bytes;
    }
    json_decref(index);
    *n = all.n;
    if (all.n > 1) {
        qsort(all.items, all.n, sizeof *all.items, by_time);
    }
    return all.items;
}

static json_t *kernel_json(const struct kernel *x)
{
    json_t *o = json_pack("{s:s, s:s, s:o}", "name", x->name, "kind", kind_names[x->kind], "count",
                          hv_json_num(x->n));
    json_object_set_new(o, "total_ms", ms(x->total_us));
    json_object_set_new(o, "mean_us", hv_json_num(round(x->total_us / x->n * 1e3) / 1e3));
    json_object_set_new(o, "max_us", hv_json_num(round(x->most_us * 1e3) / 1e3));
    return o;
}

static void set_kernels(struct hv__in *in, struct hv__trace *t, json_t *doc, bool device)
{
    size_t n;
    struct kernel *all = collect(t, device, &n);
    json_t *list = json_array(), *talks = json_array();
    for (size_t i = 0; i < n && i < MAX_KERNELS; i++) {
        json_array_append_new(list, kernel_json(&all[i]));
    }
    for (size_t i = 0; i < n; i++) {
        if (all[i].kind == HV__SPAN_COMMUNICATION && json_array_size(talks) < MAX_KERNELS) {
            json_t *o =
                json_pack("{s:s, s:o}", "name", all[i].name, "count", hv_json_num(all[i].n));
            json_object_set_new(o, "total_ms", ms(all[i].total_us));
            if (hv_known(all[i].bytes)) {
                json_object_set_new(o, "bytes", hv_json_num(all[i].bytes));
            }
            if (hv_known(all[i].group)) {
                json_object_set_new(o, "ranks", hv_json_num(all[i].group));
            }
            json_array_append_new(talks, o);
        }
    }
    if (n > 0) {
        hv__understood(in, 0, "%zu sorts of %s, the longest: %.80s, %.4g ms", n,
                       device ? "kernels" : "operations", all[0].name, all[0].total_us / 1e3);
    }
    if (n > MAX_KERNELS) {
        hv__ignored(in, 0, "%zu sorts behind the first %d", n - MAX_KERNELS, MAX_KERNELS);
    }
    json_object_set_new(doc, device ? "kernels" : "operations", list);
    if (json_array_size(talks) > 0) {
        json_object_set(doc, "collectives", talks);
    }
    json_decref(talks);
    free(all);
}

/* ---- steps and overlap ------------------------------------------------------------------------
 */

static void set_steps(struct hv__in *in, struct hv__trace *t, json_t *doc)
{
    json_t *list = json_array();
    double sum = 0;
    for (size_t i = 0; i < t->spans.n && json_array_size(list) < MAX_STEPS; i++) {
        const struct hv__span *s = &t->spans.items[i];
        if (strncmp(s->name, "ProfilerStep", 12) == 0 && !t->tracks.items[s->track].device) {
            json_array_append_new(
                list, json_pack("{s:s, s:o}", "name", s->name, "ms", ms(s->end_us - s->start_us)));
            sum += s->end_us - s->start_us;
        }
    }
    size_t n = json_array_size(list);
    if (n > 0) {
        hv__understood(in, 0, "%zu steps of %.4g ms on average", n, sum / (double)n / 1e3);
        json_object_set(doc, "steps", list);
    }
    json_decref(list);
}

static int by_start(const void *a, const void *b)
{
    const struct hv__span *x = a, *y = b;
    return x->start_us < y->start_us ? -1 : x->start_us > y->start_us;
}

/* Spans of one process and one of two kinds, in a line. */
static size_t select_spans(const struct hv__trace *t, const char *pid, bool talk,
                           struct hv__span *out)
{
    size_t n = 0;
    for (size_t i = 0; i < t->spans.n; i++) {
        const struct hv__span *s = &t->spans.items[i];
        bool is_talk = s->kind == HV__SPAN_COMMUNICATION;
        if (strcmp(t->tracks.items[s->track].pid, pid) == 0 &&
            (is_talk || (!talk && s->kind == HV__SPAN_COMPUTE))) {
            out[n++] = *s;
        }
    }
    if (n > 1) {
        qsort(out, n, sizeof *out, by_start);
    }
    return n;
}

/* Communication that computation of the same device covers: |talk| + |work| - |both together|. */
static void set_overlap(struct hv__in *in, struct hv__trace *t, json_t *doc)
{
    double talk = 0, hidden = 0;
    struct hv__span *some = hv_xcalloc(t->spans.n + 1, sizeof *some);
    json_t *seen = json_object();
    for (size_t k = 0; k < t->tracks.n && json_object_size(seen) < 64; k++) {
        const struct hv__track *x = &t->tracks.items[k];
        if (!x->device || json_object_get(seen, x->pid)) {
            continue;
        }
        json_object_set_new(seen, x->pid, json_true());
        size_t n = select_spans(t, x->pid, false, some);
        double both = covered(some, 0, n, HV__SPAN_KIND_N);
        double work = covered(some, 0, n, HV__SPAN_COMPUTE);
        double talks = covered(some, 0, n, HV__SPAN_COMMUNICATION);
        talk += talks;
        hidden += talks + work - both;
    }
    json_decref(seen);
    free(some);
    if (talk > 0) {
        json_object_set_new(doc, "communication_ms", ms(talk));
        json_object_set_new(doc, "hidden_communication_ms", ms(fmax(hidden, 0)));
        hv__understood(in, 0, "communication %.4g ms, of which %.4g ms under computation",
                       talk / 1e3, fmax(hidden, 0) / 1e3);
    }
}

void hv__trace_summary(struct hv__in *in, struct hv__trace *t, json_t *doc)
{
    bool device = false;

    if (t->spans.n > 1) {
        qsort(t->spans.items, t->spans.n, sizeof *t->spans.items, by_track);
    }
    for (size_t i = 0; i < t->tracks.n; i++) {
        device = device || t->tracks.items[i].device;
    }
    json_object_set_new(doc, "wall_ms", ms(t->last_us - t->first_us));
    json_object_set_new(doc, "events", hv_json_num((double)t->spans.n));
    json_object_set_new(doc, "streams", streams_json(t));
    set_kernels(in, t, doc, device);
    set_overlap(in, t, doc);
    set_steps(in, t, doc);
    hv__understood(in, 0, "%zu spans on %zu tracks in %.6g ms", t->spans.n, t->tracks.n,
                   (t->last_us - t->first_us) / 1e3);
    if (!device) {
        hv__guessed(in, 0, "no event is of a device: times are those of the host");
    }
    if (t->unclosed > 0) {
        hv__guessed(in, 0, "%zu spans without an end are left out: the trace was cut", t->unclosed);
    }
    if (t->bad > 0) {
        hv__ignored(in, 0, "%zu events without a time, or ends without a beginning", t->bad);
    }
    if (t->other > 0) {
        hv__ignored(in, 0, "%zu flows, counters, instants and the like", t->other);
    }
}
