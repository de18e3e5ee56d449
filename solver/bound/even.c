/**
 * Bound of even plans: no backward pass starts before a micro-batch has passed forward through all
 * layers.
 *
 * Let a plan be copies of one pipeline, each stage on one kind of devices with equal shares for its
 * ranks, and all micro-batches be of one size, whole sequences. Then all passes of a part have one
 * size x, one number of ranks and one kind k. Let T' be the time of an iteration without the time
 * around its passes (least.c), S the earnings of the devices in use per second, V the value of the
 * optimizer's work, and f the moment when the first backward pass begins in a copy. Its micro-batch
 * went forward through all parts before: f is at least the sum over the parts of one F. Before f
 * devices of the copy do nothing but F, so B and the weight gradients of the whole batch, and then
 * the optimizer, have T' - f on all devices; no copy has another least f:
 *
 *   3. T' S ≥ S f + V + Σ over devices of λ times B and weight gradients.
 *
 * With κ ≥ S the speed of all there are, (κ - S) (T' - f) ≥ 0 puts κ for S on both sides. θ times
 * the work (1 of chain.c) and 1-θ times that:
 *
 *   T' (θ S + (1-θ) κ) ≥ V + Σ_parts min over kinds, cells and x of
 *     N λ (θ (all by x) + (1-θ) (B and weight gradients by x)) + (1-θ) κ (F of one pass),
 *
 * where "by x" is w + s/x of the cell and F is s' + x w'. One x stands in all of them, as all
 * passes of a part are alike. That is the inequality of chain.c with other prices of a part,
 * and all that least.c makes of it holds, with V on both sides of the mix. It asks for smaller
 * passes than the chain of a sequence, which may fill all of T'.
 *
 * Plans outside (is_even of eval/which_bound.c): several replicas, micro-batches of several sizes
 * or in slices, uneven shares (of samples or of tensors), stages of several kinds, two pipelines on
 * the same devices.
 */
#include "solver/bound/bound_int.h"

#include "solver/base/units.h"

void hv__bound_even(const struct hv__work *w, struct hv_arena *arena, struct hv_bound *out)
{
    char more[HV_FMT_CAP], rest[HV_FMT_CAP];
    struct hv__work even = *w;
    even.even = true;
    double time_s = hv__bound_by_size(&even, arena);
    if (!isfinite(time_s) || !(time_s > out->spread_s)) {
        return;
    }
    out->even_s = time_s;
    out->even_why = hv_arena_printf(
        arena,
        "%s because no backward pass starts before a micro-batch has passed forward through all "
        "layers (only plans with unlike replicas or unlike passes may take less, down to %s)",
        hv_fmt_seconds(more, sizeof more, time_s - out->spread_s),
        hv_fmt_seconds(rest, sizeof rest, out->spread_s));
}
