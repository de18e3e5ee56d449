/** Activations that move between devices, through the judge: plain links and measured layers, by
 * hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "solver/base/units.h"
#include "tests/eval_fixture.h"

/** Four stages of one layer each: forward 1 ms, backward 2 ms, 10 MB kept per micro-batch. */
struct chain {
    bool one_node;    /**< four devices of one node, else a node each */
    double gbps;      /**< of every link, plain, no latency */
    double output_mb; /**< sent to the next stage */
    const char *schedule;
    const char *stage; /**< further members of the first stage */
    const char *more;  /**< further members of a node */
};

/** Judges six micro-batches; verdict and timeline live in the arena. */
static struct hv_verdict judge_chain(const struct chain *x, struct hv_arena *a)
{
    char cluster[1024], model[2048], layers[1024], body[1024];
    char link[128];
    (void)snprintf(link, sizeof link,
                   "{\"%sbandwidth_GBps\":%.17g,\"latency_us\":0,\"curve\":\"plain\"}",
                   x->one_node ? "kind\":\"nvlink\",\"" : "", x->gbps);
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"chain\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":%d,\"device\":\"P\",\"devices\":%d,\"%s\":%s%s}],\"devices\":{\"P\":{"
                   "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
                   "\"pcie_GBps\":10,\"fabric\":\"f\",\"rates\":\"plain\"}}}",
                   x->one_node ? 1 : 4, x->one_node ? 4 : 1, x->one_node ? "intra" : "nic", link,
                   x->more != NULL ? x->more : "");
    size_t at = 0;
    for (int i = 0; i < 4; i++) {
        at += (size_t)snprintf(layers + at, sizeof layers - at,
                               "%s{\"forward_ms\":{\"P\":1},\"backward_ms\":{\"P\":2},"
                               "\"parameter_bytes\":0,\"activation_bytes\":1e7,"
                               "\"output_bytes\":%.17g}",
                               i > 0 ? "," : "", x->output_mb * 1e6);
    }
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\","
                   "\"layers\":[%s]}",
                   layers);
    at = (size_t)snprintf(body, sizeof body,
                          "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":6,\"stages\":[");
    for (int i = 0; i < 4; i++) {
        at += (size_t)snprintf(body + at, sizeof body - at,
                               "%s{\"devices\":\"a[%d].%d\",\"layers\":[%d,%d]%s}",
                               i > 0 ? "," : "", x->one_node ? 0 : i, x->one_node ? i : 0, i, i + 1,
                               i == 0 && x->stage != NULL ? x->stage : "");
    }
    (void)snprintf(body + at, sizeof body - at, "]}],\"schedule\":{\"name\":\"%s\"}", x->schedule);
    struct world w;
    open_world(&w, cluster, model,
               "{\"format\":\"hetviz.job/1\",\"global_batch\":6,\"sequence\":1,\"precision\":"
               "\"fp32\",\"optimizer\":\"none\"}");
    struct hv_verdict v = judge(&w, a, true, body);
    close_world(&w);
    return v;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fabs(want) + 1e-12)) {
        fail_msg("%.12g instead of %.12g", got, want);
    }
}

static double ms_of(const struct chain *x)
{
    struct hv_arena a = {0};
    double ms = judge_chain(x, &a).metrics.pipeline_s * 1e3;
    hv_arena_free(&a);
    return ms;
}

/** The drawn moves of a kind, in the order of their lanes: start and end in ms. */
static size_t list_moves(const struct hv_timeline *t, enum hv_span_kind kind, double (*out)[2])
{
    size_t n = 0;
    for (size_t k = 0; k < t->n_links; k++) {
        const struct hv_lane *l = &t->lanes.items[t->links[k].lane];
        for (size_t i = 0; i < l->n_spans; i++) {
            if (l->spans[i].kind == (uint8_t)kind) {
                out[n][0] = l->spans[i].start_s * 1e3;
                out[n++][1] = l->spans[i].end_s * 1e3;
            }
        }
    }
    return n;
}

/**
 * BPipe (ICML 2023): rank 0 keeps three micro-batches, rank 3 its others. A transfer of 10 MB at 10
 * GB/s takes 1 ms and hides in the bubbles: (m + p - 1)(F + B) = 27 ms, as 1F1B. At 0.5 GB/s it
 * takes 20 ms, and the lanes of rank 0 set the pace: its last backward ends at 108 ms
 * (test_sim_moves has the steps).
 */
