/* Routing files (hetviz.routing/1). Counts of a trace are nested lists, iterations × layers ×
 * sources × experts, whose innermost may be an object {expert: tokens}; or a list of entries
 * [iteration, layer, source, expert, tokens] with the four sizes beside it. */
#include "solver/io/own/routing_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/io/own/doc/keys.h"
#include "solver/io/own/doc/load.h"
#include "solver/io/own/routing_text.h"

#define MOST_TOKENS 1e12

#define X(c, name) name,
static const char *const kind_words[HV_ROUTER_N] = {HV_ROUTER_MAP(X)};
#undef X

/* A trace that is being read: rows in order, entries behind each other. */
struct trace {
    struct hv_router *r;
    struct hv_arena *arena;
    size_t rows; /* iterations × layers × sources */
    size_t *at;
    uint16_t *expert;
    float *tokens;
    size_t n;
};

static double rows_of(const struct hv_router *r)
{
    return (double)r->iterations * (double)r->layers * (double)r->sources;
}

static bool counts_fit(const struct hv_router *r)
{
    return rows_of(r) * (double)r->experts <= HV_ROUTER_COUNTS_MOST;
}

static enum hv_status find_rows(struct trace *t, const struct hv_jp *p, struct hv_err *err)
{
    const struct hv_router *r = t->r;
    if (!counts_fit(r)) {
        return hv_jp_fail(p, err,
                          "expected at most %u counts, found %zu iterations x %zu layers x "
                          "%zu sources x %zu experts",
                          HV_ROUTER_COUNTS_MOST, r->iterations, r->layers, r->sources, r->experts);
    }
    t->rows = (size_t)rows_of(r);
    t->at = hv_arena_new(t->arena, size_t, t->rows + 1);
    return HV_OK;
}

static void room(struct trace *t, size_t entries)
{
    t->expert = hv_arena_new(t->arena, uint16_t, entries + 1);
    t->tokens = hv_arena_new(t->arena, float, entries + 1);
}

static void add(struct trace *t, size_t expert, double tokens)
{
    if (tokens > 0) {
        t->expert[t->n] = (uint16_t)expert;
        t->tokens[t->n++] = (float)tokens;
    }
}

/* ---- nested lists --------------------------------------------------------------------------- */

/* Length of a list; all of its level have the same one. */
static enum hv_status length(const struct hv_jp *p, const char *what, size_t *io,
                             struct hv_err *err)
{
    size_t n = 0;
    enum hv_status st = hv_jp_array(p, &n, err);
    if (st == HV_OK && (n == 0 || n > HV_ROUTER_AXIS_MOST)) {
        return hv_jp_fail(p, err, "expected 1 to %d %s, found %zu", HV_ROUTER_AXIS_MOST, what, n);
    }
    if (st == HV_OK && *io > 0 && *io != n) {
        return hv_jp_fail(p, err, "expected %zu %s as in the lists before, found %zu", *io, what,
                          n);
    }
    *io = st == HV_OK ? n : *io;
    return st;
}

static enum hv_status expert_of(const struct hv_jp *p, size_t experts, size_t *out,
                                struct hv_err *err)
{
    char *end = NULL;
    unsigned long e = strtoul(p->key, &end, 10);
    if (p->key[0] < '0' || p->key[0] > '9' || *end != '\0' || e >= experts) {
        return hv_jp_fail(p, err, "expected the number of an expert, 0 to %zu", experts - 1);
    }
    *out = e;
    return HV_OK;
}

/* What one source sends: numbers for all experts, or those of some by their numbers. */
static enum hv_status read_source(struct trace *t, const struct hv_jp *p, struct hv_err *err)
{
    double x = 0;
    enum hv_status st = HV_OK;
    if (json_is_object(p->v)) {
        for (void *it = json_object_iter(p->v); st == HV_OK && it;
             it = json_object_iter_next(p->v, it)) {
            struct hv_jp one = hv_jp_get(p, json_object_iter_key(it));
            size_t e = 0;
            st = expert_of(&one, t->r->experts, &e, err);
            st = st ? st : hv_jp_number(&one, 0, MOST_TOKENS, &x, err);
            if (st == HV_OK) {
                add(t, e, x);
            }
        }
        return st;
    }
    size_t n = t->r->experts;
    st = length(p, "experts", &n, err);
    for (size_t e = 0; st == HV_OK && e < n; e++) {
        struct hv_jp one = hv_jp_at(p, e);
        st = hv_jp_number(&one, 0, MOST_TOKENS, &x, err);
        if (st == HV_OK) {
            add(t, e, x);
        }
    }
    return st;
}

