/** `hetviz failures`: the expected throughput of a plan under failures, and the plans of its
 * strategy for the remaining nodes. The closed forms are in eval/goodput. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scripting/worker/run.h"
#include "solver/base/units.h"
#include "solver/io/own/verdict_file.h"
#include "ui/cli/cli.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/judged.h"
#include "ui/cli/print.h"
#include "ui/cli/verdict_text.h"

#define LOST_DEFAULT     2
#define SECONDS_PER_PLAN 10

/** The plan after the failure of some nodes. */
struct row {
    const char *nodes; /**< "a[3], v[0]" */
    const char *how;   /**< "unchanged", "new plan", …, or why there is no plan */
    double iteration_s, tokens_per_s;
    size_t n_lost;
    double weight; /**< with one failed node: probability that it belongs to this group */
    bool in_turn;  /**< one of the rows 0, 1, 2, …; else one node of another group */
};

/** Everything of one call. */
struct failing {
    const struct hv_args *args;
    struct hv_judged judged;
    struct hv_plugins plugins;
    struct row *rows;
    size_t n;
    double *in_turn; /**< tokens per second with 0, 1, 2, … failed nodes */
    size_t n_in_turn;
    struct hv_goodput as_it_is, mended;
    struct hv_elastic elastic;
};

/* ---- failing nodes --------------------------------------------------------------------------- */

/** Nodes of the plan in descending order of failure rate; ties in reverse file order. */
static uint32_t *nodes_in_order(struct failing *f, size_t *n)
{
    const struct hv_cluster *c = f->judged.inputs.cluster.cluster;
    const struct hv_plan *p = f->judged.plan.plan;
    const struct hv_failure_rules *rules = &f->judged.inputs.job.job.failures;
    bool *used = hv_arena_new(&f->judged.arena, bool, c->n_nodes + 1);
    uint32_t *nodes = hv_arena_new(&f->judged.arena, uint32_t, c->n_nodes + 1);
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            const struct hv_stage *stage = &p->replicas[i].stages[s];
            for (size_t d = 0; d < stage->n_devices; d++) {
                used[hv_cluster_node_of(c, stage->devices[d])] = true;
            }
        }
    }
    *n = 0;
    for (uint32_t node = c->n_nodes; node-- > 0;) {
        double rate = hv_node_failures_per_s(hv_cluster_group_of_node(c, node), rules);
        size_t at = *n;
        for (; used[node] && at > 0; at--) {
            const struct hv_node_group *g = hv_cluster_group_of_node(c, nodes[at - 1]);
            if (hv_node_failures_per_s(g, rules) >= rate) {
                break;
            }
            nodes[at] = nodes[at - 1];
        }
        nodes[at] = node;
        *n += used[node];
    }
    return nodes;
}

