/*
 * Feed-forward products and experts of a part: rows, widths, kept bytes and parameters of the
 * busiest expert-parallel rank, and the bytes of its all-to-alls. Their time and overlap are in
 * exchange.c.
 */
#include <math.h>

#include "solver/cost/part/part_int.h"

void hv__add_ffn(struct hv__sum *s, const struct hv_block *b, const struct hv__ffn *x)
{
    double g = hv_ffn_kind_matrices(b->ffn_kind), h = s->m->hidden, f = x->width, rows = x->rows;
    bool experts = x->groups > 0;
    unsigned up = experts ? HV_RC_EXPERTS : HV_RC_UP, down = experts ? HV_RC_EXPERTS : HV_RC_DOWN;
    unsigned act = experts ? HV_RC_EXPERTS : HV_RC_ACT;
    double groups = experts ? x->groups : 1, kept = x->kept > 0 ? x->kept : rows;
    s->in_experts = experts;
    hv__add_product(s, &(struct hv__product){experts ? "experts up gemm" : "up gemm", up, rows,
                                             (g - 1) * f, h, groups, HV__CUT_COLUMNS});
    hv__add_stream(s, &(struct hv__stream){experts ? "experts activation" : "activation", act,
                                           s->elem * kept * g * f, g > 2 ? 5.0 / 3 : 1.5});
    hv__add_product(s, &(struct hv__product){experts ? "experts down gemm" : "down gemm", down,
                                             rows, h, f, groups, HV__CUT_ROWS});
    s->in_experts = false;
    hv__keep(s, s->elem * kept * (g - 1) * f, up);
    hv__keep(s, s->elem * kept * f, act);
    s->weight_only_bytes += s->elem * kept * g * f;
}

/* Seconds of the experts on one of `n` chunks of their tokens: forward, backward, recompute. */
struct chunk {
    double forward_s, input_grad_s, weight_grad_s, recompute_s;
};

/* Of `computed` rows in all. */
static struct chunk chunk_of(const struct hv__sum *s, const struct hv_block *b,
                             const struct hv__ffn *whole, double computed, int n)
{
    struct hv__ask quiet = *s->a;
    struct hv__ffn part = *whole;
    struct hv__sum probe = *s;
    quiet.why = NULL;
    probe.a = &quiet;
    probe.out = (struct hv_part_cost){0};
    part.rows = computed / n;
    part.kept = whole->kept / n;
    hv__add_ffn(&probe, b, &part);
    return (struct chunk){probe.out.forward_s, probe.out.input_grad_s, probe.out.weight_grad_s,
                          probe.out.recompute_s};
}

/* Exchanges cut into chunks run beside experts that see fewer tokens at a time. `rows`: of the unit
 * of d. */
static void cut_into_chunks(struct hv__sum *s, const struct hv_block *b, const struct hv__ffn *f,
                            const struct hv__dispatched *d, double rows)
{
    const struct hv_moe_knobs *m = s->q->moe;
    int forward = m && m->degree_forward > 1 ? m->degree_forward : 1;
    int backward = m && m->degree_backward > 1 ? m->degree_backward : 1;
    s->x.ep_chunks_forward = forward;
    s->x.ep_chunks_backward = backward;
    if (s->q->ep < 2 || (forward < 2 && backward < 2)) {
        return;
    }
    struct chunk whole = chunk_of(s, b, f, f->rows, 1);
    struct chunk x = chunk_of(s, b, f, rows * d->in_chunks[0], forward);
    struct chunk y = chunk_of(s, b, f, rows * d->in_chunks[1], backward);
    double more_s = forward * x.forward_s - whole.forward_s;
    s->out.forward_s += more_s;
    s->out.recompute_s += forward * x.recompute_s - whole.recompute_s;
    s->out.input_grad_s += backward * y.input_grad_s - whole.input_grad_s;
    s->out.weight_grad_s += backward * y.weight_grad_s - whole.weight_grad_s;
    s->x.ep_hidden_forward_s = x.forward_s;
    s->x.ep_hidden_backward_s = y.input_grad_s + y.weight_grad_s;
    hv_why_add(s->a->why, "experts in chunks", more_s, "s",
               "%d chunks forward, %d backward: thinner products and more of them", forward,
               backward);
}

