/** Gates that choose experts by place: a limit on tokens that leave their node, and targets from
 * rank to rank; kernels that compute more rows than there are tokens. All by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/pieces_fixture.h"

/** Two nodes of two ranks with an expert each, 1000 tokens of 10 kB per rank: 100 GB/s inside,
 * 10 GB/s per rank outside, one after the other. Experts take 0.001 ms a token. */
static struct setting two_nodes(const char *stage)
{
    return (struct setting){.nodes = 2,
                            .each = 2,
                            .near_GBps = 100,
                            .nic_GBps = 10,
                            .sequence = 1000,
                            .layer = "\"expert_ms_per_token\":0.001,"
                                     "\"dispatch_bytes_per_token\":10000",
                            .stage = stage};
}

#define MOE(members) ",\"dp\":4,\"ep\":4,\"moe\":{\"all_to_all\":\"flat\"" members "}"

/** Milliseconds of dispatch and combine where a rank sends so many tokens inside and outside. */
static double both_ms(double inside, double outside)
{
    return 2 * (inside / 1e4 + outside / 1e3);
}

/** Evenly a rank sends a quarter to the other of its node and a half away; at most 14 % may leave
 * (He et al. 2022, FasterMoE; the released gate of TA-MoE), and the rest stays in proportion. */
static void few_tokens_leave_their_node(void **state)
{
    (void)state;
    struct setting s = two_nodes(MOE(""));
    double even = time_ms(&s);
    near_to(even, 1 + both_ms(250, 500), 1e-9);
    s.stage = MOE(",\"off_node_frac\":0.14");
    near_to(time_ms(&s), 1 + both_ms(430, 140), 1e-9);
    s.stage = MOE(",\"off_node_frac\":0");
    near_to(time_ms(&s), 1 + both_ms(500, 0), 1e-9);
    s.stage = MOE(",\"off_node_frac\":0.5"); /* what they want anyway */
    near_to(time_ms(&s), even, 1e-12);
    /* all want expert 3: those of its node stay with it, the others keep 20 % of that wish */
    s.routing = "{\"kind\":\"trace\",\"counts\":[[[[0,0,0,1]]]]}";
    s.stage = MOE(",\"off_node_frac\":0.2");
    near_to(time_ms(&s), 2.4 + both_ms(1000, 2 * 200), 1e-9); /* both over one NIC */
}

/** No expert gets a token twice: with two experts for every token and one in the node, half of the
 * copies have to leave. */
static void copies_that_must_leave(void **state)
{
    (void)state;
    struct setting s = two_nodes(MOE(",\"off_node_frac\":0.14"));
    s.nodes = 4;
    s.each = 1;
    s.layer = "\"expert_ms_per_token\":0.001,\"dispatch_bytes_per_token\":10000,\"top_k\":2";
    near_to(time_ms(&s), 2 + 2 * 1000 / 1e3, 1e-9);
    s.stage = MOE("");
    near_to(time_ms(&s), 2 + 2 * 1500 / 1e3, 1e-9);
}

/** Two experts near get 0.43 of the tokens of a source each, with places for 0.25. */
static void places_of_a_gate(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct setting s = two_nodes(MOE(",\"off_node_frac\":0.14,\"capacity_factor\":1"));
    near_to(verdict_of(&s, &a).metrics.dropped_frac, 2 * (0.43 - 0.25), 1e-9);
    s.stage = MOE(",\"capacity_factor\":1");
    near_to(1 + verdict_of(&s, &a).metrics.dropped_frac, 1, 1e-12);
    hv_arena_free(&a);
}

/** Links between nodes are four times as slow: 40, 40, 10, 10 of 100 tokens (Chen et al. 2022,
 * TA-MoE, closed form). The columns of a target are loads. */
static void targets_from_rank_to_rank(void **state)
{
    (void)state;
    struct setting s =
        two_nodes(MOE(",\"target\":[[40,40,10,10],[40,40,10,10],[10,10,40,40],[10,10,40,40]]"));
    near_to(time_ms(&s), 1 + both_ms(400, 200), 1e-9);
    s.stage = MOE(",\"target\":[[1,1,1,1],[2,2,2,2],[1,1,1,1],[3,3,3,3]]"); /* rows are shares */
    near_to(time_ms(&s), 1 + both_ms(250, 500), 1e-9);
    s.stage = MOE(",\"target\":[[7,1,1,1],[7,1,1,1],[7,1,1,1],[7,1,1,1]]");
    /* rank 0 gets 700 from its neighbour, and 1400 from the other node over its own NIC */
    near_to(time_ms(&s), 2.8 + both_ms(700, 1400), 1e-9);
}

