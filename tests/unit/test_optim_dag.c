/* Graph placement: the judge on a case done by hand, answers against enumeration. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/optim/dag/dag.h"

/* a feeds b and c: a's output (2) is paid once by every device that sends or takes it. */
static void transfers_are_paid_once_per_device(void **state)
{
    (void)state;
    const struct hv_dag_node nodes[] = {{.accel = 1, .cpu = 9, .bytes = 1, .color = 0},
                                        {.accel = 3, .cpu = 9, .bytes = 1, .color = 1},
                                        {.accel = 4, .cpu = 9, .bytes = 1, .color = 2}};
    const struct hv_dag_edge edges[] = {{0, 1, 2}, {0, 2, 2}};
    const struct hv_dag g = {3, 2, 3, nodes, edges, 3, 1, 2, HV_DAG_MAX_LOAD};
    double load[4];
    assert_true(hv_dag_judge(&g, (size_t[]){0, 1, 1}, load) == 9);
    assert_true(load[0] == 3 && load[1] == 9 && load[2] == 0);
    assert_true(hv_dag_judge(&g, (size_t[]){0, 1, 2}, load) == 6);
    assert_true(load[0] == 3 && load[1] == 5 && load[2] == 6);
    assert_true(hv_dag_judge(&g, (size_t[]){0, 1, 3}, load) == 9); /* a CPU pays no transfer */
    assert_true(load[0] == 3 && load[3] == 9);
    assert_true(isinf(hv_dag_judge(&g, (size_t[]){0, 0, 0}, load))); /* memory */
}

static double brute(const struct hv_dag *g, size_t *device, size_t class)
{
    double load[8], best = HUGE_VAL;
    if (class == g->n_classes) {
        return hv_dag_judge(g, device, load);
    }
    for (size_t d = 0; d < g->n_accelerators + g->n_cpus; d++) {
        for (size_t v = 0; v < g->n_nodes; v++) {
            if (g->nodes[v].color == class) {
                device[v] = d;
            }
        }
        best = fmin(best, brute(g, device, class + 1));
    }
    return best;
}

static void small_graphs_are_never_beaten_by_much(void **state)
{
    (void)state;
    struct hv_rng rng;
    int equal = 0, n_cases = 12;
    hv_rng_seed(&rng, 2);
    for (int k = 0; k < n_cases; k++) {
        struct hv_dag_node nodes[7];
        struct hv_dag_edge edges[21];
        struct hv_arena arena = {0};
        struct hv_dag_result r;
        size_t device[7], m = 0;
        for (size_t v = 0; v < 7; v++) {
            nodes[v] = (struct hv_dag_node){.accel = 1 + 9 * hv_rng_double(&rng),
                                            .cpu = 20 + 30 * hv_rng_double(&rng),
                                            .bytes = 1,
                                            .color = v < 5 ? v : v - 5};
        }
        for (size_t v = 5; v < 7; v++) {
            nodes[v].backward = true;
        }
        for (size_t u = 0; u < 7; u++) {
            for (size_t v = u + 1; v < 7; v++) {
                if (hv_rng_below(&rng, 2)) {
                    edges[m++] = (struct hv_dag_edge){u, v, 0.1 * (double)(u + 1)};
                }
            }
        }
        const struct hv_dag g = {7, m, 5, nodes, edges, 2, 1, 5, HV_DAG_MAX_LOAD};
        assert_int_equal(hv_dag_solve(&g, NULL, &arena, &r, NULL), HV_OK);
        double want = brute(&g, device, 0);
        assert_true(r.feasible && r.objective >= want - 1e-9 && r.bound <= want + 1e-9);
        assert_true(r.objective <= r.contiguous);
        equal += r.objective <= want + 1e-9;
        hv_arena_free(&arena);
    }
    assert_true(equal == n_cases);
}

/* Blocks a → c on accelerators, b between them on the CPU: b waits for a, c for both. */
static void blocks_wait_for_all_their_inputs(void **state)
{
    (void)state;
    const struct hv_dag_node nodes[] = {{.accel = 1, .cpu = 9, .bytes = 1, .color = 0},
                                        {.accel = 3, .cpu = 9, .bytes = 1, .color = 1},
                                        {.accel = 4, .cpu = 9, .bytes = 1, .color = 2}};
    const struct hv_dag_edge edges[] = {{0, 1, 2}, {0, 2, 2}, {1, 2, 5}};
    const struct hv_dag g = {3, 3, 3, nodes, edges, 2, 1, 2, HV_DAG_LATENCY};
    double end[3];
    /* a: 1 and hands out (2) = 3; b: 3 + 9 = 12; c: fetches 2 and 5, then 4 = 23 */
    assert_true(hv_dag_latency(&g, (size_t[]){0, 2, 1}, end) == 23);
    assert_true(end[0] == 3 && end[1] == 23 && end[2] == 12);
    /* a and c on one accelerator would wait for b, and b for them */
    assert_true(isinf(hv_dag_latency(&g, (size_t[]){0, 2, 0}, end)));
    assert_true(hv_dag_latency(&g, (size_t[]){2, 2, 2}, end) == 27);
    /* b and c as a block: fetch 2, compute 7, behind a = 3 */
    assert_true(hv_dag_latency(&g, (size_t[]){0, 1, 1}, end) == 12);
}

