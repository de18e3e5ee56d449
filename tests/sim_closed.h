/**
 * Closed forms of pipeline schedules, to check the simulator against. Kept apart from it, so that
 * neither can hide a mistake of the other.
 */
#ifndef HV_TESTS_SIM_CLOSED_H
#define HV_TESTS_SIM_CLOSED_H

/** Equal stages: times of a whole rank for one micro-batch, and of one hop. */
struct closed_input {
    double ranks, micro_batches, chunks;
    double f_s, b_s, w_s; /**< b + w = whole backward */
    double hop_s;
};

static inline double closed_larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double closed_whole(const struct closed_input *c)
{
    return c->f_s + c->b_s + c->w_s;
}

/** GPipe, (m + p − 1)(f + b + w); exact at hop 0. Source: GPipe, NeurIPS'19, §2.3. */
static inline double closed_gpipe_s(const struct closed_input *c)
{
    return (c->micro_batches + c->ranks - 1) * closed_whole(c);
}

/**
 * 1F1B, (m + p − 1)(f + b + w) + (2(p − 1)(m/p + 1) − 2)·hop for p | m and a hop that is small
 * against f. Source: PipeDream-Flush (ICML'21) for hop 0; the hop term fitted to and checked
 * against simulation.
 */
static inline double closed_1f1b_s(const struct closed_input *c)
{
    double p = c->ranks, m = c->micro_batches;
    double hops = p > 1 ? 2 * (p - 1) * (m / p + 1) - 2 : 0;
    return (m + p - 1) * closed_whole(c) + hops * c->hop_s;
}

/** Interleaved 1F1B at hop 0, m ≥ p: m·S + (p − 1)·S/v. Source: Megatron-LM, SC'21, §2.2. */
static inline double closed_interleaved_s(const struct closed_input *c)
{
    return c->micro_batches * closed_whole(c) + (c->ranks - 1) * closed_whole(c) / c->chunks;
}

/** ZB-H1 wall time, m·S + (p − 1)·max(f, b, f + b − w), hop 0, m ≥ p. Source: Zero Bubble, ICLR'24,
 * §2.3. */
static inline double closed_zb_h1_s(const struct closed_input *c)
{
    double worst = closed_larger(closed_larger(c->f_s, c->b_s), c->f_s + c->b_s - c->w_s);
    return c->micro_batches * closed_whole(c) + (c->ranks - 1) * worst;
}

/** ZB-H2 wall time, m·S + (p − 1)·max(f, b − f, f + b − 2w), hop 0, m ≥ 2p − 1. Source: as ZB-H1.
 */
static inline double closed_zb_h2_s(const struct closed_input *c)
{
    double worst =
        closed_larger(closed_larger(c->f_s, c->b_s - c->f_s), c->f_s + c->b_s - 2 * c->w_s);
    return c->micro_batches * closed_whole(c) + (c->ranks - 1) * worst;
}

/** Token slices of equal cost: (m·k + p − 1)·S/k. Source: Seq1F1B, arXiv 2406.03488. */
static inline double closed_seq1f1b_s(const struct closed_input *c, double slices)
{
    return (c->micro_batches * slices + c->ranks - 1) * closed_whole(c) / slices;
}

#endif
