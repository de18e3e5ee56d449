/*
 * Our plans beside those of Piper's published program: bench_piper [FILE], a file with its graphs
 * and what it found for them; without an argument piper.json in or beside the folder that
 * HETVIZ_INSTANCES names. Graphs with few down-sets are cut into any of them, others in two
 * topological orders, so that a worse value can only come from those orders. Ends with status 1
 * when a published value is better than ours.
 */
#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/str.h"
#include "solver/base/units.h"
#include "solver/optim/chain/replicas.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_NODES = 512, MAX_EDGES = 2048, MAX_WIDTHS = 8, MAX_PATH = 4096, MAX_SETS = 600 };

/* An edge and what it costs its ends at every width, in bytes. */
struct edge {
    size_t from, to;
    double bytes, fetch[MAX_WIDTHS], send[MAX_WIDTHS];
};

/* A graph as the file has it; node numbers are indexes. */
struct graph {
    size_t n_nodes, n_edges, n_widths, width[MAX_WIDTHS];
    struct edge edges[MAX_EDGES];
    json_t *variants[MAX_NODES][MAX_WIDTHS]; /* ways to run a node */
    const char *name[MAX_NODES];
    size_t order[MAX_NODES], place[MAX_NODES];
    bool placed[MAX_NODES];
};

static double cpu_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double number_at(const json_t *object, const char *key)
{
    const json_t *x = json_object_get(object, key);
    return json_is_number(x) ? json_number_value(x) : HV_UNKNOWN;
}

static size_t size_at(const json_t *object, const char *key)
{
    double x = number_at(object, key);
    return x >= 0 ? (size_t)x : SIZE_MAX;
}

static double sync_of(json_t *variant, const char *key, size_t node)
{
    char name[32];
    snprintf(name, sizeof name, "%zu", node);
    double x = number_at(json_object_get(variant, key), name);
    return hv_known(x) ? x : 0;
}

static bool read_nodes(struct graph *g, json_t *nodes)
{
    const char *key;
    json_t *list;
    g->n_nodes = json_array_size(nodes);
    if (g->n_nodes == 0 || g->n_nodes > MAX_NODES) {
        return false;
    }
    json_object_foreach(json_object_get(json_array_get(nodes, 0), "TMPCs"), key, list)
    {
        if (g->n_widths == MAX_WIDTHS) {
            return false;
        }
        g->width[g->n_widths++] = (size_t)strtoul(key, NULL, 10);
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        json_t *node = json_array_get(nodes, v);
        g->name[v] = json_string_value(json_object_get(node, "name"));
        for (size_t w = 0; w < g->n_widths; w++) {
            char name[32];
            snprintf(name, sizeof name, "%zu", g->width[w]);
            g->variants[v][w] = json_object_get(json_object_get(node, "TMPCs"), name);
            if (size_at(node, "id") != v || json_array_size(g->variants[v][w]) == 0) {
                return false;
            }
        }
    }
    return true;
}

static bool read_edges(struct graph *g, json_t *edges)
{
    size_t k;
    json_t *e;
    if (json_array_size(edges) > MAX_EDGES) {
        return false;
    }
    json_array_foreach(edges, k, e)
    {
        struct edge *x = &g->edges[g->n_edges++];
        x->from = size_at(e, "sourceId");
        x->to = size_at(e, "destId");
        x->bytes = number_at(e, "communicationCost");
        if (x->from >= g->n_nodes || x->to >= g->n_nodes) {
            return false;
        }
        for (size_t w = 0; w < g->n_widths; w++) {
            json_t *from = json_array_get(g->variants[x->from][w], 0);
            json_t *to = json_array_get(g->variants[x->to][w], 0);
            x->send[w] = sync_of(from, "syncTimeBw", x->to);
            x->fetch[w] = sync_of(to, "syncTimeFw", x->from);
        }
    }
    return true;
}

/* Every node right behind the last of what it needs, what the first edges bring in last when
 * `reverse`. The graphs are shallow enough to recur. */
static void place_node(struct graph *g, size_t v, bool reverse, size_t *n)
{
    if (g->placed[v]) {
        return;
    }
    g->placed[v] = true;
    for (size_t k = 0; k < g->n_edges; k++) {
        size_t e = reverse ? g->n_edges - 1 - k : k;
        if (g->edges[e].to == v) {
            place_node(g, g->edges[e].from, reverse, n);
        }
    }
    g->place[v] = *n;
    g->order[(*n)++] = v;
}

/* A longer network: the last but one of its layers repeated behind itself, as in the published
 * experiments. */