/* True where tensor-parallel ranks with the same tokens send a slice of them each (Singh et al.
 * 2023, DeepSpeed-TED, duplicate token dropping). */
static bool sends_slices(const struct hv__sum *s)
{
    const struct hv_part_query *q = s->q;
    bool cut = q->tp_scheme == HV_TP_1D && q->tp > 1 && s->t_experts >= s->t;
    bool sends = q->ep > 1 && !hv__moves_experts(q);
    return q->moe && q->moe->all_to_all == HV_A2A_TP && sends && cut;
}

/* Bytes of the exchanges: `copies` of a rank, `whole` of all its tensor-parallel ranks. */
static void add_dispatch(struct hv__sum *s, const struct hv__dispatched *d, double copies,
                         double whole)
{
    if (sends_slices(s)) {
        s->x.slices_at_experts = whole * d->arrived;
        s->x.slices_at_source = s->q->sequence_parallel ? 0 : whole * d->own;
        copies = whole / s->q->tp;
    }
    s->x.ep_bytes = copies * d->sent;
    s->x.ep_own = copies * d->own;
    s->x.ep_arrived = copies * d->arrived;
}

/* Bytes that a sum keeps or needs. */
struct bytes {
    double full, kept, input;
};

static struct bytes bytes_of(const struct hv__sum *s)
{
    return (struct bytes){s->full_bytes, s->kept_bytes, s->weight_only_bytes};
}

/* Notes what every rank computes, and which bytes since `before` are of its tokens. */
static void note_ranks(struct hv__sum *s, const struct bytes *before)
{
    size_t n = (size_t)s->q->ep;
    struct bytes now = bytes_of(s);
    if (!hv_places_experts(s->q->moe) || !s->x.load) {
        return;
    }
    double *load = hv_arena_new(&s->a->k->arena, double, n);
    for (size_t r = 0; r < n; r++) {
        load[r] = s->load.work > 0 ? s->load.done[r] / s->load.work : 1;
    }
    s->out.rank_load = load;
    s->out.routed_saved_bytes = now.kept - before->kept;
    s->out.routed_input_bytes = now.input - before->input;
    s->out.routed_transient_bytes = now.full - before->full - s->out.routed_saved_bytes;
}

/*
 * Tokens of a rank are put into the places of all experts by a product with a tensor of tokens x
 * places that is 1 where a token goes, and taken back by one with its gate's weights (GShard,
 * Lepikhin et al. 2021, algorithm 2; Switch Transformer, Fedus et al. 2022). Every place of every
 * expert costs a product with all tokens: 2 T · E·C · h FLOPs each, which no model needs. Backward
 * the mask has no gradient, the weights have. Both tensors are kept.
 */
static void add_one_hot(struct hv__sum *s, double tokens, double places)
{
    double h = s->m->hidden, bytes = 2 * s->elem * tokens * places;
    hv__add_stream(s, &(struct hv__stream){"one-hot tensors", HV_RC_EXPERTS, bytes, 0.5});
    hv__add_tensor_product(s,
                           &(struct hv__product){"one-hot dispatch gemm", HV_RC_EXPERTS, places, h,
                                                 tokens, 1, HV__CUT_NONE},
                           false);
    hv__add_tensor_product(s,
                           &(struct hv__product){"one-hot combine gemm", HV_RC_EXPERTS, tokens, h,
                                                 places, 1, HV__CUT_NONE},
                           true);
    hv__keep(s, bytes, HV_RC_EXPERTS);
}

/* Rows of the products of the busiest rank, and those of them that hold no token. */
static void explain_rows(const struct hv__sum *s, const struct hv__dispatched *d, double rows)
{
    if (s->a->why == NULL) {
        return;
    }
    size_t ranks = d->routed && s->q->ep > 1 ? (size_t)s->q->ep : 0;
    double tokens = rows * d->tokens, computed = rows * d->computed;
    hv_why_add(s->a->why, "expert rows", computed, "rows",
               "of products on the busiest rank, %.6g of them without a token", computed - tokens);
    hv_why_attach_rows(s->a->why, &(struct hv_why_rows){.tokens = tokens,
                                                        .computed = computed,
                                                        .ranks = ranks,
                                                        .rank_rows = s->load.done});
}