static void assert_refused(struct setting s, const char *what)
{
    struct hv_arena a = {0};
    struct hv_verdict v;
    struct hv_err err = {0};
    if (judged(&s, &a, &v, &err) == HV_OK || strstr(err.text, what) == NULL) {
        fail_msg("%s is not in: %s", what, err.text);
    }
    hv_arena_free(&a);
}

static void contradictions_are_refused_by_name(void **state)
{
    (void)state;
    struct setting s = two_nodes(MOE(",\"target\":[[1,1],[1,1]]"));
    assert_refused(s, "moe.target: 2 rows");
    s.stage = MOE(",\"target\":[[1,1,1,1],[0,0,0,0],[1,1,1,1],[1,1,1,1]]");
    assert_refused(s, "moe.target[1]");
    s.stage = MOE(",\"target\":[[1,1,1,1],[1,1,1,1],[1,1,1,1],[1,1,1,1]]");
    s.routing = "{\"kind\":\"zipf\",\"skew\":1}";
    assert_refused(s, "the job's routing (zipf)");
    s.routing = "{\"kind\":\"uniform\"}";
    near_to(time_ms(&s), 1 + both_ms(250, 500), 1e-9);
    s.routing = NULL;
    s.layer = "\"expert_ms_per_token\":0.001,\"top_k\":2";
    s.stage = MOE(",\"target\":[[3,1,1,1],[1,1,1,1],[1,1,1,1],[1,1,1,3]]");
    near_to(time_ms(&s), 2 * (1000 * (3.0 / 6 + 1.0 / 4 + 1.0 / 4 + 1.0 / 6)) / 1e3, 1e-9);
    s.stage = MOE(",\"target\":[[4,1,1,1],[1,1,1,1],[1,1,1,1],[1,1,1,1]]");
    assert_refused(s, "moe.target[0][0]");
}

/** Judges a mixture of 8 experts with these members of "moe" on 8 devices. */
static enum hv_status judge_mixture(const char *members, const char *stage, struct hv_arena *a,
                                    double *time_s, struct hv_err *err)
{
    static const char mixture[] =
        "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":4,"
        "\"hidden\":1024,\"heads\":16,\"ffn\":4096,\"vocab\":32000,\"moe\":{\"experts\":8,"
        "\"top_k\":2,\"ffn\":4096}}";
    char text[1024];
    struct world w;
    struct hv_plan_doc doc;
    struct hv_verdict v;
    const struct hv_eval_options o = {.no_bound = true};
    (void)snprintf(
        text, sizeof text,
        "{\"format\":\"hetviz.plan/1\",\"micro_batch\":8,\"replicas\":[{\"micro_batches\":"
        "8,\"stages\":[{\"devices\":\"a[0].*\",\"layers\":[0,4]%s,\"moe\":{"
        "\"dispatch\":\"one_hot\"%s}}]}]}",
        stage, members);
    open_world(&w, cluster_text, mixture, job_text);
    assert_int_equal(hv_plan_doc_build(&doc, parse(text, "p"), w.in.cluster.cluster, err), HV_OK);
    enum hv_status st = hv_eval(w.cost, doc.plan, &o, a, &v, err);
    *time_s = v.metrics.iteration_s;
    hv_plan_doc_free(&doc);
    close_world(&w);
    return st;
}

/** A product with a one-hot tensor has a column for every place of every expert. */
static void one_hot_needs_places(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct hv_err err = {0};
    double padded_s, capacity_s, none_s;
    const char *spread = ",\"dp\":8,\"ep\":8",
               *grid = ",\"tp\":{\"scheme\":\"2d\",\"degree\":4},\"dp\":2";
    static const char padded[] = ",\"kernel\":\"padded\"";
    assert_int_equal(judge_mixture(padded, spread, &a, &padded_s, &err), HV_OK);
    assert_int_equal(judge_mixture(",\"capacity_factor\":2", spread, &a, &capacity_s, &err), HV_OK);
    assert_true(capacity_s > padded_s); /* with twice as many columns */
    const struct {
        const char *members, *stage, *what;
    } refused[] = {{"", spread, "kernels that have no places"},
                   {",\"kernel\":\"scatter\"", spread, "kernels that have no places"},
                   {",\"kernel\":\"block\",\"capacity_factor\":1", spread, "no places"},
                   {",\"kernel\":\"padded\",\"move\":\"experts\"", spread, "experts that move"},
                   {padded, grid, "on a grid"}};
    for (size_t i = 0; i < HV_COUNT(refused); i++) {
        assert_int_equal(judge_mixture(refused[i].members, refused[i].stage, &a, &none_s, &err),
                         HV_ENO);
        if (strstr(err.text, "moe.dispatch") == NULL || strstr(err.text, refused[i].what) == NULL) {
            fail_msg("%s is not in: %s", refused[i].what, err.text);
        }
    }
    hv_arena_free(&a);
    struct setting s = two_nodes(MOE(",\"kernel\":\"padded\",\"dispatch\":\"one_hot\""));
    assert_refused(s, "measured layers");
}

