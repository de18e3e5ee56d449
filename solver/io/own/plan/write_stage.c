/*
 * Writes one stage of a plan as a JSON tree. A key is left out where its value is the default of
 * hv_stage_defaults; every object keeps the order of read.h.
 */
#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include "solver/io/own/plan/write.h"
#include <string.h>

/* True where `v`, the value that `text` parses to, is written as the same text again. Only such a
 * text is written without quotes. */
static bool same_text(const json_t *v, const char *text)
{
    struct hv_str again = {0};
    hv_json_write(&again, v, false);
    bool same = strcmp(hv_str_cstr(&again), text) == 0;
    hv_str_free(&again);
    return same;
}

json_t *hv_option_to_json(const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);
    if (v == NULL || json_is_string(v) || json_is_object(v) || !same_text(v, text)) {
        json_decref(v);
        return json_string(text);
    }
    return v;
}

static void put_int(json_t *o, const char *key, int64_t v, int64_t otherwise)
{
    if (v != otherwise) {
        json_object_set_new(o, key, json_integer((json_int_t)v));
    }
}

static void put_bool(json_t *o, const char *key, bool v, bool otherwise)
{
    if (v != otherwise) {
        json_object_set_new(o, key, json_boolean(v));
    }
}

static void put_number(json_t *o, const char *key, double v, double otherwise)
{
    if (v != otherwise && hv_known(v)) {
        json_object_set_new(o, key, hv_json_num(v));
    }
}

/* The first word of every table is the default. */
static void put_word(json_t *o, const char *key, const char *const *words, int v)
{
    if (v != 0) {
        json_object_set_new(o, key, json_string(words[v]));
    }
}

static json_t *ints(const int *items, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(a, json_integer(items[i]));
    }
    return a;
}

static json_t *strings(const char *const *items, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(a, json_string(items[i]));
    }
    return a;
}

/* Shortest addresses: one string, or a list where they are several. */
static json_t *addresses(const struct hv_cluster *c, const uint32_t *ids, size_t n)
{
    struct hv_str text = {0};
    hv_address_format(c, ids, n, "\n", &text);
    json_t *list = json_array();
    const char *at = hv_str_cstr(&text);
    while (*at != '\0') {
        size_t len = strcspn(at, "\n");
        json_array_append_new(list, json_stringn(at, len));
        at += len + (at[len] == '\n');
    }
    hv_str_free(&text);
    if (json_array_size(list) != 1) {
        return list;
    }
    json_t *one = json_incref(json_array_get(list, 0));
    json_decref(list);
    return one;
}

static json_t *range(const struct hv_range *r)
{
    json_t *a = json_array();
    json_array_append_new(a, hv_json_num(r->from2 / 2.0));
    json_array_append_new(a, hv_json_num(r->to2 / 2.0));
    return a;
}

static void put_blocks(json_t *o, const struct hv_stage *s)
{
    if (s->module != NULL) {
        json_object_set_new(o, "module", json_string(s->module));
    }
    if (s->n_ranges == 1) {
        json_object_set_new(o, "layers", range(&s->ranges[0]));
    } else if (s->n_ranges > 1) {
        json_t *a = json_array();
        for (size_t i = 0; i < s->n_ranges; i++) {
            json_array_append_new(a, range(&s->ranges[i]));
        }
        json_object_set_new(o, "layers", a);
    }
    if (s->n_ops > 0) {
        json_object_set_new(o, "ops", strings(s->ops, s->n_ops));
    }
    if (s->embedding >= 0) {
        json_object_set_new(o, "embedding", json_boolean(s->embedding));
    }
    if (s->head >= 0) {
        json_object_set_new(o, "head", json_boolean(s->head));
    }
    if (s->n_after >= 0) {
        json_object_set_new(o, "after", ints(s->after, (size_t)s->n_after));
    }
}

static void put_tp(json_t *o, const struct hv_tp *tp)
{
    if (tp->scheme == HV_TP_1D && tp->depth == 1 && !tp->regather && tp->shares == NULL) {
        put_int(o, "tp", tp->degree, 1);
        return;
    }
    json_t *t = json_object();
    put_word(t, "scheme", hv_tp_scheme_words, (int)tp->scheme);
    put_int(t, "degree", tp->degree, 1);
    put_int(t, "depth", tp->depth, 1);
    put_bool(t, "regather", tp->regather, false);
    if (tp->shares != NULL) {
        json_object_set_new(t, "shares", ints(tp->shares, (size_t)tp->degree));
    }
    json_object_set_new(o, "tp", t);
}

