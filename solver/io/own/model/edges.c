/* Edges between named operators or modules of a model; cycles are an error. */
#include "solver/io/own/model/model_int.h"
#include <stdlib.h>
#include <string.h>

static int compare_index(const void *a, const void *b)
{
    return strcmp(((const struct hv__name_index *)a)->name,
                  ((const struct hv__name_index *)b)->name);
}

static enum hv_status find_name(const struct hv_jp *p, const struct hv__name_index *names, size_t n,
                                uint32_t *out, struct hv_err *err)
{
    struct hv__name_index want = {0};
    enum hv_status st = hv_jp_string(p, &want.name, err);
    if (st) {
        return st;
    }
    const struct hv__name_index *hit = bsearch(&want, names, n, sizeof *names, compare_index);
    if (hit) {
        *out = hit->at;
        return HV_OK;
    }
    const char **words = hv_xcalloc(n + 1, sizeof *words);
    for (size_t i = 0; i < n; i++) {
        words[i] = names[i].name;
    }
    const char *near = hv_suggest(want.name, words, n);
    hv_jp_fail(p, err, "expected the name of a node of the graph, found \"%.80s\"%s%s%s", want.name,
               near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    free(words);
    return HV_EINPUT;
}

/* Kahn's algorithm: every node is removed once when the edges have no cycle. O(nodes + edges). */
static bool has_cycle(const struct hv_model *m, size_t n)
{
    uint32_t *missing = hv_xcalloc(n + 1, sizeof *missing);
    uint32_t *first = hv_xcalloc(n + 2, sizeof *first);
    uint32_t *next = hv_xcalloc(m->n_edges + 1, sizeof *next);
    uint32_t *queue = hv_xcalloc(n + 1, sizeof *queue);
    size_t head = 0, tail = 0;
    for (size_t e = 0; e < m->n_edges; e++) {
        missing[m->edges[e].to]++;
        next[e] = first[m->edges[e].from];
        first[m->edges[e].from] = (uint32_t)e + 1;
    }
    for (size_t i = 0; i < n; i++) {
        if (missing[i] == 0) {
            queue[tail++] = (uint32_t)i;
        }
    }
    while (head < tail) {
        for (uint32_t e = first[queue[head++]]; e; e = next[e - 1]) {
            if (--missing[m->edges[e - 1].to] == 0) {
                queue[tail++] = m->edges[e - 1].to;
            }
        }
    }
    free(missing);
    free(first);
    free(next);
    free(queue);
    return tail < n;
}

enum hv_status hv__edges_read(const struct hv_jp *root, struct hv_model *m,
                              const struct hv__name_index *names, size_t n, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, "edges");
    size_t n_edges = 0, two = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &n_edges, err);
    m->edges = hv_arena_new(&m->arena, struct hv_model_edge, n_edges + 1);
    for (size_t i = 0; st == HV_OK && i < n_edges; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = hv_jp_array(&at, &two, err);
        if (st == HV_OK && two != 2) {
            return hv_jp_fail(&at, err, "expected two names, found %zu", two);
        }
        struct hv_jp from = hv_jp_at(&at, 0), to = hv_jp_at(&at, 1);
        if (st || (st = find_name(&from, names, n, &m->edges[i].from, err)) ||
            (st = find_name(&to, names, n, &m->edges[i].to, err))) {
            return st;
        }
        m->n_edges = i + 1;
    }
    return st == HV_OK && has_cycle(m, n) ? hv_jp_fail(&list, err, "the edges run in a circle")
                                          : st;
}

void hv__names_sort(struct hv__name_index *names, size_t n)
{
    qsort(names, n, sizeof *names, compare_index);
}
