/* Memory of a rank with changes beside its operations: one list of changes in time order. */
#include "solver/sim/pipeline/memory_beside.h"

#include "solver/sim/pipeline/pipeline_int.h"
#include <stdlib.h>

static int by_time(const void *x, const void *y)
{
    const struct hv_memory_change *a = x, *b = y;
    if (a->at_s < b->at_s || a->at_s > b->at_s) {
        return a->at_s < b->at_s ? -1 : 1;
    }
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

void hv_memory_sort(struct hv_memory_change *items, size_t n)
{
    if (n > 1) {
        qsort(items, n, sizeof *items, by_time);
    }
}

struct hv_memory_changes hv_pipe_changes(struct hv_arena *a, const struct hv_pipe *g,
                                         const struct hv_pipe_run *run,
                                         const struct hv_pipe_memory *mem, int32_t rank,
                                         const struct hv_memory_changes *beside)
{
    int32_t from = g->rank_node_at[rank], to = g->rank_node_at[rank + 1];
    size_t n = 0, n_stream = 0;
    struct hv__change *stream =
        mem->stream != NULL ? hv__stream_changes(run, mem, rank, &n_stream) : NULL;
    size_t most = 2 * (size_t)(to - from) + n_stream + beside->n;
    struct hv_memory_change *out = hv_arena_new(a, struct hv_memory_change, most + 1);
    for (int32_t k = from; k < to; k++) {
        struct hv__node_bytes d = hv__node_bytes(g, mem, k);
        out[n++] = (struct hv_memory_change){run->node_start_s[k], d.start + d.transient, 0, 0};
        out[n++] = (struct hv_memory_change){run->node_end_s[k], d.end - d.transient, 0, 0};
    }
    for (size_t i = 0; i < n_stream; i++) {
        const struct hv__change *c = &stream[i];
        out[n++] = (struct hv_memory_change){c->at_s, c->gathered_bytes + c->unsent_bytes,
                                             c->gathered_bytes, c->unsent_bytes};
    }
    free(stream);
    for (size_t i = 0; i < beside->n; i++) {
        out[n++] = beside->items[i];
    }
    hv_memory_sort(out, n);
    return (struct hv_memory_changes){out, n, mem->base_bytes ? mem->base_bytes[rank] : 0};
}

struct hv_pipe_peak hv_memory_peak(const struct hv_memory_changes *c)
{
    struct hv_pipe_peak p = {.peak_bytes = c->base_bytes};
    double gathered = 0, unsent = 0;
    for (size_t i = 0; i < c->n; i++) {
        p.end_bytes += c->items[i].bytes;
        gathered += c->items[i].gathered_bytes;
        unsent += c->items[i].unsent_bytes;
        if (c->base_bytes + p.end_bytes > p.peak_bytes) {
            p.peak_bytes = c->base_bytes + p.end_bytes;
            p.peak_at_s = c->items[i].at_s;
            p.gathered_bytes = gathered;
            p.unsent_bytes = unsent;
        }
    }
    return p;
}

size_t hv_memory_steps(const struct hv_memory_changes *c, struct hv_memory_step *out)
{
    double now = c->base_bytes, last_s = 0;
    size_t n = 1;
    if (out) {
        out[0] = (struct hv_memory_step){0, now};
    }
    for (size_t i = 0; i < c->n; i++) {
        now += c->items[i].bytes;
        n -= c->items[i].at_s <= last_s; /* joined to the step at that time */
        last_s = c->items[i].at_s;
        if (out) {
            out[n] = (struct hv_memory_step){last_s, now};
        }
        n++;
    }
    return n;
}