/** "a[3]" */
static const char *node_name(struct failing *f, uint32_t node)
{
    const struct hv_node_group *g =
        hv_cluster_group_of_node(f->judged.inputs.cluster.cluster, node);
    struct hv_str text = {0};
    hv_str_addf(&text, "%s[%u]", g->name, node - g->first_node);
    const char *name = hv_arena_strdup(&f->judged.arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return name;
}

/* ---- plans after failures ------------------------------------------------------------------ */

static double figure(const json_t *plan, const char *key)
{
    const json_t *v = json_object_get(json_object_get(plan, "simulated"), key);
    return json_is_number(v) ? json_number_value(v) : HV_UNKNOWN;
}

static void take_result(struct failing *f, const struct hv_run_result *result,
                        const struct hv_err *err, struct row *row)
{
    const struct hv_plugin *plugin = NULL;
    bool feasible = result->plan != NULL && json_object_get(result->plan, "violations") == NULL;
    if (!feasible) {
        const char *why = err->text[0] != '\0' ? err->text : hv_str_cstr(&result->reason);
        row->how = hv_arena_strdup(&f->judged.arena, why);
        return;
    }
    row->iteration_s = figure(result->plan, "iteration_s");
    row->tokens_per_s = figure(result->plan, "tokens_per_s");
    bool mends =
        hv_plugins_get(&f->plugins, f->judged.plan.plan->strategy, &plugin, NULL) == HV_OK &&
        plugin->has[HV_PLUGIN_REPLAN];
    row->how = mends ? "repaired by its strategy" : "new plan";
}

/** Runs the plan's strategy on the cluster without these nodes. Where it finds no plan the row has
 * the reason, and the call succeeds. */
static enum hv_status replan(struct failing *f, const uint32_t *nodes, size_t n, struct row *row,
                             struct hv_err *err)
{
    const struct hv_plan *p = f->judged.plan.plan;
    const json_t *root = f->judged.plan.json.root;
    const char **lost = hv_arena_new(&f->judged.arena, const char *, n + 1);
    struct hv_str names = {0};
    for (size_t i = 0; i < n; i++) {
        lost[i] = node_name(f, nodes[i]);
        hv_str_addf(&names, "%s%s", i > 0 ? ", " : "", lost[i]);
    }
    *row = (struct row){.nodes = hv_arena_strdup(&f->judged.arena, hv_str_cstr(&names)),
                        .iteration_s = HV_UNKNOWN,
                        .tokens_per_s = HV_UNKNOWN,
                        .n_lost = n};
    hv_str_free(&names);
    const struct hv_run_request r = {
        .inputs = &f->judged.inputs,
        .plugins = &f->plugins,
        .strategy = p->strategy,
        .options = json_object_get(json_object_get(root, "strategy"), "options"),
        .replan = root,
        .lost = lost,
        .n_lost = n,
        .seed = (uint64_t)hv_args_number(f->args, "seed", 1),
        .budget = (int64_t)hv_args_number(f->args, "budget", 0),
        .time_limit_s = hv_args_number(f->args, "time-limit", SECONDS_PER_PLAN),
        .cancel = hv_interrupted,
    };
    struct hv_run_result result = {0};
    struct hv_err own = {0};
    enum hv_status st = hv_run_strategy(&r, &result, &own);
    take_result(f, &result, &own, row);
    hv_run_result_free(&result);
    if (hv_interrupted(NULL) || st == HV_EPLUGIN || st == HV_EUSAGE) {
        *err = own;
        return st;
    }
    return HV_OK;
}

/** True where no earlier one of these nodes belongs to the same group. */
static bool leads_group(const struct hv_cluster *c, const uint32_t *nodes, size_t i)
{
    const struct hv_node_group *g = hv_cluster_group_of_node(c, nodes[i]);
    for (size_t k = 0; k < i; k++) {
        if (hv_cluster_group_of_node(c, nodes[k]) == g) {
            return false;
        }
    }
    return true;
}

/** Probability that the failed node belongs to this group: its share of all failures. */
static double group_weight(const struct failing *f, const uint32_t *nodes, size_t n, uint32_t like)
{
    const struct hv_cluster *c = f->judged.inputs.cluster.cluster;
    const struct hv_failure_rules *rules = &f->judged.inputs.job.job.failures;
    const struct hv_node_group *g = hv_cluster_group_of_node(c, like);
    double own = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv_node_group *other = hv_cluster_group_of_node(c, nodes[i]);
        double rate = hv_node_failures_per_s(other, rules);
        all += rate;
        own += other == g ? rate : 0;
    }
    return all > 0 ? own / all : 0;
}

/** The mean with one failed node: over the groups, weighted by their failure rates. */
static double one_away(const struct failing *f)
{
    double sum = 0;
    for (size_t i = 0; i < f->n; i++) {
        bool counts = f->rows[i].n_lost == 1 && f->rows[i].tokens_per_s > 0;
        sum += counts ? f->rows[i].weight * f->rows[i].tokens_per_s : 0;
    }
    return sum;
}