static bool lengthen(struct graph *g, size_t n_more)
{
    size_t between = g->n_edges;
    for (size_t e = 0; e < g->n_edges; e++) {
        const struct edge *x = &g->edges[e];
        if (g->name[x->from] && g->name[x->to] && strcmp(g->name[x->from], g->name[x->to]) == 0 &&
            (between == g->n_edges || x->to > g->edges[between].to)) {
            between = e;
        }
    }
    if (between == g->n_edges) {
        return false;
    }
    for (; n_more > 0; n_more--) {
        if (g->n_nodes == MAX_NODES || g->n_edges == MAX_EDGES) {
            return false;
        }
        size_t fresh = g->n_nodes++;
        memcpy(g->variants[fresh], g->variants[g->edges[between].from], sizeof g->variants[fresh]);
        struct edge copy = g->edges[between];
        copy.from = fresh;
        g->edges[between].to = fresh;
        g->edges[g->n_edges++] = copy;
    }
    return true;
}

/* Where a graph can be cut: rows of one byte per place of the order. */
struct cuts {
    size_t n;
    unsigned char *rows;
};

/* The prefixes of the order. */
static void prefixes(const struct graph *g, struct hv_arena *a, struct cuts *out)
{
    out->n = g->n_nodes + 1;
    out->rows = hv_arena_new(a, unsigned char, out->n * g->n_nodes);
    for (size_t j = 0; j < out->n; j++) {
        memset(out->rows + j * g->n_nodes, 1, j);
    }
}

/* True when node v (a place) can be added to a down-set. */
static bool may_follow(const struct graph *g, const unsigned char *set, size_t v)
{
    if (set[v]) {
        return false;
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        if (g->place[g->edges[e].to] == v && !set[g->place[g->edges[e].from]]) {
            return false;
        }
    }
    return true;
}

/* All down-sets, small ones first; false when there are more than MAX_SETS. */
static bool down_sets(const struct graph *g, struct hv_arena *a, struct cuts *out)
{
    size_t L = g->n_nodes;
    out->rows = hv_arena_new(a, unsigned char, (MAX_SETS + 1) * L);
    out->n = 1;
    for (size_t at = 0; at < out->n; at++) {
        for (size_t v = 0; v < L; v++) {
            unsigned char *fresh = out->rows + out->n * L;
            bool known = false;
            if (!may_follow(g, out->rows + at * L, v)) {
                continue;
            }
            memcpy(fresh, out->rows + at * L, L);
            fresh[v] = 1;
            for (size_t k = at + 1; k < out->n && !known; k++) {
                known = memcmp(out->rows + k * L, fresh, L) == 0;
            }
            if (!known && ++out->n > MAX_SETS) {
                return false;
            }
        }
    }
    return true;
}

/* Communication of every run at a width. */
static double *fill_runs(const struct graph *g, const struct cuts *c, size_t w, double bytes_per_s,
                         struct hv_arena *a)
{
    size_t n = c->n, L = g->n_nodes;
    double *runs = hv_arena_new(a, double, n *n);
    for (size_t e = 0; e < g->n_edges; e++) {
        const struct edge *x = &g->edges[e];
        const unsigned char *from = c->rows + g->place[x->from], *to = c->rows + g->place[x->to];
        double send = 2 * (x->bytes + x->send[w]) / bytes_per_s;
        double fetch = 2 * (x->bytes + x->fetch[w]) / bytes_per_s;
        for (size_t i = 0; i < n; i++) {
            for (size_t j = i + 1; j < n; j++) {
                bool has_from = from[j * L] > from[i * L], has_to = to[j * L] > to[i * L];
                if (has_from != has_to) {
                    runs[i * n + j] += has_from ? send : fetch;
                }
            }
        }
    }
    return runs;
}

static void fill_width(const struct graph *g, const struct cuts *c, size_t w, const json_t *run,
                       struct hv_arena *a, struct hv_replica_width *out)
{
    struct hv_replica_layer *layers = hv_arena_new(a, struct hv_replica_layer, g->n_nodes);
    double bytes_per_s = number_at(run, "bandwidth_GiBps") * HV_GIB;
    double batch = number_at(run, "mbsInBatch");
    for (size_t l = 0; l < g->n_nodes; l++) {
        json_t *list = g->variants[g->order[l]][w];
        size_t n = json_array_size(list);
        struct hv_replica_option *o = hv_arena_new(a, struct hv_replica_option, n);
        for (size_t k = 0; k < n; k++) {
            json_t *v = json_array_get(list, k);
            o[k] = (struct hv_replica_option){number_at(v, "timePerSample"),
                                              number_at(v, "memoryUsageB"),
                                              number_at(v, "memoryUsageA")};
        }
        double sync = 4 * number_at(json_array_get(list, 0), "parameterSize") / batch;
        layers[l] = (struct hv_replica_layer){o, n, sync / bytes_per_s};
    }
    *out = (struct hv_replica_width){g->width[w], layers, NULL, fill_runs(g, c, w, bytes_per_s, a)};
}

static const char *word(double ours, double theirs)
{
    if (fabs(ours - theirs) <= 1e-6 * theirs) {
        return "equal";
    }
    return ours < theirs ? "better" : "WORSE";
}

/* The best plan over all down-sets, or for one order of the nodes; false when there are too many
 * down-sets. */
