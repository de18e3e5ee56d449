/*
 * Chrome traces: PyTorch's profiler (Kineto), Perfetto JSON and other programs that write the Trace
 * Event Format. A trace becomes a summary (hetviz.trace/1): busy time of each stream by kind of
 * work, kernels by time, collectives, and steps. Events of phases that are not spans are counted
 * and left out. Source: Trace Event Format; kineto's output_json.cpp.
 */
#include "solver/io/import/trace/trace.h"
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include "solver/io/import/trace/scan.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static json_t *events_of(const struct hv__in *in)
{
    return json_is_array(in->tree) ? in->tree : json_object_get(in->tree, "traceEvents");
}

bool hv__is_chrome_trace(const struct hv__in *in)
{
    json_t *events = events_of(in), *first = json_array_get(events, 0);
    if (!in->is_json || !json_is_array(events)) {
        return false;
    }
    return !json_is_array(in->tree) ||
           (json_object_get(first, "ph") && json_object_get(first, "ts")) ||
           json_object_get(json_array_get(events, 1), "ph");
}

static double number(json_t *v)
{
    return json_is_number(v)   ? json_number_value(v)
           : json_is_string(v) ? hv__plain_number(hv__piece_of(json_string_value(v)))
                               : HV_UNKNOWN;
}

static const char *text(json_t *v, const char *otherwise)
{
    return json_is_string(v) ? json_string_value(v) : otherwise;
}

/* A pid, tid or id, given as number or string, as text. */
static void add_id(struct hv_str *out, json_t *v)
{
    char buf[HV_FMT_CAP];
    if (json_is_string(v)) {
        hv_str_adds(out, json_string_value(v));
    } else if (json_is_number(v)) {
        hv_str_adds(out, hv_fmt_double(buf, sizeof buf, json_number_value(v)));
    }
}

/* The number behind a key in a map of numbers; `next` when the key is new (and then added). */
static size_t index_of(json_t *map, const char *key, size_t next)
{
    json_t *at = json_object_get(map, key);
    if (!at) {
        json_object_set_new(map, key, json_integer((json_int_t)next));
        return next;
    }
    return (size_t)json_integer_value(at);
}

static size_t track_of(struct hv__trace *t, json_t *e, const char *async)
{
    struct hv_str key = {0};
    add_id(&key, json_object_get(e, "pid"));
    size_t pid_end = key.n;
    hv_str_addc(&key, '/');
    if (async) {
        hv_str_adds(&key, async);
    } else {
        add_id(&key, json_object_get(e, "tid"));
    }
    size_t i = index_of(t->track_index, hv_str_cstr(&key), t->tracks.n);
    if (i == t->tracks.n) {
        struct hv__track x = {.pid = hv_arena_strndup(t->arena, key.p, pid_end),
                              .tid = hv_arena_strdup(t->arena, key.p + pid_end + 1)};
        hv_vec_push(&t->tracks, x);
    }
    hv_str_free(&key);
    return i;
}

static enum hv__span_kind span_kind_of(const char *cat, const char *name)
{
    static const char *const talk[] = {"nccl",       "rccl",      "all_reduce",     "allreduce",
                                       "all_gather", "allgather", "reduce_scatter", "all_to_all",
                                       "alltoall",   "sendrecv",  "c10d::"};
    struct hv__piece c = hv__piece_of(cat), n = hv__piece_of(name);
    bool device = hv__like(c, "kernel") || hv__find_like(c, "gpu_");
    if (hv__find_like(c, "memcpy") || hv__find_like(c, "memset")) {
        return HV__SPAN_COPY;
    }
    for (size_t i = 0; device && i < HV_COUNT(talk); i++) {
        if (hv__find_like(n, talk[i])) {
            return HV__SPAN_COMMUNICATION;
        }
    }
    return hv__like(c, "kernel")            ? HV__SPAN_COMPUTE
           : hv__find_like(c, "annotation") ? HV__SPAN_LABEL
                                            : HV__SPAN_HOST;
}

/* A text in the arena, equal ones once: a trace has millions of spans of a few names. */
static const char *intern(struct hv__trace *t, const char *s)
{
    size_t i = index_of(t->texts, s, t->words.n);
    if (i == t->words.n) {
        hv_vec_push(&t->words, hv_arena_strdup(t->arena, s));
    }
    return t->words.items[i];
}

static double arg(json_t *e, const char *key)
{
    json_t *v = json_object_get(json_object_get(e, "args"), key);
    return json_is_number(v) ? json_number_value(v) : HV_UNKNOWN;
}

