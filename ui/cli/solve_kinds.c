/*
 * One function per kind of instance: calls the solver, turns its result into an answer. Not here:
 * reading, printing (cmd_solve.c); verification by lp_solve (solve_certify.c).
 */
#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/optim/chain/certify.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/solve_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Copies the members that the results of all solvers share, and the time elapsed. */
#define TAKE(out, r, since)                                                                        \
    do {                                                                                           \
        (out)->seconds = seconds_now() - (since);                                                  \
        (out)->feasible = (r).feasible;                                                            \
        (out)->proven = (r).proven;                                                                \
        (out)->objective = (r).objective;                                                          \
        (out)->bound = (r).bound;                                                                  \
        (out)->method = (r).method;                                                                \
        hv_str_adds(&(out)->certificate, (r).proof ? (r).proof : "");                              \
    } while (0)

/** A line on the terminal while a search runs: best so far, bound and gap. */
static void show_progress(void *ctx, double incumbent, double bound)
{
    (void)ctx;
    if (isinf(incumbent)) {
        (void)fprintf(stderr, "\rno solution yet, bound %.6g\033[K", bound);
    } else {
        (void)fprintf(stderr, "\rbest %.6g, bound %.6g, gap %.2f %%\033[K", incumbent, bound,
                      incumbent > 0 ? 100 * (incumbent - bound) / incumbent : 0);
    }
}

static struct hv_solve_limits limits_of(const struct hv__solve_ask *a)
{
    return (struct hv_solve_limits){.deadline_s = a->time_limit_s,
                                    .cancel = hv_interrupted,
                                    .report = a->progress ? show_progress : NULL};
}

static double seconds_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static json_t *list_of_sizes(const size_t *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, hv_json_num((double)x[i]));
    }
    return list;
}

static json_t *list_of_numbers(const double *x, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(list, hv_json_num(x[i]));
    }
    return list;
}

/** "4 … 9", "4", or "none". */
static const char *span_text(char *buf, size_t cap, size_t first, size_t end)
{
    if (end <= first) {
        (void)snprintf(buf, cap, "none");
    } else if (end == first + 1) {
        (void)snprintf(buf, cap, "%zu", first);
    } else {
        (void)snprintf(buf, cap, "%zu-%zu", first, end - 1);
    }
    return buf;
}

static enum hv_status write_lp(const struct hv_partition *p, const struct hv_partition_result *r,
                               const char *file, struct hv_err *err)
{
    struct hv_str text = {0};
    size_t n = strlen(file);
    bool mps = n > 4 && strcmp(file + n - 4, ".mps") == 0;
    enum hv_status st = hv_certify_write_lp(p, r, mps, &text, err);
    if (st == HV_OK) {
        st = hv_file_write(file, hv_str_cstr(&text), text.n, err);
    }
    hv_str_free(&text);
    return st;
}

/** One line per stage; `rank` and `bytes` may be NULL. */
static void chain_table(const struct hv_partition *p, const struct hv_partition_result *r,
                        const size_t *rank, struct hv_str *out)
{
    char span[48];
    hv_text_addf(out, "%-7s%s%-14s%12s\n", "stage",
                 rank            ? "rank   "
                 : p->free_order ? "device "
                                 : "",
                 "layers", "ms");
    for (size_t s = 0; s < r->n_stages; s++) {
        hv_text_addf(out, "%-7zu", s);
        if (rank || p->free_order) {
            hv_text_addf(out, "%-7zu", rank ? rank[s] : r->order[s]);
        }
        hv_text_addf(out, "%-14s%12.6g%s\n",
                     span_text(span, sizeof span, s ? r->cut[s - 1] : 0, r->cut[s]), r->value[s],
                     !rank && r->value[s] >= r->max * (1 - 1e-12) ? "  slowest" : "");
    }
}

static json_t *chain_solution(const struct hv_partition *p, const struct hv_partition_result *r)
{
    json_t *solution = json_object();
    json_object_set_new(solution, "cut", list_of_sizes(r->cut, r->n_stages));
    if (p->free_order) {
        json_object_set_new(solution, "order", list_of_sizes(r->order, r->n_stages));
    }
    json_object_set_new(solution, "stage_ms", list_of_numbers(r->value, r->n_stages));
    return solution;
}

