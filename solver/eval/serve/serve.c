/**
 * Judge of serving plans: capacity of every stage and every link, the flow through them, the time
 * of a request and the memory of its cache. The maximum flow over stages and links follows Helix
 * (Mei et al., ASPLOS'25, section 4.3).
 *
 * A request is one sequence of the job: a prompt, then `output` tokens generated one by one. A
 * stage takes `micro_batch` of them at a time: P seconds for the prompts, D for the next token of
 * each, priced half-way through the output (the price is linear in the tokens seen). So all its
 * copies together compute copies · batch · sequence / (P + output · D) tokens per second, prompt
 * and output alike.
 */
#include "solver/cost/device/efficiency.h"
#include "solver/eval/serve/serve_int.h"

#include <stdio.h>

/** Keys and values of one token of one block that one device keeps, in values. */
static double cache_values(const struct hv_block *b, double tp)
{
    if (b->heads == 0) {
        return 0;
    }
    if (b->mla.kv_rank > 0) { /* the latent is whole on every rank */
        return b->mla.kv_rank + b->mla.rope_dim;
    }
    return 2 * ceil(b->kv_heads / tp) * b->head_dim;
}

/** Bytes of the cache of one whole sequence for half blocks of a stage, on one device. */
static double cache_bytes(const struct hv__lowered *l, const struct hv_stage *s)
{
    const struct hv_job *job = hv_cost_job(l->k);
    double bytes = 0;
    for (size_t k = 0; k < s->n_ranges; k++) {
        for (int h = s->ranges[k].from2 + s->ranges[k].from2 % 2; h < s->ranges[k].to2; h += 2) {
            const struct hv_model_leaf *leaf = &l->leaves.items[hv__leaf_of(l, (size_t)h / 2)];
            if (leaf->model->kind != HV_MODEL_TRANSFORMER || leaf->model->patch_tokens > 0) {
                continue;
            }
            const struct hv_block *b = &leaf->model->blocks[(size_t)h / 2 - leaf->first];
            double tokens = (double)job->sequence;
            tokens = b->window > 0 && b->window < tokens ? b->window : tokens;
            bytes += tokens * cache_values(b, s->tp.degree) * hv_job_activation_bytes(job);
        }
    }
    return bytes / s->cp.degree;
}

/** Longest forward pass over the data-parallel ranks of a stage; `hop_bytes`, where asked for, is
 * what all of them hand on. */
static enum hv_status forward_s(const struct hv__lowered *l, const struct hv__server *v,
                                const struct hv__shape *shape, double *out, double *hop_bytes,
                                struct hv_err *err)
{
    *out = 0;
    if (hop_bytes != NULL) {
        *hop_bytes = 0;
    }
    for (size_t d = 0; d < v->rank.n_dp; d++) {
        double n = hv__rank_sequences(&v->rank, v->stage, shape->sequences, d);
        struct hv_stage_query q = {.plan = l->plan,
                                   .replica = v->entry,
                                   .stage = v->number,
                                   .dp_rank = (int)d,
                                   .sequences = n,
                                   .tokens = shape->tokens,
                                   .context = shape->context};
        struct hv_pass pass;
        enum hv_status st = n > 0 ? hv_cost_pass(l->k, &q, &pass, err) : HV_OK;
        if (st != HV_OK) {
            return st;
        }
        *out = n > 0 ? fmax(*out, pass.forward_s) : *out;
        if (hop_bytes != NULL && n > 0) {
            *hop_bytes += pass.hop_bytes;
        }
    }
    return HV_OK;
}

/** Rate at which the slowest device of a stage reads its memory. */
static double memory_bytes_per_s(const struct hv__lowered *l, const struct hv__server *v)
{
    double slowest = HUGE_VAL;
    for (size_t i = 0; i < v->rank.n_devices; i++) {
        struct hv_device_ref ref = hv_cluster_device(hv_cost_cluster(l->k), v->rank.devices[i]);
        slowest =
            fmin(slowest, hv_efficiency_of(ref.kind, hv_cost_job(l->k)->precision).bytes_per_s);
    }
    return slowest;
}

