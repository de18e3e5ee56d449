/*
 * Bytes over time of a priced pipeline: peaks and traces. A rank runs one op at a time, so its
 * memory follows from its order; the run adds the times.
 */
#include "solver/sim/pipeline/pipeline_int.h"

#include <math.h>
#include <stdlib.h>

void hv_pipe_memory_simple(const struct hv_schedule *s, const double *activation_bytes,
                           const double *kept_for_w_bytes, const double *full_bytes,
                           double *start_bytes, double *end_bytes)
{
    for (int32_t i = 0; i < s->n_stages; i++) {
        double *start = start_bytes + (size_t)i * HV_OP_KIND_N;
        double *end = end_bytes + (size_t)i * HV_OP_KIND_N;
        double kept = kept_for_w_bytes ? kept_for_w_bytes[i] : 0;
        double again = full_bytes ? full_bytes[i] : 0;
        for (int k = 0; k < HV_OP_KIND_N; k++) {
            start[k] = end[k] = 0;
        }
        start[HV_OP_F] = activation_bytes[i];
        start[HV_OP_R] = again;
        end[HV_OP_B] = -(activation_bytes[i] + again - kept);
        end[HV_OP_W] = -kept;
        end[HV_OP_BW] = -(activation_bytes[i] + again);
    }
}

struct hv__node_bytes hv__node_bytes(const struct hv_pipe *g, const struct hv_pipe_memory *mem,
                                     int32_t n)
{
    struct hv__node_bytes d = {0};
    for (size_t i = hv_pipe_first_op(g, n); i < hv_pipe_first_op(g, n + 1); i++) {
        const struct hv_op *op = &g->s.ops[i];
        d.start += hv_pipe_op_bytes(&g->s, mem, mem->start_bytes, op);
        d.transient += hv_pipe_op_bytes(&g->s, mem, mem->transient_bytes, op);
        d.end += hv_pipe_op_bytes(&g->s, mem, mem->end_bytes, op);
    }
    return d;
}

/* with a stash: bytes of rank r's own activations beyond its share, by the bytes of its forwards.
 * Only where a rank has one stage and whole micro-batches */
static double lent_bytes(const struct hv_pipe *g, const struct hv_pipe_memory *mem, int32_t r,
                         int32_t held)
{
    int32_t over = g->s.stash && g->s.stash[r] > 0 ? held - g->s.stash[r] : 0;
    return over > 0 ? over * mem->start_bytes[(size_t)r * HV_OP_KIND_N + HV_OP_F] : 0;
}

/* change of the number of activations that a rank holds */
static int32_t held_by(const struct hv_pipe *g, int32_t n, bool at_start)
{
    enum hv_op_kind k = (enum hv_op_kind)g->s.ops[hv_pipe_first_op(g, n)].kind;
    return at_start ? k == HV_OP_F : -(k == HV_OP_BW || k == HV_OP_W);
}

/* adds to each rank the most bytes of the activations that it keeps for another rank */
static void add_kept_for_others(const struct hv_pipe *g, const struct hv_pipe_memory *mem,
                                struct hv_pipe_peak *out)
{
    for (int32_t r = 0; r < g->s.n_ranks && g->s.stash; r++) {
        int32_t held = 0, most = 0;
        for (int32_t n = g->rank_node_at[r]; n < g->rank_node_at[r + 1]; n++) {
            held += held_by(g, n, true);
            most = held > most ? held : most;
            held += held_by(g, n, false);
        }
        out[g->s.n_ranks - 1 - r].peak_bytes += lent_bytes(g, mem, r, most);
    }
}

/* what a stream holds, from change to change */
struct held {
    struct hv__change *changes; /* NULL: there is no stream */
    size_t n, next;
    double gathered_bytes, unsent_bytes;
};

/* keeps the largest sum; own: without what the stream holds */
static void take_peak(double own_bytes, double at_s, const struct held *h, struct hv_pipe_peak *out)
{
    double bytes = own_bytes + h->gathered_bytes + h->unsent_bytes;
    if (bytes > out->peak_bytes) {
        out->peak_bytes = bytes;
        out->peak_at_s = at_s;
        out->gathered_bytes = h->gathered_bytes;
        out->unsent_bytes = h->unsent_bytes;
    }
}

