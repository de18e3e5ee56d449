/*
 * Closed forms. Kept apart from the simulator so that neither can hide a mistake of the other.
 */
#include "solver/sim/closed.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double whole(const struct hv_closed_input *c)
{
    return c->f_s + c->b_s + c->w_s;
}

double hv_closed_gpipe_s(const struct hv_closed_input *c)
{
    return (c->micro_batches + c->ranks - 1) * whole(c);
}

double hv_closed_1f1b_s(const struct hv_closed_input *c)
{
    double p = c->ranks, m = c->micro_batches;
    double hops = p > 1 ? 2 * (p - 1) * (m / p + 1) - 2 : 0;
    return (m + p - 1) * whole(c) + hops * c->hop_s;
}

double hv_closed_interleaved_s(const struct hv_closed_input *c)
{
    return c->micro_batches * whole(c) + (c->ranks - 1) * whole(c) / c->chunks;
}

double hv_closed_zb_h1_s(const struct hv_closed_input *c)
{
    double worst = larger(larger(c->f_s, c->b_s), c->f_s + c->b_s - c->w_s);
    return c->micro_batches * whole(c) + (c->ranks - 1) * worst;
}

double hv_closed_zb_h2_s(const struct hv_closed_input *c)
{
    double worst = larger(larger(c->f_s, c->b_s - c->f_s), c->f_s + c->b_s - 2 * c->w_s);
    return c->micro_batches * whole(c) + (c->ranks - 1) * worst;
}

double hv_closed_seq1f1b_s(const struct hv_closed_input *c, double slices)
{
    return (c->micro_batches * slices + c->ranks - 1) * whole(c) / slices;
}