/* Bytes of a collective: elements times their size, as PyTorch notes them on the kernel. */
static double message_bytes(json_t *e)
{
    const char *type = text(json_object_get(json_object_get(e, "args"), "dtype"), NULL);
    struct hv__piece t = hv__piece_of(type ? type : "");
    double size =
        hv__find_like(t, "float8") || hv__find_like(t, "byte") || hv__find_like(t, "char") ? 1
        : hv__find_like(t, "half") || hv__find_like(t, "16")                               ? 2
        : hv__find_like(t, "double") || hv__find_like(t, "64") || hv__find_like(t, "long") ? 8
                                                                                           : 4;
    return type ? arg(e, "In msg nelems") * size : HV_UNKNOWN;
}

/* The span of an event that begins at a time; its end follows. */
static struct hv__span span_of(struct hv__trace *t, json_t *e, size_t track, double start)
{
    const char *name = text(json_object_get(e, "name"), "");
    return (struct hv__span){.track = track,
                             .start_us = start,
                             .kind = span_kind_of(text(json_object_get(e, "cat"), ""), name),
                             .name = intern(t, name),
                             .bytes = message_bytes(e),
                             .group = arg(e, "Group size")};
}

static void add_span(struct hv__trace *t, struct hv__span s, double end)
{
    if (!(end >= s.start_us) || t->spans.n >= HV__MAX_ITEMS) {
        t->bad++;
        return;
    }
    struct hv__track *x = &t->tracks.items[s.track];
    s.end_us = end;
    x->device = x->device || s.kind == HV__SPAN_COMPUTE || s.kind == HV__SPAN_COPY ||
                s.kind == HV__SPAN_COMMUNICATION;
    x->events++;
    hv_vec_push(&t->spans, s);
}

/* An event whose end is a separate event: B … E on a thread, b … e by id. */
static void open_span(struct hv__trace *t, struct hv__span s)
{
    hv_vec_push(&t->open, (struct hv__open){s, t->tracks.items[s.track].last_open});
    t->tracks.items[s.track].last_open = t->open.n; /* number + 1; 0: none */
}

static void close_span(struct hv__trace *t, size_t track, double ts)
{
    size_t at = t->tracks.items[track].last_open;
    if (at == 0) {
        t->bad++;
        return;
    }
    struct hv__open o = t->open.items[at - 1];
    t->tracks.items[track].last_open = o.below;
    t->unclosed--;
    if (at == t->open.n) { /* the usual case: ends follow in turn, and the list stays short */
        t->open.n--;
    }
    add_span(t, o.span, ts);
}

/* Track of an async event: its category and id. */
static size_t async_track(struct hv__trace *t, json_t *e)
{
    struct hv_str key = {0};
    json_t *id = json_object_get(e, "id");
    id = id ? id : json_object_get(json_object_get(e, "id2"), "local");
    hv_str_addf(&key, "async %s ", text(json_object_get(e, "cat"), ""));
    add_id(&key, id);
    size_t i = track_of(t, e, hv_str_cstr(&key));
    hv_str_free(&key);
    return i;
}

static void take_meta(struct hv__trace *t, json_t *e)
{
    const char *what = text(json_object_get(e, "name"), "");
    json_t *args = json_object_get(e, "args");
    const char *name = text(json_object_get(args, "name"), NULL);
    if (!name) {
        name = text(json_object_get(args, "labels"), NULL);
    }
    struct hv_str key = {0};
    add_id(&key, json_object_get(e, "pid"));
    if (strcmp(what, "thread_name") == 0) {
        hv_str_addc(&key, '/');
        add_id(&key, json_object_get(e, "tid"));
    }
    if (name &&
        (strcmp(what, "thread_name") == 0 || strcmp(what, "process_labels") == 0 ||
         (strcmp(what, "process_name") == 0 && !json_object_get(t->names, hv_str_cstr(&key))))) {
        json_object_set_new(t->names, hv_str_cstr(&key), json_string(name));
    }
    hv_str_free(&key);
}

