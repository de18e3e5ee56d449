/** The linear program of a pipeline's layers in closed form. It uses the figures of stages only;
 * the judge decides whether another division of the layers is faster. */
#include "solver/eval/balance.h"

#include <math.h>

#include "solver/base/units.h"

/** Reads the figures of one stage; false where it has none. */
static bool read_stage(const struct hv_verdict *v, const struct hv_stage *s, size_t replica,
                       size_t i, struct hv_balance_stage *out)
{
    int halves = 0;
    for (size_t k = 0; k < s->n_ranges; k++) {
        halves += s->ranges[k].to2 - s->ranges[k].from2;
    }
    out->layers = halves / 2.0;
    bool timed = false, held = false;
    for (size_t k = 0; k < v->n_stages; k++) {
        const struct hv_stage_metrics *m = &v->stages[k];
        if (m->replica == replica && m->stage == i) {
            out->layer_s = (m->forward_s + m->backward_s) / out->layers;
            timed = out->layer_s > 0;
        }
    }
    for (size_t k = 0; k < v->n_memory; k++) {
        const struct hv_stage_memory *m = &v->memory[k];
        if (m->replica == replica && m->stage == i) {
            out->fixed_bytes = m->overhead_bytes + m->transient_bytes;
            out->layer_bytes = (m->peak_bytes - out->fixed_bytes) / out->layers;
            out->limit_bytes = m->limit_bytes;
            held = out->layer_bytes > 0;
        }
    }
    return halves > 0 && halves % 2 == 0 && timed && held;
}

static double room_of(const struct hv_balance_stage *s)
{
    return fmax(0, (s->limit_bytes - s->fixed_bytes) / s->layer_bytes);
}

/** Divides the layers: stages are fixed at their memory limit one by one, until the others fit. */
static void solve(struct hv_balance *b, bool *full)
{
    for (bool again = true; again;) {
        double rest = b->layers, speed = 0;
        again = false;
        for (size_t i = 0; i < b->n; i++) {
            rest -= full[i] ? room_of(&b->stages[i]) : 0;
            speed += full[i] ? 0 : 1 / b->stages[i].layer_s;
        }
        if (!(speed > 0)) {
            b->best_pace_s = HV_UNKNOWN; /* every stage is full and layers are left */
            for (size_t i = 0; i < b->n; i++) {
                struct hv_balance_stage *s = &b->stages[i];
                s->best_layers = room_of(s);
                s->time_price = s->memory_price_s_per_byte = HV_UNKNOWN;
            }
            return;
        }
        b->best_pace_s = rest / speed;
        for (size_t i = 0; i < b->n; i++) {
            struct hv_balance_stage *s = &b->stages[i];
            s->best_layers = full[i] ? room_of(s) : b->best_pace_s / s->layer_s;
            s->time_price = full[i] ? 0 : 1 / s->layer_s / speed;
            s->memory_price_s_per_byte = full[i] ? 1 / speed / s->layer_bytes : 0;
            if (!full[i] && s->best_layers > room_of(s)) {
                again = true;
            }
        }
        for (size_t i = 0; again && i < b->n; i++) {
            full[i] = full[i] || b->stages[i].best_layers > room_of(&b->stages[i]);
        }
    }
}

size_t hv_eval_slowest_entry(const struct hv_verdict *v)
{
    size_t at = 0;
    double most = -1;
    for (size_t i = 0; i < v->n_stages; i++) {
        if (v->stages[i].busy_frac > most) {
            most = v->stages[i].busy_frac;
            at = v->stages[i].replica;
        }
    }
    return at;
}

enum hv_status hv_eval_balance(const struct hv_verdict *v, const struct hv_plan *p, size_t replica,
                               struct hv_arena *arena, struct hv_balance *out, struct hv_err *err)
{
    *out = (struct hv_balance){.replica = replica};
    if (replica >= p->n_replicas) {
        return hv_err_set(err, HV_ENO, "the plan has no pipelines");
    }
    const struct hv_replica *r = &p->replicas[replica];
    out->n = r->n_stages;
    if (r->n_stages < 2) {
        return hv_err_set(err, HV_ENO,
                          "the replica has one stage only, so there is nothing to balance");
    }
    out->stages = hv_arena_new(arena, struct hv_balance_stage, r->n_stages);
    for (size_t i = 0; i < r->n_stages; i++) {
        if (!read_stage(v, &r->stages[i], replica, i, &out->stages[i])) {
            return hv_err_set(err, HV_ENO, "stage %zu does not hold whole layers with known times",
                              i);
        }
        out->layers += out->stages[i].layers;
        out->pace_s = fmax(out->pace_s, out->stages[i].layers * out->stages[i].layer_s);
    }
    out->micro_batches = (double)r->micro_batches;
    solve(out, hv_arena_new(arena, bool, r->n_stages));
    return HV_OK;
}

bool hv_balance_whole(const struct hv_balance *b, size_t more, int *out)
{
    int left = (int)b->layers - (int)b->n;
    for (size_t i = 0; i < b->n; i++) {
        out[i] = 1;
        if (floor(room_of(&b->stages[i]) + 1e-9) + (i == more) < 1) {
            return false;
        }
    }
    for (; left > 0; left--) {
        size_t best = b->n;
        double soonest = HUGE_VAL;
        for (size_t i = 0; i < b->n; i++) {
            double end = (out[i] + 1) * b->stages[i].layer_s;
            bool fits = out[i] + 1 <= floor(room_of(&b->stages[i]) + 1e-9) + (i == more);
            if (fits && end < soonest) {
                soonest = end;
                best = i;
            }
        }
        if (best == b->n) {
            return false;
        }
        out[best]++;
    }
    return left == 0;
}
