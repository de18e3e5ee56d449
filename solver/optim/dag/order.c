/*
 * Orders in which classes can be cut into runs: strongly connected classes, groups of classes that
 * a contiguous split keeps together, and topological orders of the groups. Not here: the cost of a
 * run (dag.c, contiguous.c).
 */
#include "solver/optim/dag/dag_int.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define MERGE_ROUNDS 8

/* Depth-first walk for strongly connected parts (Tarjan 1972), without recursion. */
struct walk {
    const size_t *at, *next;
    size_t *seen, *low, *stack, *path, *edge, *component;
    size_t n_stack, n_seen, n_components;
};

static void enter(struct walk *w, size_t c)
{
    w->seen[c] = w->low[c] = ++w->n_seen;
    w->stack[w->n_stack++] = c;
    w->edge[c] = w->at[c];
}

static void leave(struct walk *w, size_t c)
{
    if (w->low[c] != w->seen[c]) {
        return;
    }
    size_t top;
    do {
        top = w->stack[--w->n_stack];
        w->component[top] = w->n_components;
    } while (top != c);
    w->n_components++;
}

static void walk_from(struct walk *w, size_t root)
{
    size_t depth = 1;
    w->path[0] = root;
    enter(w, root);
    while (depth > 0) {
        size_t c = w->path[depth - 1];
        if (w->edge[c] == w->at[c + 1]) {
            leave(w, c);
            depth--;
            if (depth > 0 && w->low[c] < w->low[w->path[depth - 1]]) {
                w->low[w->path[depth - 1]] = w->low[c];
            }
            continue;
        }
        size_t to = w->next[w->edge[c]++];
        if (w->seen[to] == 0) {
            w->path[depth++] = to;
            enter(w, to);
        } else if (w->component[to] == SIZE_MAX && w->seen[to] < w->low[c]) {
            w->low[c] = w->seen[to];
        }
    }
}

size_t hv__dag_components(const size_t *at, const size_t *next, size_t n, struct hv_arena *a,
                          size_t *component)
{
    struct walk w = {.at = at,
                     .next = next,
                     .seen = hv_arena_new(a, size_t, n),
                     .low = hv_arena_new(a, size_t, n),
                     .stack = hv_arena_new(a, size_t, n),
                     .path = hv_arena_new(a, size_t, n),
                     .edge = hv_arena_new(a, size_t, n),
                     .component = component};
    for (size_t c = 0; c < n; c++) {
        component[c] = SIZE_MAX;
    }
    for (size_t c = n; c-- > 0;) {
        if (w.seen[c] == 0) {
            walk_from(&w, c);
        }
    }
    for (size_t c = 0; c < n; c++) {
        component[c] = w.n_components - 1 - component[c];
    }
    return w.n_components;
}

/* Pairs of classes, or of the parts that contain them, that follow each other. */
struct relation {
    size_t n, *first, *second;
    size_t *at, *next; /* successor lists, by `link` */
};

/*
 * Forward edges order their classes; the backward pass runs the other way round, so an edge inside
 * it orders them in reverse, which is new only where a class has no forward node (Tarnawski et al.,
 * 2020, appendix on training).
 */
static void collect(const struct hv__dag_index *x, struct hv_arena *a, struct relation *r)
{
    const struct hv_dag *g = x->g;
    bool *forward = hv_arena_new(a, bool, g->n_classes);
    for (size_t v = 0; v < g->n_nodes; v++) {
        forward[g->nodes[v].color] = forward[g->nodes[v].color] || !g->nodes[v].backward;
    }
    r->first = hv_arena_new(a, size_t, g->n_edges);
    r->second = hv_arena_new(a, size_t, g->n_edges);
    for (size_t e = 0; e < g->n_edges; e++) {
        const struct hv_dag_node *u = &g->nodes[g->edges[e].from], *v = &g->nodes[g->edges[e].to];
        bool mirrored = u->backward && v->backward && !(forward[u->color] && forward[v->color]);
        if (u->color == v->color || !(mirrored || (!u->backward && !v->backward))) {
            continue;
        }
        r->first[r->n] = mirrored ? v->color : u->color;
        r->second[r->n++] = mirrored ? u->color : v->color;
    }
}

/* Successor lists of the parts that classes belong to. */
static void link(struct relation *r, const size_t *part, size_t n_parts, struct hv_arena *a)
{
    r->at = hv_arena_new(a, size_t, n_parts + 2);
    r->next = hv_arena_new(a, size_t, r->n);
    for (size_t e = 0; e < r->n; e++) {
        if (part[r->first[e]] != part[r->second[e]]) {
            r->at[part[r->first[e]] + 2]++;
        }
    }
    for (size_t c = 0; c < n_parts; c++) {
        r->at[c + 2] += r->at[c + 1];
    }
    for (size_t e = 0; e < r->n; e++) {
        if (part[r->first[e]] != part[r->second[e]]) {
            r->next[r->at[part[r->first[e]] + 1]++] = part[r->second[e]];
        }
    }
}

/* Joins strongly connected parts; returns how many parts there are, in a topological order. */
static size_t join(struct relation *r, size_t *part, size_t n_parts, size_t n_classes,
                   struct hv_arena *a)
{
    size_t *component = hv_arena_new(a, size_t, n_parts);
    link(r, part, n_parts, a);
    size_t n = hv__dag_components(r->at, r->next, n_parts, a, component), kept = 0;
    size_t *number = hv_arena_new(a, size_t, n);
    for (size_t c = 0; c < n_classes; c++) {
        part[c] = component[part[c]];
        number[part[c]] = 1;
    }
    for (size_t k = 0; k < n; k++) { /* parts that were merged away have no class left */
        number[k] = number[k] ? kept++ : n;
    }
    for (size_t c = 0; c < n_classes; c++) {
        part[c] = number[part[c]];
    }
    return kept;
}