static enum hv_status solve_chain(const struct hv_partition *p, const struct hv__solve_ask *a,
                                  struct hv_arena *arena, struct hv__solve_answer *out,
                                  struct hv_err *err)
{
    const struct hv_solve_limits limits = limits_of(a);
    struct hv_partition_result r;
    double start = seconds_now();
    enum hv_status st = hv_partition_solve(p, &limits, arena, &r, err);
    if (st != HV_OK) {
        return st;
    }
    TAKE(out, r, start);
    out->stopped = r.stopped;
    if (!r.feasible) {
        return HV_OK;
    }
    if (!r.stopped) {
        hv__solve_certify(p, &r, a, out);
    }
    chain_table(p, &r, NULL, &out->table);
    out->solution = chain_solution(p, &r);
    return a->write_lp ? write_lp(p, &r, a->write_lp, err) : HV_OK;
}

static enum hv_status solve_chunks(const struct hv_instance *in, const struct hv__solve_ask *a,
                                   struct hv_arena *arena, struct hv__solve_answer *out,
                                   struct hv_err *err)
{
    const struct hv_solve_limits limits = limits_of(a);
    const struct hv_part_chunks c = {in->chain, in->rank, in->n_ranks};
    struct hv_part_chunks_result r;
    double start = seconds_now();
    enum hv_status st = hv_partition_chunks_solve(&c, &limits, arena, &r, err);
    if (st != HV_OK) {
        return st;
    }
    TAKE(out, r.chain, start);
    out->stopped = r.chain.stopped;
    if (!r.chain.feasible) {
        return HV_OK;
    }
    chain_table(&in->chain, &r.chain, in->rank, &out->table);
    bool memory = in->chain.stages[0].memory != NULL;
    hv_text_addf(&out->table, "%-7s%12s%s\n", "rank", "ms", memory ? "         GiB" : "");
    for (size_t k = 0; k < c.n_ranks; k++) {
        hv_text_addf(&out->table, "%-7zu%12.6g", k, r.load[k]);
        if (memory) {
            hv_text_addf(&out->table, "%12.6g", r.bytes[k]);
        }
        hv_str_addc(&out->table, '\n');
    }
    out->solution = chain_solution(&in->chain, &r.chain);
    json_object_set_new(out->solution, "rank", list_of_sizes(in->rank, r.chain.n_stages));
    json_object_set_new(out->solution, "rank_ms", list_of_numbers(r.load, c.n_ranks));
    if (memory) {
        json_object_set_new(out->solution, "rank_GiB", list_of_numbers(r.bytes, c.n_ranks));
    }
    return HV_OK;
}

static enum hv_status solve_replicas(const struct hv_replicas *p, const struct hv__solve_ask *a,
                                     struct hv_arena *arena, struct hv__solve_answer *out,
                                     struct hv_err *err)
{
    const struct hv_solve_limits limits = limits_of(a);
    struct hv_replicas_result r;
    char span[48];
    double start = seconds_now();
    enum hv_status st = hv_replicas_solve(p, &limits, arena, &r, err);
    if (st != HV_OK) {
        return st;
    }
    TAKE(out, r, start);
    out->stopped = r.stopped;
    if (!r.feasible) {
        return HV_OK;
    }
    json_t *stages = json_array();
    hv_text_addf(&out->table, "%-7s%-14s%8s%9s%11s%14s\n", "stage", "layers", "width", "copies",
                 "in flight", "ms/sample");
    for (size_t s = 0; s < r.n_stages; s++) {
        const struct hv_replica_stage *t = &r.stages[s];
        size_t width = p->widths[t->width].width;
        hv_text_addf(&out->table, "%-7zu%-14s%8zu%9zu%11zu%14.6g\n", s,
                     span_text(span, sizeof span, t->first, t->end), width, t->replicas,
                     t->in_flight, t->value);
        json_array_append_new(stages, json_pack("{s:[i,i],s:i,s:i,s:i,s:o}", "layers",
                                                (int)t->first, (int)t->end, "width", (int)width,
                                                "replicas", (int)t->replicas, "in_flight",
                                                (int)t->in_flight, "ms", hv_json_num(t->value)));
    }
    hv_str_adds(&out->table, "option of each layer:");
    for (size_t l = 0; l < p->n_layers; l++) {
        hv_text_addf(&out->table, " %zu", r.choice[l]);
    }
    hv_str_addc(&out->table, '\n');
    out->solution = json_object();
    json_object_set_new(out->solution, "stages", stages);
    json_object_set_new(out->solution, "option", list_of_sizes(r.choice, p->n_layers));
    return HV_OK;
}