static void take_event(struct hv__trace *t, json_t *e)
{
    const char *ph = text(json_object_get(e, "ph"), "");
    double ts = number(json_object_get(e, "ts")), dur = number(json_object_get(e, "dur"));
    if (strcmp(ph, "M") == 0) {
        take_meta(t, e);
        return;
    }
    if (!hv_known(ts) || !*ph || fabs(ts) > 1e18) {
        t->bad++;
        return;
    }
    t->first_us = fmin(hv_or(t->first_us, ts), ts);
    t->last_us = fmax(hv_or(t->last_us, ts), ts + fmax(hv_or(dur, 0), 0));
    switch (ph[0]) {
    case 'X':
        add_span(t, span_of(t, e, track_of(t, e, NULL), ts), ts + hv_or(dur, 0));
        break;
    case 'B':
        t->unclosed++;
        open_span(t, span_of(t, e, track_of(t, e, NULL), ts));
        break;
    case 'E':
        close_span(t, track_of(t, e, NULL), ts);
        break;
    case 'b':
    case 'S':
        t->unclosed++;
        open_span(t, span_of(t, e, async_track(t, e), ts));
        break;
    case 'e':
    case 'F':
        close_span(t, async_track(t, e), ts);
        break;
    default: /* flows, counters, instants, samples, objects, and unknown phases */
        t->other++;
        break;
    }
}

/* Members that are read, for the report; events lie in traceEvents, or are the whole text. */
static const char *const used[] = {"*[].name",
                                   "*[].cat",
                                   "*[].ph",
                                   "*[].ts",
                                   "*[].dur",
                                   "*[].pid",
                                   "*[].tid",
                                   "*[].id",
                                   "*[].id2.local",
                                   "*[].args.name",
                                   "*[].args.labels",
                                   "*[].args.dtype",
                                   "*[].args.In msg nelems",
                                   "*[].args.Group size",
                                   "deviceProperties[].totalGlobalMem",
                                   "distributedInfo.rank",
                                   "distributedInfo.world_size",
                                   "traceName",
                                   NULL};

static void read_head(struct hv__in *in, json_t *head, json_t *doc)
{
    json_t *devices = json_object_get(head, "deviceProperties"), *d, *list = json_array();
    json_t *dist = json_object_get(head, "distributedInfo");
    size_t i;
    json_array_foreach(devices, i, d)
    {
        json_t *o = json_pack("{s:s}", "name", text(json_object_get(d, "name"), "device"));
        double bytes = number(json_object_get(d, "totalGlobalMem"));
        if (hv_known(bytes) && bytes > 0) {
            json_object_set_new(o, "memory_GiB", hv_json_num(round(bytes / HV_GIB * 100) / 100));
        }
        json_array_append_new(list, o);
    }
    if (i > 0 && json_is_array(devices)) {
        hv__understood(in, 0, "%zu devices, the first: %s", i,
                       text(json_object_get(json_array_get(devices, 0), "name"), "?"));
        json_object_set(doc, "devices", list);
    }
    json_decref(list);
    double rank = number(json_object_get(dist, "rank")),
           world = number(json_object_get(dist, "world_size"));
    if (hv_known(rank) && rank >= 0) {
        json_object_set_new(doc, "rank", hv_json_num(rank));
        hv__understood(in, 0, "rank %.0f of %.0f", rank, hv_or(world, 1));
    }
    if (hv_known(world) && world >= 1) {
        json_object_set_new(doc, "world_size", hv_json_num(world));
    }
    const char *name = text(json_object_get(head, "traceName"), NULL);
    const char *slash = name ? strrchr(name, '/') : NULL;
    json_object_set_new(doc, "name", json_string(slash ? slash + 1 : name ? name : "trace"));
}

/* ---- reading --------------------------------------------------------------------------------
 */

/* A trace and the text that it is read from. */
struct reader {
    struct hv__in *in;
    struct hv__trace trace;
    struct hv__scan scan;
};

/* Takes an event. The members of a text that is held as a tree are named from that. */
static void each_event(void *ctx, json_t *event)
{
    struct reader *r = ctx;
    take_event(&r->trace, event);
    if (!r->in->tree) {
        hv__members_of_part(r->in, event, r->scan.is_list ? "[]" : "traceEvents[]");
    }
}

static void begin(struct hv__in *in, struct reader *r)
{
    *r = (struct reader){.in = in,
                         .trace = {.arena = &in->im->arena,
                                   .track_index = json_object(),
                                   .names = json_object(),
                                   .texts = json_object(),
                                   .first_us = HV_UNKNOWN,
                                   .last_us = HV_UNKNOWN},
                         .scan = {.each = each_event, .ctx = r}};
    hv__uses(in, used);
}

static void end(struct reader *r)
{
    struct hv__trace *t = &r->trace;
    hv__scan_free(&r->scan);
    hv_vec_free(&t->tracks);
    hv_vec_free(&t->spans);
    hv_vec_free(&t->open);
    hv_vec_free(&t->words);
    json_decref(t->track_index);
    json_decref(t->names);
    json_decref(t->texts);
}