static void put_cp(json_t *o, const struct hv_cp *cp)
{
    struct hv_stage def = {0};
    hv_stage_defaults(&def);
    json_t *t = json_object();
    put_word(t, "scheme", hv_cp_scheme_words, (int)cp->scheme);
    put_int(t, "degree", cp->degree, 1);
    put_int(t, "ulysses", cp->ulysses, 1);
    put_int(t, "inner", cp->inner, 1);
    put_word(t, "layout", hv_cp_layout_words, (int)cp->layout);
    put_int(t, "tile", cp->tile, def.cp.tile);
    put_word(t, "order", hv_cp_order_words, (int)cp->order);
    put_word(t, "backward", hv_cp_backward_words, (int)cp->backward);
    if (cp->n_dims > 0) {
        json_object_set_new(t, "dims", strings(cp->dims, cp->n_dims));
    }
    json_t *degree = json_object_get(t, "degree");
    if (json_object_size(t) == 1 && degree != NULL) {
        json_object_set(o, "cp", degree);
    } else if (json_object_size(t) > 0) {
        json_object_set(o, "cp", t);
    }
    json_decref(t);
}

static void put_copies(json_t *o, const struct hv_expert_copies *items, size_t n)
{
    if (n == 0) {
        return;
    }
    json_t *copies = json_object();
    for (size_t i = 0; i < n; i++) {
        struct hv_str key = {0};
        hv_str_addf(&key, "%d", items[i].expert);
        json_object_set_new(copies, hv_str_cstr(&key),
                            items[i].everywhere ? json_string("*")
                                                : ints(items[i].ranks, items[i].n_ranks));
        hv_str_free(&key);
    }
    json_object_set_new(o, "copies", copies);
}