/** One pass that generates a token of every sequence: the products of single rows, at least the
 * time that all weights take through the memory, and the cache of the tokens before, which is read
 * once. */
static enum hv_status price_token(const struct hv__lowered *l, double context, struct hv__server *v,
                                  struct hv_err *err)
{
    struct hv__shape next = {.sequences = v->batch, .tokens = 1};
    double rate = memory_bytes_per_s(l, v), sequences = v->batch / (double)v->rank.n_dp;
    enum hv_status st = forward_s(l, v, &next, &v->own_token_s, NULL, err);
    double cache_s =
        sequences * v->cache_bytes * context / (double)hv_cost_job(l->k)->sequence / rate;
    v->token_s = fmax(v->own_token_s, v->memory.weights_bytes / rate) + cache_s;
    v->own_token_s += cache_s;
    return st;
}

/** Capacity of a stage, and its memory before any request. */
static enum hv_status price_server(const struct hv__lowered *l, double output, struct hv__server *v,
                                   struct hv_err *err)
{
    const struct hv_job *job = hv_cost_job(l->k);
    double prompt = (double)job->sequence - output;
    struct hv_stage_query q = {.plan = l->plan, .replica = v->entry, .stage = v->number};
    enum hv_status st = hv_cost_memory(l->k, &q, &v->memory, err);
    if (st != HV_OK) {
        return st;
    }
    v->cache_bytes = cache_bytes(l, v->stage);
    struct hv__shape prompts = {.sequences = v->batch, .tokens = prompt};
    double bytes = 0;
    st = forward_s(l, v, &prompts, &v->prompt_s, &bytes, err);
    if (st == HV_OK && output > 0) {
        st = price_token(l, prompt + output / 2, v, err);
    }
    v->token_bytes = bytes / (v->batch * prompt);
    v->capacity_tokens_per_s =
        v->entry->count * v->batch * (double)job->sequence / (v->prompt_s + output * v->token_s);
    return st;
}

/** First and last half block that a stage computes. */
static void ends_of(const struct hv_stage *s, int *from2, int *to2)
{
    *from2 = s->ranges[0].from2;
    *to2 = s->ranges[0].to2;
    for (size_t i = 1; i < s->n_ranges; i++) {
        *from2 = s->ranges[i].from2 < *from2 ? s->ranges[i].from2 : *from2;
        *to2 = s->ranges[i].to2 > *to2 ? s->ranges[i].to2 : *to2;
    }
}

/** Every stage of every entry as a server. Embedding and head go with the first and last block. */
static enum hv_status list_servers(const struct hv__lowered *l, struct hv__servers *all,
                                   struct hv_err *err)
{
    size_t most = 0;
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        most += l->plan->replicas[i].n_stages;
    }
    all->items = hv_arena_new(l->arena, struct hv__server, most + 1);
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        struct hv_replica *r = hv__copy_replica(l, &l->plan->replicas[i]);
        for (size_t k = 0; k < r->n_stages; k++) {
            struct hv__server *v = &all->items[all->n++];
            struct hv_stage *s = &r->stages[k];
            *v = (struct hv__server){.entry = r, .stage = s, .i_replica = i, .number = k};
            ends_of(s, &v->from2, &v->to2);
            s->embedding = s->embedding < 0 ? v->from2 == 0 : s->embedding;
            s->head = s->head < 0 ? v->to2 == all->n_halves : s->head;
            s->zero = (struct hv_zero){.prefetch = 1, .reshard = true};
            v->batch = hv_stage_micro_batch(l->plan, r, s);
            hv__fill_rank(l, r, k, 0, &v->rank);
            enum hv_status st = price_server(l, all->output, v, err);
            if (st != HV_OK) {
                return st;
            }
        }
    }
    return HV_OK;
}

/* ---- the bound ------------------------------------------------------------------------------- */