static void bpipe_moves_over_the_nics(void **state)
{
    (void)state;
    assert_near(ms_of(&(struct chain){.gbps = 10, .schedule = "1f1b"}), 27);
    assert_near(ms_of(&(struct chain){.gbps = 10, .schedule = "bpipe"}), 27);
    assert_near(ms_of(&(struct chain){.gbps = 0.5, .schedule = "1f1b"}), 27);
    assert_near(ms_of(&(struct chain){.gbps = 0.5, .schedule = "bpipe"}), 108);
    assert_near(ms_of(&(struct chain){.gbps = 0.5, .one_node = true, .schedule = "bpipe"}), 108);
}

/** Both ends hold what is on its way: three micro-batches of 10 MB on ranks 0, 1 and 3, two on rank
 * 2; the counts in flight are those of the schedule. */
static void bpipe_memory_at_both_ends(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict v = judge_chain(&(struct chain){.gbps = 10, .schedule = "bpipe"}, &a);
    static const double held[] = {3, 3, 2, 3};
    static const int in_flight[] = {3, 3, 2, 2};
    for (int i = 0; i < 4; i++) {
        assert_near(v.memory[i].activations_bytes + v.memory[i].transient_bytes, held[i] * 1e7);
        assert_int_equal(v.memory[i].in_flight, in_flight[i]);
    }
    assert_int_equal(v.n_approximated, 0);
    hv_arena_free(&a);
}

/** The drawn iteration has the six moves of rank 0, where they are by hand. */
static void moves_are_drawn(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict v = judge_chain(&(struct chain){.gbps = 10, .schedule = "bpipe"}, &a);
    double at[64][2];
    assert_int_equal(list_moves(v.timeline, HV_SPAN_LEAVE, at), 3);
    assert_near(at[0][0], 3);
    assert_near(at[0][1], 4);
    assert_near(at[1][0], 5);
    assert_near(at[1][1], 6);
    assert_int_equal(list_moves(v.timeline, HV_SPAN_RETURN, at), 3);
    assert_near(at[0][0], 6);
    assert_near(at[0][1], 7);
    hv_arena_free(&a);
}

/**
 * In one node the eviction of micro-batch 2 and its output leave device 0 over one link: 10 MB each
 * from the end of its forward at 3 ms, both there at 5 ms instead of 4. Over NICs the same.
 */
static void moves_share_the_link_with_outputs(void **state)
{
    (void)state;
    for (int one_node = 0; one_node < 2; one_node++) {
        struct hv_arena a = {0};
        struct hv_verdict v = judge_chain(
            &(struct chain){.gbps = 10, .one_node = one_node, .output_mb = 10, .schedule = "bpipe"},
            &a);
        double at[64][2];
        assert_int_equal(list_moves(v.timeline, HV_SPAN_LEAVE, at), 3);
        assert_near(at[0][0], 3);
        assert_near(at[0][1], 5);
        const struct hv_lane *l = &v.timeline->lanes.items[v.timeline->rows[0].compute_lane];
        assert_near(l->spans[3].start_s * 1e3, 5); /* the fourth forward needs the place */
        hv_arena_free(&a);
    }
}

/** A faster link is never slower, and none is faster than 1F1B. */
static void faster_links_are_not_slower(void **state)
{
    (void)state;
    double before = HUGE_VAL;
    for (double gbps = 0.1; gbps < 200; gbps *= 2) {
        double t = ms_of(&(struct chain){.gbps = gbps, .output_mb = 1, .schedule = "bpipe"});
        double least = ms_of(&(struct chain){.gbps = gbps, .output_mb = 1, .schedule = "1f1b"});
        assert_true(t <= before * (1 + 1e-9) && t >= least * (1 - 1e-9));
        before = t;
    }
}

/**
 * Stage 0 offloads all of its activations to its host over a PCIe link of 10 GB/s (plain rates: all
 * of it): copies of 1 ms end with their forwards and come back beside the operation before their
 * backward. Nothing is longer than 1F1B, and device 0 holds two micro-batches, one that leaves and
 * one that comes back, instead of four: one layer is all of the stage.
 */
