/**
 * All-to-alls of experts inside a pass: how long they are, and when they come. A pass says how much
 * of it is exposed exchange, and by its milestones when it works on which blocks. Every block with
 * experts sends its tokens to the experts and back, so two exchanges come with each, here of equal
 * length: in a forward pass after the attention and after the experts, in a backward pass before
 * the experts and before the attention.
 */
#include "solver/eval/exchange/exchange_int.h"

/** Exchanges of a block in one direction: to the experts and back. */
#define EACH 2

/** Exposed exchanges of an op on the dp rank that has most of them, and that rank's pass. */
static double op_exchanges_s(const struct hv__pipeline *pl, const struct hv_op *op,
                             const struct hv_pass **out)
{
    const struct hv__gstage *g = &pl->gstages[(size_t)op->pipe * pl->n_gstages + (size_t)op->stage];
    size_t n_dp = pl->ranks[g->rank].n_dp;
    const struct hv_pass *of = &g->pass[hv__shape_of(pl, op->stage, op->mb, op->slice) * n_dp];
    double most_s = 0;
    for (size_t d = 0; d < n_dp && (op->kind != HV_OP_W && op->kind != HV_OP_R); d++) {
        double s = op->kind == HV_OP_F ? of[d].ep_forward_s : of[d].ep_s - of[d].ep_forward_s;
        *out = s > most_s ? &of[d] : *out;
        most_s = fmax(most_s, s);
    }
    return most_s;
}

/** The one op of a node; NULL: it is an overlapped pair. */
static const struct hv_op *only_op(const struct hv__pipeline *pl, int32_t node)
{
    size_t first = hv_pipe_first_op(pl->pipe, node);
    return hv_pipe_first_op(pl->pipe, node + 1) - first == 1 ? &pl->schedule->ops[first] : NULL;
}

double hv__exchanges_s(const struct hv__pipeline *pl, int32_t node)
{
    const struct hv_op *op = only_op(pl, node);
    const struct hv_pass *pass;
    return op != NULL ? op_exchanges_s(pl, op, &pass) : 0;
}

/** True where the half block of experts of a block is in a global stage. */
static bool sends_tokens(const struct hv__lowered *l, const struct hv__gstage *g, int block)
{
    const struct hv_model_leaf *leaf = &l->leaves.items[hv__leaf_of(l, (size_t)block)];
    int experts2 = 2 * block + 1;
    return experts2 >= g->range.from2 && experts2 < g->range.to2 &&
           hv_model_has_experts(leaf->model, (size_t)block - leaf->first);
}

/** Blocks of a global stage, the last one not included. */
struct blocks {
    int from, to;
};

static struct blocks blocks_of(const struct hv__gstage *g)
{
    return (struct blocks){g->range.from2 / 2, (g->range.to2 + 1) / 2};
}

/** Time of a pass that a share of it takes place before a place of its blocks. */
static double until_s(struct hv__holder *h, double at2, bool forward)
{
    double at = fmin(fmax(at2, h->g->range.from2), h->g->range.to2);
    double before_end_s = -hv__arrival(h, at).at_s; /* of a backward pass that ends at 0 */
    return forward ? before_end_s : h->duration_s - before_end_s;
}

size_t hv__list_exchanges(const struct hv__lowered *l, const struct hv__pipeline *pl, int32_t node,
                          struct hv__exchange **out)
{
    const struct hv_op *op = only_op(pl, node);
    const struct hv_pass *pass = NULL;
    double all_s = op != NULL ? op_exchanges_s(pl, op, &pass) : 0;
    if (!(all_s > 0)) {
        return 0;
    }
    const struct hv__gstage *g = &pl->gstages[(size_t)op->pipe * pl->n_gstages + (size_t)op->stage];
    double length_s = pl->run.node_end_s[node] - pl->run.node_start_s[node];
    struct hv__holder h = {.g = g, .pass = pass, .duration_s = length_s};
    struct blocks b = blocks_of(g);
    bool forward = op->kind == HV_OP_F;
    size_t n = 0, most = 0;
    for (int block = b.from; block < b.to; block++) {
        most += sends_tokens(l, g, block) ? EACH : 0;
    }
    *out = most > 0 ? hv_arena_new(l->arena, struct hv__exchange, most) : NULL;
    double each_s = most > 0 ? fmin(all_s, length_s) / (double)most : 0;
    for (int i = b.from; i < b.to; i++) {
        int block = forward ? i : b.from + b.to - 1 - i;
        if (!sends_tokens(l, g, block)) {
            continue;
        }
        double begins_s = until_s(&h, 2 * block + (forward ? 0 : 2), forward);
        double ends_s = until_s(&h, 2 * block + (forward ? 2 : 0), forward);
        double works_s = fmax(0, ends_s - begins_s - EACH * each_s);
        double first_s = begins_s + (forward ? works_s / 2 : 0);
        (*out)[n++] = (struct hv__exchange){first_s, each_s};
        (*out)[n++] = (struct hv__exchange){first_s + each_s + works_s / 2, each_s};
    }
    return n;
}