/** Host work of a pass on the slowest device of a stage; measured layers hold it. */
static double host_s(const struct hv__lowered *l, const struct hv__server *v, size_t block)
{
    double most = 0;
    if (l->leaves.items[hv__leaf_of(l, block)].model->kind != HV_MODEL_TRANSFORMER) {
        return 0;
    }
    for (size_t d = 0; d < v->rank.n_devices; d++) {
        const struct hv_device_kind *kind =
            hv_cluster_device(hv_cost_cluster(l->k), v->rank.devices[d]).kind;
        most = fmax(most, hv_device_calibration(kind)->v[HV_CAL_PASS_US] * HV_US);
    }
    return most;
}

/** Least seconds that a stage with all its copies spends on one token of one layer of a class:
 * without host work, and without memory time, which layers together may hide. */
static enum hv_status layer_s(const struct hv__lowered *l, const struct hv__servers *all, size_t i,
                              unsigned cls, double *out, struct hv_err *err)
{
    struct hv__server one = all->items[i];
    struct hv_replica *r = hv__copy_replica(l, one.entry);
    size_t block = hv_cost_class_block(l->k, cls);
    struct hv_range range = {2 * (int)block, 2 * (int)block + 2};
    one.entry = r;
    one.stage = &r->stages[one.number];
    one.stage->embedding = one.stage->head = 0;
    one.stage->ranges = &range;
    one.stage->n_ranges = 1;
    enum hv_status st = price_server(l, all->output, &one, err);
    double passes = 1 + (one.own_token_s > 0 ? all->output : 0);
    double batch_s = one.prompt_s + all->output * one.own_token_s - passes * host_s(l, &one, block);
    *out = fmax(batch_s, 0) / (r->count * one.batch * (double)hv_cost_job(l->k)->sequence);
    return st;
}

/** Upper bound of the tokens per second of any placement on these stages' devices: let a layer of
 * class c be worth u_c, Σ u_c = 1 over all layers; a token earns 1 in all, a stage at most max_c
 * u_c / w_c per second, w_c its seconds for one token of c. u_c is the mean share of c in all
 * stages' times; any other choice gives a valid bound too (weak duality). Embedding, head, links
 * and memory are not counted. */
static enum hv_status add_bound(const struct hv__lowered *l, const struct hv__servers *all,
                                struct hv_serving *out, struct hv_err *err)
{
    unsigned n = hv_cost_n_classes(l->k);
    double *worth = hv_arena_new(l->arena, double, n + 1), sum = 0;
    double *own = hv_arena_new(l->arena, double, n * all->n + 1);
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < all->n; i++) {
        for (unsigned c = 0; st == HV_OK && c < n; c++) {
            st = layer_s(l, all, i, c, &own[i * n + c], err);
            worth[c] += own[i * n + c];
        }
    }
    for (size_t b = 0; b < hv_cost_model(l->k)->n_blocks; b++) {
        sum += worth[hv_cost_block_class(l->k, b)];
    }
    for (size_t i = 0; i < all->n; i++) {
        double most = 0;
        for (unsigned c = 0; c < n; c++) {
            double u = worth[c] / sum;
            most = fmax(most, own[i * n + c] > 0 ? u / own[i * n + c] : u > 0 ? HUGE_VAL : 0);
        }
        out->bound_tokens_per_s += most;
    }
    out->bound_why = hv_arena_printf(l->arena,
                                     "the devices of all %zu stages compute layers all the time, "
                                     "and links, embedding, head and memory take no time",
                                     all->n);
    return st;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/** Mean latency over the flow: a token passes each stage with a probability equal to the stage's
 * share of the flow, which is exact for every decomposition of the flow into paths. */
