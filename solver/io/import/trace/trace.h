/** A trace being read, between its reader and its summary. */
#ifndef HV_SOLVER_IO_IMPORT_TRACE_TRACE_H
#define HV_SOLVER_IO_IMPORT_TRACE_TRACE_H

#include "solver/io/import/draft/draft.h"

/** Most bytes of a trace file, unpacked: it is read piece by piece. */
#define HV__TRACE_MAX_BYTES ((size_t)256 << 20)

/** Kind of a span. HOST: work of the CPU; LABEL: a name over other spans. */
enum hv__span_kind {
    HV__SPAN_COMPUTE,
    HV__SPAN_COMMUNICATION,
    HV__SPAN_COPY,
    HV__SPAN_HOST,
    HV__SPAN_LABEL,
    HV__SPAN_KIND_N
};

/** One span of time. Texts lie in the arena of the trace, equal ones once. */
struct hv__span {
    size_t track;
    double start_us, end_us;
    const char *name;
    double bytes, group; /**< of a collective: message and ranks, HV_UNKNOWN: not given */
    enum hv__span_kind kind;
};

/** A stream or thread. */
struct hv__track {
    const char *pid, *tid;
    size_t events, last_open;
    bool device;
};

/** A span whose end has not been read yet. */
struct hv__open {
    struct hv__span span;
    size_t below; /**< the one opened before on the track, number + 1 */
};

/** Everything of a trace. */
struct hv__trace {
    struct hv_arena *arena;
    HV_VEC(struct hv__track) tracks;
    HV_VEC(struct hv__span) spans;
    HV_VEC(struct hv__open) open;
    json_t *track_index, *names;
    json_t *texts; /**< names of spans as indices of `words` */
    HV_VEC(const char *) words;
    double first_us, last_us;
    size_t bad, other, unclosed;
};

/** True where a file looks like a Chrome trace from its first bytes, packed or not. */
bool hv__is_trace_file(const char *path);
/** Reads a trace from a file, without holding its text. Errors: HV_EIO, HV_ELIMIT above
 * HV__TRACE_MAX_BYTES, HV_EINPUT for a damaged file, HV_ENO without events. */
enum hv_status hv__stream_chrome_trace(struct hv__in *in, const char *path,
                                       struct hv_err *err) HV_NODISCARD;

/** Writes the summary into the document, and notes. O(spans · log spans). */
void hv__trace_summary(struct hv__in *in, struct hv__trace *t, json_t *doc);

#endif
