/** Reductions of gradients and all-to-alls of experts on one network: by hand, and against a replay
 * in steps of a millisecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "tests/pieces_fixture.h"

/** Largest number of layers of a random case. */
#define LAYERS_MOST 6

/** A layer; whole milliseconds. */
struct layer {
    bool experts;
    int work_ms;   /**< of its backward pass, without exchanges */
    int reduce_ms; /**< of its gradients */
};

/** Two ranks on two nodes, 1 GB/s between them; exchanges of `exchange_ms`, four of each layer with
 * experts, two of them in the backward pass. */
struct scene {
    struct layer layers[LAYERS_MOST];
    int n, exchange_ms, chunk_ms; /**< chunk_ms 0: buckets are whole */
    bool exchanges_first;
};

static size_t add_layer(char *out, size_t n, const struct layer *x, int exchange_ms)
{
    double reduce_bytes = x->reduce_ms * 1e6; /* two ranks send all of them once */
    if (!x->experts) {
        return (size_t)snprintf(out, n,
                                "\"forward_ms\":{\"P\":0},\"backward_ms\":{\"P\":%d},"
                                "\"parameter_bytes\":%.17g,\"activation_bytes\":0,"
                                "\"output_bytes\":0",
                                x->work_ms, reduce_bytes);
    }
    return (size_t)snprintf(out, n,
                            "\"expert_ms_per_token\":[0,%.17g],\"dispatch_bytes_per_token\":%d,"
                            "\"parameter_bytes\":%.17g,\"activation_bytes\":0,\"output_bytes\":0",
                            x->work_ms / 1000.0, 2000 * exchange_ms, reduce_bytes);
}

/** What the judge says, in milliseconds. */
static double judged_ms(const struct scene *c)
{
    char first[512], more[2048] = "", sync[256];
    size_t at = 0;
    (void)add_layer(first, sizeof first, &c->layers[0], c->exchange_ms);
    for (int i = 1; i < c->n; i++) {
        at += (size_t)snprintf(more + at, sizeof more - at, ",{");
        at += add_layer(more + at, sizeof more - at, &c->layers[i], c->exchange_ms);
        at += (size_t)snprintf(more + at, sizeof more - at, "}");
    }
    (void)snprintf(sync, sizeof sync,
                   "\"bucket_MiB\":0.001,\"priority\":\"%s\",\"chunk_MiB\":%.17g",
                   c->exchanges_first ? "after_all_to_all" : "fifo", c->chunk_ms * 1e6 / 1048576);
    const struct setting s = {.nodes = 2,
                              .each = 1,
                              .near_GBps = 1,
                              .nic_GBps = 1,
                              .sequence = 1000,
                              .layer = first,
                              .more = more,
                              .n_layers = c->n,
                              .stage = ",\"dp\":2,\"ep\":2,\"moe\":{\"all_to_all\":\"flat\"}",
                              .sync = sync};
    return time_ms(&s);
}

/** All-to-alls of 4 ms and 2 ms of work beside 12 ms of gradients that are there first (Li et al.
 * 2023, Lina: exchanges end at 16 and 22 instead of 4 and 10, and gradients at 20 where exchanges
 * go first). Forward exchanges take 8 ms and the layer above 2 ms before; at the end are 2 ms of
 * attention. Buckets that are not cut let the second exchange wait until 16. */
static void exchanges_wait_for_gradients(void **state)
{
    (void)state;
    struct scene c = {
        .layers = {{true, 4, 0}, {false, 2, 12}}, .n = 2, .exchange_ms = 4, .chunk_ms = 2};
    near_to(judged_ms(&c), 8 + 2 + (12 + 4 + 2 + 4 + 2), 1e-9);
    c.exchanges_first = true;
    near_to(judged_ms(&c), 8 + 2 + 20, 1e-9);
    c.chunk_ms = 0;
    near_to(judged_ms(&c), 8 + 2 + (16 + 4 + 2), 1e-9);
    c.layers[1].reduce_ms = 0;
    near_to(judged_ms(&c), 8 + 2 + (4 + 2 + 4 + 2), 1e-9);
}

/** Milliseconds of two stages on the same two nodes: the upper one has 12 ms of gradients, the
 * lower one the experts. */