static void copies_to_the_host_hide(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct chain x = {
        .gbps = 10, .schedule = "1f1b", .stage = ",\"offload\":[{\"what\":\"activations\"}]"};
    struct hv_verdict v = judge_chain(&x, &a);
    assert_near(v.metrics.pipeline_s * 1e3, 27);
    assert_near(v.memory[0].activations_bytes + v.memory[0].transient_bytes, 2e7);
    assert_near(v.memory[1].activations_bytes + v.memory[1].transient_bytes, 3e7);
    double at[64][2];
    assert_int_equal(list_moves(v.timeline, HV_SPAN_LEAVE, at), 6);
    for (int i = 0; i < 4; i++) { /* forwards from 0, 1, 2, 3 ms */
        assert_near(at[i][0], i);
        assert_near(at[i][1], i + 1);
    }
    assert_int_equal(list_moves(v.timeline, HV_SPAN_RETURN, at), 6);
    assert_near(at[0][0], 3); /* the first backward runs from 10 ms; before it F3, from 3 */
    assert_near(at[0][1], 4);
    hv_arena_free(&a);
}

/**
 * One device, F and B of one micro-batch after the other. At 1 GB/s of PCIe a copy takes 10 ms: out
 * from 0 to 10 ms, back from 10 to 20 ms, when the backward ends and the next forward starts. At 5
 * GB/s it takes 2 ms: out to 2 ms, back to 4 ms. From 10 GB/s on F + B = 3 ms hides both.
 */
static void slow_copies_set_the_pace(void **state)
{
    (void)state;
    static const double gbps[] = {1, 5, 10, 1000}, ms[] = {20, 4, 3, 3};
    for (int i = 0; i < 4; i++) {
        char cluster[512];
        (void)snprintf(
            cluster, sizeof cluster,
            "{\"format\":\"hetviz.cluster/1\",\"name\":\"one\",\"nodes\":[{\"name\":\"a\","
            "\"count\":1,\"device\":\"P\",\"devices\":1}],\"devices\":{\"P\":{"
            "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
            "\"pcie_GBps\":%.17g,\"rates\":\"plain\"}}}",
            gbps[i]);
        struct world w;
        struct hv_arena a = {0};
        open_world(&w, cluster,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":[{"
                   "\"forward_ms\":{\"P\":1},\"backward_ms\":{\"P\":2},\"parameter_bytes\":0,"
                   "\"activation_bytes\":1e7,\"output_bytes\":0}]}",
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":6,\"sequence\":1,\"precision\":"
                   "\"fp32\",\"optimizer\":\"none\"}");
        struct hv_verdict v =
            judge(&w, &a, false,
                  "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":6,\"stages\":[{\"devices\":"
                  "\"a[0].0\",\"layers\":[0,1],\"offload\":[{\"what\":\"activations\"}]}]}],"
                  "\"schedule\":{\"name\":\"1f1b\"}");
        assert_near(v.metrics.pipeline_s * 1e3, 6 * ms[i]);
        hv_arena_free(&a);
        close_world(&w);
    }
}

/**
 * The same on two data-parallel devices that gather 40 MB of weights beside the next forward: half
 * of them come over 10 GB/s in 2 ms, and the first forward, with all copies behind it, waits for
 * that. Without an offload it is 2 + 6 · 3 ms.
 */
