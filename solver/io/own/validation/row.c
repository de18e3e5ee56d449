/* One row of published measurements: its members, whether it can be predicted, and the documents
 * that describe its cluster and model. */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/model/model_int.h"
#include "solver/io/own/validation/validation_int.h"
#include <math.h>
#include <string.h>

#define MAX_BATCH     1000000000
#define MAX_SECONDS   1e9
#define MAX_GIB       1e6
#define MAX_GBPS      1e6
#define DEFAULT_NODE  8     /* devices, where the source does not say */
#define DEFAULT_VOCAB 51200 /* GPT-2's, padded */

/* Where `key` names an entry of the file's table `table`, that entry; else the member itself. */
static enum hv_status look_up(const struct hv_jp *table, const struct hv_jp *row, const char *key,
                              struct hv_jp *out, struct hv_err *err)
{
    struct hv_jp at = {0};
    const char *name = NULL;
    enum hv_status st = hv_jp_need(row, key, "an object, or a name of the file's table", &at, err);
    *out = at;
    if (st || json_is_object(at.v)) {
        return st;
    }
    if (!json_is_string(at.v)) {
        return hv_jp_expected(&at, err, "an object, or a name of the file's table");
    }
    if ((st = hv_jp_string(&at, &name, err))) {
        return st;
    }
    *out = hv_jp_get(table, name);
    if (hv_jp_none(out)) {
        return hv_jp_fail(&at, err, "the file's table has no \"%.80s\"", name);
    }
    return json_is_object(out->v) ? HV_OK : hv_jp_expected(out, err, "an object");
}

/* Whole numbers that may be absent or null; a row of a table per object. */
struct int_member {
    const char *key;
    int64_t lo, hi;
    int64_t *out;
};

static enum hv_status read_ints(const struct hv_jp *p, const struct int_member *rows, size_t n,
                                struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        st = hv_jp_opt_int(p, rows[i].key, rows[i].lo, rows[i].hi, rows[i].out, err);
    }
    return st;
}

static enum hv_status read_model(const struct hv_jp *p, bool own, struct hv__row *r,
                                 struct hv_err *err)
{
    const struct int_member rows[] = {
        {"layers", 0, HV_MAX_LAYERS, &r->layers},
        {"hidden", 0, HV_MAX_WIDTH, &r->hidden},
        {"heads", 0, HV_MAX_HEADS, &r->heads},
        {"kv_heads", 0, HV_MAX_HEADS, &r->kv_heads},
        {"head_dim", 0, HV_MAX_WIDTH, &r->head_dim},
        {"ffn", 0, HV_MAX_WIDTH, &r->ffn},
        {"vocab", 0, HV_MAX_WIDTH, &r->vocab},
        {"seq", 0, HV_MAX_WIDTH, &r->seq},
        {"experts", 0, HV_MAX_EXPERTS, &r->experts},
        {"topk", 0, HV_MAX_EXPERTS, &r->topk},
        {"moe_ffn", 0, HV_MAX_WIDTH, &r->moe_ffn},
        {"shared_ffn", 0, HV_MAX_WIDTH, &r->shared_ffn},
        {"dense_layers", 0, HV_MAX_LAYERS, &r->dense_layers},
        {"sliding_window", 0, HV_MAX_WIDTH, &r->window},
        {"sliding_window_every", 1, HV_MAX_LAYERS, &r->window_every},
        {"q_lora", 0, HV_MAX_WIDTH, &r->mla_q},
        {"kv_lora", 0, HV_MAX_WIDTH, &r->mla_kv},
        {"qk_rope", 0, HV_MAX_WIDTH, &r->mla_rope},
        {"qk_nope", 0, HV_MAX_WIDTH, &r->mla_nope},
        {"v_head", 0, HV_MAX_WIDTH, &r->mla_value},
    };
    enum hv_status st;
    if ((st = own ? hv_keys_check(p, HV_KEYS_VALIDATION_MODEL, err) : HV_OK) ||
        (st = read_ints(p, rows, HV_COUNT(rows), err)) ||
        (st = hv_jp_opt_bool(p, "gated", &r->gated, err)) ||
        (st = hv_jp_opt_bool(p, "tied_embeddings", &r->tied, err))) {
        return st;
    }
    return hv_jp_opt_string(p, "attn", &r->attn, err);
}