/** Rows for 0, 1, 2, … failed nodes, and for one failed node of every other group. */
static enum hv_status fill_rows(struct failing *f, struct hv_err *err)
{
    const struct hv_cluster *c = f->judged.inputs.cluster.cluster;
    const struct hv_metrics *m = &f->judged.verdict.metrics;
    size_t n_nodes = 0, most = (size_t)hv_args_number(f->args, "lost", LOST_DEFAULT);
    uint32_t *nodes = nodes_in_order(f, &n_nodes);
    most = f->judged.plan.plan->strategy == NULL ? 0 : most < n_nodes ? most : n_nodes;
    f->rows = hv_arena_new(&f->judged.arena, struct row, most + c->n_groups + 1);
    f->in_turn = hv_arena_new(&f->judged.arena, double, most + 1);
    f->rows[f->n++] = (struct row){.nodes = "none",
                                   .how = "unchanged",
                                   .iteration_s = m->iteration_s,
                                   .tokens_per_s = m->tokens_per_s,
                                   .in_turn = true};
    f->in_turn[f->n_in_turn++] = m->tokens_per_s;
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && most > 0 && i < n_nodes; i++) {
        if (leads_group(c, nodes, i)) {
            struct row *row = &f->rows[f->n++];
            st = replan(f, &nodes[i], 1, row, err);
            row->weight = group_weight(f, nodes, n_nodes, nodes[i]);
            row->in_turn = i == 0;
        }
    }
    if (st == HV_OK && most > 0) {
        f->in_turn[f->n_in_turn++] = one_away(f);
    }
    for (size_t i = 2; st == HV_OK && i <= most && f->in_turn[i - 1] > 0; i++) {
        struct row *row = &f->rows[f->n++];
        st = replan(f, nodes, i, row, err);
        row->in_turn = true;
        f->in_turn[f->n_in_turn++] = hv_or(row->tokens_per_s, 0);
    }
    return st;
}

/* ---- printing -------------------------------------------------------------------------------- */

static double probability(const struct failing *f, const struct row *r)
{
    return f->elastic.probability[r->n_lost] * (r->n_lost == 1 ? r->weight : 1);
}

static enum hv_status print_json(struct failing *f, struct hv_err *err)
{
    json_t *lost = json_array(), *elastic = json_object(), *out = json_object();
    for (size_t i = 0; i < f->n; i++) {
        const struct row *r = &f->rows[i];
        json_array_append_new(lost, json_pack("{s:i, s:s, s:o, s:o, s:o, s:s}", "nodes",
                                              (int)r->n_lost, "lost", r->nodes, "time_share",
                                              hv_json_num(probability(f, r)), "iteration_s",
                                              hv_json_num(r->iteration_s), "tokens_per_s",
                                              hv_json_num(r->tokens_per_s), "how", r->how));
    }
    json_object_set_new(elastic, "tokens_per_s", hv_json_num(f->elastic.tokens_per_s));
    json_object_set_new(elastic, "usd_per_hour", hv_json_num(f->elastic.usd_per_h));
    json_object_set_new(elastic, "usd_per_Mtoken", hv_json_num(f->elastic.usd_per_mtoken));
    json_object_set_new(out, "failures", hv_goodput_json(&f->as_it_is));
    json_object_set_new(out, "elastic", elastic);
    json_object_set_new(out, "lost", lost);
    return hv_cli_print_json(out, err);
}

static void add_rows(const struct failing *f, struct hv_str *out)
{
    char share[HV_FMT_CAP], it[HV_FMT_CAP], tok[HV_FMT_CAP];
    hv_str_adds(out, "\naway  which                 share of time   iteration    tokens/s\n");
    for (size_t i = 0; i < f->n; i++) {
        const struct row *r = &f->rows[i];
        bool fits = r->tokens_per_s > 0;
        hv_text_addf(out, "%4zu  %-20.20s %14s %11s %11s  %s\n", r->n_lost, r->nodes,
                     hv_fmt_percent(share, sizeof share, probability(f, r)),
                     hv_fmt_seconds(it, sizeof it, r->iteration_s),
                     fits ? hv_fmt_count(tok, sizeof tok, r->tokens_per_s) : "none", r->how);
    }
    hv_text_addf(out, "%4s  %-20s %14s %11s %11s\n", "more", "",
                 hv_fmt_percent(share, sizeof share, f->elastic.probability[f->n_in_turn]), "",
                 "none");
}

static enum hv_status print_text(struct failing *f, struct hv_err *err)
{
    const struct hv_metrics *m = &f->judged.verdict.metrics;
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    struct hv_str text = {0};
    hv_text_addf(&text, "without failures   %s tokens/s, iteration %s\n\n",
                 hv_fmt_count(a, sizeof a, m->tokens_per_s),
                 hv_fmt_seconds(b, sizeof b, m->iteration_s));
    hv_str_adds(&text, f->as_it_is.from == HV_RECOVER_PEERS
                           ? "recovery from peers: the other nodes continue\n"
                           : "no repair: training stops until the node is replaced\n");
    hv_cli_goodput_text(&f->as_it_is, m->tokens_per_s, &text);
    if (f->n_in_turn > 1) {
        hv_str_adds(&text,
                    "\nwith repair: training continues with a plan for the remaining nodes\n");
        hv_text_addf(&text, "  tokens/s         %s (%s of the rate without failures)\n",
                     hv_fmt_count(a, sizeof a, f->elastic.tokens_per_s),
                     hv_fmt_percent(b, sizeof b, f->elastic.tokens_per_s / m->tokens_per_s));
        hv_text_addf(&text, "  USD per Mtoken   %s\n",
                     hv_fmt_fixed(a, sizeof a, f->elastic.usd_per_mtoken, 3));
    }
    add_rows(f, &text);
    enum hv_status st = hv_cli_print(&text, err);
    hv_str_free(&text);
    return st;
}