static void copies_set_out_behind_late_gathers(void **state)
{
    (void)state;
    static const struct {
        double gbps;
        const char *offload;
        double ms;
    } cases[] = {{10, "", 3},
                 {1, ",\"offload\":[{\"what\":\"activations\"}]", 20},
                 {5, ",\"offload\":[{\"what\":\"activations\"}]", 4},
                 {10, ",\"offload\":[{\"what\":\"activations\"}]", 3}};
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        char cluster[512], plan[512];
        (void)snprintf(
            cluster, sizeof cluster,
            "{\"format\":\"hetviz.cluster/1\",\"name\":\"two\",\"nodes\":[{\"name\":\"a\","
            "\"count\":2,\"device\":\"P\",\"devices\":1,\"nic\":{\"bandwidth_GBps\":10,"
            "\"latency_us\":0,\"curve\":\"plain\"}}],\"devices\":{\"P\":{"
            "\"memory_GiB\":80,\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},"
            "\"pcie_GBps\":%.17g,\"rates\":\"plain\"}}}",
            cases[i].gbps);
        (void)snprintf(plan, sizeof plan,
                       "\"micro_batch\":2,\"replicas\":[{\"micro_batches\":6,\"stages\":[{"
                       "\"devices\":\"a[0-1].0\",\"layers\":[0,1],\"dp\":2,\"zero\":{\"stage\":1,"
                       "\"gather_at\":\"next_forward\"}%s}]}],\"schedule\":{\"name\":\"1f1b\"},"
                       "\"sync\":{\"overlap\":false}",
                       cases[i].offload);
        struct world w;
        struct hv_arena a = {0};
        open_world(&w, cluster,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\",\"layers\":[{"
                   "\"forward_ms\":{\"P\":1},\"backward_ms\":{\"P\":2},\"parameter_bytes\":4e7,"
                   "\"activation_bytes\":1e7,\"output_bytes\":0}]}",
                   "{\"format\":\"hetviz.job/1\",\"global_batch\":12,\"sequence\":1,\"precision\":"
                   "\"fp32\",\"optimizer\":\"none\"}");
        struct hv_verdict v = judge(&w, &a, false, plan);
        assert_near(v.metrics.pipeline_s * 1e3, 2 + 6 * cases[i].ms);
        hv_arena_free(&a);
        close_world(&w);
    }
}

/** One device of a node computes; its offload goes to two others, or to the host. */
static struct hv_verdict judge_one(const char *node, const char *device, const char *stage,
                                   const char *layer, struct hv_arena *a)
{
    char cluster[1024], model[512], body[512];
    (void)snprintf(cluster, sizeof cluster,
                   "{\"format\":\"hetviz.cluster/1\",\"name\":\"one\",\"nodes\":[{\"name\":\"a\","
                   "\"count\":1,\"device\":\"P\",\"devices\":4,\"intra\":{\"kind\":\"nvswitch\","
                   "\"bandwidth_GBps\":10,\"latency_us\":0,\"curve\":\"plain\"}%s}],\"devices\":{"
                   "\"P\":{\"bandwidth_GBps\":1000,\"dense_TFLOPS\":{\"fp32\":100},\"fabric\":"
                   "\"f\",\"pcie_GBps\":10,\"rates\":\"plain\",%s}}}",
                   node, device);
    (void)snprintf(model, sizeof model,
                   "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"layers\","
                   "\"layers\":[{\"forward_ms\":{\"P\":1},\"backward_ms\":{\"P\":2},"
                   "\"output_bytes\":0,%s}]}",
                   layer);
    (void)snprintf(body, sizeof body,
                   "\"micro_batch\":1,\"replicas\":[{\"micro_batches\":4,\"stages\":[{\"devices\":"
                   "\"a[0].0\",\"layers\":[0,1],\"offload\":[%s]}]}],\"schedule\":{\"name\":"
                   "\"gpipe\"}",
                   stage);
    struct world w;
    open_world(&w, cluster, model,
               "{\"format\":\"hetviz.job/1\",\"global_batch\":4,\"sequence\":1,\"precision\":"
               "\"fp32\",\"optimizer\":\"none\",\"memory_reserve_GiB\":0}");
    struct hv_verdict v = judge(&w, a, false, body);
    close_world(&w);
    return v;
}

static const char ten_mb[] = "\"parameter_bytes\":0,\"activation_bytes\":1e7";

/**
 * GPipe: four forwards, then four backwards, 10 MB of activations each, three quarters of them to
 * two peers over one link of 10 GB/s. All of it leaves before the first comes back, so that each
 * peer keeps 4 × 7.5 / 2 = 15 MB at one time.
 */
static void peers_keep_activations(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_verdict v = judge_one(
        "", "\"memory_GiB\":80",
        "{\"what\":\"activations\",\"frac\":0.75,\"to\":[\"a[0].1\",\"a[0].2\"]}", ten_mb, &a);
    assert_int_equal(v.n_kept, 2);
    assert_int_equal(v.n_approximated, 0);
    assert_int_equal(v.findings.n, 0);
    for (size_t i = 0; i < 2; i++) {
        assert_false(v.kept[i].host);
        assert_string_equal(v.kept[i].place, i == 0 ? "a[0].1" : "a[0].2");
        assert_near(v.kept[i].kept_bytes, 15e6);
        assert_near(v.kept[i].limit_bytes, 80 * HV_GIB);
    }
    hv_arena_free(&a);
}

