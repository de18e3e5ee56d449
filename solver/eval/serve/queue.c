/**
 * Queueing of requests in a serving plan: requests wait for slots and for cache memory in the
 * stages on their way; and the memory of stages for the requests in flight.
 */
#include "solver/cost/device/efficiency.h"
#include "solver/eval/serve/serve_int.h"

#include <stdio.h>

/* Share of the slots in use where the job gives no rate of requests. */
#define USUAL_LOAD 0.8

/** The same request with `tokens` of them, prompt and output in proportion: seconds on an empty
 * slot. */
static struct hv_request_class request_of(const struct hv_serving *s, double sequence,
                                          double tokens, double share)
{
    double part = tokens / sequence, output = s->output_tokens * part;
    struct hv_request_class c = {.share = share, .first_s = s->first_token_s * part};
    c.size = part;
    c.whole_s = c.first_s + fmax(0, output - 1) * s->next_token_s;
    return c;
}

/** Whole sequences whose caches fit into all copies of a stage, beside its weights. */
static double room_of(const struct hv__server *v)
{
    const struct hv_memory *m = &v->memory;
    double space = m->outside_bytes > 0 ? HV_WORKSPACE_BYTES : 0;
    double limit = m->limit_bytes - m->reserve_bytes - m->outside_bytes - space;
    double left = limit / (1 + m->fragmentation_frac) - m->weights_bytes;
    double ranks = v->entry->count * (double)v->rank.n_dp;
    return v->cache_bytes > 0 ? fmax(0, left / v->cache_bytes) * ranks : HUGE_VAL;
}

/** Stages as places with room for caches, and the flow in use as the ways through them. */
static struct hv_request_places *places_of(const struct hv__lowered *l,
                                           const struct hv__servers *all)
{
    struct hv_request_places *p = hv_arena_new(l->arena, struct hv_request_places, 1);
    double *room = hv_arena_new(l->arena, double, all->n + 1);
    struct hv_request_link *links = hv_arena_new(l->arena, struct hv_request_link, all->n_flow + 1);
    for (size_t i = 0; i < all->n; i++) {
        room[i] = room_of(&all->items[i]);
    }
    for (size_t e = 0; e < all->n_flow; e++) {
        const struct hv_plan_flow *f = &all->flow[e];
        links[e] = (struct hv_request_link){.from = f->from < 0 ? HV_REQUESTS_END : f->from,
                                            .to = f->to < 0 ? HV_REQUESTS_END : f->to,
                                            .weight = f->tokens_per_s};
    }
    *p = (struct hv_request_places){.room = room,
                                    .n = all->n,
                                    .links = links,
                                    .n_links = all->n_flow,
                                    .mark_frac = l->plan->cache_mark_frac};
    return p;
}

/* Queueing estimate. There are as many slots as requests in flight at full flow, and a request
 * holds a slot for its time in full batches. Requests arrive at the job's rate, with the job's
 * lengths, and take the paths of the flow in turn; stages whose caches are full to cache_mark_frac
 * accept none. It is an estimate, because batches that are not full take as long, and a request
 * takes equally long on every path. */
void hv__serve_queue(const struct hv__lowered *l, const struct hv__servers *all,
                     struct hv_serving *s)
{
    const struct hv_job *job = hv_cost_job(l->k);
    size_t n = job->n_lengths > 0 ? job->n_lengths : 1;
    struct hv_request_class *classes = hv_arena_new(l->arena, struct hv_request_class, n);
    double sequence = (double)job->sequence, mean = 0;
    for (size_t i = 0; i < n; i++) {
        bool given = job->n_lengths > 0;
        classes[i] = request_of(s, sequence, given ? (double)job->lengths[i].tokens : sequence,
                                given ? job->lengths[i].frac : 1);
        mean += classes[i].share * classes[i].whole_s;
    }
    s->slots = fmax(1, round(s->requests_in_flight));
    s->arrivals_per_s = hv_or(job->requests_per_s, USUAL_LOAD * s->slots / mean);
    if (s->slots <= HV_REQUESTS_SLOTS_MAX && mean > 0) {
        const struct hv_requests q = {.per_s = s->arrivals_per_s,
                                      .slots = (size_t)s->slots,
                                      .classes = classes,
                                      .n_classes = n,
                                      .places = places_of(l, all),
                                      .seed = 1};
        hv_requests_run(&q, l->arena, &s->queue);
    }
}

void hv__serve_memory(const struct hv__lowered *l, const struct hv__servers *all,
                      struct hv_verdict *out)
{
    double sequence = (double)hv_cost_job(l->k)->sequence;
    out->n_memory = all->n;
    out->memory = hv_arena_new(l->arena, struct hv_stage_memory, all->n + 1);
    for (size_t i = 0; i < all->n; i++) {
        const struct hv__server *v = &all->items[i];
        const struct hv_memory *m = &v->memory;
        double resident = v->flow_tokens_per_s / sequence * out->serving->request_s;
        double copies = v->entry->count, ranks = (double)v->rank.n_dp;
        resident = fmax(resident / copies, v->flow_tokens_per_s > 0 ? v->batch : 0);
        struct hv_stage_memory *x = &out->memory[i];
        double space = m->outside_bytes > 0 ? HV_WORKSPACE_BYTES : 0;
        *x = (struct hv_stage_memory){.replica = v->i_replica,
                                      .stage = v->number,
                                      .device = v->rank.devices[0],
                                      .weights_bytes = m->weights_bytes,
                                      .activations_bytes = resident / ranks * v->cache_bytes,
                                      .overhead_bytes = m->outside_bytes + space,
                                      .buffers_bytes = space,
                                      .limit_bytes = m->limit_bytes - m->reserve_bytes,
                                      .in_flight = (int)ceil(resident)};
        x->overhead_bytes += m->fragmentation_frac * (x->weights_bytes + x->activations_bytes);
        x->peak_bytes = x->weights_bytes + x->activations_bytes + x->overhead_bytes;
        out->serving->stages[i].cache_bytes = x->activations_bytes;
        /* above cache_mark_frac no request is accepted, so those in flight must fit below it */
        double kept_free = x->activations_bytes * (1 / l->plan->cache_mark_frac - 1);
        double over = x->peak_bytes + kept_free * (1 + m->fragmentation_frac) - x->limit_bytes;
        if (over > 0) {
            char where[64], need[HV_FMT_CAP], cache[HV_FMT_CAP], limit[HV_FMT_CAP], by[HV_FMT_CAP];
            (void)snprintf(where, sizeof where, "replicas[%zu].stages[%zu]", v->i_replica,
                           v->number);
            hv_finding_add(
                l->findings, HV_V_MEMORY, over, where,
                "stage %zu needs %s, of which %s hold the cache of %d requests in flight, and has "
                "%s%s: %s too much; use less flow, fewer layers or a smaller batch",
                v->number, hv_fmt_bytes(need, sizeof need, x->peak_bytes),
                hv_fmt_bytes(cache, sizeof cache, x->activations_bytes), x->in_flight,
                hv_fmt_bytes(limit, sizeof limit, x->limit_bytes),
                kept_free > 0 ? ", part of which cache_mark_frac keeps free" : "",
                hv_fmt_bytes(by, sizeof by, over));
        }
    }
}
