/*
 * Rule C: every block of the model exactly once per replica (serving: at least once), by ranges of
 * blocks or by operator name patterns; embedding and head have one owner.
 */
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/plan/check_inside.h"
#include <string.h>

bool hv_check_module(const struct hv_check *c, const struct hv_stage *s, size_t *first2, size_t *n2)
{
    return hv_stage_module(c->m, s, first2, n2);
}

const struct hv_block *hv_check_block(const struct hv_check *c, size_t half)
{
    size_t i = half / 2;
    const struct hv_model *m = c->m;
    for (size_t k = 0; m->kind == HV_MODEL_MODULES && k < c->m->n_modules; k++) {
        const struct hv_model *sub = c->m->modules[k].model;
        if (i < sub->n_blocks) {
            return sub->kind == HV_MODEL_TRANSFORMER ? &sub->blocks[i] : NULL;
        }
        i -= sub->n_blocks;
    }
    return m->kind == HV_MODEL_TRANSFORMER && i < m->n_blocks ? &m->blocks[i] : NULL;
}

/* The model whose blocks or operators the stage names. */
static const struct hv_model *graph_of(const struct hv_check *c, const struct hv_stage *s)
{
    const struct hv_model *own = hv_stage_model(c->m, s);
    return own != NULL ? own : c->m;
}

static bool matches_any(const struct hv_stage *s, const char *id)
{
    for (size_t i = 0; i < s->n_ops; i++) {
        if (hv_name_match(s->ops[i], id)) {
            return true;
        }
    }
    return false;
}

void hv_check_mark(const struct hv_check *c, const struct hv_stage *s, unsigned *held)
{
    size_t first = 0, n = 0;
    if (!hv_check_module(c, s, &first, &n)) {
        return;
    }
    for (size_t k = 0; k < s->n_ranges; k++) {
        for (size_t h = (size_t)s->ranges[k].from2; h < (size_t)s->ranges[k].to2 && h < n; h++) {
            held[first + h]++;
        }
    }
    const struct hv_model *g = graph_of(c, s);
    for (size_t i = 0; s->n_ops > 0 && g->kind == HV_MODEL_GRAPH && i < g->n_blocks; i++) {
        if (matches_any(s, g->ops[i].id)) {
            held[first + 2 * i]++;
            held[first + 2 * i + 1]++;
        }
    }
}

static void check_stage_ops(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_model *g = graph_of(c, at->s);
    if (at->s->n_ops > 0 && g->kind != HV_MODEL_GRAPH) {
        hv_check_stage_add(c, at, "ops", HV_V_LAYERS_MISSING, HV_UNKNOWN,
                           "the model is of kind %s and has no named operators; use layers",
                           hv_model_kind_name(g->kind));
        return;
    }
    for (size_t k = 0; k < at->s->n_ops; k++) {
        bool found = false;
        for (size_t i = 0; i < g->n_blocks && !found; i++) {
            found = hv_name_match(at->s->ops[k], g->ops[i].id);
        }
        if (!found) {
            hv_check_stage_add(c, at, "ops", HV_V_LAYERS_MISSING, 1,
                               "pattern \"%s\" names no operator of the model", at->s->ops[k]);
        }
    }
}

static void check_stage_blocks(const struct hv_check *c, const struct hv_check_stage *at)
{
    size_t first = 0, n = 0;
    if (!hv_check_module(c, at->s, &first, &n)) {
        hv_check_stage_add(c, at, "module", HV_V_LAYERS_MISSING, HV_UNKNOWN,
                           "the model has no module \"%s\"", at->s->module);
        return;
    }
    check_stage_ops(c, at);
    for (size_t k = 0; k < at->s->n_ranges; k++) {
        struct hv_range r = at->s->ranges[k];
        if ((size_t)r.to2 > n) {
            hv_check_stage_add(c, at, "layers", HV_V_LAYERS_MISSING,
                               ((double)r.to2 - (double)n) / 2,
                               "the stage names blocks [%g, %g), but the model has only %zu",
                               r.from2 / 2.0, r.to2 / 2.0, n / 2);
        }
        size_t inside = first + (size_t)r.to2;
        if (r.to2 % 2 != 0 && inside < c->n_halves && hv_check_block(c, inside) == NULL) {
            hv_check_stage_add(c, at, "layers", HV_V_DIVISIBLE, 0.5,
                               "a cut at .5 needs a transformer block, but the layers of this "
                               "model cannot be cut");
        }
    }
}

/* One finding per run of half blocks that are held too often or not at all. */
static void report_runs(const struct hv_check *c, size_t replica, const unsigned *held)
{
    bool serve = c->p->mode == HV_MODE_SERVE;
    for (size_t h = 0; h < c->n_halves;) {
        unsigned count = held[h];
        size_t end = h + 1;
        while (end < c->n_halves && held[end] == count) {
            end++;
        }
        if (count == 0) {
            hv_check_replica_add(c, replica, "stages", HV_V_LAYERS_MISSING, (double)(end - h) / 2,
                                 "no stage holds blocks [%g, %g)", (double)h / 2, (double)end / 2);
        } else if (count > 1 && !serve) {
            hv_check_replica_add(c, replica, "stages", HV_V_LAYERS_TWICE, (double)(end - h) / 2,
                                 "%u stages hold blocks [%g, %g)", count, (double)h / 2,
                                 (double)end / 2);
        }
        h = end;
    }
}

