/** Verdicts to JSON. The plan reader stores them unchanged. */
#include "solver/io/own/verdict_file.h"

#include "solver/base/units.h"
#include "solver/io/own/plan/write.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Peak memory of every stage: of the device, and what of it the allocator has handed out. */
static void put_memory(json_t *o, const struct hv_verdict *v)
{
    json_t *peak = json_array(), *allocated = json_array();
    for (size_t i = 0; i < v->n_memory; i++) {
        const struct hv_stage_memory *m = &v->memory[i];
        json_array_append_new(peak, hv_json_num(m->peak_bytes / HV_GIB));
        json_array_append_new(allocated, hv_json_num(hv_stage_allocated_bytes(m) / HV_GIB));
    }
    json_object_set_new(o, "peak_memory_GiB", peak);
    json_object_set_new(o, "allocated_GiB", allocated);
}

static int by_place(const void *x, const void *y)
{
    const struct hv_kept_memory *const *a = x, *const *b = y;
    return strcmp((*a)->place, (*b)->place);
}

/** The places that keep offloads by name: numbers of devices depend on the order of groups. */
static const struct hv_kept_memory **sorted_places(const struct hv_verdict *v)
{
    const struct hv_kept_memory **out = hv_xcalloc(v->n_kept + 1, sizeof *out);
    for (size_t i = 0; i < v->n_kept; i++) {
        out[i] = &v->kept[i];
    }
    if (v->n_kept > 1) {
        qsort(out, v->n_kept, sizeof *out, by_place);
    }
    return out;
}

/** Where offloads lie: the most at one time, with what a device holds itself, and what there is. */
static void put_kept(json_t *o, const struct hv_verdict *v)
{
    json_t *list = json_array();
    const struct hv_kept_memory **places = sorted_places(v);
    for (size_t i = 0; i < v->n_kept; i++) {
        const struct hv_kept_memory *k = places[i];
        json_t *e = json_object();
        json_object_set_new(e, "place", json_string(k->place));
        json_object_set_new(e, "alike", json_integer((json_int_t)k->n_alike));
        json_object_set_new(e, "kept_GiB", hv_json_num(k->kept_bytes / HV_GIB));
        json_object_set_new(e, "peak_GiB", hv_json_num(k->peak_bytes / HV_GIB));
        json_object_set_new(e, "memory_GiB", hv_json_num(k->limit_bytes / HV_GIB));
        json_array_append_new(list, e);
    }
    if (v->n_kept > 0) {
        json_object_set(o, "offloaded_to", list);
    }
    free(places);
    json_decref(list);
}

json_t *hv_goodput_json(const struct hv_goodput *g)
{
    json_t *lost = json_object(), *share = json_object(), *o = json_object();
    json_object_set_new(lost, "detection", hv_json_num(g->detect_s));
    json_object_set_new(lost, "rollback", hv_json_num(g->rollback_s));
    json_object_set_new(lost, "reinstantiation", hv_json_num(g->restore_s));
    json_object_set_new(share, "useful", hv_json_num(g->share.useful));
    json_object_set_new(share, "checkpoint", hv_json_num(g->share.write));
    json_object_set_new(share, "rollback", hv_json_num(g->share.rollback));
    json_object_set_new(share, "recovery", hv_json_num(g->share.recover));
    json_object_set_new(o, "recovery", json_string(hv_recovery_words[g->from]));
    json_object_set_new(o, "nodes", json_integer((json_int_t)g->n_nodes));
    json_object_set_new(o, "failures_per_hour", hv_json_num(g->failures_per_h));
    json_object_set_new(o, "tokens_per_s", hv_json_num(g->tokens_per_s));
    json_object_set_new(o, "sequences_per_s", hv_json_num(g->sequences_per_s));
    json_object_set_new(o, "usd_per_hour", hv_json_num(g->usd_per_h));
    json_object_set_new(o, "usd_per_Mtoken", hv_json_num(g->usd_per_mtoken));
    json_object_set_new(o, "share", share);
    json_object_set_new(o, "away", hv_json_num(g->away_frac));
    json_object_set_new(o, "lost_per_failure_s", lost);
    json_object_set_new(o, "checkpoint_GiB", hv_json_num(g->checkpoint_bytes / HV_GIB));
    json_object_set_new(o, "checkpoint_write_s", hv_json_num(g->write_s));
    json_object_set_new(o, "interval_s", hv_json_num(g->interval_s));
    json_object_set_new(o, "best_interval_s", hv_json_num(g->best_interval_s));
    return o;
}