static json_t *matrix(const double *m, size_t n)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_array();
        for (size_t k = 0; k < n; k++) {
            json_array_append_new(row, hv_json_num(m[i * n + k]));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static void put_degrees(json_t *o, const struct hv_moe_knobs *k)
{
    if (k->degree_forward == k->degree_backward) {
        put_int(o, "degree", k->degree_forward, 1);
        return;
    }
    int both[2] = {k->degree_forward, k->degree_backward};
    json_object_set_new(o, "degree", ints(both, HV_COUNT(both)));
}

static void put_adapt(json_t *o, const struct hv_adapting *a)
{
    if (a->policy == HV_ADAPT_NONE) {
        return;
    }
    json_t *x = json_object(), *list = a->n_placements > 0 ? json_array() : NULL;
    put_word(x, "policy", hv_adapt_words, (int)a->policy);
    put_int(x, "interval", a->interval, 1);
    put_int(x, "experts", a->experts, 1);
    for (size_t i = 0; i < a->n_placements; i++) {
        const struct hv_placement *p = &a->placements[i];
        json_t *e = json_object();
        json_object_set_new(e, "iteration", json_integer(p->iteration));
        if (p->from >= 0) {
            int span[2] = {p->from, p->to};
            json_object_set_new(e, "layers", ints(span, HV_COUNT(span)));
        }
        if (p->n_owners > 0) {
            json_object_set_new(e, "owners", ints(p->owners, p->n_owners));
        }
        put_copies(e, p->copies, p->n_copies);
        json_array_append_new(list, e);
    }
    if (list != NULL) {
        json_object_set_new(x, "placements", list);
    }
    json_object_set_new(o, "adapt", x);
}

static json_t *moe(const struct hv_moe_knobs *k)
{
    json_t *o = json_object();
    if (k->from >= 0) {
        int span[2] = {k->from, k->to};
        json_object_set_new(o, "layers", ints(span, HV_COUNT(span)));
    }
    put_int(o, "ep", k->ep, 0);
    put_number(o, "capacity_factor", k->capacity_factor, 0);
    put_int(o, "min_capacity", k->min_capacity, 0);
    put_int(o, "expert_shards", k->expert_shards, 1);
    put_word(o, "all_to_all", hv_a2a_words, (int)k->all_to_all);
    put_word(o, "kernel", hv_moe_kernel_words, (int)k->kernel);
    put_word(o, "dispatch", hv_moe_dispatch_words, (int)k->dispatch);
    put_degrees(o, k);
    put_word(o, "order", hv_moe_order_words, (int)k->order);
    put_word(o, "move", hv_moe_move_words, (int)k->move);
    if (k->n_owners > 0) {
        json_object_set_new(o, "owners", ints(k->owners, k->n_owners));
    }
    put_copies(o, k->copies, k->n_copies);
    put_word(o, "copy_life", hv_copy_life_words, (int)k->copy_life);
    put_int(o, "prefetch", k->prefetch, 0);
    put_adapt(o, &k->adapt);
    put_number(o, "off_node_frac", k->off_node_frac, HV_UNKNOWN);
    if (k->n_target > 0) {
        json_object_set_new(o, "target", matrix(k->target, k->n_target));
    }
    if (hv_known(k->compress_ratio)) {
        json_t *c = json_object();
        put_number(c, "ratio", k->compress_ratio, HV_UNKNOWN);
        put_number(c, "GBps", k->compress_bytes_per_s / HV_GBPS, HV_UNKNOWN);
        json_object_set_new(o, "compress", c);
    }
    return o;
}

static void put_moe(json_t *o, const struct hv_stage *s)
{
    if (s->n_moe == 0) {
        return;
    }
    if (s->n_moe == 1) {
        json_object_set_new(o, "moe", moe(&s->moe[0]));
        return;
    }
    json_t *a = json_array();
    for (size_t i = 0; i < s->n_moe; i++) {
        json_array_append_new(a, moe(&s->moe[i]));
    }
    json_object_set_new(o, "moe", a);
}

static void put_zero(json_t *o, const struct hv_zero *z)
{
    struct hv_stage def = {0};
    hv_stage_defaults(&def);
    json_t *t = json_object();
    put_int(t, "stage", z->stage, 0);
    put_int(t, "shard_group", z->shard_group, 0);
    put_word(t, "unit", hv_zero_unit_words, (int)z->unit);
    put_bool(t, "reshard", z->reshard, def.zero.reshard);
    put_int(t, "prefetch", z->prefetch, def.zero.prefetch);
    put_int(t, "limit", z->limit, def.zero.limit);
    put_word(t, "gather", hv_zero_gather_words, (int)z->gather);
    put_word(t, "gather_at", hv_zero_gather_at_words, (int)z->gather_at);
    bool groups = z->stage >= 2 && z->shard_group > 0; /* told, whichever it is */
    if (z->stage > 0 && (groups || z->reduce != hv_zero_default_reduce(z->stage, 0))) {
        json_object_set_new(t, "reduce", json_string(hv_zero_reduce_words[z->reduce]));
    }
    json_t *stage = json_object_get(t, "stage");
    if (json_object_size(t) == 1 && stage != NULL) {
        json_object_set(o, "zero", stage);
    } else if (json_object_size(t) > 0) {
        json_object_set(o, "zero", t);
    }
    json_decref(t);
}

void hv_recompute_format(unsigned mask, struct hv_str *out)
{
    if (mask == HV_RC_NONE || mask == HV_RC_FULL || mask == HV_RC_CORE) {
        hv_str_adds(out, mask == HV_RC_NONE ? "none" : mask == HV_RC_FULL ? "full" : "selective");
        return;
    }
    const char *join = "";
    for (unsigned i = 0; i < hv_recompute_N; i++) {
        if ((mask & (1U << i)) == 0) {
            continue;
        }
        hv_str_addf(out, "%s%s", join, hv_recompute_words[i]);
        join = "+";
    }
}

static json_t *recompute(unsigned mask)
{
    struct hv_str text = {0};
    hv_recompute_format(mask, &text);
    json_t *v = json_string(hv_str_cstr(&text));
    hv_str_free(&text);
    return v;
}

static void put_memory(json_t *o, const struct hv_cluster *c, const struct hv_stage *s)
{
    if (s->n_recompute_per > 0) {
        json_t *a = json_array();
        for (size_t i = 0; i < s->n_recompute_per; i++) {
            json_array_append_new(a, recompute(s->recompute_per[i]));
        }
        json_object_set_new(o, "recompute", a);
    } else if (s->recompute != HV_RC_NONE) {
        json_object_set_new(o, "recompute", recompute(s->recompute));
    }
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_offload; i++) {
        const struct hv_offload *f = &s->offload[i];
        json_t *e = json_object();
        json_object_set_new(e, "what", json_string(hv_offload_what_words[f->what]));
        put_number(e, "frac", f->frac, 1);
        if (!f->to_host) {
            json_object_set_new(e, "to", addresses(c, f->devices, f->n_devices));
        }
        json_array_append_new(list, e);
    }
    if (s->n_offload > 0) {
        json_object_set(o, "offload", list);
    }
    json_decref(list);
    put_int(o, "in_flight", s->in_flight, 0);
}