static bool has_ends(const struct hv_check *c, const struct hv_stage *s)
{
    const struct hv_model *g = graph_of(c, s);
    return g->kind == HV_MODEL_TRANSFORMER;
}

/* Embedding and head: in training one stage must hold each, when serving one or more (only an
 * explicit `false` removes it). Not checked where stages hold modules. */
static void check_ends(const struct hv_check *c, size_t replica)
{
    const struct hv_replica *r = &c->p->replicas[replica];
    size_t embeddings = 0, heads = 0;
    bool wanted = false, split = false;
    for (size_t k = 0; k < r->n_stages; k++) {
        embeddings += hv_stage_has_embedding(r, k);
        heads += hv_stage_has_head(r, k);
        wanted = wanted || has_ends(c, &r->stages[k]);
        split = split || r->stages[k].module != NULL;
    }
    if (!wanted || split) {
        return;
    }
    struct {
        const char *what;
        size_t n;
    } ends[] = {{"embedding", embeddings}, {"head", heads}};
    for (size_t i = 0; i < HV_COUNT(ends); i++) {
        if (ends[i].n == 0) {
            hv_check_replica_add(c, replica, "stages", HV_V_LAYERS_MISSING, 1,
                                 "no stage holds the %s", ends[i].what);
        } else if (ends[i].n > 1 && c->p->mode == HV_MODE_TRAIN) {
            hv_check_replica_add(c, replica, "stages", HV_V_LAYERS_TWICE, (double)(ends[i].n - 1),
                                 "%zu stages hold the %s", ends[i].n, ends[i].what);
        }
    }
}

/* The stage that holds a half block of the whole model; n_stages: none. */
static size_t holder_of(const struct hv_check *c, const struct hv_replica *r, size_t half)
{
    for (size_t k = 0; k < r->n_stages; k++) {
        const struct hv_stage *s = &r->stages[k];
        size_t first2 = 0, n2 = 0;
        bool known = hv_stage_module(c->m, s, &first2, &n2);
        for (size_t i = 0; known && i < s->n_ranges; i++) {
            if (half >= first2 + (size_t)s->ranges[i].from2 &&
                half < first2 + (size_t)s->ranges[i].to2) {
                return k;
            }
        }
    }
    return r->n_stages;
}

/* True where the output of stage `from` reaches stage `to`, directly or through other stages.
 * Predecessors of a stage may be listed before or after it, so marks are propagated until none
 * changes. */
static bool feeds(const struct hv_replica *r, size_t from, size_t to, bool *reached)
{
    memset(reached, 0, r->n_stages * sizeof *reached);
    reached[from] = true;
    for (bool moved = true; moved && !reached[to];) {
        moved = false;
        for (size_t k = 0; k < r->n_stages; k++) {
            const struct hv_stage *s = &r->stages[k];
            bool fed = s->n_after < 0 && k > 0 && reached[k - 1];
            for (int i = 0; i < s->n_after; i++) {
                fed = fed || reached[s->after[i]];
            }
            moved = moved || (fed && !reached[k]);
            reached[k] = reached[k] || fed;
        }
    }
    return reached[to];
}

/* A module computes with the output of those that feed it, so their stages come before its own. */
static void check_module_order(const struct hv_check *c, size_t replica, struct hv_arena *scratch)
{
    const struct hv_replica *r = &c->p->replicas[replica];
    bool *reached = hv_arena_new(scratch, bool, r->n_stages + 1);
    size_t *first = hv_arena_new(scratch, size_t, c->m->n_modules + 1);
    for (size_t i = 0; i < c->m->n_modules; i++) {
        first[i + 1] = first[i] + c->m->modules[i].model->n_blocks;
    }
    for (size_t i = 0; c->m->kind == HV_MODEL_MODULES && i < c->m->n_edges; i++) {
        uint32_t a = c->m->edges[i].from, b = c->m->edges[i].to;
        if (first[a] == first[a + 1] || first[b] == first[b + 1]) {
            continue;
        }
        size_t from = holder_of(c, r, 2 * first[a + 1] - 1), to = holder_of(c, r, 2 * first[b]);
        bool chunks = from < r->n_stages && to < r->n_stages &&
                      (r->stages[from].n_ranges > 1 || r->stages[to].n_ranges > 1);
        if (from == r->n_stages || to == r->n_stages || from == to || chunks) {
            continue;
        }
        if (!feeds(r, from, to, reached)) {
            hv_check_replica_add(
                c, replica, "stages", HV_V_ORDER_DEADLOCK, HV_UNKNOWN,
                "module %s needs the output of module %s, but stage %zu receives nothing from "
                "stage %zu, neither directly nor through other stages: place it behind that stage, "
                "or list that stage in \"after\"",
                c->m->modules[b].name, c->m->modules[a].name, to, from);
        }
    }
}

void hv_check_blocks(const struct hv_check *c)
{
    struct hv_arena scratch = {0};
    for (size_t i = 0; i < c->p->n_replicas; i++) {
        const struct hv_replica *r = &c->p->replicas[i];
        unsigned *held = hv_arena_new(&scratch, unsigned, c->n_halves);
        for (size_t k = 0; k < r->n_stages; k++) {
            struct hv_check_stage at = {i, k, r, &r->stages[k]};
            check_stage_blocks(c, &at);
            hv_check_mark(c, at.s, held);
        }
        report_runs(c, i, held);
        check_ends(c, i);
        if (c->p->mode == HV_MODE_TRAIN) {
            check_module_order(c, i, &scratch);
        }
        hv_arena_free(&scratch);
    }
}
