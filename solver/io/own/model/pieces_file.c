/* Pieces of measured layers: blocks of attention, experts and their tokens. */
#include "solver/base/units.h"
#include "solver/io/own/model/model_int.h"

#define MAX_MS 1e12

const char *const hv__piece_keys[HV__PIECES] = {"attention_block_ms", "expert_fixed_ms",
                                                "expert_ms_per_token"};

/* A time, or [forward, backward]; absent: not given. */
static enum hv_status read_both(const struct hv_jp *p, struct hv_both_ways *out, bool *backward,
                                struct hv_err *err)
{
    double ms[2] = {HV_UNKNOWN, HV_UNKNOWN};
    size_t n = 1;
    enum hv_status st = HV_OK;
    *out = (struct hv_both_ways){HV_UNKNOWN, HV_UNKNOWN};
    if (hv_jp_none(p)) {
        return HV_OK;
    }
    if (!json_is_array(p->v)) {
        st = hv_jp_number(p, 0, MAX_MS, &ms[0], err);
    } else if (!(st = hv_jp_array(p, &n, err)) && n != 2) {
        st = hv_jp_expected(p, err, "a time, or two: [forward, backward]");
    }
    for (size_t i = 0; st == HV_OK && n == 2 && i < n; i++) {
        struct hv_jp at = hv_jp_at(p, i);
        st = hv_jp_number(&at, 0, MAX_MS, &ms[i], err);
    }
    *out = (struct hv_both_ways){ms[0] * HV_MS, ms[1] * HV_MS};
    *backward = *backward || n == 2;
    return st;
}

/* One for all devices, or an object by device. */
static enum hv_status read_piece(const struct hv_jp *layer, const char *key, struct hv_model *m,
                                 struct hv_both_ways **out, bool *backward, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(layer, key);
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    bool by_device = json_is_object(p.v);
    enum hv_status st = HV_OK;
    *out = hv_arena_new(&m->arena, struct hv_both_ways, m->n_devices + 1);
    (*out)[m->n_devices] = (struct hv_both_ways){HV_UNKNOWN, HV_UNKNOWN};
    for (size_t d = 0; st == HV_OK && d < m->n_devices + !by_device; d++) {
        struct hv_jp at = by_device ? hv_jp_get(&p, m->devices[d]) : p;
        st = read_both(&at, &(*out)[d], backward, err);
    }
    return st;
}

enum hv_status hv__pieces_read(const struct hv_jp *layer, struct hv_model *m,
                               struct hv_measured_layer *l, struct hv_err *err)
{
    struct hv_measured_pieces *x = &l->pieces;
    struct hv_both_ways **lists[HV__PIECES] = {&x->attention_block, &x->expert_fixed,
                                               &x->expert_token};
    struct hv_jp backward_ms = hv_jp_get(layer, "backward_ms");
    bool backward = !hv_jp_none(&backward_ms);
    enum hv_status st = HV_OK;
    x->kv_bytes = HV_UNKNOWN;
    x->top_k = 1;
    for (size_t i = 0; st == HV_OK && i < HV__PIECES; i++) {
        st = read_piece(layer, hv__piece_keys[i], m, lists[i], &backward, err);
    }
    if (st ||
        (st = hv_jp_opt_number(layer, "dispatch_bytes_per_token", 0, HV_MAX_BYTES,
                               &x->dispatch_bytes, err)) ||
        (st = hv_jp_opt_number(layer, "kv_bytes_per_token", 0, HV_MAX_BYTES, &x->kv_bytes, err)) ||
        (st = hv__read_int(layer, "experts", 1, HV_MAX_EXPERTS, &x->experts, err)) ||
        (st = hv__read_int(layer, "top_k", 1, HV_MAX_EXPERTS, &x->top_k, err))) {
        return st;
    }
    if (x->experts > 0 && x->top_k > x->experts) {
        struct hv_jp at = hv_jp_get(layer, "top_k");
        return hv_jp_fail(&at, err, "expected at most the layer's experts, %d, found %d",
                          x->experts, x->top_k);
    }
    l->forward_only = !hv_measured_is_whole(l) && !backward;
    return HV_OK;
}