/* takes the changes of a stream up to a time, and the peaks between them */
static void follow(struct held *h, double to_s, double own_bytes, struct hv_pipe_peak *out)
{
    for (; h->next < h->n && h->changes[h->next].at_s <= to_s; h->next++) {
        const struct hv__change *x = &h->changes[h->next];
        h->gathered_bytes += x->gathered_bytes;
        h->unsent_bytes += x->unsent_bytes;
        if (h->next + 1 == h->n || h->changes[h->next + 1].at_s > x->at_s) {
            take_peak(own_bytes, x->at_s, h, out);
        }
    }
}

/* takes the changes before a time; those at it come later */
static void follow_before(struct held *h, double to_s, double own_bytes, struct hv_pipe_peak *out)
{
    if (h->next < h->n) {
        follow(h, nextafter(to_s, -INFINITY), own_bytes, out);
    }
}

static struct hv_pipe_peak peak_of(const struct hv_pipe *g, const struct hv_pipe_run *run,
                                   const struct hv_pipe_memory *mem, int32_t r)
{
    double now = 0, base = mem->base_bytes ? mem->base_bytes[r] : 0;
    int32_t held = 0;
    struct held h = {0};
    struct hv_pipe_peak out = {.peak_bytes = base};
    h.changes = mem->stream ? hv__stream_changes(run, mem, r, &h.n) : NULL;
    for (int32_t n = g->rank_node_at[r]; n < g->rank_node_at[r + 1]; n++) {
        struct hv__node_bytes d = hv__node_bytes(g, mem, n);
        follow(&h, run->node_start_s[n], base + now - lent_bytes(g, mem, r, held), &out);
        now += d.start;
        held += held_by(g, n, true);
        double here = base + now + d.transient - lent_bytes(g, mem, r, held);
        take_peak(here, run->node_start_s[n], &h, &out);
        follow_before(&h, run->node_end_s[n], here, &out);
        now += d.end;
        held += held_by(g, n, false);
    }
    out.end_bytes = now;
    free(h.changes);
    return out;
}

void hv_pipe_peaks(const struct hv_pipe *g, const struct hv_pipe_run *run,
                   const struct hv_pipe_memory *mem, struct hv_pipe_peak *out)
{
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        out[r] = peak_of(g, run, mem, r);
    }
    add_kept_for_others(g, mem, out);
}

/* a trace being written */
struct trace {
    struct hv_memory_step *out; /* or NULL */
    size_t n;
    double last_s;
    double own_bytes, stream_bytes; /* of the last step */
    struct hv__change *changes;     /* of the stream; NULL: there is none */
    size_t next, n_changes;
};

/* appends a step, or changes the last one where it is at the same time */
static void add_step(struct trace *t, double at_s)
{
    if (t->n > 0 && t->last_s == at_s) {
        t->n--;
    }
    if (t->out) {
        t->out[t->n] = (struct hv_memory_step){at_s, t->own_bytes + t->stream_bytes};
    }
    t->last_s = at_s;
    t->n++;
}

/* appends the changes of the stream up to a time */
static void follow_stream(struct trace *t, double to_s)
{
    for (; t->next < t->n_changes && t->changes[t->next].at_s <= to_s; t->next++) {
        t->stream_bytes += t->changes[t->next].gathered_bytes + t->changes[t->next].unsent_bytes;
        add_step(t, t->changes[t->next].at_s);
    }
}

/* sets the bytes without the stream from a time on */
static void step_to(struct trace *t, double at_s, double own_bytes)
{
    follow_stream(t, at_s);
    t->own_bytes = own_bytes;
    add_step(t, at_s);
}

size_t hv_pipe_trace(const struct hv_pipe *g, const struct hv_pipe_run *run,
                     const struct hv_pipe_memory *mem, int32_t rank, struct hv_memory_step *out)
{
    double now = mem->base_bytes ? mem->base_bytes[rank] : 0;
    struct trace t = {.out = out};
    t.changes = mem->stream ? hv__stream_changes(run, mem, rank, &t.n_changes) : NULL;
    step_to(&t, 0, now);
    int32_t held = 0;
    for (int32_t n = g->rank_node_at[rank]; n < g->rank_node_at[rank + 1]; n++) {
        struct hv__node_bytes d = hv__node_bytes(g, mem, n);
        now += d.start;
        held += held_by(g, n, true);
        step_to(&t, run->node_start_s[n], now + d.transient - lent_bytes(g, mem, rank, held));
        now += d.end;
        held += held_by(g, n, false);
        step_to(&t, run->node_end_s[n], now - lent_bytes(g, mem, rank, held));
    }
    follow_stream(&t, (double)INFINITY);
    free(t.changes);
    return t.n;
}