/** 200 rows fill two blocks of 128, in three chunks one each; uneven experts fill their own. */
static void blocks_are_filled(void **state)
{
    (void)state;
    struct setting s = two_nodes(MOE(",\"kernel\":\"block\""));
    s.sequence = 200;
    s.layer = "\"expert_ms_per_token\":0.01";
    near_to(time_ms(&s), 2.56, 1e-9);
    s.stage = MOE(",\"kernel\":\"scatter\",\"degree\":[3,1]");
    near_to(time_ms(&s), 3.84, 1e-9);
    s.stage = MOE(",\"kernel\":\"block\",\"degree\":[2,1]");
    near_to(time_ms(&s), 2.56, 1e-9);
    s.stage = MOE(",\"kernel\":\"padded\",\"degree\":[2,1]");
    near_to(time_ms(&s), 2, 1e-9);
    s.routing = "{\"kind\":\"trace\",\"counts\":[[[[300,10,129,361]]]]}"; /* 361: three blocks */
    s.stage = MOE(",\"kernel\":\"block\"");
    near_to(time_ms(&s), 3.84, 1e-9);
    s.stage = MOE("");
    near_to(time_ms(&s), 3.61, 1e-9);
}

/** Experts with places compute and send all of them: 1.25 times the mean, whatever comes. Blocks
 * take what comes, 160 of 361, in two blocks. */
static void places_are_computed(void **state)
{
    (void)state;
    struct hv_arena a = {0};
    struct setting s = two_nodes(MOE(",\"kernel\":\"padded\",\"capacity_factor\":1.25"));
    s.sequence = 200;
    s.layer = "\"expert_ms_per_token\":0.01,\"dispatch_bytes_per_token\":10000";
    double want = 2.5 + both_ms(62.5, 125);
    near_to(time_ms(&s), want, 1e-9);
    s.routing = "{\"kind\":\"trace\",\"counts\":[[[[300,10,129,361]]]]}";
    near_to(time_ms(&s), want, 1e-9);
    near_to(verdict_of(&s, &a).metrics.dropped_frac, (50 + 111) / 800.0, 1e-6);
    /* without a factor, as many places as the fullest expert needs */
    s.stage = MOE(",\"kernel\":\"padded\"");
    near_to(time_ms(&s), 3.61 + both_ms(90.25, 180.5), 1e-6);
    s.stage = MOE(",\"kernel\":\"block\",\"capacity_factor\":1.25");
    /* 250 of 300 and 361 tokens; to the fullest rank a quarter of them comes from its neighbour */
    near_to(time_ms(&s), 2.56 + both_ms(62.5, 125), 1e-6);
    hv_arena_free(&a);
}

/** Two experts in two shards each, both on the ranks of a node: every token goes to both shards of
 * its expert, which do half the work each, and half results come back; backward likewise. */
static void shards_get_every_token(void **state)
{
    (void)state;
    struct setting s = two_nodes(MOE(",\"expert_shards\":2"));
    s.layer = "\"expert_ms_per_token\":0.001,\"dispatch_bytes_per_token\":10000,\"experts\":2";
    near_to(time_ms(&s), 1 + both_ms(500, 1000), 1e-9);
    s.layer = "\"expert_ms_per_token\":0.001,\"dispatch_bytes_per_token\":10000,\"experts\":2,"
              "\"backward_ms\":{\"P\":0}";
    near_to(time_ms(&s), 3 + 2 * both_ms(500, 1000), 1e-9);
    /* routed the same way, from the matrix */
    s.routing = "{\"kind\":\"trace\",\"counts\":[[[[5,5]]]]}";
    near_to(time_ms(&s), 3 + 2 * both_ms(500, 1000), 1e-9);
    s.routing = "{\"kind\":\"trace\",\"counts\":[[[[3,1]]]]}"; /* 750 to both ranks of one node */
    near_to(time_ms(&s), 4.5 + 2 * both_ms(750, 1500), 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_tokens_leave_their_node),
        cmocka_unit_test(copies_that_must_leave),
        cmocka_unit_test(places_of_a_gate),
        cmocka_unit_test(targets_from_rank_to_rank),
        cmocka_unit_test(contradictions_are_refused_by_name),
        cmocka_unit_test(one_hot_needs_places),
        cmocka_unit_test(blocks_are_filled),
        cmocka_unit_test(shards_get_every_token),
        cmocka_unit_test(places_are_computed),
    };
    return cmocka_run_group_tests_name("eval_gates", tests, NULL, NULL);
}
