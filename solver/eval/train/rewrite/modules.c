/**
 * Plans for models of modules: layers counted through the whole model, names for pictures, samples
 * per module. The costs of modules are in solver/cost.
 */
#include "solver/eval/train/steps.h"

#include <string.h>

/** Knobs of experts name blocks of the module too. */
static void shift_moe(struct hv_arena *a, struct hv_stage *s, int by)
{
    struct hv_moe_knobs *k = hv_arena_new(a, struct hv_moe_knobs, s->n_moe + 1);
    for (size_t i = 0; i < s->n_moe; i++) {
        k[i] = s->moe[i];
        k[i].from += k[i].from < 0 ? 0 : by;
        k[i].to += k[i].from < 0 ? 0 : by;
    }
    s->moe = k;
}

/** False: no such module. */
static bool flatten(const struct hv_model *m, struct hv_arena *a, struct hv_stage *s)
{
    size_t first2 = 0, n2 = 0;
    if (!hv_stage_module(m, s, &first2, &n2)) {
        return false;
    }
    if (s->module == NULL) {
        return true;
    }
    struct hv_range *r = hv_arena_new(a, struct hv_range, s->n_ranges + 1);
    for (size_t i = 0; i < s->n_ranges; i++) {
        if ((size_t)s->ranges[i].to2 > n2) {
            return false;
        }
        r[i].from2 = s->ranges[i].from2 + (int)first2;
        r[i].to2 = s->ranges[i].to2 + (int)first2;
    }
    s->ranges = r;
    s->module = NULL;
    shift_moe(a, s, (int)(first2 / 2));
    return true;
}

const struct hv_plan *hv__flat_plan(const struct hv_plan *p, const struct hv_model *m,
                                    struct hv_arena *arena)
{
    bool named = false;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            named = named || p->replicas[i].stages[k].module != NULL;
        }
    }
    if (!named) {
        return p;
    }
    struct hv_plan *flat = hv_arena_new(arena, struct hv_plan, 1);
    *flat = *p; /* only looked at: owns nothing */
    flat->replicas = hv_arena_new(arena, struct hv_replica, p->n_replicas);
    for (size_t i = 0; i < p->n_replicas; i++) {
        struct hv_replica *r = &flat->replicas[i];
        *r = p->replicas[i];
        r->stages = hv_arena_new(arena, struct hv_stage, r->n_stages + 1);
        memcpy(r->stages, p->replicas[i].stages, r->n_stages * sizeof *r->stages);
        for (size_t k = 0; k < r->n_stages; k++) {
            if (!flatten(m, arena, &r->stages[k])) {
                return NULL;
            }
        }
    }
    return flat;
}

void hv__find_leaves(struct hv__lowered *l)
{
    const struct hv_model *m = hv_cost_model(l->k);
    l->leaves.n = hv_model_n_leaves(m);
    struct hv_model_leaf *leaves = hv_arena_new(l->arena, struct hv_model_leaf, l->leaves.n);
    hv_model_leaves(m, leaves);
    l->leaves.items = leaves;
}

size_t hv__leaf_of(const struct hv__lowered *l, size_t block)
{
    size_t i = 0;
    while (i + 1 < l->leaves.n && block >= l->leaves.items[i + 1].first) {
        i++;
    }
    return i;
}

/** True where a run of half blocks overlaps a leaf. An empty run lies at its start. */
static bool reaches(const struct hv__lowered *l, struct hv_range r, size_t leaf)
{
    const struct hv_model_leaf *x = &l->leaves.items[leaf];
    int first2 = 2 * (int)x->first, end2 = first2 + 2 * (int)x->model->n_blocks;
    return r.from2 < r.to2 ? r.from2 < end2 && first2 < r.to2
                           : hv__leaf_of(l, (size_t)r.from2 / 2) == leaf;
}