/** "0-3 | 4-9 | 10-11": the layers of each stage. */
static void add_cuts(const struct hv_partition_result *r, struct hv_str *out)
{
    char span[48];
    for (size_t s = 0; s < r->n_stages; s++) {
        hv_text_addf(out, "%s%s", s ? " | " : "",
                     span_text(span, sizeof span, s ? r->cut[s - 1] : 0, r->cut[s]));
    }
    hv_str_addc(out, '\n');
}

static enum hv_status solve_joint(const struct hv_batch_layers *j, const struct hv__solve_ask *a,
                                  struct hv_arena *arena, struct hv__solve_answer *out,
                                  struct hv_err *err)
{
    const struct hv_solve_limits limits = limits_of(a);
    struct hv_batch_layers_result r;
    double start = seconds_now();
    enum hv_status st = hv_batch_layers_solve(j, &limits, arena, &r, err);
    if (st != HV_OK) {
        return st;
    }
    TAKE(out, r, start);
    out->stopped = r.stopped;
    if (!r.feasible) {
        return HV_OK;
    }
    json_t *pipelines = json_array();
    hv_text_addf(&out->table, "%-10s%15s%14s  %s\n", "pipeline", "micro-batches", "ms",
                 "layers of its stages");
    for (size_t k = 0; k < j->n_pipelines; k++) {
        const struct hv_partition_result *p = &r.part[k];
        double time = r.count[k] > 0 ? p->sum + (double)(r.count[k] - 1) * p->max : 0;
        hv_text_addf(&out->table, "%-10zu%15lld%14.6g  ", k, (long long)r.count[k], time);
        json_t *one = json_object();
        json_object_set_new(one, "count", json_integer(r.count[k]));
        json_object_set_new(one, "ms", hv_json_num(time));
        if (p->feasible) {
            add_cuts(p, &out->table);
            json_object_set_new(one, "cut", list_of_sizes(p->cut, p->n_stages));
        } else {
            hv_str_adds(&out->table, "nothing fits\n");
        }
        json_array_append_new(pipelines, one);
    }
    out->solution = json_object();
    json_object_set_new(out->solution, "pipelines", pipelines);
    return HV_OK;
}

static enum hv_status distribute(const struct hv_instance *in, struct hv_arena *arena,
                                 struct hv_distribution *d, struct hv_err *err)
{
    switch (in->goal) {
    case HV_INSTANCE_MINMAX:
        return hv_distribute_minmax(in->shares, in->n_shares, in->total, arena, d, err);
    case HV_INSTANCE_SUM:
        return hv_distribute_sum(in->shares, in->n_shares, in->total, arena, d, err);
    case HV_INSTANCE_MINVAR:
        return hv_distribute_minvar(in->shares, in->n_shares, in->total, arena, d, err);
    case HV_INSTANCE_RATIO:
        return hv_distribute_ratio(in->shares, in->n_shares, in->total, arena, d, err);
    case HV_INSTANCE_LPT:
        return hv_distribute_lpt(in->items, in->n_items, in->n_slots, in->most, arena, d, err);
    }
    return HV_EINTERNAL;
}

