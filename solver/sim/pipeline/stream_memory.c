/* What the tasks of a stream hold over time: gathers weights, scatters gradients. */
#include "solver/sim/pipeline/pipeline_int.h"

#include <stdlib.h>

static int by_time(const void *x, const void *y)
{
    const struct hv__change *a = x, *b = y;
    if (a->at_s < b->at_s || a->at_s > b->at_s) {
        return a->at_s < b->at_s ? -1 : 1;
    }
    double more = a->gathered_bytes + a->unsent_bytes, other = b->gathered_bytes + b->unsent_bytes;
    return (more > other) - (more < other); /* gives back first */
}

struct hv__change *hv__stream_changes(const struct hv_pipe_run *run,
                                      const struct hv_pipe_memory *mem, int32_t rank, size_t *n)
{
    const struct hv_stream *x = mem->stream;
    size_t n_tasks = x->task_at[rank + 1] - x->task_at[rank];
    struct hv__change *out = hv_xcalloc(2 * n_tasks + 1, sizeof *out);
    *n = 0;
    for (size_t k = x->task_at[rank]; k < x->task_at[rank + 1]; k++) {
        const struct hv_stream_task *t = &x->tasks[k];
        double bytes = mem->task_bytes[k];
        if (t->scatter) {
            out[(*n)++] = (struct hv__change){run->node_start_s[t->other], 0, bytes};
            out[(*n)++] = (struct hv__change){run->stream->end_s[k], 0, -bytes};
        } else {
            out[(*n)++] = (struct hv__change){run->stream->start_s[k], bytes, 0};
            out[(*n)++] = (struct hv__change){run->node_end_s[t->other - 1], -bytes, 0};
        }
    }
    if (*n > 1) {
        qsort(out, *n, sizeof *out, by_time);
    }
    return out;
}
