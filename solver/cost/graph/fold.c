/** Completed layouts as rules of a plan. */
#include "solver/cost/graph/fold.h"

#include "solver/base/str.h"
#include "solver/plan/plan.h"
#include <stdlib.h>
#include <string.h>

/* ---- text ------------------------------------------------------------------------------------ */

/* Appends the axes of a dimension: one as {"x": "dim"}, several as {"dim": ["x", "y"]}. A part of
 * an axis is written as the axis. */
static void add_dim(struct hv_str *s, const struct hv__mesh_place *p, const char *dim,
                    const struct hv_axes *a)
{
    size_t axis[HV_MESH_AXES], n = 0;
    for (size_t i = 0; i < a->n; i++) {
        size_t own = hv_mesh_axis_of(&p->mesh, a->atom[i]);
        if (n == 0 || axis[n - 1] != own) {
            axis[n++] = own;
        }
    }
    const char *comma = strlen(hv_str_cstr(s)) > 1 ? ", " : "";
    if (n == 1) {
        hv_str_addf(s, "%s\"%s\": \"%s\"", comma, p->axis[axis[0]], dim);
        return;
    }
    hv_str_addf(s, "%s\"%s\": [", comma, dim);
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(s, "%s\"%s\"", i > 0 ? ", " : "", p->axis[axis[i]]);
    }
    hv_str_addf(s, "]");
}

static void add_partial(struct hv_str *s, const struct hv__mesh_place *p, uint32_t atoms,
                        const char *word)
{
    for (size_t a = 0; a < p->mesh.n_axes; a++) {
        if ((hv_mesh_axis_atoms(&p->mesh, a) & atoms) != 0) {
            hv_str_addf(s, "%s\"%s\": \"%s\"", strlen(hv_str_cstr(s)) > 1 ? ", " : "", p->axis[a],
                        word);
        }
    }
}

static const char *text_of(const struct hv_tensor_graph *g, const struct hv_tensor *t,
                           const struct hv_layout *l, const struct hv__mesh_place *p,
                           struct hv_arena *arena)
{
    struct hv_str s = {0};
    hv_str_addf(&s, "{");
    for (size_t d = 0; d < t->n_dims; d++) {
        if (l->dim[d].n > 0) {
            add_dim(&s, p, g->dims[t->dim[d]].name, &l->dim[d]);
        }
    }
    add_partial(&s, p, l->sum, "partial");
    add_partial(&s, p, l->max, "partial-max");
    hv_str_addf(&s, "}");
    const char *out = hv_arena_strdup(arena, hv_str_cstr(&s));
    hv_str_free(&s);
    return out;
}

/* The name with every run of digits as one star. */
static const char *pattern_of(const char *name, struct hv_arena *arena)
{
    char *out = hv_arena_new(arena, char, strlen(name) + 1);
    size_t n = 0;
    for (const char *c = name; *c != '\0'; c++) {
        bool digit = *c >= '0' && *c <= '9';
        if (!digit || n == 0 || out[n - 1] != '*') {
            out[n++] = digit ? '*' : *c;
        }
    }
    return out;
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct fold {
    const struct hv_tensor_graph *g;
    const char **text;    /* per tensor */
    const char **pattern; /* per tensor */
    uint32_t *by_pattern; /* tensors, sorted */
    struct hv__folded *rules;
    size_t n;
};

static int compare(const struct fold *f, uint32_t a, uint32_t b)
{
    int by = strcmp(f->pattern[a], f->pattern[b]);
    by = by != 0 ? by : strcmp(f->text[a], f->text[b]);
    return by != 0 ? by : (a > b) - (a < b);
}

/* A tensor with what it is sorted by. */
struct sorted {
    const struct fold *f;
    uint32_t tensor;
};

static int by_pattern(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    return compare(x->f, x->tensor, y->tensor);
}

/* The commonest layout of the tensors [from, to) of one pattern, by the number of its first. */
static uint32_t commonest(const struct fold *f, size_t from, size_t to)
{
    size_t most = 0, best = from;
    for (size_t i = from, end; i < to; i = end) {
        for (end = i;
             end < to && strcmp(f->text[f->by_pattern[end]], f->text[f->by_pattern[i]]) == 0;) {
            end++;
        }
        if (end - i > most) {
            most = end - i;
            best = i;
        }
    }
    return f->by_pattern[best];
}

static const struct hv__folded *last_match(const struct fold *f, const char *name)
{
    size_t i = f->n;
    while (i > 0 && !hv_name_match(f->rules[i - 1].pattern, name)) {
        i--;
    }
    return i > 0 ? &f->rules[i - 1] : NULL;
}

static void make_rules(struct fold *f)
{
    size_t n = f->g->n_tensors;
    for (size_t i = 0, end; i < n; i = end) {
        const char *pattern = f->pattern[f->by_pattern[i]];
        for (end = i; end < n && strcmp(f->pattern[f->by_pattern[end]], pattern) == 0;) {
            end++;
        }
        bool one = end - i == 1;
        f->rules[f->n++] =
            (struct hv__folded){.pattern = one ? f->g->tensors[f->by_pattern[i]].name : pattern,
                                .layout = f->text[commonest(f, i, end)]};
    }
    for (size_t t = 0; t < n; t++) { /* exceptions, and names that another pattern matches */
        const struct hv__folded *r = last_match(f, f->g->tensors[t].name);
        if (r == NULL || strcmp(r->layout, f->text[t]) != 0) {
            f->rules[f->n++] =
                (struct hv__folded){.pattern = f->g->tensors[t].name, .layout = f->text[t]};
        }
    }
}

size_t hv__fold_layouts(const struct hv_tensor_graph *g, const struct hv_sharding *s,
                        const struct hv__mesh_place *p, struct hv_arena *arena,
                        struct hv__folded **out)
{
    size_t n = g->n_tensors;
    struct fold f = {.g = g,
                     .text = hv_arena_new(arena, const char *, n + 1),
                     .pattern = hv_arena_new(arena, const char *, n + 1),
                     .by_pattern = hv_arena_new(arena, uint32_t, n + 1),
                     .rules = hv_arena_new(arena, struct hv__folded, 2 * n + 1)};
    struct sorted *order = hv_arena_new(arena, struct sorted, n + 1);
    for (uint32_t t = 0; t < n; t++) {
        f.text[t] = text_of(g, &g->tensors[t], s->layout[t], p, arena);
        f.pattern[t] = pattern_of(g->tensors[t].name, arena);
        order[t] = (struct sorted){&f, t};
    }
    qsort(order, n, sizeof *order, by_pattern);
    for (size_t i = 0; i < n; i++) {
        f.by_pattern[i] = order[i].tensor;
    }
    make_rules(&f);
    for (uint32_t t = 0; t < n; t++) {
        const struct hv__folded *r = last_match(&f, g->tensors[t].name);
        const struct hv_shard_tensor *x = &s->graph.tensors[s->expansion.tensor_of[t]];
        f.rules[r - f.rules].n++;
        f.rules[r - f.rules].bytes += hv_layout_bytes(s->layout[t], &p->mesh, &x->shape);
    }
    *out = f.rules;
    return f.n;
}
