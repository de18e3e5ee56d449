/*
 * Checks that an order of operations is valid on every rank. Deadlocks across ranks are found by
 * hv_pipe_compile.
 */
#include "solver/sim/schedule/check_int.h"

/* the ops seen of one (stage, micro-batch, slice): bits of kinds, direction above them */
enum { SEEN_PIPE_SHIFT = 8 };

static unsigned bit(enum hv_op_kind k)
{
    return 1u << (unsigned)k;
}

static enum hv_status fail(const struct hv__checker *c, enum hv_status st, const struct hv_op *op,
                           int32_t rank, const char *why)
{
    char token[HV_OP_TOKEN_CAP];
    return hv_err_set(c->err, st, "order of rank %d: %s %s", rank,
                      hv_op_format(op, token, sizeof token), why);
}

static size_t slot(const struct hv_schedule *s, const struct hv_op *op)
{
    int32_t q = op->slice > 0 ? op->slice : 0;
    return ((size_t)op->stage * (size_t)s->n_micro_batches + (size_t)op->mb) * (size_t)s->n_slices +
           (size_t)q;
}

static enum hv_status check_ranges(const struct hv__checker *c, const struct hv_op *op,
                                   int32_t rank)
{
    const struct hv_schedule *s = c->s;
    if (op->kind >= HV_OP_KIND_N || op->stage < 0 || op->stage >= s->n_stages || op->mb < 0 ||
        op->mb >= s->n_micro_batches || op->slice < -1 || op->slice >= s->n_slices ||
        op->pipe >= s->n_pipes) {
        return fail(c, HV_EINPUT, op, rank,
                    "is outside of the schedule's stages, micro-batches, slices or directions");
    }
    if ((op->slice < 0) != (s->n_slices == 1) && !(s->parts && op->slice < 0)) {
        if (op->slice < 0 || s->n_slices > 1) {
            return fail(c, HV_EINPUT, op, rank,
                        "mixes token slices and whole micro-batches; write all or none with a "
                        "slice");
        }
    }
    if (s->stage_to_rank[(size_t)op->pipe * (size_t)s->n_stages + (size_t)op->stage] != rank) {
        return fail(c, HV_EINPUT, op, rank,
                    "is not on the rank that holds its stage; a stage may be on one rank, or on "
                    "two as the two directions of a micro-batch flow");
    }
    return HV_OK;
}

/* the kinds that must and must not have been seen before an op of each kind */
static const char *sequence_fault(enum hv_op_kind k, unsigned seen)
{
    const unsigned f = bit(HV_OP_F), r = bit(HV_OP_R), b = bit(HV_OP_B), w = bit(HV_OP_W),
                   bw = bit(HV_OP_BW);
    switch (k) {
    case HV_OP_F:
        return seen & (r | b | w | bw) ? "comes after its own backward or recompute" : NULL;
    case HV_OP_R:
        return !(seen & f)           ? "comes before its forward"
               : seen & (b | w | bw) ? "comes after its backward"
                                     : NULL;
    case HV_OP_B:
    case HV_OP_BW:
        return seen & (k == HV_OP_B ? bw : b | w) ? "occurs both as B and as BW"
               : !(seen & f)                      ? "comes before its forward"
                                                  : NULL;
    case HV_OP_W:
        return seen & bw     ? "occurs beside BW, which contains it"
               : !(seen & b) ? "comes before its B"
                             : NULL;
    case HV_OP_KIND_N:
        break;
    }
    return "has no kind";
}

static enum hv_status check_op(const struct hv__checker *c, const struct hv_op *op, int32_t rank)
{
    enum hv_status st = check_ranges(c, op, rank);
    if (st != HV_OK) {
        return st;
    }
    size_t at = slot(c->s, op);
    enum hv_op_kind k = (enum hv_op_kind)op->kind;
    unsigned seen = c->seen[at];
    if (seen & bit(k)) {
        return fail(c, HV_EINPUT, op, rank, "occurs twice");
    }
    if (c->s->parts && k != HV_OP_F && op->slice >= 0) {
        return fail(c, HV_EINPUT, op, rank, "is a part of an operation; only forwards have parts");
    }
    if (seen && seen >> SEEN_PIPE_SHIFT != op->pipe) {
        return fail(c, HV_EINPUT, op, rank, "is on another rank than its forward");
    }
    const char *fault = sequence_fault(k, seen);
    if (fault) {
        return fail(c, HV_ENO, op, rank, fault);
    }
    if (k == HV_OP_F && op->slice > 0 && !(c->seen[at - 1] & bit(HV_OP_F))) {
        return fail(c, HV_ENO, op, rank, "comes before the slice ahead of it");
    }
    for (int32_t q = 1; c->s->parts && k != HV_OP_F && q < c->s->n_slices; q++) {
        if (!(c->seen[at + (size_t)q] & bit(HV_OP_F))) {
            return fail(c, HV_ENO, op, rank, "comes before the last part of its forward");
        }
    }
    unsigned any_b = bit(HV_OP_B) | bit(HV_OP_BW);
    if ((bit(k) & any_b) && op->slice >= 0 && op->slice + 1 < c->s->n_slices &&
        !(c->seen[at + 1] & any_b)) {
        return fail(c, HV_ENO, op, rank, "comes before the backward of the slice behind it");
    }
    c->seen[at] = (uint16_t)(seen | bit(k) | (unsigned)op->pipe << SEEN_PIPE_SHIFT);
    for (int32_t q = 1; c->s->parts && op->slice < 0 && q < c->s->n_slices; q++) {
        c->seen[at + (size_t)q] = c->seen[at]; /* whole: all its parts at once */
    }
    return HV_OK;
}