/* Reads the members of nodes that a system and every entry of its `mixed` share. */
static enum hv_status read_nodes(const struct hv_jp *p, struct hv__row_part *out,
                                 struct hv_err *err)
{
    const struct int_member rows[] = {
        {"n", 1, HV_CLUSTER_MAX_DEVICES, &out->n},
        {"per_node", 1, HV_CLUSTER_MAX_DEVICES, &out->per_node},
    };
    enum hv_status st;
    if ((st = read_ints(p, rows, HV_COUNT(rows), err)) ||
        (st = hv_jp_opt_string(p, "device", &out->device, err)) ||
        (st = hv_jp_opt_string(p, "intra", &out->intra, err)) ||
        (st = hv_jp_opt_number(p, "intra_gbps_uni", 0, MAX_GBPS, &out->intra_gbps, err))) {
        return st;
    }
    return hv_jp_opt_number(p, "inter_gbit_per_gpu", 0, MAX_GBPS, &out->inter_gbit, err);
}

/* `mixed`: the nodes of several kinds, in rank order. `like` holds the defaults of the entries. */
static enum hv_status read_mixed(const struct hv_jp *mixed, bool own, struct hv_arena *arena,
                                 const struct hv__row_part *like, struct hv__row *r,
                                 struct hv_err *err)
{
    enum hv_status st = hv_jp_array(mixed, &r->n_parts, err);
    r->parts = hv_arena_new(arena, struct hv__row_part, r->n_parts + 1);
    int64_t sum = 0;
    for (size_t i = 0; st == HV_OK && i < r->n_parts; i++) {
        struct hv_jp at = hv_jp_at(mixed, i);
        struct hv__row_part *part = &r->parts[i];
        *part = *like;
        part->n = 0;
        if (!json_is_object(at.v)) {
            return hv_jp_expected(&at, err, "an object with device and n");
        }
        st = own ? hv_keys_check(&at, HV_KEYS_VALIDATION_NODES, err) : HV_OK;
        st = st ? st : read_nodes(&at, part, err);
        sum += part->n;
        r->mixed = r->mixed || part->device == NULL || part->n == 0;
    }
    if (st == HV_OK && r->n_parts > 0) {
        r->device = r->device != NULL ? r->device : r->parts[0].device;
        r->n = sum;
    }
    return st;
}

static enum hv_status read_system(const struct hv_jp *p, bool own, struct hv_arena *arena,
                                  struct hv__row *r, struct hv_err *err)
{
    struct hv__row_part all = {
        .per_node = r->per_node, .intra_gbps = r->intra_gbps, .inter_gbit = r->inter_gbit};
    struct hv_jp mixed = hv_jp_get(p, "mixed");
    enum hv_status st = own ? hv_keys_check(p, HV_KEYS_VALIDATION_SYSTEM, err) : HV_OK;
    st = st ? st : read_nodes(p, &all, err);
    r->device = all.device;
    r->intra = all.intra;
    r->n = all.n;
    r->per_node = all.per_node;
    r->intra_gbps = all.intra_gbps;
    r->inter_gbit = all.inter_gbit;
    if (st || hv_jp_none(&mixed) || json_is_false(mixed.v)) {
        return st;
    }
    r->mixed = !json_is_array(mixed.v); /* kinds without numbers */
    return r->mixed ? HV_OK : read_mixed(&mixed, own, arena, &all, r, err);
}

static enum hv_status read_par(const struct hv_jp *row, bool own, struct hv__row *r,
                               struct hv_err *err)
{
    const struct int_member rows[] = {
        {"tp", 1, HV_CLUSTER_MAX_DEVICES, &r->tp},
        {"pp", 1, HV_CLUSTER_MAX_DEVICES, &r->pp},
        {"vpp", 1, HV_MAX_LAYERS, &r->vpp},
        {"dp", 1, HV_CLUSTER_MAX_DEVICES, &r->dp},
        {"cp", 1, HV_CLUSTER_MAX_DEVICES, &r->cp},
        {"ep", 1, HV_CLUSTER_MAX_DEVICES, &r->ep},
        {"zero", 0, 3, &r->zero},
        {"fsdp", 0, HV_CLUSTER_MAX_DEVICES, &r->fsdp},
    };
    struct hv_jp p = {0};
    enum hv_status st;
    if ((st = hv_jp_need(row, "par", "the parallel degrees", &p, err)) ||
        (st = json_is_object(p.v) ? HV_OK : hv_jp_expected(&p, err, "an object")) ||
        (st = own ? hv_keys_check(&p, HV_KEYS_VALIDATION_PAR, err) : HV_OK) ||
        (st = read_ints(&p, rows, HV_COUNT(rows), err))) {
        return st;
    }
    return hv_jp_opt_bool(&p, "sp", &r->sp, err);
}