/* ---- rates and times of the command line ----------------------------------------------------- */

/** "GROUP=N": the rate of a group, or of all. */
static enum hv_status set_rate(struct failing *f, const char *text, struct hv_err *err)
{
    struct hv_cluster *c = f->judged.inputs.cluster.cluster;
    const char *value = strchr(text, '=') + 1;
    size_t n = (size_t)(value - text) - 1, met = 0;
    char *end = NULL;
    double rate = strtod(value, &end);
    if (end == value || *end != '\0' || !(rate >= 0) || !isfinite(rate)) {
        return hv_err_set(
            err, HV_EUSAGE,
            "--preempted %s: expected a rate per hour of at least 0 after the =", text);
    }
    for (size_t g = 0; g < c->n_groups; g++) {
        bool all = n == 3 && strncmp(text, "all", n) == 0;
        bool own = strlen(c->groups[g].name) == n && strncmp(text, c->groups[g].name, n) == 0;
        if (all || own) {
            c->groups[g].preemptions_per_h = rate;
            met++;
        }
    }
    return met > 0
               ? HV_OK
               : hv_err_set(err, HV_EUSAGE, "--preempted %s: the cluster has no such group", text);
}

/** Options that override inventory and job: the documents of this call are changed
 * before anything is expected of them. */
static enum hv_status set_rules(struct failing *f, struct hv_args *args, struct hv_err *err)
{
    struct hv_inputs *in = &f->judged.inputs;
    struct hv_failure_rules *r = &in->job.job.failures;
    size_t n = 0;
    const char **rates = hv_args_all(args, "preempted", &n);
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        st = set_rate(f, rates[i], err);
    }
    r->interval_s = hv_args_number(args, "checkpoint", r->interval_s);
    r->restart_s = hv_args_number(args, "restart", r->restart_s);
    r->regroup_s = hv_args_number(args, "regroup", r->regroup_s);
    hv_cost_free(f->judged.cost);
    f->judged.cost = hv_cost_new(in->cluster.cluster, in->model.model, &in->job.job);
    return st;
}

static enum hv_status expect(struct failing *f, struct hv_err *err)
{
    const struct hv_plan *p = f->judged.plan.plan;
    const struct hv_metrics *m = &f->judged.verdict.metrics;
    struct hv_goodput_query q = {p, m->iteration_s, m->tokens_per_s, true};
    hv_eval_goodput(f->judged.cost, &q, &f->judged.arena, &f->as_it_is);
    q.waits = false;
    hv_eval_goodput(f->judged.cost, &q, &f->judged.arena, &f->mended);
    if (!f->as_it_is.known) {
        return hv_err_set(err, HV_ENO,
                          "the expected throughput under failures needs a training plan over layer "
                          "ranges that can be simulated");
    }
    return HV_OK;
}

enum hv_status hv_cli_failures(struct hv_args *args, struct hv_err *err)
{
    struct failing f = {.args = args};
    enum hv_status st = hv_cli_judge(args, false, &f.judged, err);
    st = st ? st : set_rules(&f, args, err);
    st = st ? st : expect(&f, err);
    st = st ? st : hv_plugins_read(&f.plugins, err);
    if (st == HV_OK) {
        hv_interrupt_catch();
        st = fill_rows(&f, err);
    }
    if (st == HV_OK) {
        hv_eval_elastic(f.judged.cost, f.judged.plan.plan, &f.mended, f.in_turn, f.n_in_turn,
                        &f.judged.arena, &f.elastic);
        st = hv_args_has(args, "json") ? print_json(&f, err) : print_text(&f, err);
    }
    hv_plugins_free(&f.plugins);
    hv_judged_free(&f.judged);
    return st;
}