static double two_stages_ms(const char *sync)
{
    char body[1024];
    (void)snprintf(
        body, sizeof body,
        "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":1,\"stages\":[{\"devices\":"
        "\"a[0-1].0\",\"layers\":[0,1],\"dp\":2,\"ep\":2,\"moe\":{\"all_to_all\":\"flat\"}"
        "},{\"devices\":\"a[0-1].1\",\"layers\":[1,2],\"dp\":2}]}],"
        "\"schedule\":{\"name\":\"1f1b\"},\"sync\":{%s}",
        sync);
    struct world w;
    struct hv_arena a = {0};
    open_world(&w,
               "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\","
               "\"count\":2,\"device\":\"P\",\"devices\":2,\"intra\":{\"kind\":\"nvlink\","
               "\"bandwidth_GBps\":1e6,\"latency_us\":0,\"curve\":\"plain\"},\"nic\":{"
               "\"bandwidth_GBps\":1,\"latency_us\":0,\"curve\":\"plain\"}}],\"devices\":{\"P\":{"
               "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
               "\"rates\":\"plain\"}}}",
               "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":[{"
               "\"expert_ms_per_token\":[0,0.004],\"dispatch_bytes_per_token\":8000,"
               "\"parameter_bytes\":0,\"activation_bytes\":0,\"output_bytes\":0},{"
               "\"forward_ms\":{\"P\":0},\"backward_ms\":{\"P\":2},\"parameter_bytes\":12e6,"
               "\"activation_bytes\":0,\"output_bytes\":0}]}",
               "{\"format\":\"hetviz.job/1\",\"global_batch\":2,\"sequence\":1000,"
               "\"precision\":\"fp32\",\"optimizer\":\"none\"}");
    double ms = judge(&w, &a, false, body).metrics.iteration_s * 1e3;
    hv_arena_free(&a);
    close_world(&w);
    return ms;
}

/** The same where the gradients are of another stage on the same nodes: both use their networks.
 */
static void stages_share_a_network(void **state)
{
    (void)state;
    near_to(two_stages_ms(""), 8 + 2 + (12 + 4 + 2 + 4 + 2), 1e-9);
    near_to(two_stages_ms("\"priority\":\"after_all_to_all\",\"chunk_MiB\":1.9073486328125"),
            8 + 2 + 20, 1e-9);
    near_to(two_stages_ms("\"overlap\":false"), 8 + 2 + (12 + 4 + 2 + 4 + 2), 1e-9);
}

/** Work, or an exchange, of the backward pass. */
struct step {
    bool exchange;
    int left_ms;
    int reduce_ms; /**< gradients that are there after it */
};

static int list_steps(const struct scene *c, struct step *out)
{
    int n = 0;
    for (int i = c->n - 1; i >= 0; i--) {
        const struct layer *x = &c->layers[i];
        if (!x->experts) {
            out[n++] = (struct step){false, x->work_ms, x->reduce_ms};
            continue;
        }
        out[n++] = (struct step){true, c->exchange_ms, 0};
        out[n++] = (struct step){false, x->work_ms / 2, 0};
        out[n++] = (struct step){true, c->exchange_ms, 0};
        out[n++] = (struct step){false, x->work_ms / 2, x->reduce_ms};
    }
    return n;
}

/** What uses the network. */
enum user { NOBODY, EXCHANGE, BUCKET };

/** Who may use the network next: first come, first served, and the bucket of two; or the exchange
 * whenever it asks. */
static enum user next_user(const struct scene *c, int asked_at, const int *ready_at, int i_bucket,
                           int n_buckets)
{
    bool asks = asked_at >= 0, bucket = i_bucket < n_buckets;
    if (asks && bucket && !c->exchanges_first) {
        return ready_at[i_bucket] <= asked_at ? BUCKET : EXCHANGE;
    }
    return asks ? EXCHANGE : bucket ? BUCKET : NOBODY;
}

/** Replays the backward pass millisecond by millisecond. */
static int replayed_ms(const struct scene *c)
{
    struct step steps[4 * LAYERS_MOST];
    int n = list_steps(c, steps), at = 0, now = 0, asked_at = -1;
    int ready_at[LAYERS_MOST], left_ms[LAYERS_MOST], n_buckets = 0, i_bucket = 0, held_ms = 0;
    enum user user = NOBODY;
    while (at < n || i_bucket < n_buckets) {
        while (at < n && steps[at].left_ms == 0) { /* what is done leads to the next step */
            if (steps[at].reduce_ms > 0) {
                ready_at[n_buckets] = now;
                left_ms[n_buckets++] = steps[at].reduce_ms;
            }
            at++;
        }
        bool wants = at < n && steps[at].exchange;
        asked_at = !wants ? -1 : asked_at >= 0 ? asked_at : now;
        if (held_ms == 0) {
            user = next_user(c, asked_at, ready_at, i_bucket, n_buckets);
            held_ms = user == EXCHANGE ? steps[at].left_ms : user == BUCKET ? left_ms[i_bucket] : 0;
            bool cut = user == BUCKET && c->chunk_ms > 0 && c->exchanges_first;
            held_ms = cut && c->chunk_ms < held_ms ? c->chunk_ms : held_ms;
        }
        if (at == n && i_bucket == n_buckets) {
            break;
        }
        now++;
        if (at < n && (!steps[at].exchange || user == EXCHANGE)) {
            steps[at].left_ms--;
            asked_at = steps[at].exchange && steps[at].left_ms == 0 ? -1 : asked_at;
        }
        held_ms -= held_ms > 0;
        if (user == BUCKET && --left_ms[i_bucket] == 0) {
            i_bucket++;
        }
        user = held_ms == 0 ? NOBODY : user;
    }
    return now;
}

static void as_the_replay_says(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 7);
    int later = 0;
    for (int k = 0; k < 400; k++) {
        struct scene c = {.n = 2 + (int)hv_rng_below(&rng, LAYERS_MOST - 1),
                          .exchange_ms = 1 + (int)hv_rng_below(&rng, 5),
                          .chunk_ms = (int)hv_rng_below(&rng, 4),
                          .exchanges_first = hv_rng_below(&rng, 2) == 1};
        int forward_ms = 0;
        for (int i = 0; i < c.n; i++) {
            struct layer *x = &c.layers[i];
            x->experts = i == 0 || hv_rng_below(&rng, 2) == 1;
            x->work_ms = 2 + 2 * (int)hv_rng_below(&rng, 4);
            x->reduce_ms = (int)hv_rng_below(&rng, 12);
            forward_ms += x->experts ? 2 * c.exchange_ms : 0;
        }
        double got = judged_ms(&c), want = forward_ms + replayed_ms(&c);
        if (fabs(got - want) > 1e-6) {
            for (int i = 0; i < c.n; i++) {
                print_message("layer %d: experts %d, work %d ms, gradients %d ms\n", i,
                              c.layers[i].experts, c.layers[i].work_ms, c.layers[i].reduce_ms);
            }
            fail_msg("case %d: %.9g ms instead of %.9g; exchanges of %d ms, %s, chunks of %d ms", k,
                     got, want, c.exchange_ms, c.exchanges_first ? "first" : "in order",
                     c.chunk_ms);
        }
        c.exchanges_first = !c.exchanges_first;
        later += replayed_ms(&c) + forward_ms != (int)want;
    }
    assert_true(later > 100); /* the order matters in many of them */
}

/** Buckets of a plan: their size, that of their chunks (0: they have none), and who goes first. */
struct buckets {
    double mib, chunk_mib;
    const char *priority;
};

/** Seconds of a mixture on two nodes whose gradients are in many small buckets: one size for all,
 * or a list that says the same `listed` times. Buckets of one size are run together, those of a
 * list one by one. */
static double small_buckets_s(struct world *w, const struct buckets *b, int listed)
{
    struct hv_str body = {0};
    struct hv_arena a = {0};
    hv_str_addf(&body,
                "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":4,\"stages\":["
                "{\"devices\":\"a[0-1].[0-1]\",\"layers\":[0,3],\"dp\":4,\"ep\":2},"
                "{\"devices\":\"a[0-1].[2-3]\",\"layers\":[3,6],\"dp\":4,\"ep\":2}]}],"
                "\"schedule\":{\"name\":\"1f1b\"},\"sync\":{\"priority\":\"%s\",",
                b->priority);
    if (b->chunk_mib > 0) {
        hv_str_addf(&body, "\"chunk_MiB\":%.17g,", b->chunk_mib);
    }
    hv_str_addf(&body, "\"bucket_MiB\":");
    for (int i = 0; i < listed; i++) {
        hv_str_addf(&body, "%c%.4g", i == 0 ? '[' : ',', b->mib);
    }
    hv_str_addf(&body, listed > 0 ? "]}" : "%.4g}", b->mib);
    double s = judge(w, &a, false, hv_str_cstr(&body)).metrics.iteration_s;
    hv_arena_free(&a);
    hv_str_free(&body);
    return s;
}

/** What is run together takes as long as what is run one by one, where exchanges cut runs short. */
static void runs_are_as_long_as_their_buckets(void **state)
{
    (void)state;
    struct world w;
    open_world(
        &w,
        "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":\"a\","
        "\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":4,\"nic\":{"
        "\"bandwidth_GBps\":12.5}}]}",
        "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":6,"
        "\"hidden\":1024,\"heads\":16,\"ffn\":2048,\"vocab\":32000,\"max_sequence\":2048,"
        "\"moe\":{\"experts\":4,\"top_k\":2,\"ffn\":1024}}",
        "{\"format\":\"hetviz.job/1\",\"global_batch\":8,\"sequence\":2048,"
        "\"precision\":\"bf16\",\"optimizer\":\"adam\"}");
    static const double sizes[] = {0.1, 0.37, 1, 5};
    static const char *const priorities[] = {"fifo", "after_all_to_all"};
    for (size_t p = 0; p < HV_COUNT(priorities); p++) {
        double last_s = 0;
        for (size_t i = 0; i < HV_COUNT(sizes); i++) {
            const struct buckets b = {sizes[i], 0, priorities[p]};
            double together_s = small_buckets_s(&w, &b, 0);
            near_to(together_s, small_buckets_s(&w, &b, 2000), 1e-9 * together_s);
            assert_true(together_s != last_s);
            last_s = together_s;
        }
    }
    close_world(&w);
}

/** The same for random networks, buckets and chunks, where streams of dense layers and of experts
 * contend for their ranks. */
static void random_runs_are_as_long_as_their_buckets(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 20);
    for (int k = 0; k < 40; k++) {
        struct world w;
        char cluster[512], model[512];
        (void)snprintf(cluster, sizeof cluster,
                       "{\"format\":\"hetviz.cluster/1\",\"name\":\"c\",\"nodes\":[{\"name\":"
                       "\"a\",\"count\":2,\"device\":\"A100-SXM-80GB\",\"devices\":4,\"nic\":{"
                       "\"bandwidth_GBps\":%d}}]}",
                       1 + (int)hv_rng_below(&rng, 60));
        (void)snprintf(model, sizeof model,
                       "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\","
                       "\"layers\":6,\"hidden\":%d,\"heads\":16,\"ffn\":2048,\"vocab\":32000,"
                       "\"max_sequence\":2048,\"moe\":{\"experts\":4,\"top_k\":2,\"ffn\":%d}}",
                       256 * (1 + (int)hv_rng_below(&rng, 4)),
                       256 * (1 + (int)hv_rng_below(&rng, 6)));
        double mib = 0.05 + 0.01 * (double)hv_rng_below(&rng, 200);
        bool fifo = hv_rng_below(&rng, 4) == 0;
        double chunk_mib = 0.02 * (double)(1 + hv_rng_below(&rng, 50));
        open_world(&w, cluster, model,
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":8,\"sequence\":2048,"
                   "\"precision\":\"bf16\",\"optimizer\":\"adam\"}");
        const struct buckets b = {mib, chunk_mib, fifo ? "fifo" : "after_all_to_all"};
        double together_s = small_buckets_s(&w, &b, 0);
        near_to(together_s, small_buckets_s(&w, &b, 2000), 1e-9 * together_s);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_wait_for_gradients),
        cmocka_unit_test(stages_share_a_network),
        cmocka_unit_test(as_the_replay_says),
        cmocka_unit_test(runs_are_as_long_as_their_buckets),
        cmocka_unit_test(random_runs_are_as_long_as_their_buckets),
    };
    return cmocka_run_group_tests_name("eval_in_turns", tests, NULL, NULL);
}