static enum hv_status read_figures(const struct hv_jp *row, struct hv__row *r, struct hv_err *err)
{
    struct hv_jp meas = hv_jp_get(row, "meas"), derived = hv_jp_get(row, "derived");
    enum hv_status st = HV_OK;
    if (!hv_jp_none(&derived)) {
        st = hv_jp_opt_number(&derived, "iter_s", 0, MAX_SECONDS, &r->iter_s, err);
    }
    if (st == HV_OK && !hv_jp_none(&meas)) {
        st = hv_jp_opt_number(&meas, "iter_s", 0, MAX_SECONDS, &r->iter_s, err);
        st = st ? st : hv_jp_opt_number(&meas, "mem_gib", 0, MAX_GIB, &r->mem_gib, err);
    }
    const struct {
        const char *key;
        double hi, *out;
    } rows[] = {{"iter_s", MAX_SECONDS, &r->iter_s},
                {"iter_s_from_flops", MAX_SECONDS, &r->from_flops_s},
                {"calculon_s", MAX_SECONDS, &r->calculon_s},
                {"mem_gib", MAX_GIB, &r->mem_gib},
                {"mem_max_bytes", MAX_GIB * HV_GIB, &r->mem_max_bytes}};
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(rows); i++) {
        st = hv_jp_opt_number(row, rows[i].key, 0, rows[i].hi, rows[i].out, err);
    }
    return st;
}

static bool is_set(const struct hv_jp *row, const char *key)
{
    struct hv_jp p = hv_jp_get(row, key);
    return !hv_jp_none(&p) && !json_is_false(p.v);
}

static enum hv_status read_words(const struct hv_jp *row, struct hv__row *r, struct hv_err *err)
{
    const struct {
        const char *key, **out;
    } rows[] = {{"kind", &r->kind},         {"precision", &r->precision},
                {"schedule", &r->schedule}, {"recompute", &r->recompute},
                {"mem_meter", &r->meter},   {"table", &r->table}};
    struct hv_jp id = {0}, notes = hv_jp_get(row, "notes");
    enum hv_status st = hv_jp_need(row, "id", "a name for the row", &id, err);
    st = st ? st : hv_jp_string(&id, &r->id, err);
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(rows); i++) {
        st = hv_jp_opt_string(row, rows[i].key, rows[i].out, err);
    }
    r->notes = json_is_string(notes.v) ? json_string_value(notes.v) : "";
    r->incomplete = is_set(row, "incomplete");
    r->duplicate = is_set(row, "dup_of") || is_set(row, "duplicate_of_config");
    r->oom = is_set(row, "oom") || is_set(row, "failed");
    r->overhead_bound = is_set(row, "overhead_bound");
    r->verified = true;
    return st ? st : hv_jp_opt_bool(row, "verified", &r->verified, err);
}

/* `stage_partition`: bounds of the stages over the layers with as many wrappers before as behind
 * them (DeepSpeed); the layers proper are counted per stage. */
static enum hv_status read_partition(const struct hv_jp *row, struct hv_arena *arena,
                                     struct hv__row *r, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(row, "stage_partition");
    size_t n = 0;
    enum hv_status st = hv_jp_none(&p) ? HV_OK : hv_jp_array(&p, &n, err);
    if (st || n != (size_t)r->pp + 1 || r->vpp > 1) {
        return st;
    }
    int64_t *bounds = hv_arena_new(arena, int64_t, n);
    int *counts = hv_arena_new(arena, int, n);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp at = hv_jp_at(&p, i);
        if ((st = hv_jp_int(&at, i > 0 ? bounds[i - 1] : 0, HV_MAX_LAYERS, &bounds[i], err))) {
            return st;
        }
    }
    int64_t wrappers = bounds[n - 1] - r->layers, before = wrappers >= 4 ? wrappers - 4 : 0,
            sum = 0;
    for (size_t i = 0; wrappers >= 0 && i + 1 < n; i++) {
        int64_t from = bounds[i] - before, to = bounds[i + 1] - before;
        from = from < 0 ? 0 : from > r->layers ? r->layers : from;
        to = to < 0 ? 0 : to > r->layers ? r->layers : to;
        counts[i] = (int)(to - from);
        sum += counts[i];
    }
    r->counts = sum == r->layers && wrappers >= 0 ? counts : NULL;
    return HV_OK;
}