/* Entries of the lists below: an upper bound, by what they hold. */
static size_t count_entries(const json_t *v)
{
    size_t n = 0;
    if (json_is_object(v)) {
        return json_object_size(v);
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *x = json_array_get(v, i);
        n += json_is_number(x) ? 1 : count_entries(x);
    }
    return n;
}

static enum hv_status read_nested(struct trace *t, const struct hv_jp *list, struct hv_err *err)
{
    struct hv_router *r = t->r;
    enum hv_status st = length(list, "iterations", &r->iterations, err);
    struct hv_jp first = hv_jp_at(list, 0);
    st = st ? st : length(&first, "layers", &r->layers, err);
    struct hv_jp source = st ? first : hv_jp_at(&first, 0);
    st = st ? st : length(&source, "sources", &r->sources, err);
    struct hv_jp experts = st ? first : hv_jp_at(&source, 0);
    if (st == HV_OK && !r->experts) {
        st = json_is_object(experts.v)
                 ? hv_jp_fail(list, err, "counts by expert need the key `experts` beside them")
                 : length(&experts, "experts", &r->experts, err);
    }
    st = st ? st : find_rows(t, list, err);
    if (st == HV_OK) {
        room(t, count_entries(list->v));
    }
    size_t row = 0;
    for (size_t i = 0; st == HV_OK && i < r->iterations; i++) {
        struct hv_jp layers = hv_jp_at(list, i);
        st = length(&layers, "layers", &r->layers, err);
        for (size_t k = 0; st == HV_OK && k < r->layers; k++) {
            struct hv_jp sources = hv_jp_at(&layers, k);
            st = length(&sources, "sources", &r->sources, err);
            for (size_t s = 0; st == HV_OK && s < r->sources; s++) {
                struct hv_jp one = hv_jp_at(&sources, s);
                t->at[row++] = t->n;
                st = read_source(t, &one, err);
            }
        }
    }
    return st;
}

/* ---- entries -------------------------------------------------------------------------------- */

struct entry {
    size_t row, order;
    double at[5];
};

static int by_row(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

static enum hv_status read_entry(const struct trace *t, const struct hv_jp *p, struct entry *e,
                                 struct hv_err *err)
{
    const struct hv_router *r = t->r;
    const size_t sizes[] = {r->iterations, r->layers, r->sources, r->experts};
    size_t n = 0;
    enum hv_status st = hv_jp_array(p, &n, err);
    if (st == HV_OK && n != 5) {
        return hv_jp_fail(p, err,
                          "expected [iteration, layer, source, expert, tokens], found %zu "
                          "numbers",
                          n);
    }
    for (size_t i = 0; st == HV_OK && i < 4; i++) {
        struct hv_jp x = hv_jp_at(p, i);
        int64_t v = 0;
        st = hv_jp_int(&x, 0, (int64_t)sizes[i] - 1, &v, err);
        e->at[i] = (double)v;
    }
    struct hv_jp x = n == 5 ? hv_jp_at(p, 4) : *p;
    st = st ? st : hv_jp_number(&x, 0, MOST_TOKENS, &e->at[4], err);
    e->row = ((size_t)e->at[0] * r->layers + (size_t)e->at[1]) * r->sources + (size_t)e->at[2];
    return st;
}

static enum hv_status read_entries(struct trace *t, const struct hv_jp *list, struct hv_err *err)
{
    const struct hv_router *r = t->r;
    size_t n = json_array_size(list->v), next = 0;
    if (!r->iterations || !r->layers || !r->sources || !r->experts) {
        return hv_jp_fail(list, err,
                          "entries [iteration, layer, source, expert, tokens] need the "
                          "keys `iterations`, `layers`, `sources` and `experts`");
    }
    enum hv_status st = find_rows(t, list, err);
    struct entry *entries = hv_xcalloc(n + 1, sizeof *entries);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp one = hv_jp_at(list, i);
        entries[i].order = i;
        st = read_entry(t, &one, &entries[i], err);
    }
    if (st == HV_OK) {
        qsort(entries, n, sizeof *entries, by_row);
        room(t, n);
        for (size_t row = 0; row < t->rows; row++) {
            t->at[row] = t->n;
            for (; next < n && entries[next].row == row; next++) {
                add(t, (size_t)entries[next].at[3], entries[next].at[4]);
            }
        }
    }
    free(entries);
    return st;
}

/* ---- the file ------------------------------------------------------------------------------- */

static enum hv_status read_size(const struct hv_jp *p, const char *key, size_t *out,
                                struct hv_err *err)
{
    int64_t v = (int64_t)*out;
    enum hv_status st = hv_jp_opt_int(p, key, 1, HV_ROUTER_AXIS_MOST, &v, err);
    *out = (size_t)v;
    return st;
}