static bool solve(struct graph *g, const json_t *run, bool all, bool reverse,
                  struct hv_replicas_result *out)
{
    struct hv_arena a = {0};
    struct hv_replica_width widths[MAX_WIDTHS];
    const struct hv_solve_limits limits = {.deadline_s = 60};
    struct cuts cuts;
    size_t n = 0;
    bool ok = true;
    memset(g->placed, 0, sizeof g->placed);
    for (size_t v = 0; v < g->n_nodes; v++) {
        place_node(g, v, reverse, &n);
    }
    if (all) {
        ok = down_sets(g, &a, &cuts);
    } else {
        prefixes(g, &a, &cuts);
    }
    for (size_t w = 0; ok && w < g->n_widths; w++) {
        fill_width(g, &cuts, w, run, &a, &widths[w]);
    }
    const struct hv_replicas p = {.n_layers = g->n_nodes,
                                  .n_devices = size_at(run, "k"),
                                  .n_widths = g->n_widths,
                                  .sets = cuts.rows,
                                  .n_sets = cuts.n,
                                  .widths = widths,
                                  .memory = number_at(run, "memGB") * HV_GIB,
                                  .batch = size_at(run, "mbsInBatch")};
    if (ok && hv_replicas_solve(&p, &limits, &a, out, NULL) != HV_OK) {
        abort();
    }
    hv_arena_free(&a);
    return ok;
}

/* Solves one published run and prints the comparison; returns true when ours is worse. */
static bool compare(struct graph *g, json_t *run)
{
    struct hv_replicas_result r, other;
    double theirs = number_at(run, "tps_s"), their_s = number_at(run, "cpu_s"), own_s;
    double begin = cpu_now_s();
    bool all = solve(g, run, true, false, &r);
    if (!all) {
        (void)solve(g, run, false, false, &r);
        (void)solve(g, run, false, true, &other);
        if (other.feasible && !(r.objective <= other.objective)) {
            r = other;
        }
        r.proven = false;
    }
    own_s = cpu_now_s() - begin;
    const char *verdict = r.feasible && !(theirs > 0) ? "new" : "none";
    if (theirs > 0) {
        verdict = r.feasible ? word(r.objective, theirs) : "WORSE";
    }
    printf("%-7s %4zu nodes %6.2f GiB k %4zu N %4zu  theirs %12.7g %8.3f s  ours %12.7g%s %8.4f s  "
           "%-6s CPU %7.1fx\n",
           json_string_value(json_object_get(run, "model")), g->n_nodes, number_at(run, "memGB"),
           size_at(run, "k"), size_at(run, "mbsInBatch"), theirs, their_s, r.objective,
           r.proven ? "*" : " ", own_s, verdict, their_s / own_s);
    return strcmp(verdict, "WORSE") == 0;
}

static json_t *instance_of(json_t *root, const char *model)
{
    size_t k;
    json_t *x;
    json_array_foreach(json_object_get(root, "instances"), k, x)
    {
        const char *name = json_string_value(json_object_get(x, "name"));
        if (name && model && strncmp(name, model, strlen(model)) == 0) {
            return x;
        }
    }
    return NULL;
}

static int bench_runs(json_t *root)
{
    size_t k;
    json_t *run;
    int worse = 0;
    json_array_foreach(json_object_get(root, "runs"), k, run)
    {
        json_t *in = instance_of(root, json_string_value(json_object_get(run, "model")));
        struct graph *g = hv_xcalloc(1, sizeof *g);
        size_t nodes = size_at(run, "nodes");
        bool known = hv_known(number_at(run, "bandwidth_GiBps")) && in;
        if (known && read_nodes(g, json_object_get(in, "nodes")) &&
            read_edges(g, json_object_get(in, "edges")) &&
            (nodes <= g->n_nodes || lengthen(g, nodes - g->n_nodes))) {
            worse += compare(g, run);
        }
        free(g);
    }
    return worse;
}

static enum hv_status read_file(const char *path, struct hv_json *json, struct hv_err *err)
{
    struct hv_str text = {0};
    enum hv_status st = hv_file_read(path, &text, err);
    if (st == HV_OK) {
        st = hv_json_parse(json, hv_str_cstr(&text), text.n, path, err);
    }
    hv_str_free(&text);
    return st;
}

int main(int argc, char **argv)
{
    const char *folder = getenv("HETVIZ_INSTANCES");
    struct hv_json json = {0};
    struct hv_err err = {0};
    char path[MAX_PATH];
    enum hv_status st = argc > 1 ? read_file(argv[1], &json, &err) : HV_ENO;
    for (size_t k = 0; k < 2 && argc < 2 && folder && st != HV_OK; k++) {
        snprintf(path, sizeof path, "%s/%spiper.json", folder, k ? "../" : "");
        st = read_file(path, &json, &err);
    }
    if (st != HV_OK) {
        puts("no graphs: HETVIZ_INSTANCES names a folder with or beside piper.json");
        return argc > 1;
    }
    puts("seconds per sample and CPU seconds of the search; * = proven over all down-sets");
    int worse = bench_runs(json.root);
    printf("published values that are better than ours: %d\n", worse);
    hv_json_free(&json);
    return worse > 0;
}
