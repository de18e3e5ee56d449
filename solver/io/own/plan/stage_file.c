/*
 * Reads one stage of a plan: devices, blocks, memory and graph knobs. Degrees are in
 * parallel_file.c, experts in moe_file.c. Consistency of the numbers is checked in
 * solver/plan/check.c.
 */
#include "solver/base/units.h"
#include "solver/io/own/plan/read.h"
#include <math.h>
#include <string.h>

/* A cut between blocks: a whole number, or one and a half. */
static enum hv_status read_cut(const struct hv_jp *p, int *out2, struct hv_err *err)
{
    double v = 0;
    HV_TRY(hv_jp_number(p, 0, HV_PLAN_BLOCKS_MAX, &v, err));
    double twice = v * 2;
    if (twice != floor(twice)) {
        return hv_jp_expected(p, err,
                              "a block number, or one and a half between attention and FFN");
    }
    *out2 = (int)twice;
    return HV_OK;
}

static enum hv_status read_range(const struct hv_jp *p, struct hv_range *out, struct hv_err *err)
{
    size_t n = 0;
    HV_TRY(hv_jp_array(p, &n, err));
    if (n != 2) {
        return hv_jp_expected(p, err, "a range [from, to)");
    }
    struct hv_jp from = hv_jp_at(p, 0), to = hv_jp_at(p, 1);
    HV_TRY(read_cut(&from, &out->from2, err));
    HV_TRY(read_cut(&to, &out->to2, err));
    if (out->to2 < out->from2) {
        return hv_jp_expected(p, err, "a range [from, to) with from no later than to");
    }
    return HV_OK;
}

static enum hv_status read_layers(struct hv_plan_reader *rd, const struct hv_jp *p,
                                  struct hv_stage *s, struct hv_err *err)
{
    size_t n = 0;
    HV_TRY(hv_jp_array(p, &n, err));
    if (n == 0) {
        return hv_jp_expected(p, err, "a range [from, to) or a list of ranges, one per chunk");
    }
    bool many = json_is_array(json_array_get(p->v, 0));
    s->n_ranges = many ? n : 1;
    s->ranges = hv_arena_new(rd->arena, struct hv_range, s->n_ranges);
    if (!many) {
        return read_range(p, &s->ranges[0], err);
    }
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(p, i);
        HV_TRY(read_range(&e, &s->ranges[i], err));
        if (i > 0 && s->ranges[i].from2 < s->ranges[i - 1].to2) {
            return hv_jp_expected(&e, err, "chunks in model order that do not overlap");
        }
    }
    return HV_OK;
}

static enum hv_status read_blocks(struct hv_plan_reader *rd, const struct hv_jp *p,
                                  struct hv_stage *s, struct hv_err *err)
{
    struct hv_jp layers = hv_jp_get(p, "layers"), ops = hv_jp_get(p, "ops");
    const char *module = NULL;
    HV_TRY(hv_jp_opt_string(p, "module", &module, err));
    s->module = hv_arena_strdup(rd->arena, module);
    if (hv_jp_none(&layers) && hv_jp_none(&ops)) {
        return hv_jp_need(p, "layers", "the blocks of the stage: a range [from, to), or ops",
                          &layers, err);
    }
    if (!hv_jp_none(&layers) && !hv_jp_none(&ops)) {
        return hv_jp_expected(&ops, err, "either layers or ops, not both");
    }
    if (hv_jp_none(&ops)) {
        return read_layers(rd, &layers, s, err);
    }
    HV_TRY(hv_plan_read_strings(rd, &ops, &s->ops, &s->n_ops, err));
    return s->n_ops > 0 ? HV_OK : hv_jp_expected(&ops, err, "at least one operator name pattern");
}

static enum hv_status read_ends(const struct hv_jp *p, struct hv_stage *s, struct hv_err *err)
{
    struct {
        const char *key;
        int *out;
    } ends[] = {{"embedding", &s->embedding}, {"head", &s->head}};
    for (size_t i = 0; i < HV_COUNT(ends); i++) {
        struct hv_jp e = hv_jp_get(p, ends[i].key);
        bool v = false;
        if (hv_jp_none(&e)) {
            continue;
        }
        HV_TRY(hv_jp_bool(&e, &v, err));
        *ends[i].out = v ? 1 : 0;
    }
    return HV_OK;
}

