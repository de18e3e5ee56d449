/** A trace being read, between its reader and its summary. */
#ifndef HV_SOLVER_IO_IMPORT_TRACE_TRACE_H
#define HV_SOLVER_IO_IMPORT_TRACE_TRACE_H

#include "solver/io/import/draft/draft.h"

/** Kind of a span. HOST: work of the CPU; LABEL: a name over other spans. */
enum hv__span_kind {
    HV__SPAN_COMPUTE,
    HV__SPAN_COMMUNICATION,
    HV__SPAN_COPY,
    HV__SPAN_HOST,
    HV__SPAN_LABEL,
    HV__SPAN_KIND_N
};

/** One span of time. Texts are borrowed from the tree. */
struct hv__span {
    size_t track;
    double start_us, end_us;
    enum hv__span_kind kind;
    const char *name;
    json_t *args;
};

/** A stream or thread. */
struct hv__track {
    const char *pid, *tid;
    size_t events, last_open;
    bool device;
};

/** A span whose end has not been read yet. */
struct hv__open {
    json_t *event;
    size_t track;
    double start_us;
    size_t below; /**< the one opened before on the track, number + 1 */
};

/** Everything of a trace. */
struct hv__trace {
    struct hv_arena *arena;
    HV_VEC(struct hv__track) tracks;
    HV_VEC(struct hv__span) spans;
    HV_VEC(struct hv__open) open;
    json_t *track_index, *names;
    double first_us, last_us;
    size_t bad, other, unclosed;
};

/** Writes the summary into the document, and notes. O(spans · log spans). */
void hv__trace_summary(struct hv__in *in, struct hv__trace *t, json_t *doc);

#endif