json_t *hv_stress_json(const struct hv_stress *s)
{
    json_t *o = json_object();
    json_object_set_new(o, "exchange_s", hv_json_num(s->exchange_s));
    json_object_set_new(o, "memory_frac", hv_json_num(s->memory_frac));
    json_object_set_new(o, "node_s", hv_json_num(s->node_s));
    json_object_set_new(o, "worst_frac",
                        hv_json_num(isfinite(s->worst_frac) ? s->worst_frac : HV_UNKNOWN));
    json_object_set_new(o, "robust", json_boolean(hv_stress_is_robust(s)));
    return o;
}

static void put_approximated(json_t *o, const struct hv_verdict *v)
{
    if (v->n_approximated == 0) {
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < v->n_approximated; i++) {
        json_array_append_new(list, json_string(v->approximated[i]));
    }
    json_object_set_new(o, "approximated", list);
}

/** Stages of a serving plan, replica entries one after the other. */
static json_t *serving_stages(const struct hv_serving *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_stages; i++) {
        const struct hv_serve_stage *x = &s->stages[i];
        json_t *o = json_object();
        json_object_set_new(o, "capacity_tokens_per_s", hv_json_num(x->capacity_tokens_per_s));
        json_object_set_new(o, "flow_tokens_per_s", hv_json_num(x->flow_tokens_per_s));
        json_object_set_new(o, "prompt_s", hv_json_num(x->prompt_s));
        json_object_set_new(o, "token_s", hv_json_num(x->token_s));
        json_object_set_new(o, "cache_GiB", hv_json_num(x->cache_bytes / HV_GIB));
        json_array_append_new(list, o);
    }
    return list;
}

/** Requests that wait for a slot; not known at a load of 1 or more. */
static json_t *request_queue(const struct hv_serving *s)
{
    const struct hv_request_figures *q = &s->queue;
    const struct {
        const char *key;
        double value;
    } figures[] = {{"arrivals_per_s", s->arrivals_per_s},
                   {"slots", s->slots},
                   {"load", q->load_frac},
                   {"mean_wait_s", q->mean_wait_s},
                   {"formula_wait_s", q->formula_wait_s},
                   {"room_wait_s", q->room_wait_s},
                   {"no_room_frac", q->no_room_frac},
                   {"first_token_p50_s", q->first_p50_s},
                   {"first_token_p99_s", q->first_p99_s},
                   {"request_p50_s", q->whole_p50_s},
                   {"request_p99_s", q->whole_p99_s},
                   {"requests", (double)q->n}};
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        json_object_set_new(o, figures[i].key, hv_json_num(figures[i].value));
    }
    json_object_set_new(o, "estimated", json_true());
    return o;
}

/** A serving plan has a flow instead of iterations. */
static json_t *serving(const struct hv_verdict *v)
{
    const struct hv_metrics *m = &v->metrics;
    const struct hv_serving *s = v->serving;
    const struct {
        const char *key;
        double value;
    } figures[] = {{"iteration_s", HV_UNKNOWN},
                   {"tokens_per_s", m->tokens_per_s},
                   {"max_flow_tokens_per_s", s->max_tokens_per_s},
                   {"bound_tokens_per_s", s->bound_tokens_per_s},
                   {"gap", s->bound_tokens_per_s / m->tokens_per_s - 1},
                   {"requests_per_s", s->requests_per_s},
                   {"output_tokens", s->output_tokens},
                   {"first_token_s", s->first_token_s},
                   {"next_token_s", s->next_token_s},
                   {"request_s", s->request_s},
                   {"requests_in_flight", s->requests_in_flight},
                   {"mfu", m->mfu},
                   {"usd_per_hour", m->usd_per_h},
                   {"usd_per_Mtoken", m->usd_per_mtoken},
                   {"devices_used", (double)m->n_devices_used}};
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        json_object_set_new(o, figures[i].key, hv_json_num(figures[i].value));
    }
    if (s->slots > 0) {
        json_object_set_new(o, "queue", request_queue(s));
    }
    put_memory(o, v);
    json_object_set_new(o, "flow", hv_flow_to_json(s->flow, s->n_flow));
    json_object_set_new(o, "stages", serving_stages(s));
    put_approximated(o, v);
    return o;
}

static json_t *finite_number(double x)
{
    return hv_json_num(isfinite(x) ? x : HV_UNKNOWN);
}