enum hv_status hv__row_read(const struct hv_jp *root, const struct hv_jp *p, bool own,
                            struct hv_arena *arena, struct hv__row *out, struct hv_err *err)
{
    *out = (struct hv__row){.at = *p,
                            .intra_gbps = HV_UNKNOWN,
                            .inter_gbit = HV_UNKNOWN,
                            .iter_s = HV_UNKNOWN,
                            .from_flops_s = HV_UNKNOWN,
                            .mem_gib = HV_UNKNOWN,
                            .mem_max_bytes = HV_UNKNOWN,
                            .calculon_s = HV_UNKNOWN,
                            .per_node = DEFAULT_NODE,
                            .kind = "pretrain",
                            .window_every = 1,
                            .vpp = 1,
                            .cp = 1,
                            .ep = 1};
    out->models = hv_jp_get(root, "models"); /* here, because the places inside point at them */
    out->systems = hv_jp_get(root, "systems");
    const struct int_member rows[] = {{"n", 1, HV_CLUSTER_MAX_DEVICES, &out->n},
                                      {"seq", 1, HV_MAX_WIDTH, &out->seq},
                                      {"mbs", 1, MAX_BATCH, &out->mbs},
                                      {"gbs", 1, MAX_BATCH, &out->gbs}};
    enum hv_status st;
    if ((st = own ? hv_keys_check(p, HV_KEYS_VALIDATION_ROW, err) : HV_OK) ||
        (st = read_words(p, out, err)) ||
        (st = look_up(&out->models, p, "model", &out->model, err)) ||
        (st = look_up(&out->systems, p, "system", &out->system, err)) ||
        (st = read_model(&out->model, own, out, err)) ||
        (st = read_system(&out->system, own, arena, out, err)) ||
        (st = read_par(p, own, out, err)) || (st = read_ints(p, rows, HV_COUNT(rows), err)) ||
        (st = read_figures(p, out, err))) {
        return st;
    }
    return read_partition(p, arena, out, err);
}

const char *hv__row_unusable(const struct hv__row *r)
{
    bool memory_only = r->oom || hv_known(r->mem_max_bytes) || hv_known(r->mem_gib);
    bool timed = r->iter_s > 0 || r->from_flops_s > 0;
    if (!r->verified) {
        return "not read at its source";
    } else if (r->duplicate) {
        return "printed before under another name";
    } else if (r->incomplete) {
        return "a part of the configuration was not published";
    } else if (r->mixed) {
        return "devices of several kinds, without saying how many of each";
    } else if (r->overhead_bound) {
        return "a small test of software, bound by its overheads";
    } else if (strcmp(r->kind, "pretrain") != 0 && strcmp(r->kind, "sft") != 0 &&
               strcmp(r->kind, "ci") != 0) {
        return "frozen weights (LoRA)";
    } else if (r->attn != NULL && strcmp(r->attn, "hybrid") == 0) {
        return "not a transformer (hybrid)";
    } else if (r->layers == 0 || r->hidden == 0 || r->heads == 0 || r->seq == 0 || !r->device) {
        return "the shape of the model or the device was not published";
    } else if (r->tp == 0 || r->pp == 0 || r->dp == 0 || r->mbs == 0 || r->gbs == 0) {
        return "degrees or batch were not published";
    } else if (!timed && !memory_only) {
        return "no measurement of time or memory";
    } else if (r->n > 0 && r->tp * r->pp * r->dp * r->cp > r->n) {
        return "the printed degrees need more devices than the printed number";
    } else if (r->ep > 1 && r->tp * r->dp * r->cp % r->ep != 0) {
        return "the printed ranks of experts do not divide those of a stage";
    }
    return NULL;
}