static json_t *pairs(const struct hv_named_pairs *p)
{
    json_t *o = json_object();
    for (size_t i = 0; i < p->n; i++) {
        json_object_set_new(o, p->keys[i], json_string(p->values[i]));
    }
    return o;
}

static size_t axis_number(const struct hv_named_pairs *mesh, const char *axis)
{
    size_t a = 0;
    while (a < mesh->n && strcmp(mesh->keys[a], axis) != 0) {
        a++;
    }
    return a;
}

/* A rule of shard: { axis: dimension } where its axes stand in the order of the mesh, else
 * { dimension: [axes] }. */
static json_t *rule_to_json(const struct hv_named_pairs *rule, const struct hv_named_pairs *mesh)
{
    bool in_order = true;
    for (size_t i = 1; i < rule->n; i++) {
        in_order =
            in_order && axis_number(mesh, rule->keys[i - 1]) <= axis_number(mesh, rule->keys[i]);
    }
    if (in_order) {
        return pairs(rule);
    }
    json_t *o = json_object();
    for (size_t i = 0; i < rule->n; i++) {
        if (json_object_get(o, rule->values[i]) == NULL) {
            json_object_set_new(o, rule->values[i], json_array());
        }
        json_array_append_new(json_object_get(o, rule->values[i]), json_string(rule->keys[i]));
    }
    return o;
}

static void put_graph(json_t *o, const struct hv_stage *s)
{
    if (s->mesh.n > 0) {
        json_t *mesh = json_object();
        for (size_t i = 0; i < s->mesh.n; i++) {
            json_object_set_new(mesh, s->mesh.keys[i], hv_option_to_json(s->mesh.values[i]));
        }
        json_object_set_new(o, "mesh", mesh);
    }
    if (s->n_shard > 0) {
        json_t *shard = json_object();
        for (size_t i = 0; i < s->n_shard; i++) {
            json_object_set_new(shard, s->shard[i].name, rule_to_json(&s->shard[i], &s->mesh));
        }
        json_object_set_new(o, "shard", shard);
    }
    if (s->place.n > 0) {
        json_object_set_new(o, "place", pairs(&s->place));
    }
    if (s->fuse.n > 0) {
        json_t *fuse = json_array();
        for (size_t i = 0; i < s->fuse.n; i++) {
            const char *const pair[2] = {s->fuse.keys[i], s->fuse.values[i]};
            json_array_append_new(fuse, strings(pair, HV_COUNT(pair)));
        }
        json_object_set_new(o, "fuse", fuse);
    }
}

static void put_entries(json_t *o, const struct hv_stage *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_degrees; i++) {
        const struct hv_degrees *d = &s->degrees[i];
        json_t *e = json_object();
        json_object_set_new(e, "layers", ints((const int[]){d->from, d->to}, 2));
        put_tp(e, &d->tp);
        put_bool(e, "sequence_parallel", d->sequence_parallel, false);
        put_cp(e, &d->cp);
        put_int(e, "dp", d->dp, 1);
        put_zero(e, &d->zero);
        json_array_append_new(list, e);
    }
    if (s->n_degrees > 0) {
        json_object_set(o, "degrees", list);
    }
    json_decref(list);
}

json_t *hv_stage_to_json(const struct hv_cluster *c, const struct hv_stage *s)
{
    json_t *o = json_object();
    json_object_set_new(o, "devices", addresses(c, s->devices, s->n_devices));
    put_blocks(o, s);
    put_int(o, "micro_batch", s->micro_batch, 0);
    put_tp(o, &s->tp);
    put_bool(o, "sequence_parallel", s->sequence_parallel, false);
    put_cp(o, &s->cp);
    put_int(o, "dp", s->dp, 1);
    put_word(o, "deal", hv_deal_words, (int)s->deal);
    if (s->shares != NULL) {
        json_object_set_new(o, "shares", ints(s->shares, (size_t)s->dp));
    }
    put_int(o, "ep", s->ep, 1);
    put_moe(o, s);
    put_zero(o, &s->zero);
    put_entries(o, s);
    put_memory(o, c, s);
    put_graph(o, s);
    return o;
}
