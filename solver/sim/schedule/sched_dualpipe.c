/*
 * DualPipe and DualPipeV (DeepSeek-V3 technical report, section 3.2.1; steps of the published
 * code): two flows cross each other, so that a forward of one overlaps a backward of the other.
 */
#include "solver/sim/schedule/schedule_int.h"

/* one rank: two flows (0 = its own, 1 = the other), each with its stage and its micro-batches */
struct dual {
    struct hv_schedule_builder *b;
    int32_t stage[2], first_mb[2];
    uint8_t pipe[2];
    int32_t n_f[2], n_b[2];
    struct {
        int32_t flow, mb;
    } *w; /* B's whose W is still to come, oldest first */
    int32_t w_head, w_tail;
};

static void forward(struct dual *d, int flow)
{
    d->b->pipe = d->pipe[flow];
    hv__add(d->b, HV_OP_F, d->stage[flow], d->first_mb[flow] + d->n_f[flow]++);
}

static void backward(struct dual *d, int flow, bool split)
{
    int32_t mb = d->first_mb[flow] + d->n_b[flow]++;
    d->b->pipe = d->pipe[flow];
    hv__add(d->b, split ? HV_OP_B : HV_OP_BW, d->stage[flow], mb);
    if (split) {
        d->w[d->w_tail].flow = flow;
        d->w[d->w_tail++].mb = mb;
    }
}

static void weights(struct dual *d)
{
    int32_t flow = d->w[d->w_head].flow;
    d->b->pipe = d->pipe[flow];
    hv__add(d->b, HV_OP_W, d->stage[flow], d->w[d->w_head++].mb);
}

static void overlapped(struct dual *d, int f_flow)
{
    hv__pair_begin(d->b);
    forward(d, f_flow);
    backward(d, 1 - f_flow, false);
    hv__pair_end(d->b);
}

/* h: distance from the nearer end, half: ranks in a half, n: repetitions of the main step */
static void add_rank(struct dual *d, int32_t h, int32_t half, int32_t n)
{
    int32_t lead = half - h - 1;
    bool split = false;
    for (int32_t i = 0; i < 2 * lead; i++) {
        forward(d, 0);
    }
    for (int32_t i = 0; i < h + 1; i++) {
        forward(d, 0);
        forward(d, 1);
    }
    for (int32_t i = 0; i < lead; i++) {
        backward(d, 1, true);
        weights(d);
        forward(d, 1);
    }
    for (int32_t i = 0; i < n; i++) {
        if (i == 0 && lead == 0) { /* where the flows meet, the first is not overlapped */
            forward(d, 0);
            backward(d, 1, false);
        } else {
            overlapped(d, 0);
        }
        overlapped(d, 1);
    }
    for (int32_t i = 0; i < lead; i++) {
        backward(d, 1, false);
        overlapped(d, 1);
    }
    for (int32_t i = 0; i < h + 1; i++) {
        bool half_way = i == (h + 1) / 2;
        split = split || (half_way && h % 2 == 1);
        backward(d, 1, split);
        split = split || half_way;
        backward(d, 0, split);
    }
    for (int32_t i = 0; i < lead; i++) {
        weights(d);
        backward(d, 0, true);
    }
    while (d->w_head < d->w_tail) {
        weights(d);
    }
    d->b->pipe = 0;
    hv__rank_done(d->b);
}

enum hv_status hv__gen_dualpipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                struct hv_err *err)
{
    int32_t p = in->ranks, m = in->micro_batches;
    if (p % 2 != 0 || m % 2 != 0 || m < 2 * p) {
        int32_t near_p = p + p % 2, near_m = m + m % 2 > 2 * near_p ? m + m % 2 : 2 * near_p;
        return hv_err_set(err, HV_EUSAGE,
                          "schedule dualpipe needs an even number of ranks and an even number of "
                          "micro-batches of at least 2p, found p = %d, m = %d; use p = %d, m = %d",
                          p, m, near_p, near_m);
    }
    struct dual d = {.b = b, .w = hv_xcalloc((size_t)m, sizeof *d.w)};
    hv__set_pipes(b, 2);
    for (int32_t s = 0; s < p; s++) {
        b->stage_to_rank[s] = s;
        b->stage_to_rank[p + s] = p - 1 - s;
        b->weight_versions[s] = 2;
    }
    for (int32_t r = 0; r < p; r++) {
        bool second = r >= p / 2;
        int32_t h = second ? p - 1 - r : r;
        d = (struct dual){.b = b, .w = d.w};
        d.stage[0] = h;
        d.stage[1] = p - 1 - h;
        d.pipe[second ? 0 : 1] = 1;
        d.first_mb[second ? 0 : 1] = m / 2;
        add_rank(&d, h, p / 2, m / 2 - p + h + 1);
    }
    free(d.w);
    return HV_OK;
}

enum hv_status hv__gen_dualpipev(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                 struct hv_err *err)
{
    int32_t p = in->ranks, m = in->micro_batches;
    if (m < 2 * p) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule dualpipev needs at least 2p micro-batches, found m = %d; use "
                          "m = %d",
                          m, 2 * p);
    }
    struct dual d = {.b = b, .w = hv_xcalloc(2 * (size_t)m, sizeof *d.w)};
    hv__place_zigzag(b);
    for (int32_t r = 0; r < p; r++) {
        d = (struct dual){.b = b, .w = d.w, .stage = {r, 2 * p - 1 - r}};
        add_rank(&d, r, p, m - 2 * p + r + 1);
    }
    free(d.w);
    return HV_OK;
}