const char *hv__modules_of(const struct hv__lowered *l, const struct hv_stage *s)
{
    if (l->leaves.items[0].name == NULL) {
        return NULL;
    }
    struct hv_str text = {0};
    const char *last = "";
    for (size_t i = 0; i < l->leaves.n; i++) {
        bool held = false;
        for (size_t k = 0; k < s->n_ranges; k++) {
            held = held || reaches(l, s->ranges[k], i);
        }
        if (held && strcmp(last, l->leaves.items[i].name) != 0) {
            hv_str_addf(&text, "%s%s", *last != '\0' ? "+" : "", l->leaves.items[i].name);
            last = l->leaves.items[i].name;
        }
    }
    const char *out = hv_arena_strdup(l->arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return out;
}

const double *hv__leaf_scales(const struct hv__lowered *l, const struct hv_micro_batch *mb)
{
    if (mb == NULL || mb->n_scales == 0) {
        return NULL;
    }
    double *s = hv_arena_new(l->arena, double, l->leaves.n);
    for (size_t i = 0; i < l->leaves.n; i++) {
        s[i] = 1;
        for (size_t k = 0; k < mb->n_scales && l->leaves.items[i].name != NULL; k++) {
            s[i] = strcmp(mb->modules[k], l->leaves.items[i].name) == 0 ? mb->scales[k] : s[i];
        }
    }
    return s;
}

bool hv__holds_end(const struct hv__lowered *l, const struct hv__gstage *g, size_t leaf, bool head)
{
    int told = head ? g->head : g->embedding;
    const struct hv_model_leaf *x = &l->leaves.items[leaf];
    if (told == 0 || (head && x->feeds)) {
        return false;
    }
    if (told > 0) {
        return l->leaves.n == 1 || reaches(l, g->range, leaf);
    }
    int first2 = 2 * (int)x->first, end2 = first2 + 2 * (int)x->model->n_blocks;
    return head ? g->range.from2 < end2 && end2 <= g->range.to2
                : g->range.from2 <= first2 && first2 < g->range.to2;
}

/* ---- what passes through stages of other modules ---- */

/** Output bytes of a leaf for so many sequences. */
static double output_bytes(const struct hv__lowered *l, size_t leaf, const struct hv__shape *s)
{
    const struct hv_model *m = l->leaves.items[leaf].model;
    double n = s->sequences * (s->scales != NULL ? s->scales[leaf] : 1);
    switch (m->kind) {
    case HV_MODEL_TRANSFORMER: {
        double tokens = m->patch_tokens > 0 ? m->patch_tokens : s->tokens;
        return n * tokens * m->hidden * hv_job_activation_bytes(hv_cost_job(l->k));
    }
    case HV_MODEL_LAYERS:
        return m->n_blocks > 0 ? n * m->measured[m->n_blocks - 1].output_bytes : 0;
    case HV_MODEL_GRAPH:
        return m->n_blocks > 0 ? n * hv_or(m->ops[m->n_blocks - 1].bytes, 0) : 0;
    case HV_MODEL_MODULES:
    case HV_MODEL_KIND_N:
        break;
    }
    return 0;
}

/** The stage of a pipeline that holds a half block; the number of stages when none does. */
static size_t stage_holding(const struct hv__pipeline *pl, int half)
{
    size_t g = 0;
    while (g < pl->n_gstages &&
           !(pl->gstages[g].range.from2 <= half && half < pl->gstages[g].range.to2)) {
        g++;
    }
    return g;
}

/** First (or last) leaf of a module. */
static size_t leaf_of_module(const struct hv__lowered *l, size_t module, bool last)
{
    size_t found = 0;
    for (size_t i = l->leaves.n; i-- > 0;) {
        if (l->leaves.items[i].module == module) {
            found = i;
            if (last) {
                break;
            }
        }
    }
    return found;
}

/** The last stage that reads the output of a module; 0: none does. */
static size_t last_reader(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t module)
{
    const struct hv_model *m = hv_cost_model(l->k);
    size_t last = 0;
    for (size_t e = 0; e < m->n_edges; e++) {
        if (m->edges[e].from == module) {
            size_t leaf = leaf_of_module(l, m->edges[e].to, false);
            size_t g = stage_holding(pl, 2 * (int)l->leaves.items[leaf].first);
            last = g < pl->n_gstages && g > last ? g : last;
        }
    }
    return last;
}

double *hv__passing_bytes(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    const struct hv_model *m = hv_cost_model(l->k);
    const struct hv_stage_graph *graph = &pl->schedule->graph;
    for (int32_t e = 0; e < graph->n_edges; e++) {
        if (graph->to[e] != graph->from[e] + 1) {
            return NULL; /* stages feed those that read them */
        }
    }
    if (m->kind != HV_MODEL_MODULES) {
        return NULL;
    }
    double *bytes = hv_arena_new(l->arena, double, pl->n_gstages + 1);
    double n = (double)pl->n_mb * (double)(pl->n_slices > 1 ? pl->n_slices : 1);
    for (size_t k = 0; k < m->n_modules; k++) {
        size_t leaf = leaf_of_module(l, k, true);
        int end2 = 2 * (int)(l->leaves.items[leaf].first + l->leaves.items[leaf].model->n_blocks);
        size_t from = stage_holding(pl, end2 - 1), to = last_reader(l, pl, k);
        for (size_t g = from; g < to; g++) {
            bool own = g == from && pl->gstages[g].range.to2 == end2; /* the hop has it already */
            for (size_t i = 0; !own && i < pl->n_shapes; i++) {
                bytes[g] += pl->n_of_shape[i] / n * output_bytes(l, leaf, &pl->shapes[i]);
            }
        }
    }
    return bytes;
}