/* Names the members beside the events where the text is not held as a tree. */
static void tell_head(struct hv__in *in, json_t *head)
{
    if (!in->tree && json_is_object(head)) {
        (void)json_object_del(head, "traceEvents");
        hv__members_of_part(in, head, "");
    }
}

/* Makes the summary of what was read. */
static enum hv_status summarise(struct reader *r, struct hv_err *err)
{
    struct hv__in *in = r->in;
    struct hv__trace *t = &r->trace;
    const struct hv__scan *scan = &r->scan;
    t->bad += scan->bad;
    if (!hv_known(t->first_us)) {
        return hv_err_at(
            err, HV_ENO, in->name, 0, 0,
            "there is no event with a time in it: was the profiler stopped too early?");
    }
    if (hv__scan_is_cut(scan)) {
        hv__guessed(in, 0, "the JSON is incomplete: events up to its end are counted");
    }
    json_t *doc = json_pack("{s:s}", "format", "hetviz.trace/1"), *head = hv__scan_head(scan);
    read_head(in, head, doc);
    tell_head(in, head);
    json_decref(head);
    hv__trace_summary(in, t, doc);
    if (in->im->trace) {
        hv__ignored(in, 0, "an earlier trace is replaced: one trace is read at a time");
        json_decref(in->im->trace);
    }
    in->im->trace = doc;
    return HV_OK;
}

enum hv_status hv__read_chrome_trace(struct hv__in *in, struct hv_err *err)
{
    if (!json_is_array(events_of(in))) {
        return hv_err_at(err, HV_EINPUT, in->name, in->broken.line, in->broken.col, "%s",
                         in->broken.text[0] ? in->broken.text
                                            : "expected traceEvents, or a list of events");
    }
    struct reader r;
    begin(in, &r);
    hv__scan_feed(&r.scan, in->text, in->n);
    enum hv_status st = summarise(&r, err);
    end(&r);
    return st;
}

bool hv__is_trace_file(const char *path)
{
    enum { HEAD = 65536 };
    struct stat info;
    if (strcmp(path, "-") == 0 || stat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    gzFile f = gzopen(path, "rbe");
    char *head = hv_xcalloc(HEAD, 1);
    int n = f ? gzread(f, head, HEAD - 1) : 0;
    struct hv__piece s = {head, n > 0 ? (size_t)n : 0};
    size_t blanks = strspn(head, " \t\r\n\f\v");
    struct hv__piece first = {head + blanks, s.n > blanks ? s.n - blanks : 0};
    bool is = hv__starts(first, "{") && hv__find(s, "\"traceEvents\"");
    is = is || (hv__starts(first, "[") && hv__find(s, "\"ph\"") &&
                (hv__find(s, "\"ts\"") || hv__find(s, "\"pid\"")));
    if (f) {
        (void)gzclose(f);
    }
    free(head);
    return is;
}

/* Reads the file to its end, or to the limit. */
static enum hv_status feed_file(struct hv__in *in, struct hv__scan *scan, gzFile f,
                                struct hv_err *err)
{
    enum { PIECE = 1 << 18 };
    char *piece = hv_xcalloc(PIECE, 1);
    size_t total = 0;
    int n;
    while ((n = gzread(f, piece, PIECE)) > 0 && total <= HV__TRACE_MAX_BYTES) {
        total += (size_t)n;
        hv__scan_feed(scan, piece, (size_t)n);
    }
    free(piece);
    int rc = Z_OK;
    const char *why = gzerror(f, &rc);
    if (total > HV__TRACE_MAX_BYTES) {
        return hv_err_at(err, HV_ELIMIT, in->name, 0, 0,
                         "unpacked it is larger than the %zu MiB that a trace may have: record "
                         "fewer steps",
                         HV__TRACE_MAX_BYTES >> 20);
    }
    return rc == Z_OK || rc == Z_STREAM_END
               ? HV_OK
               : hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                           "the file is cut short or damaged (%.80s); fetch it again",
                           rc == Z_ERRNO ? strerror(errno) : why);
}

enum hv_status hv__stream_chrome_trace(struct hv__in *in, const char *path, struct hv_err *err)
{
    struct reader r;
    gzFile f = gzopen(path, "rbe");
    if (!f) {
        return hv_err_at(err, HV_EIO, path, 0, 0, "cannot read: %s", strerror(errno));
    }
    begin(in, &r);
    enum hv_status st = feed_file(in, &r.scan, f, err);
    (void)gzclose(f);
    st = st ? st : summarise(&r, err);
    end(&r);
    return st;
}