static void add_latency(const struct hv__lowered *l, const struct hv__servers *all,
                        struct hv_serving *out)
{
    double prompt = (double)hv_cost_job(l->k)->sequence - all->output;
    for (size_t i = 0; i < all->n; i++) {
        const struct hv__server *v = &all->items[i];
        out->first_token_s += v->flow_tokens_per_s / all->total * v->prompt_s;
        out->next_token_s += v->flow_tokens_per_s / all->total * v->token_s;
    }
    for (size_t e = 0; e < all->n_flow; e++) {
        const struct hv_plan_flow *f = &all->flow[e];
        if (f->from < 0 || f->to < 0 || f->from == f->to || !(f->tokens_per_s > 0)) {
            continue;
        }
        const struct hv__server *a = &all->items[f->from], *b = &all->items[f->to];
        out->first_token_s += f->tokens_per_s / all->total * hv__hop_s(l, a, b, prompt);
        if (all->output > 0) {
            out->next_token_s += f->tokens_per_s / all->total * hv__hop_s(l, a, b, 1);
        }
    }
    out->request_s = out->first_token_s + fmax(0, all->output - 1) * out->next_token_s;
    out->requests_per_s = all->total / (double)hv_cost_job(l->k)->sequence;
    out->requests_in_flight = out->requests_per_s * out->request_s;
}

static void add_stages(const struct hv__lowered *l, const struct hv__servers *all,
                       struct hv_serving *s)
{
    s->n_stages = all->n;
    s->stages = hv_arena_new(l->arena, struct hv_serve_stage, all->n + 1);
    for (size_t i = 0; i < all->n; i++) {
        const struct hv__server *v = &all->items[i];
        s->stages[i] = (struct hv_serve_stage){.replica = v->i_replica,
                                               .stage = v->number,
                                               .prompt_s = v->prompt_s,
                                               .token_s = v->token_s,
                                               .capacity_tokens_per_s = v->capacity_tokens_per_s,
                                               .flow_tokens_per_s = v->flow_tokens_per_s};
    }
}

static void add_figures(const struct hv__lowered *l, const struct hv__servers *all,
                        struct hv_metrics *m)
{
    const struct hv_job *job = hv_cost_job(l->k);
    double peak = 0, power_w = 0;
    m->tokens_per_s = all->total;
    m->exact = true;
    (void)hv__use_of(l, &m->usd_per_h, &peak, &power_w);
    m->usd_per_mtoken = all->total > 0 ? m->usd_per_h / 3600 / all->total * 1e6 : HV_UNKNOWN;
    m->mfu = hv_model_forward_flops(hv_cost_model(l->k), (double)job->sequence, true) * all->total /
             (double)job->sequence / peak;
    m->n_devices_used = 0;
    for (size_t i = 0; i < all->n; i++) {
        m->n_devices_used += all->items[i].stage->n_devices;
    }
}

enum hv_status hv__serve(const struct hv__lowered *l, bool queue, struct hv_verdict *out,
                         struct hv_err *err)
{
    const struct hv_model *m = hv_cost_model(l->k);
    struct hv__servers all = {.n_halves = 2 * (int)m->n_blocks,
                              .output = (double)hv_job_output_tokens(hv_cost_job(l->k)),
                              .given = l->plan->n_flow > 0};
    if (!hv_model_has_transformer(m)) {
        all.output = 0; /* measured layers give the time of a whole sequence */
    }
    struct hv_serving *s = hv_arena_new(l->arena, struct hv_serving, 1);
    s->output_tokens = all.output;
    enum hv_status st = list_servers(l, &all, err);
    st = st == HV_OK ? hv__serve_flow(l, &all, err) : st;
    st = st == HV_OK ? add_bound(l, &all, s, err) : st;
    if (st != HV_OK) {
        return st;
    }
    out->serving = s;
    if (hv__enters_half_way(&all)) {
        hv__add_approximated(
            out, l->arena,
            "flow: tokens that enter a stage behind its first layer are timed as if they "
            "passed all of its layers");
    }
    if (all.scaled) {
        hv__add_approximated(
            out, l->arena,
            "flow: the maximum flow exceeds the bandwidth of a node's NICs, so all of it "
            "is scaled down");
    }
    s->max_tokens_per_s = all.most;
    s->flow = all.flow;
    s->n_flow = all.n_flow;
    add_stages(l, &all, s);
    if (all.total > 0) {
        add_latency(l, &all, s);
        if (queue) {
            hv__serve_queue(l, &all, s);
        }
    }
    hv__serve_memory(l, &all, out);
    add_figures(l, &all, &out->metrics);
    return HV_OK;
}
