/*
 * Bytes over time of a priced pipeline: peaks and traces. A rank runs one op at a time, so its
 * memory follows from its order; the run adds the times.
 */
#include "solver/sim/pipeline/pipeline_int.h"

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

/* a table's value for one op, scaled by its micro-batch */
static double value(const struct hv_pipe *g, const struct hv_pipe_memory *mem, const double *table,
                    const struct hv_op *op)
{
    if (!table) {
        return 0;
    }
    double x = table[(size_t)op->stage * HV_OP_KIND_N + op->kind] * hv_op_share(&g->s, op);
    if (mem->mb_scale) {
        size_t q = op->slice > 0 ? (size_t)op->slice : 0;
        x *= mem->mb_scale[(size_t)op->mb * (size_t)g->s.n_slices + q];
    }
    return x;
}

struct hv__node_bytes hv__node_bytes(const struct hv_pipe *g, const struct hv_pipe_memory *mem,
                                     int32_t n)
{
    struct hv__node_bytes d = {0};
    for (size_t i = hv_pipe_first_op(g, n); i < hv_pipe_first_op(g, n + 1); i++) {
        const struct hv_op *op = &g->s.ops[i];
        d.start += value(g, mem, mem->start_bytes, op);
        d.transient += value(g, mem, mem->transient_bytes, op);
        d.end += value(g, mem, mem->end_bytes, op);
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

void hv_pipe_peaks(const struct hv_pipe *g, const struct hv_pipe_run *run,
                   const struct hv_pipe_memory *mem, struct hv_pipe_peak *out)
{
    for (int32_t r = 0; r < g->s.n_ranks; r++) {
        double base = mem->base_bytes ? mem->base_bytes[r] : 0;
        double now = 0;
        int32_t held = 0;
        out[r] = (struct hv_pipe_peak){.peak_bytes = base};
        for (int32_t n = g->rank_node_at[r]; n < g->rank_node_at[r + 1]; n++) {
            struct hv__node_bytes d = hv__node_bytes(g, mem, n);
            now += d.start;
            held += held_by(g, n, true);
            double here = base + now + d.transient - lent_bytes(g, mem, r, held);
            if (here > out[r].peak_bytes) {
                out[r].peak_bytes = here;
                out[r].peak_at_s = run->node_start_s[n];
            }
            now += d.end;
            held += held_by(g, n, false);
        }
        out[r].end_bytes = now;
    }
    add_kept_for_others(g, mem, out);
}

/* appends a step, or changes the last one where it is at the same time */
static size_t add_step(struct hv_memory_step *out, size_t n, double *last_s, double at_s,
                       double bytes)
{
    if (n > 0 && *last_s == at_s) {
        n--;
    }
    if (out) {
        out[n] = (struct hv_memory_step){at_s, bytes};
    }
    *last_s = at_s;
    return n + 1;
}

size_t hv_pipe_trace(const struct hv_pipe *g, const struct hv_pipe_run *run,
                     const struct hv_pipe_memory *mem, int32_t rank, struct hv_memory_step *out)
{
    double now = mem->base_bytes ? mem->base_bytes[rank] : 0, last = 0;
    size_t n_steps = add_step(out, 0, &last, 0, now);
    int32_t held = 0;
    for (int32_t n = g->rank_node_at[rank]; n < g->rank_node_at[rank + 1]; n++) {
        struct hv__node_bytes d = hv__node_bytes(g, mem, n);
        now += d.start;
        held += held_by(g, n, true);
        n_steps = add_step(out, n_steps, &last, run->node_start_s[n],
                           now + d.transient - lent_bytes(g, mem, rank, held));
        now += d.end;
        held += held_by(g, n, false);
        n_steps =
            add_step(out, n_steps, &last, run->node_end_s[n], now - lent_bytes(g, mem, rank, held));
    }
    return n_steps;
}