/* The latency by repeated relaxation; infinity when it does not settle. */
static double settle(const struct hv_dag *g, const size_t *device)
{
    double finish[8] = {0}, worst = 0, bytes[4] = {0};
    for (size_t v = 0; v < g->n_nodes; v++) {
        bool accel = device[v] < g->n_accelerators;
        bytes[device[v]] += accel ? g->nodes[v].bytes : 0;
        if (bytes[device[v]] > g->memory || (accel && g->nodes[v].cpu_only)) {
            return HUGE_VAL;
        }
    }
    for (size_t round = 0; round <= g->n_nodes + 1; round++) {
        bool changed = false;
        for (size_t v = 0; v < g->n_nodes; v++) {
            bool accel = device[v] < g->n_accelerators;
            double start = 0, busy = accel ? 0 : g->nodes[v].cpu;
            bool fetched[8] = {false}, given[8] = {false};
            for (size_t u = 0; accel && u < g->n_nodes; u++) {
                busy += device[u] == device[v] ? g->nodes[u].accel : 0;
            }
            for (size_t e = 0; e < g->n_edges; e++) {
                size_t a = g->edges[e].from, b = g->edges[e].to;
                bool in = accel ? device[b] == device[v] && device[a] != device[v] : b == v;
                if (in) {
                    start = fmax(start, finish[a]);
                }
                if (accel && in && !fetched[a]) {
                    busy += g->edges[e].cost;
                }
                fetched[a] = fetched[a] || in;
                bool out = accel && device[a] == device[v] && device[b] != device[v];
                if (out && !given[a]) {
                    busy += g->edges[e].cost;
                }
                given[a] = given[a] || out;
            }
            changed = changed || start + busy > finish[v] + 1e-9;
            finish[v] = fmax(finish[v], start + busy);
            worst = fmax(worst, finish[v]);
        }
        if (!changed) {
            return worst;
        }
    }
    return HUGE_VAL;
}

static double brute_latency(const struct hv_dag *g, size_t *device, size_t class, bool *differ)
{
    double end[4], best = HUGE_VAL;
    if (class == g->n_classes) {
        double want = settle(g, device), got = hv_dag_latency(g, device, end);
        *differ = *differ || !(got == want || fabs(got - want) < 1e-9);
        return want;
    }
    for (size_t d = 0; d < g->n_accelerators + g->n_cpus; d++) {
        for (size_t v = 0; v < g->n_nodes; v++) {
            if (g->nodes[v].color == class) {
                device[v] = d;
            }
        }
        best = fmin(best, brute_latency(g, device, class + 1, differ));
    }
    return best;
}

/* A random graph of up to seven nodes, where some classes have two nodes. */
static struct hv_dag draw(struct hv_rng *rng, struct hv_dag_node *nodes, struct hv_dag_edge *edges)
{
    size_t n = 2 + hv_rng_below(rng, 6), n_classes = n > 4 ? n - hv_rng_below(rng, 3) : n, m = 0;
    for (size_t v = 0; v < n; v++) {
        nodes[v] = (struct hv_dag_node){.accel = 1 + 9 * hv_rng_double(rng),
                                        .cpu = 2 + 18 * hv_rng_double(rng),
                                        .bytes = 1 + (double)hv_rng_below(rng, 3),
                                        .color = v < n_classes ? v : v - n_classes,
                                        .cpu_only = hv_rng_below(rng, 12) == 0};
    }
    for (size_t u = 0; u < n; u++) {
        double cost = 3 * hv_rng_double(rng);
        for (size_t v = u + 1; v < n; v++) {
            if (hv_rng_below(rng, 3) == 0) {
                edges[m++] = (struct hv_dag_edge){u, v, cost};
            }
        }
    }
    return (struct hv_dag){.n_nodes = n,
                           .n_edges = m,
                           .n_classes = n_classes,
                           .nodes = nodes,
                           .edges = edges,
                           .n_accelerators = 1 + hv_rng_below(rng, 2),
                           .n_cpus = hv_rng_below(rng, 4) > 0,
                           .memory = 3 + (double)hv_rng_below(rng, 8)};
}

