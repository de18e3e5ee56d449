/*
 * Schedules with one stage per rank and whole backwards: GPipe and the 1F1B family.
 */
#include "solver/sim/schedule/schedule_int.h"

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* activations rank r holds when it would hold `own`: within its limit, and never more than the rank
 * before it, which could not feed it (they would wait for each other) */
static int32_t held(const struct hv_schedule_input *in, int32_t rank, int32_t own, int32_t before)
{
    int32_t most = (int32_t)hv__limit(in, rank, own);
    return rank > 0 ? min32(most, before) : most;
}

/* one rank of a 1F1B-like order: `warm` forwards, then forward and backward in turn, then the rest
 */
static void add_1f1b(struct hv_schedule_builder *b, int32_t rank, int32_t m, int32_t warm)
{
    for (int32_t i = 0; i < warm; i++) {
        hv__add(b, HV_OP_F, rank, i);
    }
    for (int32_t i = warm; i < m; i++) {
        hv__add(b, HV_OP_F, rank, i);
        hv__add(b, HV_OP_BW, rank, i - warm);
    }
    for (int32_t i = m - warm; i < m; i++) {
        hv__add(b, HV_OP_BW, rank, i);
    }
    hv__rank_done(b);
}

/* a round of GPipe on one rank: n forwards from micro-batch `from` on, then their backwards */
static void add_gpipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                      int32_t rank, int32_t from, int32_t n)
{
    bool ascending = hv__option(in, "backward") == 1;
    for (int32_t i = from; i < from + n; i++) {
        hv__add(b, HV_OP_F, rank, i);
    }
    for (int32_t k = 0; k < n; k++) {
        int32_t i = from + (ascending ? k : n - 1 - k);
        if (hv__option(in, "recompute") != 0) {
            hv__add(b, HV_OP_R, rank, i);
        }
        hv__add(b, HV_OP_BW, rank, i);
    }
}

/* GPipe (NeurIPS'19, section 2.3), in rounds of the micro-batches that the ranks may hold;
 * `backward`: 0 = reverse, 1 = forward */
enum hv_status hv__gen_gpipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                             struct hv_err *err)
{
    (void)err;
    int32_t m = in->micro_batches, round = hv__round(in);
    b->free_adjacent_recompute = hv__option(in, "recompute") == 2;
    b->recompute_waits = true;
    for (int32_t r = 0; r < in->ranks; r++) {
        for (int32_t from = 0; from < m; from += round) {
            add_gpipe(in, b, r, from, min32(round, m - from));
        }
        hv__rank_done(b);
    }
    return HV_OK;
}

/* 1F1B: PipeDream-Flush (ICML'21), Megatron-LM without interleaving (SC'21) */
enum hv_status hv__gen_1f1b(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                            struct hv_err *err)
{
    (void)err;
    for (int32_t r = 0, keep = 0; r < in->ranks; r++) {
        keep = held(in, r, in->ranks - r, keep);
        add_1f1b(b, r, in->micro_batches, min32(in->micro_batches, keep - 1));
    }
    return HV_OK;
}

/* DAPPLE (PPoPP'21): rank r runs K_r forwards ahead; PA: p − r, PB: 2(p − r) − 1 */
enum hv_status hv__gen_dapple(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              struct hv_err *err)
{
    (void)err;
    bool pb = hv__option(in, "early") == 1;
    for (int32_t r = 0, keep = 0; r < in->ranks; r++) {
        keep = held(in, r, pb ? 2 * (in->ranks - r) - 1 : in->ranks - r, keep);
        add_1f1b(b, r, in->micro_batches, min32(in->micro_batches, keep) - 1);
    }
    return HV_OK;
}

/*
 * BPipe (ICML'23): 1F1B in which rank r < p/2 hands activations beyond ⌈(p + 2)/2⌉ to rank p − 1 −
 * r and takes each back before its backward. The two should share a fast link; transfers hide
 * behind compute.
 */
enum hv_status hv__gen_bpipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                             struct hv_err *err)
{
    int32_t p = in->ranks;
    enum hv_status st = hv__check_even_ranks(in, "pairs ranks", err);
    for (int32_t r = 0; r < p / 2; r++) {
        b->stash[r] = (int32_t)hv__limit(in, r, (p + 3) / 2);
    }
    struct hv_schedule_input whole = *in; /* the partner keeps what a limit leaves over */
    whole.limits = NULL;
    return st == HV_OK ? hv__gen_1f1b(&whole, b, err) : st;
}

/* a forward, in two halves where the micro-batch is cut */
static void add_forward(struct hv_schedule_builder *b, int32_t rank, int32_t mb, int32_t cut)
{
    for (int16_t half = 0; half < 2 && mb < cut; half++) {
        b->slice = half;
        hv__add(b, HV_OP_F, rank, mb);
    }
    b->slice = -1;
    if (mb >= cut) {
        hv__add(b, HV_OP_F, rank, mb);
    }
}

/*
 * AutoPipe's slicer (CLUSTER'22): 1F1B in which the forwards of the first micro-batches come in two
 * halves, so that every rank has its first work after half a forward of each rank before it.
 */
enum hv_status hv__gen_autopipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                struct hv_err *err)
{
    (void)err;
    int32_t p = in->ranks, m = in->micro_batches;
    int64_t asked = hv__option(in, "sliced");
    int32_t cut = asked > 0 ? (int32_t)asked : p - 1;
    cut = min32(cut, m);
    b->n_slices = cut > 0 ? 2 : 1;
    b->parts = cut > 0;
    for (int32_t r = 0; r < p; r++) {
        int32_t warm = min32(m, p - 1 - r);
        for (int32_t i = -warm; i < m; i++) {
            if (i + warm < m) {
                add_forward(b, r, i + warm, cut);
            }
            if (i >= 0) {
                hv__add(b, HV_OP_BW, r, i);
            }
        }
        hv__rank_done(b);
    }
    return HV_OK;
}

/* PipeDream (SOSP'19): 1F1B without flush; rank r keeps the weights of the p − r minibatches in
 * flight */
enum hv_status hv__gen_pipedream(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                 struct hv_err *err)
{
    for (int32_t r = 0, keep = 0; r < in->ranks; r++) {
        b->weight_versions[r] = keep = held(in, r, in->ranks - r, keep);
    }
    return hv__gen_1f1b(in, b, err);
}

/* PipeDream-2BW (ICML'21, section 3.1): two buffers serve as long as m ≥ p */
enum hv_status hv__gen_2bw(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                           struct hv_err *err)
{
    if (in->micro_batches < in->ranks) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule pipedream-2bw: two weight versions need a batch with at least "
                          "as many micro-batches as ranks, found m = %d, p = %d; use m = %d",
                          in->micro_batches, in->ranks, in->ranks);
    }
    for (int32_t r = 0; r < in->ranks; r++) {
        b->weight_versions[r] = 2;
    }
    return hv__gen_1f1b(in, b, err);
}