/* Moves tokens of a rank to their places in front of the experts and back behind them. */
static void add_places(struct hv__sum *s, const struct hv__dispatched *d, double tokens, int top_k)
{
    double copies = s->elem * tokens * top_k * s->m->hidden;
    if (hv__is_one_hot(s->q->moe)) {
        add_one_hot(s, tokens, d->places * top_k * tokens);
        return;
    }
    hv__add_stream(s, &(struct hv__stream){"dispatch and combine", HV_RC_EXPERTS, copies * d->moved,
                                           d->moved_back / d->moved});
}

static void add_routed(struct hv__sum *s, const struct hv_block *b)
{
    double h = s->m->hidden, k = b->top_k, whole = 1;
    if (s->t_experts < s->t) {
        whole = s->q->tp / s->depth / s->t_experts;
    }
    double rows = s->rows / whole * k; /* each rank that holds whole experts sends its share */
    double copies = s->elem * s->rows * k * h / fmax(s->t_norm, whole);
    struct hv__dispatched d = hv__dispatched_of(s->a, b, rows, &s->load);
    s->x.load = d.routed ? &s->load : NULL;
    explain_rows(s, &d, rows);
    add_places(s, &d, s->rows / fmax(s->t_norm, whole), b->top_k);
    double flops = s->out.flops_forward;
    const struct bytes before = bytes_of(s);
    struct hv__ffn f = {hv__cut(s, b->expert_ffn / s->t_experts, d.shards), rows * d.computed,
                        d.groups, rows * d.between};
    hv__add_ffn(s, b, &f);
    cut_into_chunks(s, b, &f, &d, rows);
    hv__keep(s, copies * (d.inputs + d.outputs), HV_RC_EXPERTS);
    s->weight_only_bytes += copies * (d.inputs + d.outputs);
    note_ranks(s, &before);
    double all = (s->out.flops_forward - flops) * d.shards / d.computed;
    s->out.flops_forward = flops + all * d.kept_frac;
    s->out.expert_parameters =
        hv_block_expert_parameters(s->m, b) * d.held / d.shards / b->experts / s->t_experts;
    s->out.routed = 1;
    s->out.dropped_frac = 1 - d.kept_frac;
    s->x.ep_copies = k * d.shards;
    add_dispatch(s, &d, copies, k * s->elem * s->rows * h);
    hv__add_travel(s, b);
    if (d.tokens > d.shards * (1 + 1e-12)) {
        hv_why_add(s->a->why, "busiest experts", s->x.ep_bytes, "bytes",
                   "%.3g times the mean of its tokens and %.0f experts on the busiest rank, for "
                   "which all ranks wait",
                   d.tokens / d.shards, d.held);
    }
}

void hv__add_experts(struct hv__sum *s, const struct hv_block *b)
{
    double h = s->m->hidden, r = s->rows, routed = s->x.grid.side > 1 ? r : r / s->t_norm;
    hv__add_product(s, &(struct hv__product){"router gemm", HV_RC_EXPERTS, routed, b->experts, h, 1,
                                             HV__CUT_NONE});
    add_routed(s, b);
    if (b->shared_experts) {
        hv__add_ffn(s, b,
                    &(struct hv__ffn){hv__cut(s, (double)b->shared_experts * b->shared_ffn, s->t),
                                      r, 0, 0});
    }
    double local = ceil((double)b->experts / (s->q->ep > 1 ? s->q->ep : 1));
    /* routing decides on the host how many rows each product gets, and the device waits for it */
    double host_s = s->e.calibration->v[HV_CAL_EXPERT_US] * HV_US;
    hv__count_start(s, host_s, host_s, 0);
    host_s *= s->a->rates->starts;
    if (!s->q->moe || s->q->moe->kernel == HV_MOE_GROUPED) { /* others start one for all experts */
        host_s *= 1 + local / HV_EFF_EXPERTS_A_HOST;
    }
    s->out.forward_s += host_s;
    s->out.input_grad_s += host_s;
    hv_why_add(s->a->why, "expert host work", host_s, "s", "per layer of experts, each way (%s)",
               s->e.calibration->source);
    s->x.ep_again = (s->q->recompute & HV_RC_EXPERTS) != 0;
}