static enum hv_status solve_split(const struct hv_instance *in, struct hv_arena *arena,
                                  struct hv__solve_answer *out, struct hv_err *err)
{
    bool items = in->goal == HV_INSTANCE_LPT;
    struct hv_distribution d;
    double start = seconds_now();
    enum hv_status st = distribute(in, arena, &d, err);
    if (st != HV_OK) {
        return st;
    }
    out->unit = in->goal == HV_INSTANCE_MINVAR || in->goal == HV_INSTANCE_RATIO ? "" : " ms";
    TAKE(out, d, start);
    if (!d.feasible) {
        return HV_OK;
    }
    json_t *counts = json_array();
    hv_str_adds(&out->table, items ? "item    slot\n" : "replica    micro-batches\n");
    for (size_t i = 0; i < (items ? in->n_items : in->n_shares); i++) {
        json_array_append_new(counts, json_integer(d.count[i]));
        hv_text_addf(&out->table, items ? "%-7zu%5lld\n" : "%-7zu%17lld\n", i,
                     (long long)d.count[i]);
    }
    out->solution = json_object();
    json_object_set_new(out->solution, items ? "slot" : "counts", counts);
    return HV_OK;
}

/** One line per device: the number of its nodes, and its load. */
static void device_table(const struct hv_dag *g, const struct hv_dag_result *r, struct hv_str *out)
{
    size_t n = g->n_accelerators + g->n_cpus;
    hv_text_addf(out, "%-12s%8s%14s\n", "device", "nodes", "load");
    for (size_t k = 0; k < n; k++) {
        size_t held = 0;
        for (size_t v = 0; v < g->n_nodes; v++) {
            held += r->device[v] == k;
        }
        bool cpu = k >= g->n_accelerators;
        hv_text_addf(out, "%s %-*zu%8zu%14.6g\n", cpu ? "cpu" : "accel", cpu ? 8 : 6,
                     cpu ? k - g->n_accelerators : k, held, r->load[k]);
    }
}

static enum hv_status solve_dag(const struct hv_dag *g, const struct hv__solve_ask *a,
                                struct hv_arena *arena, struct hv__solve_answer *out,
                                struct hv_err *err)
{
    const struct hv_solve_limits limits = limits_of(a);
    struct hv_dag_result r;
    double start = seconds_now();
    enum hv_status st = hv_dag_solve(g, &limits, arena, &r, err);
    if (st != HV_OK) {
        return st;
    }
    out->unit = "";
    TAKE(out, r, start);
    out->stopped = r.stopped;
    if (!r.feasible) {
        return HV_OK;
    }
    device_table(g, &r, &out->table);
    out->solution = json_object();
    json_object_set_new(out->solution, "device", list_of_sizes(r.device, g->n_nodes));
    json_object_set_new(out->solution, "load",
                        list_of_numbers(r.load, g->n_accelerators + g->n_cpus));
    json_object_set_new(out->solution, "contiguous", hv_json_num(r.contiguous));
    return HV_OK;
}

enum hv_status hv__solve_instance(const struct hv_instance *in, const struct hv__solve_ask *ask,
                                  struct hv_arena *arena, struct hv__solve_answer *out,
                                  struct hv_err *err)
{
    out->unit = " ms";
    if (ask->write_lp && (in->kind != HV_INSTANCE_CHAIN || in->rank)) {
        return hv_err_set(
            err, HV_EUSAGE,
            "--write-lp: only chains with one stage per rank have an integer program");
    }
    switch (in->kind) {
    case HV_INSTANCE_CHAIN:
        return in->rank ? solve_chunks(in, ask, arena, out, err)
                        : solve_chain(&in->chain, ask, arena, out, err);
    case HV_INSTANCE_DAG:
        return solve_dag(&in->dag, ask, arena, out, err);
    case HV_INSTANCE_REPLICAS:
        return solve_replicas(&in->replicas, ask, arena, out, err);
    case HV_INSTANCE_JOINT:
        return solve_joint(&in->joint, ask, arena, out, err);
    case HV_INSTANCE_DISTRIBUTE:
        return solve_split(in, arena, out, err);
    }
    return HV_EINTERNAL;
}

void hv__solve_answer_free(struct hv__solve_answer *w)
{
    json_decref(w->solution);
    hv_str_free(&w->certificate);
    hv_str_free(&w->table);
}