/** Figures of the synchronisation of a stale plan. */
static json_t *agreement(const struct hv_stale_sync *a)
{
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string(hv_sync_kind_words[a->kind]));
    json_object_set_new(o, "workers", json_integer((json_int_t)a->n_workers));
    if (a->group > 0) {
        json_object_set_new(o, "group", json_integer(a->group));
        json_object_set_new(o, "mean_group", hv_json_num(a->mean_group));
    }
    json_object_set_new(o, "wave_s", hv_json_num(a->wave_s));
    json_object_set_new(o, "exchange_s", hv_json_num(a->exchange_s));
    json_object_set_new(o, "wait_frac", hv_json_num(a->wait_frac));
    json_object_set_new(o, "own_staleness", json_integer(a->own_staleness));
    json_object_set_new(o, "mean_staleness", hv_json_num(a->staleness_clocks));
    if (hv_known(a->rho)) {
        json_object_set_new(o, "rho", hv_json_num(a->rho));
        json_object_set_new(o, "spectral_gap", hv_json_num(1 - a->rho));
    }
    return o;
}

/** Every job with its own figures, and sums. */
static json_t *jobs(const struct hv_verdict *v)
{
    const struct hv_metrics *m = &v->metrics;
    json_t *o = json_object(), *list = json_array();
    json_object_set_new(o, "iteration_s", json_null());
    json_object_set_new(o, "tokens_per_s", hv_json_num(m->tokens_per_s));
    json_object_set_new(o, "exact", json_boolean(m->exact));
    json_object_set_new(o, "usd_per_hour", hv_json_num(m->usd_per_h));
    json_object_set_new(o, "usd_per_Mtoken", hv_json_num(m->usd_per_mtoken));
    json_object_set_new(o, "devices_used", json_integer((json_int_t)m->n_devices_used));
    json_object_set_new(o, "makespan_s", hv_json_num(v->jobs->makespan_s));
    json_object_set_new(o, "mean_wait_s", hv_json_num(v->jobs->mean_wait_s));
    json_object_set_new(o, "mean_completion_s", hv_json_num(v->jobs->mean_completion_s));
    for (size_t i = 0; i < v->jobs->n; i++) {
        const struct hv_job_verdict *j = &v->jobs->items[i];
        json_t *e = json_object();
        json_object_set_new(e, "name", json_string(j->name));
        json_object_set_new(e, "arrival_s", hv_json_num(j->arrival_s));
        json_object_set_new(e, "start_s", hv_json_num(j->start_s));
        json_object_set_new(e, "end_s", finite_number(j->end_s));
        json_object_set_new(e, "wait_s", hv_json_num(j->wait_s));
        json_object_set_new(e, "completion_s", finite_number(j->end_s - j->arrival_s));
        json_object_set_new(e, "usd", hv_json_num(j->usd));
        json_object_set_new(e, "simulated", hv_verdict_simulated(&j->verdict));
        json_array_append_new(list, e);
    }
    json_object_set_new(o, "jobs", list);
    put_approximated(o, v);
    return o;
}

/** A kind of exchange; kinds without any are left out. */
static json_t *put_sent(json_t *o, const char *kind, const struct hv_sent *x)
{
    if (!(x->forward + x->backward > 0)) {
        return NULL;
    }
    json_t *t = json_object();
    json_object_set_new(t, "forward", hv_json_num(x->forward));
    json_object_set_new(t, "backward", hv_json_num(x->backward));
    json_object_set_new(o, kind, t);
    return t;
}

json_t *hv_traffic_json(const struct hv_traffic *x)
{
    json_t *o = json_object(), *cp = put_sent(o, "context", &x->cp);
    json_t *tp = put_sent(o, "tensor", &x->tp);
    put_sent(o, "depth", &x->depth);
    put_sent(o, "vocabulary", &x->vocabulary);
    put_sent(o, "experts", &x->ep);
    if (tp != NULL && x->tp_tree.forward > 0) {
        json_object_set_new(tp, "tree_forward", hv_json_num(x->tp_tree.forward));
        json_object_set_new(tp, "tree_backward", hv_json_num(x->tp_tree.backward));
    }
    if (cp != NULL) {
        json_object_set_new(cp, "most_forward", hv_json_num(x->cp_most.forward));
        json_object_set_new(cp, "most_backward", hv_json_num(x->cp_most.backward));
        json_object_set_new(cp, "hop_forward", hv_json_num(x->cp_hop.forward));
        json_object_set_new(cp, "hop_backward", hv_json_num(x->cp_hop.backward));
    }
    return o;
}