/* The only other part that edges of a part lead to: n = none, n + 1 = several. */
static size_t *only_neighbours(const struct hv__dag_index *x, const size_t *part, size_t n,
                               struct hv_arena *a)
{
    const struct hv_dag *g = x->g;
    size_t *only = hv_arena_new(a, size_t, n);
    for (size_t c = 0; c < n; c++) {
        only[c] = n;
    }
    for (size_t e = 0; e < g->n_edges; e++) {
        size_t u = part[g->nodes[g->edges[e].from].color], v = part[g->nodes[g->edges[e].to].color];
        if (u == v) {
            continue;
        }
        only[u] = only[u] == n || only[u] == v ? v : n + 1;
        only[v] = only[v] == n || only[v] == u ? u : n + 1;
    }
    return only;
}

/* True when one accelerator could hold the whole graph. */
static bool all_fits(const struct hv_dag *g)
{
    double bytes = 0;
    for (size_t v = 0; v < g->n_nodes; v++) {
        bytes += g->nodes[v].bytes;
    }
    return bytes <= g->memory;
}

/* Merges parts without cost into their only neighbour: this makes no split worse. False: there
 * are none. */
static bool merge_free_parts(const struct hv__dag_index *x, size_t *part, size_t n,
                             struct hv_arena *a)
{
    const struct hv_dag *g = x->g;
    size_t *only = only_neighbours(x, part, n, a), *to = hv_arena_new(a, size_t, n);
    bool *costs = hv_arena_new(a, bool, n), any = false, roomy = all_fits(g);
    for (size_t v = 0; v < g->n_nodes; v++) {
        const struct hv_dag_node *k = &g->nodes[v];
        if (k->accel > 0 || k->cpu > 0 || k->cpu_only || (k->bytes > 0 && !roomy)) {
            costs[part[k->color]] = true;
        }
    }
    for (size_t c = 0; c < n; c++) {
        bool merges = !costs[c] && only[c] < n && to[only[c]] == 0; /* no chains in one round */
        to[c] = merges ? only[c] + 1 : 0;
        any = any || merges;
    }
    for (size_t c = 0; c < g->n_classes; c++) {
        part[c] = to[part[c]] ? to[part[c]] - 1 : part[c];
    }
    return any;
}

static void sum_groups(struct hv__dag_groups *q, struct hv_arena *a)
{
    const struct hv_dag *g = q->x->g;
    q->member_at = hv_arena_new(a, size_t, q->n + 2);
    q->member = hv_arena_new(a, size_t, g->n_nodes);
    q->accel = hv_arena_new(a, double, q->n);
    q->cpu = hv_arena_new(a, double, q->n);
    q->bytes = hv_arena_new(a, double, q->n);
    q->n_cpu_only = hv_arena_new(a, size_t, q->n);
    for (size_t v = 0; v < g->n_nodes; v++) {
        q->member_at[q->of[g->nodes[v].color] + 2]++;
    }
    for (size_t c = 0; c < q->n; c++) {
        q->member_at[c + 2] += q->member_at[c + 1];
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        size_t c = q->of[g->nodes[v].color];
        q->member[q->member_at[c + 1]++] = v;
        q->accel[c] += g->nodes[v].accel;
        q->cpu[c] += g->nodes[v].cpu;
        q->bytes[c] += g->nodes[v].bytes;
        q->n_cpu_only[c] += g->nodes[v].cpu_only;
    }
    for (size_t c = 0; c < q->n; c++) {
        q->accel[c] = q->n_cpu_only[c] ? 0 : q->accel[c];
    }
}

void hv__dag_groups(const struct hv__dag_index *x, struct hv_arena *a, struct hv__dag_groups *q)
{
    size_t n_classes = x->g->n_classes;
    struct relation r = {0};
    *q = (struct hv__dag_groups){.x = x, .of = hv_arena_new(a, size_t, n_classes)};
    for (size_t c = 0; c < n_classes; c++) {
        q->of[c] = c;
    }
    collect(x, a, &r);
    q->n = join(&r, q->of, n_classes, n_classes, a);
    for (int k = 0; k < MERGE_ROUNDS && merge_free_parts(x, q->of, q->n, a); k++) {
        q->n = join(&r, q->of, q->n, n_classes, a);
    }
    link(&r, q->of, q->n, a);
    q->next_at = r.at;
    q->next = r.next;
    sum_groups(q, a);
}

void hv__dag_order(const struct hv__dag_groups *q, struct hv_arena *a, bool deep, size_t *order)
{
    size_t n = q->n, head = 0, tail = 0;
    size_t *waits = hv_arena_new(a, size_t, n), *ready = hv_arena_new(a, size_t, n);
    for (size_t k = 0; k < q->next_at[n]; k++) {
        waits[q->next[k]]++;
    }
    for (size_t c = n; c-- > 0;) {
        if (waits[c] == 0) {
            ready[tail++] = c;
        }
    }
    for (size_t done = 0; done < n; done++) {
        size_t c = deep ? ready[--tail] : ready[head++];
        order[done] = c;
        for (size_t k = q->next_at[c]; k < q->next_at[c + 1]; k++) {
            if (--waits[q->next[k]] == 0) {
                ready[tail++] = q->next[k];
            }
        }
    }
}