static enum hv_status read_after(struct hv_plan_reader *rd, const struct hv_jp *p, size_t n_stages,
                                 size_t number, struct hv_stage *s, struct hv_err *err)
{
    struct hv_jp after = hv_jp_get(p, "after");
    if (hv_jp_none(&after)) {
        return HV_OK;
    }
    size_t n = 0;
    HV_TRY(hv_plan_read_ints(rd, &after, 0, (int64_t)n_stages - 1, &s->after, &n, err));
    s->n_after = (int)n;
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&after, i);
        if ((size_t)s->after[i] == number) {
            return hv_jp_expected(&e, err, "the number of another stage");
        }
        for (size_t k = 0; k < i; k++) {
            if (s->after[k] == s->after[i]) {
                return hv_jp_expected(&e, err, "each stage once");
            }
        }
    }
    return HV_OK;
}

/* One `recompute` text: none, selective, full, or units joined by `+`. */
static enum hv_status read_units(const struct hv_jp *p, unsigned *out, struct hv_err *err)
{
    static const char what[] =
        "none, selective, full, or units of qkv core out up act down norm experts joined by +";
    const char *text = NULL;
    HV_TRY(hv_jp_string(p, &text, err));
    *out = HV_RC_NONE;
    if (strcmp(text, "none") == 0) {
        return HV_OK;
    }
    if (strcmp(text, "full") == 0) {
        *out = HV_RC_FULL;
        return HV_OK;
    }
    while (true) {
        size_t n = strcspn(text, "+");
        unsigned bit =
            n == strlen("selective") && strncmp(text, "selective", n) == 0 ? HV_RC_CORE : 0;
        for (unsigned i = 0; i < hv_recompute_N && bit == 0; i++) {
            if (strlen(hv_recompute_words[i]) == n &&
                strncmp(text, hv_recompute_words[i], n) == 0) {
                bit = 1U << i;
            }
        }
        if (bit == 0 || (*out & bit) != 0) {
            return hv_jp_expected(p, err, what);
        }
        *out |= bit;
        if (text[n] == '\0') {
            return HV_OK;
        }
        text += n + 1;
    }
}

static enum hv_status read_recompute(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                     struct hv_stage *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "recompute");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (!json_is_array(p.v)) {
        return read_units(&p, &s->recompute, err);
    }
    size_t n = json_array_size(p.v);
    if (n == 0) {
        return hv_jp_expected(&p, err, "one entry per block of the stage");
    }
    s->recompute_per = hv_arena_new(rd->arena, unsigned, n);
    s->n_recompute_per = n;
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(read_units(&e, &s->recompute_per[i], err));
    }
    return HV_OK;
}

static enum hv_status read_offload_item(struct hv_plan_reader *rd, const struct hv_jp *p,
                                        struct hv_offload *o, struct hv_err *err)
{
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_offload_item, err));
    struct hv_jp what;
    HV_TRY(hv_jp_need(p, "what", "activations, optimizer or weights", &what, err));
    HV_TRY_WORD(p, "what", hv_offload_what, o->what);
    o->frac = 1;
    HV_TRY(hv_jp_opt_number(p, "frac", 0, 1, &o->frac, err));
    struct hv_jp to = hv_jp_get(p, "to");
    o->to_host =
        hv_jp_none(&to) || (json_is_string(to.v) && strcmp(json_string_value(to.v), "host") == 0);
    if (o->to_host) {
        return HV_OK;
    }
    return hv_plan_read_devices(rd, &to, &o->devices, &o->n_devices, err);
}

static enum hv_status read_memory(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                  struct hv_stage *s, struct hv_err *err)
{
    HV_TRY(read_recompute(rd, stage, s, err));
    HV_TRY(hv_plan_read_int(stage, "in_flight", 0, HV_PLAN_MICRO_BATCHES_MAX, &s->in_flight, err));
    struct hv_jp p = hv_jp_get(stage, "offload");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_jp_array(&p, &s->n_offload, err));
    s->offload = hv_arena_new(rd->arena, struct hv_offload, s->n_offload);
    for (size_t i = 0; i < s->n_offload; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(read_offload_item(rd, &e, &s->offload[i], err));
    }
    return HV_OK;
}