static enum hv_status read_sizes(const struct hv_jp *p, struct hv_router *r, struct hv_err *err)
{
    enum hv_status st;
    r->iterations = 0;
    return (st = read_size(p, "iterations", &r->iterations, err)) ||
                   (st = read_size(p, "layers", &r->layers, err)) ||
                   (st = read_size(p, "sources", &r->sources, err))
               ? st
               : read_size(p, "experts", &r->experts, err);
}

static enum hv_status read_trace(const struct hv_jp *p, struct hv_arena *arena, struct hv_router *r,
                                 struct hv_err *err)
{
    struct trace t = {.r = r, .arena = arena};
    struct hv_jp list = {0};
    size_t n = 0;
    enum hv_status st;
    if ((st = read_sizes(p, r, err)) ||
        (st = hv_jp_need(p, "counts", "tokens by iteration, layer, source and expert", &list,
                         err)) ||
        (st = hv_jp_array(&list, &n, err))) {
        return st;
    }
    bool entries = n > 0 && json_is_array(json_array_get(list.v, 0)) &&
                   json_is_number(json_array_get(json_array_get(list.v, 0), 0));
    st = entries || (n == 0 && r->iterations) ? read_entries(&t, &list, err)
                                              : read_nested(&t, &list, err);
    if (st == HV_OK) {
        t.at[t.rows] = t.n;
        r->at = t.at;
        r->expert = t.expert;
        r->tokens = t.tokens;
    }
    return st;
}

static enum hv_status read_zipf(const struct hv_jp *p, struct hv_router *r, struct hv_err *err)
{
    int64_t seed = 1;
    enum hv_status st;
    r->skew = 1;
    r->correlation = 1;
    if ((st = hv_jp_opt_number(p, "skew", 0, 64, &r->skew, err)) ||
        (st = hv_jp_opt_number(p, "drift", 0, 1, &r->drift, err)) ||
        (st = hv_jp_opt_number(p, "correlation", 0, 1, &r->correlation, err)) ||
        (st = hv_jp_opt_int(p, "seed", 0, INT64_MAX, &seed, err))) {
        return st;
    }
    r->seed = (uint64_t)seed;
    r->iterations = r->drift > 0 ? 16 : 1;
    return read_size(p, "iterations", &r->iterations, err);
}

/* The kind, where all keys are those of it. */
static enum hv_status read_kind(const struct hv_jp *p, bool whole, int *out, struct hv_err *err)
{
    static const enum hv_keys keys[] = {HV_KEYS_ROUTING_UNIFORM, HV_KEYS_ROUTING_ZIPF,
                                        HV_KEYS_ROUTING_TRACE};
    struct hv_jp word = {0};
    enum hv_status st = whole ? hv_jp_format(p, "hetviz.routing/1", err) : HV_OK;
    if (st || (st = hv_jp_need(p, "kind", "uniform, zipf or trace", &word, err)) ||
        (st = hv_jp_word(&word, kind_words, HV_ROUTER_N, out, err))) {
        return st;
    }
    return hv_keys_check(p, keys[*out], err);
}

enum hv_status hv_routing_build(const struct hv_jp *p, bool whole, struct hv_arena *arena,
                                const struct hv_router **out, struct hv_err *err)
{
    struct hv_router *r = hv_arena_new(arena, struct hv_router, 1);
    int kind = 0;
    enum hv_status st = read_kind(p, whole, &kind, err);
    if (st) {
        return st;
    }
    *r = (struct hv_router){.kind = (enum hv_router_kind)kind, .iterations = 1};
    st = kind == HV_ROUTER_ZIPF    ? read_zipf(p, r, err)
         : kind == HV_ROUTER_TRACE ? read_trace(p, arena, r, err)
                                   : HV_OK;
    *out = r;
    return st;
}

/* ---- long files ----------------------------------------------------------------------------- */

/* A size of the lists, which a key beside them may repeat. */
static bool agrees(size_t *io, size_t found)
{
    bool ok = *io == 0 || *io == found;
    *io = found;
    return ok;
}

/* Takes nested counts over; false where sizes do not fit. */
static bool take_nested(struct hv_router *r, const struct hv__counts *c)
{
    bool ok = agrees(&r->iterations, c->iterations) && agrees(&r->layers, c->layers) &&
              agrees(&r->sources, c->sources);
    ok = ok && (c->expert ? c->most_expert < r->experts : agrees(&r->experts, c->experts));
    r->at = c->at;
    r->expert = c->expert;
    r->counts = c->counts;
    r->tokens = c->tokens;
    return ok;
}