static void put(json_t *object, const char *key, int64_t n)
{
    json_object_set_new(object, key, json_integer(n));
}

static json_t *nodes_of(const struct hv__row_part *p, const char *name)
{
    int64_t per = p->per_node < p->n ? p->per_node : p->n;
    json_t *node = json_pack("{s:s, s:s}", "name", name, "device", p->device);
    put(node, "count", (p->n + per - 1) / per);
    put(node, "devices", per);
    if (p->intra_gbps > 0) {
        bool nvlink = p->intra != NULL && strstr(p->intra, "NV") != NULL;
        json_object_set_new(node, "intra",
                            json_pack("{s:s, s:f}", "kind", nvlink ? "nvlink" : "pcie",
                                      "bandwidth_GBps", p->intra_gbps));
    }
    if (p->inter_gbit > 0) {
        json_t *nic = json_pack("{s:f}", "bandwidth_GBps", p->inter_gbit * (double)per / 8);
        put(nic, "count", per);
        json_object_set_new(node, "nic", nic);
    }
    return node;
}

json_t *hv__row_cluster(const struct hv__row *r)
{
    int64_t n = r->n > 0 ? r->n : r->tp * r->pp * r->dp * r->cp;
    const struct hv__row_part one = {r->device,   r->intra,      n,
                                     r->per_node, r->intra_gbps, r->inter_gbit};
    json_t *nodes = json_array();
    for (size_t i = 0; i < r->n_parts; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "n%zu", i);
        json_array_append_new(nodes, nodes_of(&r->parts[i], name));
    }
    if (r->n_parts == 0) {
        json_array_append_new(nodes, nodes_of(&one, "n"));
    }
    return json_pack("{s:s, s:s, s:o}", "format", "hetviz.cluster/1", "name", r->device, "nodes",
                     nodes);
}

/* Sliding windows on every k-th layer, from the first on. */
static json_t *window_list(const struct hv__row *r)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < r->layers; i++) {
        json_t *layer = json_object();
        if (i % r->window_every == 0) {
            put(layer, "window", r->window);
        }
        json_array_append_new(list, layer);
    }
    return list;
}

static json_t *moe_rule(const struct hv__row *r)
{
    json_t *m = json_object();
    put(m, "experts", r->experts);
    put(m, "top_k", r->topk > 0 ? r->topk : 1);
    put(m, "ffn", r->moe_ffn > 0 ? r->moe_ffn : r->ffn);
    put(m, "first_dense", r->dense_layers);
    if (r->shared_ffn > 0) {
        put(m, "shared_experts", 1);
        put(m, "shared_ffn", r->shared_ffn);
    }
    return m;
}

static json_t *mla_ranks(const struct hv__row *r)
{
    json_t *m = json_object();
    put(m, "q_rank", r->mla_q);
    put(m, "kv_rank", r->mla_kv);
    put(m, "rope_dim", r->mla_rope);
    put(m, "nope_dim", r->mla_nope);
    put(m, "value_dim", r->mla_value);
    return m;
}

json_t *hv__row_model(const struct hv__row *r)
{
    json_t *m = json_pack("{s:s, s:s, s:s, s:s, s:b}", "format", "hetviz.model/1", "name", "m",
                          "kind", "transformer", "ffn_kind", r->gated ? "swiglu" : "gelu",
                          "tied_embeddings", r->tied);
    put(m, "layers", r->layers);
    put(m, "hidden", r->hidden);
    put(m, "heads", r->heads);
    put(m, "kv_heads", r->kv_heads > 0 ? r->kv_heads : r->heads);
    put(m, "ffn", r->ffn > 0 ? r->ffn : 4 * r->hidden);
    put(m, "vocab", r->vocab > 0 ? r->vocab : DEFAULT_VOCAB);
    put(m, "max_sequence", r->seq);
    if (r->head_dim > 0) {
        put(m, "head_dim", r->head_dim);
    }
    if (r->experts > 0) {
        json_object_set_new(m, "moe", moe_rule(r));
    }
    if (r->mla_kv > 0) {
        json_object_set_new(m, "mla", mla_ranks(r));
    }
    if (r->window > 0) {
        json_object_set_new(m, "layer_list", window_list(r));
    }
    return m;
}