static void pairs_alloc(struct hv_plan_reader *rd, struct hv_named_pairs *out, size_t n)
{
    out->keys = hv_arena_new(rd->arena, const char *, n);
    out->values = hv_arena_new(rd->arena, const char *, n);
    out->n = n;
}

static enum hv_status read_mesh(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                struct hv_named_pairs *out, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "mesh");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (!json_is_object(p.v)) {
        return hv_jp_expected(&p, err, "an object { axis: size }");
    }
    pairs_alloc(rd, out, json_object_size(p.v));
    size_t i = 0;
    const char *axis = NULL;
    json_t *v = NULL;
    json_object_foreach(p.v, axis, v)
    {
        struct hv_jp e = hv_jp_get(&p, axis);
        int64_t size = 0;
        HV_TRY(hv_jp_int(&e, 1, HV_PLAN_DEGREE_MAX, &size, err));
        out->keys[i] = hv_arena_strdup(rd->arena, axis);
        out->values[i++] = hv_arena_printf(rd->arena, "%lld", (long long)size);
    }
    return HV_OK;
}

/* An object of strings: { axis: dim } of a shard rule, { op pattern: address } of place. */
static enum hv_status read_pairs(struct hv_plan_reader *rd, const struct hv_jp *p, const char *what,
                                 struct hv_named_pairs *out, struct hv_err *err)
{
    if (!json_is_object(p->v)) {
        return hv_jp_expected(p, err, what);
    }
    pairs_alloc(rd, out, json_object_size(p->v));
    size_t i = 0;
    const char *key = NULL;
    json_t *v = NULL;
    json_object_foreach(p->v, key, v)
    {
        struct hv_jp e = hv_jp_get(p, key);
        const char *text = NULL;
        HV_TRY(hv_jp_string(&e, &text, err));
        out->keys[i] = hv_arena_strdup(rd->arena, key);
        out->values[i++] = hv_arena_strdup(rd->arena, text);
    }
    return HV_OK;
}

/* Appends an axis to a rule: at the end, or (`mesh`) at its place in the order of the mesh. */
static enum hv_status add_axis(struct hv_plan_reader *rd, const struct hv_jp *p,
                               const struct hv_named_pairs *mesh, const char *axis, const char *dim,
                               struct hv_named_pairs *rule, struct hv_err *err)
{
    size_t at = rule->n, own = 0;
    for (size_t i = 0; i < rule->n; i++) {
        if (strcmp(rule->keys[i], axis) == 0) {
            return hv_jp_fail(p, err, "the axis \"%.80s\" is used twice", axis);
        }
    }
    while (mesh != NULL && own < mesh->n && strcmp(mesh->keys[own], axis) != 0) {
        own++;
    }
    while (mesh != NULL && own < mesh->n && at > 0) {
        size_t before = 0;
        while (before < mesh->n && strcmp(mesh->keys[before], rule->keys[at - 1]) != 0) {
            before++;
        }
        if (before <= own) {
            break;
        }
        rule->keys[at] = rule->keys[at - 1];
        rule->values[at] = rule->values[at - 1];
        at--;
    }
    rule->keys[at] = hv_arena_strdup(rd->arena, axis);
    rule->values[at] = hv_arena_strdup(rd->arena, dim);
    rule->n++;
    return HV_OK;
}

/* Axes of one dimension, the major one first. */
static enum hv_status read_axes(struct hv_plan_reader *rd, const struct hv_jp *list,
                                const char *dim, struct hv_named_pairs *rule, size_t room,
                                struct hv_err *err)
{
    size_t n = 0;
    HV_TRY(hv_jp_array(list, &n, err));
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(list, i);
        const char *axis = NULL;
        HV_TRY(hv_jp_string(&e, &axis, err));
        if (rule->n == room) {
            return hv_jp_fail(&e, err, "more than %zu axes", room);
        }
        HV_TRY(add_axis(rd, &e, NULL, axis, dim, rule, err));
    }
    return HV_OK;
}

#define MAX_RULE_AXES 64

/* A rule of shard: { axis: dimension }, axes of one dimension in the order of the mesh, or
 * { dimension: [axes] }. */
