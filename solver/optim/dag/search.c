/*
 * Local search for graph placement: simulated annealing over moves of one class.
 * Not here: the evaluation of an answer and the contiguous start (dag.c).
 */
#include "solver/base/rng.h"
#include "solver/optim/dag/dag_int.h"
#include <math.h>
#include <string.h>

#define STEPS     ((int64_t)8000000)
#define PER_CLASS ((int64_t)60000) /* steps that a class gets at most */
#define SEED      20240607u
#define WORK_LIMIT                                                                                 \
    ((int64_t)1600000000) /* edge visits, so that large graphs end in seconds too                  \
                           */

/* A placement with its loads, kept up to date under moves. */
struct state {
    const struct hv__dag_index *x;
    size_t n_devices, *device; /* of classes */
    uint32_t *used;            /* node · n_devices + d: successors of the node on device d */
    double *load, *bytes;
    int64_t work;
};

static size_t device_of(const struct state *s, size_t v)
{
    return s->device[s->x->g->nodes[v].color];
}

static bool is_accel(const struct state *s, size_t d)
{
    return d < s->x->g->n_accelerators;
}

/* True when some successor of v is not on device `at`. */
static bool leaves(const struct state *s, size_t v, size_t at)
{
    return s->used[v * s->n_devices + at] < s->x->out_at[v + 1] - s->x->out_at[v];
}

/* Adds (sign 1) or subtracts (-1) the transfers of the output of v where its device is `at`. */
static void charge_source(struct state *s, size_t v, size_t at, double sign)
{
    const uint32_t *used = s->used + v * s->n_devices;
    double cost = sign * s->x->cost[v];
    if (is_accel(s, at) && leaves(s, v, at)) {
        s->load[at] += cost;
    }
    for (size_t d = 0; d < s->n_devices; d++) {
        if (d != at && used[d] > 0 && is_accel(s, d)) {
            s->load[d] += cost;
        }
    }
}

/* One successor of u moves from device a to b. */
static void shift_use(struct state *s, size_t u, size_t a, size_t b)
{
    uint32_t *used = s->used + u * s->n_devices;
    size_t at = device_of(s, u);
    double cost = s->x->cost[u];
    bool left = leaves(s, u, at);
    if (--used[a] == 0 && a != at && is_accel(s, a)) {
        s->load[a] -= cost;
    }
    if (used[b]++ == 0 && b != at && is_accel(s, b)) {
        s->load[b] += cost;
    }
    if (is_accel(s, at) && left != leaves(s, u, at)) {
        s->load[at] += left ? -cost : cost;
    }
}

static void move_class(struct state *s, size_t c, size_t to)
{
    const struct hv__dag_index *x = s->x;
    size_t from = s->device[c];
    for (size_t m = x->member_at[c]; m < x->member_at[c + 1]; m++) {
        const struct hv_dag_node *v = &x->g->nodes[x->member[m]];
        charge_source(s, x->member[m], from, -1);
        s->load[from] -= is_accel(s, from) ? v->accel : v->cpu;
        s->load[to] += is_accel(s, to) ? v->accel : v->cpu;
        s->bytes[from] -= v->bytes;
        s->bytes[to] += v->bytes;
    }
    s->device[c] = to;
    for (size_t m = x->member_at[c]; m < x->member_at[c + 1]; m++) {
        charge_source(s, x->member[m], to, 1);
    }
    for (size_t m = x->member_at[c]; m < x->member_at[c + 1]; m++) {
        size_t v = x->member[m];
        s->work += (int64_t)(x->in_at[v + 1] - x->in_at[v] + s->n_devices);
        for (size_t e = x->in_at[v]; e < x->in_at[v + 1]; e++) {
            shift_use(s, x->in[e], from, to);
        }
    }
}

static bool may_move(const struct state *s, size_t c, size_t to)
{
    const struct hv__dag_index *x = s->x;
    double bytes = 0;
    for (size_t m = x->member_at[c]; m < x->member_at[c + 1]; m++) {
        const struct hv_dag_node *v = &x->g->nodes[x->member[m]];
        bytes += v->bytes;
        if (v->cpu_only && is_accel(s, to)) {
            return false;
        }
    }
    return !is_accel(s, to) || s->bytes[to] + bytes <= x->g->memory;
}