static json_t *routing(const struct hv_routing_figures *r)
{
    json_t *o = json_object();
    json_object_set_new(o, "iterations", json_integer((json_int_t)r->n));
    json_object_set_new(o, "mean_s", hv_json_num(r->mean_s));
    json_object_set_new(o, "p95_s", hv_json_num(r->p95_s));
    json_object_set_new(o, "moves", json_integer((json_int_t)r->moves));
    json_object_set_new(o, "moved_bytes", hv_json_num(r->moved_bytes));
    json_object_set_new(o, "dropped_frac", hv_json_num(r->dropped_frac));
    return o;
}

/** Where a real iteration is with a known probability. */
static void put_band(json_t *o, const struct hv_band *b)
{
    if (b->cover <= 0) {
        return;
    }
    json_t *band = json_object();
    json_object_set_new(band, "low_s", hv_json_num(b->low_s));
    json_object_set_new(band, "high_s", hv_json_num(b->high_s));
    json_object_set_new(band, "cover", hv_json_num(b->cover));
    json_object_set_new(o, "band", band);
}

/** A training plan: one iteration. */
static json_t *training(const struct hv_verdict *v)
{
    const struct hv_metrics *m = &v->metrics;
    json_t *o = json_object();
    json_object_set_new(o, "iteration_s", hv_json_num(m->iteration_s));
    json_object_set_new(o, "tokens_per_s", hv_json_num(m->tokens_per_s));
    json_object_set_new(o, "mfu", hv_json_num(m->mfu));
    json_object_set_new(o, "bubble", hv_json_num(m->bubble_frac));
    json_object_set_new(o, "exact", json_boolean(m->exact));
    if (!m->exact) {
        json_object_set_new(o, "staleness", json_integer(m->staleness));
        if (v->stale_sync != NULL) {
            json_object_set_new(o, "sync", agreement(v->stale_sync));
        }
    }
    if (m->dropped_frac > 0) {
        json_object_set_new(o, "dropped_frac", hv_json_num(m->dropped_frac));
    }
    if (v->routing.n > 0) {
        json_object_set_new(o, "routing", routing(&v->routing));
    }
    put_band(o, &m->band);
    json_object_set_new(o, "bound_s", hv_json_num(m->bound_s));
    json_object_set_new(o, "gap", hv_json_num(m->gap_frac));
    json_object_set_new(o, "usd_per_hour", hv_json_num(m->usd_per_h));
    json_object_set_new(o, "usd_per_Mtoken", hv_json_num(m->usd_per_mtoken));
    json_object_set_new(o, "energy_J", hv_json_num(m->energy_j));
    json_object_set_new(o, "devices_used", json_integer((json_int_t)m->n_devices_used));
    put_memory(o, v);
    put_kept(o, v);
    json_t *b = json_object();
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        json_object_set_new(b, hv_breakdown_name((enum hv_breakdown)i),
                            hv_json_num(m->breakdown_s[i]));
    }
    json_object_set_new(o, "breakdown_s", b);
    json_object_set_new(o, "traffic", hv_traffic_json(&m->traffic));
    if (v->goodput.known) {
        json_object_set_new(o, "failures", hv_goodput_json(&v->goodput));
    }
    put_approximated(o, v);
    return o;
}

json_t *hv_verdict_simulated(const struct hv_verdict *v)
{
    json_t *o = v->serving != NULL ? serving(v) : v->jobs != NULL ? jobs(v) : training(v);
    json_object_set_new(o, "judge", json_integer(HV_JUDGE_VERSION));
    if (v->runtime != HV_RUNTIME_HETVIZ) {
        json_object_set_new(o, "runtime", json_string(hv_runtime_name(v->runtime)));
    }
    return o;
}

static json_t *violations_of(const struct hv_verdict *v)
{
    json_t *a = json_array();
    for (size_t i = 0; i < v->findings.n; i++) {
        const struct hv_violation *x = &v->findings.items[i];
        json_t *o = json_object();
        json_object_set_new(o, "code", json_string(hv_violation_name(x->code)));
        json_object_set_new(o, "where", json_string(x->where));
        json_object_set_new(o, "text", json_string(x->text));
        json_object_set_new(o, "by", hv_json_num(x->by));
        json_array_append_new(a, o);
    }
    return a;
}

json_t *hv_plan_with_verdict(const json_t *plan, const struct hv_verdict *v, bool violations)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)plan); /* which leaves `plan` as it is */
    json_object_set_new(copy, "simulated", hv_verdict_simulated(v));
    if (violations) {
        json_object_set_new(copy, "violations", violations_of(v));
    }
    return copy;
}