static void answers_to_small_graphs_are_proven(void **state)
{
    (void)state;
    struct hv_rng rng;
    int proven = 0;
    hv_rng_seed(&rng, 5);
    for (int k = 0; k < 800; k++) {
        struct hv_dag_node nodes[8];
        struct hv_dag_edge edges[28];
        struct hv_arena arena = {0};
        struct hv_dag_result r;
        size_t device[8] = {0};
        bool differ = false;
        struct hv_dag g = draw(&rng, nodes, edges);
        g.objective = k % 20 ? HV_DAG_LATENCY : HV_DAG_MAX_LOAD; /* the latter anneals: slow */
        double want = g.objective == HV_DAG_LATENCY ? brute_latency(&g, device, 0, &differ)
                                                    : brute(&g, device, 0);
        assert_int_equal(hv_dag_solve(&g, NULL, &arena, &r, NULL), HV_OK);
        assert_false(differ);
        proven += r.proven;
        assert_true(!isinf(want) || !r.feasible);
        assert_true(!r.feasible || (r.objective >= want - 1e-9 && r.bound <= want + 1e-9));
        if (r.proven && r.feasible == isinf(want)) {
            fail_msg("case %d: feasible %d, enumeration says %g", k, r.feasible, want);
        }
        if (r.proven && r.feasible && fabs(r.objective - want) > 1e-9) {
            fail_msg("case %d: %.12g, enumeration says %.12g", k, r.objective, want);
        }
        hv_arena_free(&arena);
    }
    assert_true(proven >= 700); /* the others have classes on cycles */
}

/* Load of the busiest device by the definition, for a placement whose memory fits. */
static double load_of(const struct hv_dag *g, const size_t *device)
{
    double load[8] = {0}, bytes[8] = {0}, worst = 0;
    for (size_t v = 0; v < g->n_nodes; v++) {
        bool accel = device[v] < g->n_accelerators;
        load[device[v]] += accel ? g->nodes[v].accel : g->nodes[v].cpu;
        bytes[device[v]] += accel ? g->nodes[v].bytes : 0;
        if ((accel && g->nodes[v].cpu_only) || bytes[device[v]] > g->memory) {
            return HUGE_VAL;
        }
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        for (size_t d = 0; d < g->n_accelerators; d++) {
            bool here = device[v] == d, sends = false, takes = false;
            double cost = 0;
            for (size_t e = 0; e < g->n_edges; e++) {
                if (g->edges[e].from != v) {
                    continue;
                }
                size_t to = device[g->edges[e].to];
                cost = g->edges[e].cost;
                sends = sends || (here && to != d);
                takes = takes || (!here && to == d);
            }
            load[d] += sends || takes ? cost : 0;
        }
    }
    for (size_t d = 0; d < g->n_accelerators + g->n_cpus; d++) {
        worst = fmax(worst, load[d]);
    }
    return worst;
}

/* Whether an edge makes the first class come before the second; see hv_dag_split. */
static bool class_before(const struct hv_dag *g, const struct hv_dag_edge *e, size_t *a, size_t *b)
{
    const struct hv_dag_node *u = &g->nodes[e->from], *v = &g->nodes[e->to];
    bool mirrored = u->backward && v->backward, u_forward = false, v_forward = false;
    for (size_t n = 0; n < g->n_nodes; n++) {
        u_forward = u_forward || (g->nodes[n].color == u->color && !g->nodes[n].backward);
        v_forward = v_forward || (g->nodes[n].color == v->color && !g->nodes[n].backward);
    }
    *a = mirrored ? v->color : u->color;
    *b = mirrored ? u->color : v->color;
    return mirrored ? !(u_forward && v_forward) : !u->backward && !v->backward;
}

/* The best of all ways to give classes to devices in the order `devices`, none before its
 * predecessors. */
static double best_in_order(const struct hv_dag *g, const size_t *devices)
{
    size_t n = g->n_accelerators + g->n_cpus, slot[8] = {0}, device[8], a, b, c;
    double best = HUGE_VAL;
    for (;;) {
        bool ordered = true;
        for (size_t e = 0; e < g->n_edges && ordered; e++) {
            ordered = !class_before(g, &g->edges[e], &a, &b) || slot[a] <= slot[b];
        }
        for (size_t v = 0; v < g->n_nodes; v++) {
            device[v] = devices[slot[g->nodes[v].color]];
        }
        if (ordered) {
            best = fmin(best, load_of(g, device));
        }
        for (c = 0; c < g->n_classes && ++slot[c] == n; c++) {
            slot[c] = 0;
        }
        if (c == g->n_classes) {
            return best;
        }
    }
}