static enum hv_status read_rule(struct hv_plan_reader *rd, const struct hv_jp *p,
                                const struct hv_named_pairs *mesh, struct hv_named_pairs *rule,
                                struct hv_err *err)
{
    if (!json_is_object(p->v) || json_object_size(p->v) > MAX_RULE_AXES) {
        return hv_jp_expected(p, err,
                              "an object { axis: dimension or \"partial\" }, or { dimension: "
                              "[axes] }");
    }
    pairs_alloc(rd, rule, MAX_RULE_AXES);
    rule->n = 0;
    const char *key = NULL;
    json_t *v = NULL;
    json_object_foreach(p->v, key, v)
    {
        struct hv_jp e = hv_jp_get(p, key);
        const char *dim = NULL;
        if (json_is_array(v)) {
            HV_TRY(read_axes(rd, &e, key, rule, MAX_RULE_AXES, err));
            continue;
        }
        HV_TRY(hv_jp_string(&e, &dim, err));
        if (rule->n == MAX_RULE_AXES) {
            return hv_jp_fail(&e, err, "more than %d axes", MAX_RULE_AXES);
        }
        HV_TRY(add_axis(rd, &e, mesh, key, dim, rule, err));
    }
    return HV_OK;
}

static enum hv_status read_shard(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                 struct hv_stage *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "shard");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (!json_is_object(p.v)) {
        return hv_jp_expected(&p, err, "an object { operator pattern: { axis: dimension } }");
    }
    s->shard = hv_arena_new(rd->arena, struct hv_named_pairs, json_object_size(p.v));
    const char *pattern = NULL;
    json_t *v = NULL;
    json_object_foreach(p.v, pattern, v)
    {
        struct hv_jp e = hv_jp_get(&p, pattern);
        struct hv_named_pairs *rule = &s->shard[s->n_shard++];
        rule->name = hv_arena_strdup(rd->arena, pattern);
        HV_TRY(read_rule(rd, &e, &s->mesh, rule, err));
    }
    return HV_OK;
}

static enum hv_status read_place(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                 struct hv_stage *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "place");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(read_pairs(rd, &p, "an object { operator pattern: device address }", &s->place, err));
    for (size_t i = 0; i < s->place.n; i++) {
        struct hv_jp e = hv_jp_get(&p, s->place.keys[i]);
        uint32_t *ids = NULL;
        size_t n = 0;
        HV_TRY(hv_plan_read_devices(rd, &e, &ids, &n, err));
    }
    return HV_OK;
}

static enum hv_status read_fuse(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                struct hv_named_pairs *out, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(stage, "fuse");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    size_t n = 0;
    HV_TRY(hv_jp_array(&p, &n, err));
    pairs_alloc(rd, out, n);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        const char **pair = NULL;
        size_t len = 0;
        HV_TRY(hv_plan_read_strings(rd, &e, &pair, &len, err));
        if (len != 2) {
            return hv_jp_expected(&e, err, "a pair of operator names");
        }
        out->keys[i] = pair[0];
        out->values[i] = pair[1];
    }
    return HV_OK;
}

static enum hv_status read_graph(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                 struct hv_stage *s, struct hv_err *err)
{
    HV_TRY(read_mesh(rd, stage, &s->mesh, err));
    HV_TRY(read_shard(rd, stage, s, err));
    HV_TRY(read_place(rd, stage, s, err));
    return read_fuse(rd, stage, &s->fuse, err);
}

enum hv_status hv_plan_read_stage(struct hv_plan_reader *rd, const struct hv_jp *p, size_t n_stages,
                                  size_t number, struct hv_stage *s, struct hv_err *err)
{
    hv_stage_defaults(s);
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_stage, err));
    struct hv_jp devices;
    HV_TRY(hv_jp_need(p, "devices", "a device address or a list of them", &devices, err));
    HV_TRY(hv_plan_read_devices(rd, &devices, &s->devices, &s->n_devices, err));
    HV_TRY(read_blocks(rd, p, s, err));
    HV_TRY(read_ends(p, s, err));
    HV_TRY(read_after(rd, p, n_stages, number, s, err));
    HV_TRY(hv_plan_read_int(p, "micro_batch", 1, HV_PLAN_BATCH_MAX, &s->micro_batch, err));
    HV_TRY(hv_plan_read_parallel(rd, p, s, err));
    HV_TRY(hv_plan_read_moe(rd, p, s, err));
    HV_TRY(read_memory(rd, p, s, err));
    return read_graph(rd, p, s, err);
}
