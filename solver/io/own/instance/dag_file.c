/*
 * Reads operator-graph instances (`hetviz.partition/1`, kind dag): nodes and edges are rows whose
 * columns the file names in node_fields and edge_fields. Chains are read in chain_file.c.
 */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/instance/partition_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns of a node row, in the order of `node_words`. */
enum column { ID, ACCEL, CPU, BYTES, BACKWARD, COLOR, ON_ACCEL, N_COLUMNS };
static const char *const node_words[] = {
    "id",          "accel_latency", "cpu_latency",       "size_bytes",
    "is_backward", "color_class",   "supported_on_accel"};
static const char *const edge_words[] = {"src", "dst", "cost"};

#define MAX_NODES ((size_t)100000)
#define MAX_EDGES ((size_t)1000000)
#define ALONE     1e15 /* classes from here on have one node */

/* A name of the file and its dense index. */
struct name {
    int64_t id;
    size_t index;
};

static int by_id(const void *pa, const void *pb)
{
    const struct name *a = pa, *b = pb;
    if (a->id != b->id) {
        return a->id < b->id ? -1 : 1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

/* at[k] = column of words[k]. */
static enum hv_status read_columns(const struct hv_jp *root, const char *key,
                                   const char *const *words, size_t n_words, size_t *at,
                                   struct hv_err *err)
{
    struct hv_jp list;
    size_t n = 0, seen = 0;
    enum hv_status st = hv_jp_need(root, key, "a list of column names", &list, err);
    if (st == HV_OK) {
        st = hv_jp_array(&list, &n, err);
    }
    for (size_t k = 0; k < n && st == HV_OK; k++) {
        struct hv_jp one = hv_jp_at(&list, k);
        int word = 0;
        st = hv_jp_word(&one, words, n_words, &word, err);
        if (st == HV_OK) {
            at[word] = k;
            seen |= (size_t)1 << word;
        }
    }
    if (st == HV_OK && (n != n_words || seen != ((size_t)1 << n_words) - 1)) {
        return hv_jp_fail(&list, err, "expected each of the %zu columns once", n_words);
    }
    return st;
}

static enum hv_status read_cells(const struct hv_jp *rows, size_t r, size_t n, const size_t *at,
                                 double *out, struct hv_err *err)
{
    struct hv_jp row = hv_jp_at(rows, r);
    size_t have = 0;
    enum hv_status st = hv_jp_array(&row, &have, err);
    if (st == HV_OK && have != n) {
        return hv_jp_fail(&row, err, "expected %zu columns, found %zu", n, have);
    }
    for (size_t k = 0; k < n && st == HV_OK; k++) {
        struct hv_jp x = hv_jp_at(&row, at[k]);
        out[k] = HV_UNKNOWN;
        if (k == COLOR && n == N_COLUMNS && hv_jp_none(&x)) {
            continue; /* a class of its own */
        }
        st = hv_jp_number(&x, k == ID && n == N_COLUMNS ? -1e15 : 0, 1e18, &out[k], err);
    }
    return st;
}

/* Numbers the colour classes densely in the order of their values. */
static size_t number_classes(struct hv_dag_node *nodes, size_t n, struct name *sorted)
{
    size_t classes = 0;
    for (size_t i = 0; i < n; i++) {
        sorted[i] = (struct name){(int64_t)nodes[i].color, i};
    }
    if (n) {
        qsort(sorted, n, sizeof *sorted, by_id);
    }
    for (size_t i = 0; i < n; i++) {
        if (i && sorted[i].id != sorted[i - 1].id) {
            classes++;
        }
        nodes[sorted[i].index].color = classes;
    }
    return n ? classes + 1 : 0;
}

static struct hv_dag_node node_of(const double *cell, size_t i)
{
    return (struct hv_dag_node){
        .accel = cell[ACCEL],
        .cpu = cell[CPU],
        .bytes = cell[BYTES],
        .color = hv_known(cell[COLOR]) ? (size_t)fmin(cell[COLOR], ALONE - 1) : (size_t)ALONE + i,
        .backward = cell[BACKWARD] > 0,
        .cpu_only = !(cell[ON_ACCEL] > 0)};
}

/* Sorts the names by id; no two are equal. */
static enum hv_status sort_names(const struct hv_jp *list, struct name *names, size_t n,
                                 struct hv_err *err)
{
    qsort(names, n, sizeof *names, by_id);
    for (size_t i = 1; i < n; i++) {
        if (names[i].id == names[i - 1].id) {
            struct hv_jp at_node = hv_jp_at(list, names[i].index);
            return hv_jp_fail(&at_node, err, "two nodes have the id %lld", (long long)names[i].id);
        }
    }
    return HV_OK;
}

static enum hv_status read_nodes(struct hv_instance *in, const struct hv_jp *root,
                                 struct name **names, struct hv_err *err)
{
    size_t at[N_COLUMNS] = {0}, n = 0;
    struct hv_jp list;
    double cell[N_COLUMNS];
    enum hv_status st = read_columns(root, "node_fields", node_words, N_COLUMNS, at, err);
    if (st == HV_OK) {
        st = hv_jp_need(root, "nodes", "a list of rows", &list, err);
    }
    if (st == HV_OK) {
        st = hv_jp_array(&list, &n, err);
    }
    if (st != HV_OK) {
        return st;
    }
    if (n == 0 || n > MAX_NODES) {
        return hv_jp_expected(&list, err, "1 to 100000 nodes");
    }
    struct hv_dag_node *nodes = hv_arena_new(&in->arena, struct hv_dag_node, n);
    struct name *sorted = hv_arena_new(&in->arena, struct name, n);
    *names = hv_arena_new(&in->arena, struct name, n);
    for (size_t i = 0; i < n; i++) {
        if ((st = read_cells(&list, i, N_COLUMNS, at, cell, err)) != HV_OK) {
            return st;
        }
        nodes[i] = node_of(cell, i);
        (*names)[i] = (struct name){(int64_t)cell[ID], i};
    }
    if ((st = sort_names(&list, *names, n, err)) != HV_OK) {
        return st;
    }
    in->dag.n_classes = number_classes(nodes, n, sorted);
    in->dag.nodes = nodes;
    in->dag.n_nodes = n;
    return HV_OK;
}

static enum hv_status find_node(const struct hv_jp *list, size_t row, const struct name *names,
                                size_t n, double id, size_t *out, struct hv_err *err)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if ((double)names[mid].id < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    if (lo == n || (double)names[lo].id != id) {
        struct hv_jp at = hv_jp_at(list, row);
        return hv_jp_fail(&at, err, "no node has the id %.0f", id);
    }
    *out = names[lo].index;
    return HV_OK;
}

static enum hv_status read_edges(struct hv_instance *in, const struct hv_jp *root,
                                 const struct name *names, struct hv_err *err)
{
    size_t at[3] = {0}, n = 0;
    double cell[3];
    struct hv_jp list;
    enum hv_status st =
        read_columns(root, "edge_fields", edge_words, HV_COUNT(edge_words), at, err);
    if (st == HV_OK) {
        st = hv_jp_need(root, "edges", "a list of rows", &list, err);
    }
    if (st == HV_OK) {
        st = hv_jp_array(&list, &n, err);
    }
    if (st != HV_OK) {
        return st;
    }
    if (n > MAX_EDGES) {
        return hv_jp_expected(&list, err, "at most 1000000 edges");
    }
    struct hv_dag_edge *edges = hv_arena_new(&in->arena, struct hv_dag_edge, n);
    in->dag.edges = edges;
    in->dag.n_edges = n;
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        if ((st = read_cells(&list, i, 3, at, cell, err)) != HV_OK) {
            break;
        }
        edges[i].cost = cell[2];
        st = find_node(&list, i, names, in->dag.n_nodes, cell[0], &edges[i].from, err);
        if (st == HV_OK) {
            st = find_node(&list, i, names, in->dag.n_nodes, cell[1], &edges[i].to, err);
        }
    }
    return st;
}

/* Reports an edge on a cycle, given the nodes with open inputs (waits > 0) after Kahn's
 * algorithm. */
static enum hv_status blame_cycle(struct hv_instance *in, const size_t *waits,
                                  const struct hv_jp *root, struct hv_err *err)
{
    const struct hv_dag *g = &in->dag;
    size_t none = g->n_edges, at = 0;
    size_t *into = hv_arena_new(&in->arena, size_t, g->n_nodes); /* an edge from such a node */
    bool *seen = hv_arena_new(&in->arena, bool, g->n_nodes);
    for (size_t i = 0; i < g->n_nodes; i++) {
        into[i] = none;
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        if (waits[g->edges[e].from] > 0) {
            into[g->edges[e].to] = e;
        }
    }
    while (waits[at] == 0) {
        at++;
    }
    for (; !seen[at]; at = g->edges[into[at]].from) {
        seen[at] = true; /* every node with open inputs has such an edge */
    }
    struct hv_jp list = hv_jp_get(root, "edges"), edge = hv_jp_at(&list, into[at]);
    return hv_jp_fail(&edge, err, "this edge closes a cycle; expected a graph without cycles");
}

/*
 * Rejects a graph with a cycle and names an edge on one (Kahn's algorithm: a node that never
 * becomes free lies on a cycle or after one; going backwards from it among such nodes ends in a
 * cycle). O(n + m).
 */
static enum hv_status check_acyclic(struct hv_instance *in, const struct hv_jp *root,
                                    struct hv_err *err)
{
    const struct hv_dag *g = &in->dag;
    size_t n = g->n_nodes, none = g->n_edges, n_free = 0;
    size_t *waits = hv_arena_new(&in->arena, size_t, n);
    size_t *head = hv_arena_new(&in->arena, size_t, n); /* lists of the edges that leave a node */
    size_t *next = hv_arena_new(&in->arena, size_t, g->n_edges + 1);
    size_t *queue = hv_arena_new(&in->arena, size_t, n);
    for (size_t i = 0; i < n; i++) {
        head[i] = none;
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        waits[g->edges[e].to]++;
        next[e] = head[g->edges[e].from];
        head[g->edges[e].from] = e;
    }
    for (size_t i = 0; i < n; i++) {
        if (waits[i] == 0) {
            queue[n_free++] = i;
        }
    }
    for (size_t q = 0; q < n_free; q++) {
        for (size_t e = head[queue[q]]; e != none; e = next[e]) {
            if (--waits[g->edges[e].to] == 0) {
                queue[n_free++] = g->edges[e].to;
            }
        }
    }
    if (n_free == n) {
        return HV_OK;
    }
    return blame_cycle(in, waits, root, err);
}

enum hv_status hv__instance_read_dag(struct hv_instance *in, const struct hv_jp *root,
                                     struct hv_err *err)
{
    static const char *const objectives[] = {"max_load", "latency"};
    struct hv_jp at;
    struct name *names = NULL;
    int64_t accelerators = 0, cpus = 0;
    int word = 0;
    in->dag.memory = HUGE_VAL;
    enum hv_status st = hv_keys_check(root, HV_KEYS_INSTANCE_DAG, err);
    if (st == HV_OK) {
        st = hv_jp_opt_word(root, "objective", objectives, HV_COUNT(objectives), &word, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(root, "accelerators", "a whole number", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_int(&at, 0, 256, &accelerators, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(root, "cpus", 0, 256, &cpus, err);
    }
    if (st == HV_OK && accelerators + cpus == 0) {
        return hv_jp_fail(&at, err, "expected at least one accelerator or CPU");
    }
    if (st == HV_OK) {
        st = hv_jp_opt_number(root, "memory_bytes", 0, 1e18, &in->dag.memory, err);
    }
    if (st == HV_OK) {
        st = read_nodes(in, root, &names, err);
    }
    if (st == HV_OK) {
        st = read_edges(in, root, names, err);
    }
    if (st == HV_OK) {
        st = check_acyclic(in, root, err);
    }
    in->dag.objective = word == 1 ? HV_DAG_LATENCY : HV_DAG_MAX_LOAD;
    in->dag.n_accelerators = (size_t)accelerators;
    in->dag.n_cpus = (size_t)cpus;
    return st;
}