static enum hv_status check_pair(const struct hv__checker *c, size_t i, size_t end, int32_t rank)
{
    const struct hv_op *op = &c->s->ops[i];
    bool with_next = i + 1 < end && op[1].group == op->group;
    bool with_last = i > c->s->rank_at[rank] && op[-1].group == op->group;
    if (op->group >= c->s->n_groups || with_next == with_last) {
        return fail(c, HV_EINPUT, op, rank,
                    "belongs to an overlapped pair whose operations are not adjacent");
    }
    return HV_OK;
}

/* the usual case of check_op, a whole micro-batch where it belongs: true when it is in order */
static inline bool is_plain(const struct hv__checker *c, const struct hv_op *op, int32_t rank)
{
    enum { F = 1 << HV_OP_F, B = 1 << HV_OP_B, W = 1 << HV_OP_W, BW = 1 << HV_OP_BW };
    enum { R = 1 << HV_OP_R, ANY_PIPE = 0xff << SEEN_PIPE_SHIFT };
    static const uint16_t looked_at[HV_OP_KIND_N] = {[HV_OP_F] = F | B | W | BW | R,
                                                     [HV_OP_B] = F | B | W | BW,
                                                     [HV_OP_W] = B | W | BW,
                                                     [HV_OP_BW] = F | B | W | BW,
                                                     [HV_OP_R] = F | B | W | BW | R};
    static const uint16_t wanted[HV_OP_KIND_N] = {
        [HV_OP_F] = 0, [HV_OP_B] = F, [HV_OP_W] = B, [HV_OP_BW] = F, [HV_OP_R] = F};
    const struct hv_schedule *s = c->s;
    if (op->kind >= HV_OP_KIND_N || op->pipe != 0 || op->slice >= 0 || s->n_slices != 1 ||
        op->group >= 0 || (uint32_t)op->stage >= (uint32_t)s->n_stages ||
        (uint32_t)op->mb >= (uint32_t)s->n_micro_batches || s->stage_to_rank[op->stage] != rank) {
        return false;
    }
    uint16_t *seen = &c->seen[(size_t)op->stage * (size_t)s->n_micro_batches + (size_t)op->mb];
    if ((*seen & (looked_at[op->kind] | ANY_PIPE)) != wanted[op->kind]) {
        return false;
    }
    *seen = (uint16_t)(*seen | 1u << op->kind);
    return true;
}

/* reports missing ops: a forward has its backward, a B its W. No op occurs twice and none without
 * its predecessor, so counts suffice */
static enum hv_status check_complete(const struct hv__checker *c)
{
    const struct hv_schedule *s = c->s;
    size_t backward = c->count[HV_OP_B] + c->count[HV_OP_BW];
    if (backward == 0 ||
        (backward == c->count[HV_OP_F] && c->count[HV_OP_B] == c->count[HV_OP_W])) {
        return HV_OK;
    }
    for (int32_t r = 0; r < s->n_ranks; r++) {
        for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1]; i++) {
            struct hv_op first = s->ops[i];
            first.slice = s->parts ? -1 : first.slice; /* parts share their backward */
            unsigned seen = c->seen[slot(s, &first)];
            if (!(seen & (bit(HV_OP_BW) | bit(HV_OP_B)))) {
                return fail(c, HV_EINPUT, &s->ops[i], r, "has no backward (B or BW)");
            }
            if ((seen & bit(HV_OP_B)) && !(seen & bit(HV_OP_W))) {
                return fail(c, HV_EINPUT, &s->ops[i], r, "has no W for its B");
            }
        }
    }
    return HV_OK;
}

enum hv_status hv__check_begin(struct hv__checker *c, const struct hv_schedule *s,
                               struct hv_err *err)
{
    double slots = (double)s->n_stages * s->n_micro_batches * s->n_slices;
    *c = (struct hv__checker){.s = s, .err = err};
    if (slots > (double)HV_SCHEDULE_OPS_MAX) {
        return hv_err_set(err, HV_ELIMIT,
                          "%d stages × %d micro-batches × %d slices are more than the limit of %zu",
                          s->n_stages, s->n_micro_batches, s->n_slices, HV_SCHEDULE_OPS_MAX);
    }
    c->seen = hv_arena_new(&c->arena, uint16_t, (size_t)slots + 1);
    return HV_OK;
}

enum hv_status hv__check_rank(struct hv__checker *c, int32_t r)
{
    const struct hv_schedule *s = c->s;
    enum hv_status st = HV_OK;
    for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1] && st == HV_OK; i++) {
        __builtin_prefetch(&s->ops[i] + 64); /* a kilobyte ahead */
        if (!is_plain(c, &s->ops[i], r)) {
            st = check_op(c, &s->ops[i], r);
        }
        bool rest = s->parts && s->ops[i].slice > 0; /* of a forward that has been counted */
        if (st == HV_OK && !rest) {
            c->count[s->ops[i].kind]++;
        }
        if (st == HV_OK && s->ops[i].group >= 0) {
            st = check_pair(c, i, s->rank_at[r + 1], r);
        }
    }
    return st;
}

enum hv_status hv__check_end(struct hv__checker *c, enum hv_status st)
{
    st = st == HV_OK ? check_complete(c) : st;
    hv_arena_free(&c->arena);
    return st;
}