/* Takes entries over, in the order of their rows, those of one row as in the file; false where
 * sizes do not fit. */
static bool take_entries(struct trace *t, const struct hv__counts *c)
{
    const struct hv_router *r = t->r;
    const size_t sizes[] = {r->iterations, r->layers, r->sources, r->experts};
    size_t *row_of = hv_xcalloc(c->n + 1, sizeof *row_of);
    bool ok = true;
    for (size_t i = 0; ok && i < c->n; i++) {
        const struct hv__count_entry *e = &c->entry[i];
        for (int k = 0; k < 4; k++) {
            ok = ok && e->at[k] < sizes[k];
        }
        row_of[i] = (e->at[0] * r->layers + e->at[1]) * r->sources + e->at[2];
        t->at[ok && e->tokens > 0 ? row_of[i] + 1 : 0]++;
    }
    t->at[0] = 0;
    for (size_t row = 0; row < t->rows; row++) {
        t->at[row + 1] += t->at[row];
    }
    size_t *next = hv_xcalloc(t->rows + 1, sizeof *next);
    memcpy(next, t->at, t->rows * sizeof *next);
    room(t, c->n);
    for (size_t i = 0; ok && i < c->n; i++) {
        if (c->entry[i].tokens > 0) {
            size_t to = next[row_of[i]]++;
            t->expert[to] = c->entry[i].at[3];
            t->tokens[to] = c->entry[i].tokens;
        }
    }
    free(next);
    free(row_of);
    return ok;
}

/* Builds the trace of which `rest` is all but the counts; false where something is not in order. */
static bool build_trace(struct hv_str *rest, const struct hv__counts *c, struct hv_arena *arena,
                        struct hv_router *r)
{
    struct hv_json json = {0};
    int kind = 0;
    if (hv_json_parse(&json, hv_str_cstr(rest), rest->n, NULL, NULL) != HV_OK) {
        return false;
    }
    struct hv_jp root = hv_jp_root(&json);
    struct trace t = {.r = r, .arena = arena};
    bool ok = read_kind(&root, true, &kind, NULL) == HV_OK && kind == HV_ROUTER_TRACE;
    *r = (struct hv_router){.kind = HV_ROUTER_TRACE};
    ok = ok && read_sizes(&root, r, NULL) == HV_OK;
    ok = ok &&
         (c->entries ? r->iterations && r->layers && r->sources && r->experts : take_nested(r, c));
    if (ok && c->entries) {
        ok = find_rows(&t, &root, NULL) == HV_OK && take_entries(&t, c);
        r->at = t.at;
        r->expert = t.expert;
        r->tokens = t.tokens;
    } else if (ok) {
        ok = counts_fit(r);
    }
    hv_json_free(&json);
    return ok;
}

/* Reads a trace as it stands in the file; NULL where it has to be read as a tree. */
static const struct hv_router *read_long(const char *path, struct hv_arena *arena)
{
    struct hv_arena_mark mark = hv_arena_mark(arena);
    struct hv_router *r = hv_arena_new(arena, struct hv_router, 1);
    struct hv__counts counts;
    struct hv_str rest = {0};
    bool ok = hv__counts_read(path, arena, &rest, &counts) && build_trace(&rest, &counts, arena, r);
    hv_str_free(&rest);
    if (!ok) {
        hv_arena_rewind(arena, mark);
    }
    return ok ? r : NULL;
}

enum hv_status hv_routing_load(const char *path_or_name, struct hv_arena *arena,
                               const struct hv_router **out, struct hv_err *err)
{
    struct hv_str path = {0};
    struct hv_json json = {0};
    enum hv_status st = hv__doc_find(&path, path_or_name, "samples/routing", err);
    *out = st == HV_OK ? read_long(hv_str_cstr(&path), arena) : NULL;
    if (st == HV_OK && !*out) {
        st = hv__doc_load(&json, path_or_name, "samples/routing", err);
        struct hv_jp root = hv_jp_root(&json);
        st = st == HV_OK ? hv_routing_build(&root, true, arena, out, err) : st;
    }
    hv_json_free(&json);
    hv_str_free(&path);
    return st;
}

enum hv_status hv_routing_check(const struct hv_json *json, struct hv_err *err)
{
    struct hv_arena arena = {0};
    struct hv_jp root = hv_jp_root(json);
    const struct hv_router *r = NULL;
    enum hv_status st = hv_routing_build(&root, true, &arena, &r, err);
    hv_arena_free(&arena);
    return st;
}