/* Two accelerators and perhaps a CPU, in every order of kinds. */
static double best_contiguous(const struct hv_dag *g)
{
    const size_t first[] = {2, 0, 1}, middle[] = {0, 2, 1}, last[] = {0, 1, 2};
    if (g->n_cpus == 0) {
        return best_in_order(g, last);
    }
    if (g->n_accelerators == 1) {
        return fmin(best_in_order(g, (const size_t[]){0, 1}),
                    best_in_order(g, (const size_t[]){1, 0}));
    }
    return fmin(fmin(best_in_order(g, first), best_in_order(g, middle)), best_in_order(g, last));
}

static void contiguous_splits_match_enumeration(void **state)
{
    (void)state;
    struct hv_rng rng;
    int solved = 0;
    hv_rng_seed(&rng, 8);
    for (int k = 0; k < 3000; k++) {
        struct hv_dag_node nodes[8];
        struct hv_dag_edge edges[28];
        struct hv_arena arena = {0};
        struct hv_dag_result r;
        struct hv_dag g = draw(&rng, nodes, edges);
        for (size_t v = 0; v < g.n_nodes; v++) {
            nodes[v].backward = k % 3 && v + 2 > g.n_nodes / 2 + hv_rng_below(&rng, 3);
            if (hv_rng_below(&rng, 5) == 0) {
                nodes[v].accel = nodes[v].cpu = nodes[v].bytes = 0; /* goes with a neighbour */
            }
            if (k % 7 == 0) {
                nodes[v].accel = nodes[v].cpu = (double)hv_rng_below(&rng, 4);
            }
        }
        if (k % 5 == 0) {
            g.memory = 100;
        }
        double want = best_contiguous(&g);
        assert_int_equal(hv_dag_split(&g, NULL, &arena, &r, NULL), HV_OK);
        assert_true(r.contiguous_proven);
        if (r.feasible == isinf(want)) {
            fail_msg("case %d: feasible %d, enumeration says %g", k, r.feasible, want);
        }
        if (r.feasible && fabs(r.contiguous - want) > 1e-9) {
            fail_msg("case %d: %.12g, enumeration says %.12g", k, r.contiguous, want);
        }
        assert_true(!r.feasible || r.bound <= want + 1e-9);
        assert_true(!r.feasible || fabs(load_of(&g, r.device) - want) <= 1e-9);
        solved += r.feasible;
        hv_arena_free(&arena);
    }
    assert_true(solved > 1500);
}

/* Two nodes of 3 bytes and no CPU: what is missing, and how much. */
static void what_is_missing_is_said(void **state)
{
    (void)state;
    struct hv_dag_node nodes[] = {{.accel = 1, .bytes = 3}, {.accel = 1, .bytes = 3, .color = 1}};
    struct hv_dag g = {2, 0, 2, nodes, NULL, 1, 0, 5, HV_DAG_MAX_LOAD};
    struct hv_arena arena = {0};
    struct hv_dag_result r;
    assert_int_equal(hv_dag_solve(&g, NULL, &arena, &r, NULL), HV_OK);
    assert_true(!r.feasible && r.proven);
    assert_non_null(strstr(r.proof, "all nodes need 6 B"));
    assert_non_null(strstr(r.proof, "1 B too little"));
    g.memory = 2;
    assert_int_equal(hv_dag_solve(&g, NULL, &arena, &r, NULL), HV_OK);
    assert_non_null(strstr(r.proof, "node 1 and its class need 3 B"));
    nodes[1].cpu_only = true;
    assert_int_equal(hv_dag_split(&g, NULL, &arena, &r, NULL), HV_OK);
    assert_true(!r.feasible && r.proven && strstr(r.proof, "node 2 runs on CPUs only"));
    g.n_cpus = 1;
    assert_int_equal(hv_dag_split(&g, NULL, &arena, &r, NULL), HV_OK);
    assert_true(r.feasible && r.objective == 0); /* CPU times are 0 */
    hv_arena_free(&arena);
}

static void a_cycle_has_no_latency(void **state)
{
    (void)state;
    const struct hv_dag_node nodes[] = {{.accel = 1, .cpu = 9}, {.accel = 3, .cpu = 9, .color = 1}};
    const struct hv_dag_edge edges[] = {{0, 1, 2}, {1, 0, 2}};
    const struct hv_dag g = {2, 2, 2, nodes, edges, 2, 1, 2, HV_DAG_LATENCY};
    struct hv_arena arena = {0};
    struct hv_dag_result r;
    assert_int_equal(hv_dag_solve(&g, NULL, &arena, &r, NULL), HV_EINPUT);
    hv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transfers_are_paid_once_per_device),
        cmocka_unit_test(small_graphs_are_never_beaten_by_much),
        cmocka_unit_test(blocks_wait_for_all_their_inputs),
        cmocka_unit_test(answers_to_small_graphs_are_proven),
        cmocka_unit_test(contiguous_splits_match_enumeration),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(a_cycle_has_no_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