/** A peer with too little memory is refused, by name and by how much. */
static void full_peers_are_refused(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    const char *layer = "\"parameter_bytes\":0,\"activation_bytes\":1e9";
    struct hv_verdict v = judge_one("", "\"memory_GiB\":1.5",
                                    "{\"what\":\"activations\",\"to\":[\"a[0].3\"]}", layer, &a);
    bool told = false;
    for (size_t i = 0; i < v.findings.n; i++) {
        const struct hv_violation *x = &v.findings.items[i];
        if (x->code == HV_V_MEMORY && strstr(x->text, "a[0].3 keeps") != NULL) {
            assert_near(x->by, 4e9 - 1.5 * HV_GIB);
            assert_string_equal(x->where, "replicas[0].stages[0].offload");
            told = true;
        }
    }
    assert_true(told);
    hv_arena_free(&a);
}

/** The host keeps 4 × 10 MB; its memory is checked where the cluster gives it, and where it does
 * not the verdict says so. */
static void hosts_have_a_capacity(void **state)
{
    (void)state;
    static const char *const nodes[] = {"", ",\"host_memory_GiB\":1", ",\"host_memory_GiB\":0.01"};
    for (int i = 0; i < 3; i++) {
        struct hv_arena a = {0};
        struct hv_verdict v =
            judge_one(nodes[i], "\"memory_GiB\":80", "{\"what\":\"activations\"}", ten_mb, &a);
        assert_int_equal(v.n_kept, 1);
        assert_true(v.kept[0].host);
        assert_string_equal(v.kept[0].place, "host of a[0]");
        assert_near(v.kept[0].kept_bytes, 4e7);
        assert_int_equal(v.n_approximated, i == 0);
        assert_int_equal(v.findings.n, i == 2);
        if (i == 2) {
            assert_near(v.findings.items[0].by, 4e7 - 0.01 * HV_GIB);
        }
        hv_arena_free(&a);
    }
}

/**
 * Half of what stage 0 keeps, 5 MB per micro-batch, lies on the device of stage 3, which has 10 MB
 * of its own from 3 ms on. The forwards of stage 0 run to 1, 2, 3 and 4 ms, and the first copy
 * comes back beside the fourth, until 3.5 ms, when the fourth leaves: at most three are away.
 */
static void a_stage_keeps_activations_of_another(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct chain x = {.one_node = true, .gbps = 10, .schedule = "1f1b"};
    struct hv_verdict none = judge_chain(&x, &a);
    x.stage = ",\"offload\":[{\"what\":\"activations\",\"frac\":0.5,\"to\":[\"a[0].3\"]}]";
    struct hv_verdict v = judge_chain(&x, &a);
    assert_int_equal(v.n_kept, 1);
    assert_near(v.kept[0].kept_bytes, 1.5e7);
    assert_near(v.memory[3].kept_bytes, 1.5e7);
    assert_near(v.memory[3].peak_bytes, none.memory[3].peak_bytes + 1.5e7);
    /* four halves that stay, one that leaves, one that comes back */
    assert_near(v.memory[0].activations_bytes + v.memory[0].transient_bytes, 3e7);
    hv_arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bpipe_moves_over_the_nics),
        cmocka_unit_test(bpipe_memory_at_both_ends),
        cmocka_unit_test(moves_are_drawn),
        cmocka_unit_test(moves_share_the_link_with_outputs),
        cmocka_unit_test(faster_links_are_not_slower),
        cmocka_unit_test(copies_to_the_host_hide),
        cmocka_unit_test(slow_copies_set_the_pace),
        cmocka_unit_test(copies_set_out_behind_late_gathers),
        cmocka_unit_test(peers_keep_activations),
        cmocka_unit_test(full_peers_are_refused),
        cmocka_unit_test(hosts_have_a_capacity),
        cmocka_unit_test(a_stage_keeps_activations_of_another),
    };
    return cmocka_run_group_tests_name("eval moves", tests, NULL, NULL);
}