/* Energy: the largest load, and a little of the others so that plateaus have a slope. */
static double energy(const struct state *s, double *worst)
{
    double squares = 0;
    *worst = 0;
    for (size_t d = 0; d < s->n_devices; d++) {
        *worst = fmax(*worst, s->load[d]);
        squares += s->load[d] * s->load[d];
    }
    return *worst + 0.25 * sqrt(squares / (double)s->n_devices);
}

static void start_state(struct state *s, const size_t *device, struct hv_arena *a)
{
    const struct hv__dag_index *x = s->x;
    const struct hv_dag *g = x->g;
    s->n_devices = g->n_accelerators + g->n_cpus;
    s->device = hv_arena_new(a, size_t, g->n_classes);
    s->used = hv_arena_new(a, uint32_t, g->n_nodes * s->n_devices);
    s->load = hv_arena_new(a, double, s->n_devices);
    s->bytes = hv_arena_new(a, double, s->n_devices);
    for (size_t v = 0; v < g->n_nodes; v++) {
        s->device[g->nodes[v].color] = device[v];
        s->load[device[v]] += is_accel(s, device[v]) ? g->nodes[v].accel : g->nodes[v].cpu;
        s->bytes[device[v]] += g->nodes[v].bytes;
        for (size_t e = x->in_at[v]; e < x->in_at[v + 1]; e++) {
            s->used[x->in[e] * s->n_devices + device[v]]++;
        }
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        charge_source(s, v, device[v], 1);
    }
}

/* Candidate device of a move: the device of a neighbour, or any device. */
static size_t propose(const struct state *s, struct hv_rng *rng, size_t c)
{
    const struct hv__dag_index *x = s->x;
    size_t n = x->member_at[c + 1] - x->member_at[c];
    size_t v = x->member[x->member_at[c] + hv_rng_below(rng, n)];
    size_t n_in = x->in_at[v + 1] - x->in_at[v], n_out = x->out_at[v + 1] - x->out_at[v];
    if (n_in + n_out == 0 || hv_rng_below(rng, 4) == 0) {
        return (size_t)hv_rng_below(rng, s->n_devices);
    }
    size_t k = (size_t)hv_rng_below(rng, n_in + n_out);
    return device_of(s, k < n_in ? x->in[x->in_at[v] + k] : x->out[x->out_at[v] + k - n_in]);
}

/* Temperature: falls with the used share of the steps and of the work. */
static double heat_at(const struct state *s, int64_t step, int64_t steps, double best)
{
    double warm = fmax(0.03, 1 / (double)s->x->g->n_classes); /* few classes are large steps */
    double left = 1 - fmax((double)step / (double)steps, (double)s->work / (double)WORK_LIMIT);
    return warm * best * left * left * left + 1e-7 * best;
}

void hv__dag_search(const struct hv__dag_index *x, struct hv__watch *watch, double bound,
                    struct hv_arena *a, size_t *device)
{
    const struct hv_dag *g = x->g;
    struct state s = {.x = x};
    struct hv_rng rng;
    double worst, best;
    start_state(&s, device, a);
    size_t *keep = hv_arena_copy(a, s.device, g->n_classes, sizeof *keep);
    double now = energy(&s, &worst), heat = 0;
    int64_t steps = PER_CLASS * (int64_t)g->n_classes;
    steps = steps < STEPS ? steps : STEPS;
    best = worst;
    hv_rng_seed(&rng, SEED);
    for (int64_t step = 0; step < steps && s.work < WORK_LIMIT; step++) {
        if (step % 4096 == 0) {
            heat = heat_at(&s, step, steps, best);
            if (hv__watch_due(watch)) {
                hv__watch_tell(watch, best, bound);
            }
            if (hv__watch_over(watch)) {
                break;
            }
        }
        size_t c = (size_t)hv_rng_below(&rng, g->n_classes), from = s.device[c];
        size_t to = propose(&s, &rng, c);
        if (to == from || !may_move(&s, c, to)) {
            continue;
        }
        move_class(&s, c, to);
        double next = energy(&s, &worst);
        if (next > now && hv_rng_double(&rng) >= exp((now - next) / heat)) {
            move_class(&s, c, from);
            continue;
        }
        now = next;
        if (worst < best * (1 - 1e-12)) {
            best = worst;
            memcpy(keep, s.device, g->n_classes * sizeof *keep);
        }
    }
    for (size_t v = 0; v < g->n_nodes; v++) {
        device[v] = keep[g->nodes[v].color];
    }
}
