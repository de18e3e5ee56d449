/* Rules A-F: every code with a plan that keeps the rule and one that breaks it, with place and
 * words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/io/own/docs.h"
#include "tests/plan_fixture.h"
#include <math.h>
#include <string.h>

/* One plan in single quotes and the only finding expected (code HV_VIOLATION_N: none). */
struct row {
    const char *replicas, *rest;
    enum hv_violation_code code;
    const char *where, *text;
    double by;
};

enum model { DENSE, EXPERTS, GRAPH, ENCODER };

struct world {
    struct hv_cluster *cluster;
    struct hv_model *models[4];
};

static int setup(void **state)
{
    struct world *w = hv_xcalloc(1, sizeof *w);
    w->cluster = fixture_cluster();
    w->models[DENSE] = fixture_model(0);
    w->models[EXPERTS] = fixture_model(8);
    w->models[GRAPH] = fixture_graph();
    w->models[ENCODER] = fixture_model(0);
    w->models[ENCODER]->causal = false;
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < HV_COUNT(w->models); i++) {
        hv_model_unref(w->models[i]);
    }
    hv_cluster_unref(w->cluster);
    free(w);
    return 0;
}

static struct hv_plan_doc build(const struct world *w, const char *replicas, const char *rest)
{
    struct hv_str text = {0};
    hv_str_addf(&text, "{'format':'hetviz.plan/1','replicas':[%s]%s}", replicas, rest);
    for (size_t i = 0; i < text.n; i++) {
        text.p[i] = text.p[i] == '\'' ? '"' : text.p[i];
    }
    struct hv_json json;
    struct hv_plan_doc doc = {0};
    struct hv_err err = {0};
    if (hv_json_parse(&json, text.p, text.n, "row", &err) != HV_OK ||
        hv_plan_doc_build(&doc, json, w->cluster, &err) != HV_OK) {
        fail_msg("%s: %s", text.p, err.text);
    }
    hv_str_free(&text);
    return doc;
}

static void check_row(const struct world *w, enum model model, const struct hv_job *job,
                      const struct row *row)
{
    struct hv_arena arena = {0};
    struct hv_findings f = {.arena = &arena};
    struct hv_plan_doc doc = build(w, row->replicas, row->rest);
    hv_plan_check(doc.plan, w->models[model], job, &f);
    size_t expected = row->code == HV_VIOLATION_N ? 0 : 1;
    if (f.n != expected) {
        fail_msg("%s%s: %zu findings, first %s at %s: %s", row->replicas, row->rest, f.n,
                 f.n > 0 ? hv_violation_name(f.items[0].code) : "-",
                 f.n > 0 ? f.items[0].where : "-", f.n > 0 ? f.items[0].text : "-");
    }
    if (f.n == 1) {
        assert_string_equal(hv_violation_name(f.items[0].code), hv_violation_name(row->code));
        assert_string_equal(f.items[0].where, row->where);
        assert_string_equal(f.items[0].text, row->text);
        if (isnan(row->by)) {
            assert_true(isnan(f.items[0].by));
        } else {
            assert_true(f.items[0].by == row->by);
        }
    }
    hv_plan_doc_free(&doc);
    hv_arena_free(&arena);
}

static void check_rows(void **state, enum model model, const struct row *rows, size_t n)
{
    struct hv_job job = fixture_job();
    for (size_t i = 0; i < n; i++) {
        check_row(*state, model, &job, &rows[i]);
    }
}

#define OK        HV_VIOLATION_N, NULL, NULL, 0
#define ONE(keys) "{'micro_batches':8,'stages':[{'devices':'a[0].*','layers':[0,8]," keys "}]}"

/* Micro-batches that grids can share. */
#define FOUR(keys)                                                                                 \
    "{'micro_batch':4,'micro_batches':2,'stages':[{'devices':'a[0].*','layers':[0,8]," keys "}]}"

static void batch_sums(void **state)
{
    static const struct row rows[] = {
        {ONE("'tp':4"), "", OK},
        {"{'micro_batches':7,'stages':[{'devices':'a[0].*','layers':[0,8],'tp':4}]}", "",
         HV_V_BATCH_SUM, "replicas",
         "the replicas run 7 sequences per iteration, the global batch is 8: 1 are missing", 1},
        {"{'count':2,'micro_batches':8,'stages':[{'devices':'a','layers':[0,8],'tp':4}]}", "",
         HV_V_BATCH_SUM, "replicas",
         "the replicas run 16 sequences per iteration, the global batch is 8: 8 too many", -8},
        {"{'micro_batches':[{'sequences':3},{'sequences':5}],'stages':[{'devices':'a[0].*',"
         "'layers':[0,8],'tp':4}]}",
         "", OK},
        {"{'micro_batches':3,'stages':[{'devices':'a[0].*','layers':[0,8],'tp':4}]}",
         ",'schedule':{'name':'hetpipe'}", OK},
        {"{'micro_batches':4,'micro_batch':2,'stages':[{'devices':'a[0].*','layers':[0,8],'tp':4}]"
         "}",
         ",'micro_batch':7", OK},
    };
    check_rows(state, DENSE, rows, HV_COUNT(rows));
}

static void devices(void **state)
{
    static const struct row rows[] = {
        {"{'micro_batches':8,'stages':[{'devices':'a[0].0-1','layers':[0,4],'tp':2},"
         "{'devices':'a[0].1-2','layers':[4,8],'tp':2}]}",
         "", HV_V_DEVICES_OVERLAP, "replicas[0].stages[1].devices",
         "1 of its devices are in use already: a[0].1 is in replicas[0].stages[0]", 1},
        {"{'micro_batches':8,'stages':[{'devices':'a[0].0-1','layers':[0,4],'tp':2},"
         "{'devices':'a[0].0-1','layers':[4,8],'tp':2}]}",
         ",'schedule':{'name':'distmm'}", OK},
        {"{'micro_batches':8,'stages':[{'devices':['a[0].0','a[0].0'],'layers':[0,8],'tp':2}]}",
         ",'schedule':{'name':'distmm'}", HV_V_DEVICES_OVERLAP, "replicas[0].stages[0].devices",
         "1 of its devices are in use already: a[0].0 is in replicas[0].stages[0]", 1},
        {"{'micro_batches':8,'stages':[{'devices':'a[0].0-1','layers':[0,8],'tp':2,"
         "'offload':[{'what':'activations','to':['a[0].2','a[0].1']}]}]}",
         "", HV_V_DEVICES_OVERLAP, "replicas[0].stages[0].offload",
         "a[0].1 belongs to the stage itself, so that moving memory there frees none; name devices "
         "of "
         "other stages, spare ones, or the host",
         1},
        {"{'micro_batches':8,'stages':[{'devices':'a[0].0-1','layers':[0,8],'tp':2,"
         "'offload':[{'what':'activations','to':['a[0].2']}]}]}",
         "", OK},
        {"{'micro_batches':8,'stages':[{'devices':'d','layers':[0,8],'tp':4}]}", "",
         HV_V_UNKNOWN_DEVICE, "replicas[0].stages[0].devices",
         "4 of its devices are on nodes in state drain, such as d[0].0", 4},
        {"{'micro_batches':8,'stages':[{'devices':'v','layers':[0,8],'tp':4}]}", "", HV_V_PRECISION,
         "replicas[0].stages[0].devices",
         "4 of its devices cannot compute in bf16, such as v[0].0 (old)", 4},
    };
    check_rows(state, DENSE, rows, HV_COUNT(rows));
}

static void degree_products(void **state)
{
    static const struct row rows[] = {
        {ONE("'tp':2"), "", HV_V_DEGREE_PRODUCT, "replicas[0].stages[0].tp",
         "dp 1 x cp 1 x tp 2 = 2, the stage has 4 devices", 2},
        {"{'count':2,'micro_batches':4,'stages':[{'devices':'a[0].0-2','layers':[0,8]}]}", "",
         HV_V_DEGREE_PRODUCT, "replicas[0].stages[0].devices",
         "3 devices cannot be cut into 2 equal parts", 1},
        {ONE("'mesh':{'x':2,'y':2}"), "", OK},
        {ONE("'mesh':{'x':3}"), "", HV_V_DEGREE_PRODUCT, "replicas[0].stages[0].mesh",
         "the mesh has 3 places, the stage has 4 devices", 1},
        {ONE("'place':{'x0':'a[0].0'}"), "", HV_V_UNKNOWN_NAME, "replicas[0].stages[0].place.x0",
         "expected no operator, found \"x0\": the model is of kind transformer and has no named "
         "operators",
         HV_UNKNOWN},
        {FOUR("'tp':{'scheme':'2d','degree':4}"), "", OK},
        {ONE("'tp':{'shares':[3,1]},'dp':2,'micro_batch':2,'shares':[1,1]"), "", OK},
        {ONE("'tp':{'shares':[4,2,2,1]}"), "", HV_V_HEADS, "replicas[0].stages[0].tp.shares",
         "share 4 of 9 cuts 8 attention heads (4 of keys and values) into parts that are not whole "
         "heads",
         HV_UNKNOWN},
        {FOUR("'tp':{'shares':[1,1,1,1],'scheme':'2d'}"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].tp.shares", "tp scheme 2d supports equal shards only", HV_UNKNOWN},
        {ONE("'tp':{'shares':[3,1]},'cp':2"), "", HV_V_DIVISIBLE, "replicas[0].stages[0].tp.shares",
         "unequal tensor shards cannot be combined with cp 2", HV_UNKNOWN},
        {ONE("'tp':{'scheme':'3d','degree':4}"), "", HV_V_DIVISIBLE, "replicas[0].stages[0].tp",
         "tp scheme 3d needs a degree that is a cube, but 4 is not a cube", HV_UNKNOWN},
        {ONE("'tp':{'scheme':'2.5d','degree':4,'depth':2}"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].tp",
         "tp scheme 2.5d needs degree = depth x q x q, but no whole q gives 4 with depth 2",
         HV_UNKNOWN},
    };
    check_rows(state, DENSE, rows, HV_COUNT(rows));
}

#define TWO(first, second)                                                                         \
    "{'micro_batches':8,'stages':[{'devices':'a[0].0-1','tp':2," first "},{'devices':"             \
    "'a[0].2-3','tp':2," second "}]}"

static void layers(void **state)
{
    static const struct row rows[] = {
        {TWO("'layers':[0,2.5]", "'layers':[2.5,8]"), "", OK},
        {TWO("'layers':[[0,2],[4,6]]", "'layers':[[2,4],[6,8]]"), "", OK},
        {TWO("'layers':[0,3]", "'layers':[4,8]"), "", HV_V_LAYERS_MISSING, "replicas[0].stages",
         "no stage holds blocks [3, 4)", 1},
        {TWO("'layers':[0,4.5]", "'layers':[4,8]"), "", HV_V_LAYERS_TWICE, "replicas[0].stages",
         "2 stages hold blocks [4, 4.5)", 0.5},
        {TWO("'layers':[0,8]", "'layers':[0,8]"), ",'mode':'serve'", OK},
        {TWO("'layers':[0,4]", "'layers':[4,10]"), "", HV_V_LAYERS_MISSING,
         "replicas[0].stages[1].layers", "the stage names blocks [4, 10), but the model has only 8",
         2},
        {TWO("'layers':[0,4],'embedding':false", "'layers':[4,8]"), "", HV_V_LAYERS_MISSING,
         "replicas[0].stages", "no stage holds the embedding", 1},
        {TWO("'layers':[0,4],'head':true", "'layers':[4,8]"), "", OK},
        {TWO("'layers':[0,4],'head':true", "'layers':[4,8],'head':true"), "", HV_V_LAYERS_TWICE,
         "replicas[0].stages", "2 stages hold the head", 1},
        {TWO("'layers':[0,0]", "'layers':[0,8]"), "", OK},
    };
    check_rows(state, DENSE, rows, HV_COUNT(rows));
    static const struct row graph[] = {
        {ONE("'place':{'*':'a[0].0'}"), "", OK},
        {ONE("'place':{'x9':'a[0].0'}"), "", HV_V_UNKNOWN_NAME, "replicas[0].stages[0].place.x9",
         "expected an operator of the model, or a pattern that matches one, found \"x9\"; did you "
         "mean \"x0\"?",
         HV_UNKNOWN},
        {TWO("'ops':['x*']", "'ops':['y?']"), "", OK},
        {TWO("'layers':[0,4]", "'ops':['y?']"), "", OK},
        {TWO("'ops':['x*','y0']", "'ops':['y?']"), "", HV_V_LAYERS_TWICE, "replicas[0].stages",
         "2 stages hold blocks [4, 5)", 1},
        {TWO("'ops':['x*','z']", "'ops':['y?']"), "", HV_V_LAYERS_MISSING,
         "replicas[0].stages[0].ops", "pattern \"z\" names no operator of the model", 1},
        {TWO("'layers':[0,4.5]", "'layers':[4.5,8]"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].layers",
         "a cut at .5 needs a transformer block, but the layers of this model cannot be cut", 0.5},
    };
    check_rows(state, GRAPH, graph, HV_COUNT(graph));
}

static void shares(void **state)
{
    static const struct row rows[] = {
        {ONE("'dp':4,'deal':'turns'"), "", OK},
        {ONE("'dp':4"), "", HV_V_DIVISIBLE, "replicas[0].stages[0].dp",
         "a micro-batch of 1 sequences does not divide into 4 equal shares; give shares", 1},
        {ONE("'dp':4,'shares':[1,0,0,0]"), "", OK},
        {ONE("'dp':4,'shares':[1,1,0,0]"), "", HV_V_DIVISIBLE, "replicas[0].stages[0].shares",
         "the shares hold 2 sequences, the micro-batch has 1", -1},
        {"{'micro_batches':2,'stages':[{'devices':'a[0].*','layers':[0,8],'dp':4}]}",
         ",'micro_batch':4", OK},
    };
    check_rows(state, DENSE, rows, HV_COUNT(rows));
}

/* Slices of a sequence run one after the other: only where a token needs none behind it. */
static void slices_need_a_causal_model(void **state)
{
    static const struct row rows[] = {
        {ONE("'tp':4"), ",'schedule':{'name':'seq1f1b','slices':[40,24]}", HV_V_SCHEDULE_NEEDS,
         "schedule.slices",
         "tokens of the model attend to those behind them (causal is false), so a slice of a "
         "sequence cannot run before the rest: give whole sequences",
         HV_UNKNOWN},
        {ONE("'tp':4"), ",'schedule':{'name':'seq1f1b','slices':1}", OK},
    };
    check_rows(state, ENCODER, rows, HV_COUNT(rows));
}

static void heads_and_sequence(void **state)
{
    static const struct row rows[] = {
        {"{'micro_batches':8,'stages':[{'devices':'a','layers':[0,8],'tp':8}]}", "", OK},
        {"{'micro_batches':8,'stages':[{'devices':'a[0].0-2','layers':[0,8],'tp':3}]}", "",
         HV_V_HEADS, "replicas[0].stages[0].tp", "8 attention heads are not divisible by tp 3", 2},
        {"{'micro_batches':8,'stages':[{'devices':'a','layers':[0,8],'tp':4,'cp':{'scheme':"
         "'ulysses','degree':2}}]}",
         "", OK},
        {ONE("'cp':{'layout':'zigzag','degree':4}"), "", OK},
        {"{'micro_batches':8,'stages':[{'devices':'a[0].0-2','layers':[0,8],'cp':3}]}", "",
         HV_V_DIVISIBLE, "replicas[0].stages[0].cp",
         "a sequence of 64 tokens is not divisible into 3 parts (cp 3, layout contiguous)", 1},
        {ONE("'tp':4,'zero':{'stage':1,'shard_group':2}"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].zero",
         "1 holders (dp x cp x count) are not divisible by shard_group 2", 1},
        {ONE("'tp':4,'recompute':['full','none']"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].recompute", "recompute lists 2 entries, the stage has 8 blocks", 6},
        {ONE("'tp':4"), ",'schedule':{'name':'seq1f1b','slices':[40,24]}", OK},
        {ONE("'tp':4"), ",'schedule':{'name':'seq1f1b','slices':[40,20]}", HV_V_DIVISIBLE,
         "schedule.slices", "the slices hold 60 tokens, a sequence has 64", 4},
    };
    check_rows(state, DENSE, rows, HV_COUNT(rows));
    static const struct row ulysses = {
        "{'micro_batches':8,'stages':[{'devices':'a[0].0-2','layers':[0,8],'cp':{'scheme':'ulysses'"
        ","
        "'degree':3}}]}",
        "",
        HV_V_HEADS,
        "replicas[0].stages[0].cp",
        "8 attention heads per tp rank are not divisible by the heads part 3",
        2};
    static const struct row parallel = {"{'micro_batches':8,'stages':[{'devices':'a','layers':[0,8]"
                                        ",'tp':8,'sequence_parallel':true}]}",
                                        "",
                                        HV_V_DIVISIBLE,
                                        "replicas[0].stages[0].sequence_parallel",
                                        "60 tokens per cp rank are not divisible by tp 8",
                                        4};
    struct hv_job job = fixture_job();
    job.sequence = 48;
    check_row(*state, DENSE, &job, &ulysses);
    job.sequence = 60;
    check_row(*state, DENSE, &job, &parallel);
}

static void experts(void **state)
{
    static const struct row rows[] = {
        {ONE("'dp':4,'deal':'turns','ep':4"), "", OK},
        {ONE("'tp':4,'ep':2"), "", OK},
        {ONE("'tp':2,'dp':2,'deal':'turns','ep':4"), "", OK},
        {ONE("'tp':4,'ep':8"), "", HV_V_DIVISIBLE, "replicas[0].stages[0].ep",
         "dp x cp x tp = 4 is not divisible by ep 8", 4},
        {FOUR("'tp':{'scheme':'2d','degree':4},'ep':2"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].ep", "dp x cp = 1 is not divisible by ep 2", 1},
        {"{'micro_batches':8,'stages':[{'devices':'a[0].0-2','layers':[0,8],'dp':3,'deal':'turns',"
         "'ep':3}]}",
         "", HV_V_DIVISIBLE, "replicas[0].stages[0].ep",
         "8 experts in 1 shards each are not divisible by ep 3", 2},
        {ONE("'dp':4,'deal':'turns','ep':4,'moe':{'owners':[0,1,2,3,0,1,2]}"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].moe.owners", "owners has 7 entries, the block has 8 experts", 1},
        {ONE("'dp':4,'deal':'turns','ep':4,'moe':{'owners':[0,1,2,3,0,1,2,4]}"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].moe.owners",
         "expert 7 is on rank 4, there are 4 expert-parallel ranks", 1},
        {ONE("'dp':4,'deal':'turns','ep':4,'moe':{'copies':{'8':'*'}}"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].moe.copies",
         "copies of expert 8 name an expert or rank outside 8 experts on 4 ranks", HV_UNKNOWN},
        {ONE("'dp':4,'deal':'turns','ep':4,'moe':{'expert_shards':3}"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].moe.expert_shards", "ep 4 is not divisible by expert_shards 3", 1},
    };
    check_rows(state, EXPERTS, rows, HV_COUNT(rows));
}

static void fabrics(void **state)
{
    static const struct row rows[] = {
        {"{'micro_batches':8,'stages':[{'devices':'a[0].*','layers':[0,4],'tp':4},{'devices':'m',"
         "'layers':[4,8],'tp':4}]}",
         "", OK},
        {"{'micro_batches':8,'stages':[{'devices':['a[0].0-1','m[0].0-1'],'layers':[0,8],'tp':4}]}",
         "", HV_V_FABRIC, "replicas[0].stages[0].tp",
         "a tp group of 4 devices has more than one fabric, such as nvidia and amd devices; "
         "collectives need one",
         HV_UNKNOWN},
        {"{'micro_batches':4,'stages':[{'devices':'a[0].*','layers':[0,8],'tp':4}]},"
         "{'micro_batches':4,'stages':[{'devices':'m','layers':[0,8],'tp':4}]}",
         "", HV_V_FABRIC, "replicas[1].stages[0].devices",
         "block 0 is reduced with all-reduce between nvidia and amd devices; use sync kind ps or "
         "keep its holders on one fabric",
         HV_UNKNOWN},
        {"{'micro_batches':4,'stages':[{'devices':'a[0].*','layers':[0,8],'tp':4}]},"
         "{'micro_batches':4,'stages':[{'devices':'m','layers':[0,8],'tp':4}]}",
         ",'sync':{'kind':'ps'}", OK},
        {"{'count':2,'micro_batches':4,'stages':[{'devices':['a[0].*','m'],'layers':[0,8],'tp':4}]"
         "}",
         "", HV_V_FABRIC, "replicas[0].stages[0].devices",
         "block 0 is reduced with all-reduce between nvidia and amd devices; use sync kind ps or "
         "keep its holders on one fabric",
         HV_UNKNOWN},
    };
    check_rows(state, DENSE, rows, HV_COUNT(rows));
}

/* Sizes that grids and cubes of ranks cut, and keys of another scheme. */
static void schemes(void **state)
{
    const struct row rows[] = {
        {ONE("'tp':{'scheme':'2d','degree':4}"), "", HV_V_DIVISIBLE, "replicas[0].stages[0].tp",
         "the 1 sequences of a rank are not divisible into 2 parts, over which tp scheme 2d of "
         "degree 4 cuts them",
         1},
        {FOUR("'tp':{'scheme':'2.5d','degree':4,'depth':4}"), "", OK},
        {ONE("'tp':{'scheme':'2.5d','degree':4,'depth':4}"), "", HV_V_DIVISIBLE,
         "replicas[0].stages[0].tp",
         "the 1 sequences of a rank are not divisible into 4 parts, over which tp scheme 2.5d of "
         "degree 4 cuts them",
         1},
        {FOUR("'tp':{'scheme':'2d','degree':4},'sequence_parallel':true"), "", HV_V_SCHEME,
         "replicas[0].stages[0].sequence_parallel",
         "sequence parallelism is of tp scheme 1d (grids cut activations themselves), not of 2d",
         HV_UNKNOWN},
        {ONE("'tp':{'degree':4,'regather':true}"), "", HV_V_SCHEME,
         "replicas[0].stages[0].tp.regather", "regather is a choice of tp scheme 3d, not of 1d",
         HV_UNKNOWN},
        {ONE("'cp':{'degree':4,'scheme':'all_gather','inner':2}"), "", HV_V_SCHEME,
         "replicas[0].stages[0].cp.inner",
         "inner is of schemes with nested rings or teams: ring, usp, loongtrain, wallfacer, not of "
         "all_gather",
         HV_UNKNOWN},
        {ONE("'cp':{'degree':4,'scheme':'rsa','layout':'zigzag'}"), "", HV_V_SCHEME,
         "replicas[0].stages[0].cp.layout",
         "a layout other than contiguous is of schemes that leave the order of tokens free, not of "
         "rsa",
         HV_UNKNOWN},
        {ONE("'cp':{'degree':4,'scheme':'distflash','backward':'q_do'}"), "", HV_V_SCHEME,
         "replicas[0].stages[0].cp.backward",
         "q_do is what rings pass on backward: ring, usp, loongtrain, not of distflash",
         HV_UNKNOWN},
        {ONE("'cp':{'degree':4,'dims':['time']}"), "", HV_V_SCHEME, "replicas[0].stages[0].cp.dims",
         "dimensions that blocks are cut along are of scheme dsp, not of ring", HV_UNKNOWN},
    };
    check_rows(state, DENSE, rows, HV_COUNT(rows));
}

/* Only an objective that says `false` itself makes stale weights and dropped tokens a violation. */
static void objectives(void **state)
{
    struct hv_job job = fixture_job();
    struct row stale = {ONE("'tp':4"), ",'schedule':{'name':'pipedream-2bw'}", OK};
    struct row drop = {ONE("'dp':4,'deal':'turns','ep':4,'moe':{'capacity_factor':1.25}"), "", OK};
    check_row(*state, DENSE, &job, &stale);
    check_row(*state, EXPERTS, &job, &drop);
    job.objective.allow_stale_given = job.objective.allow_drop_given = true;
    stale.code = HV_V_STALE;
    stale.where = "schedule.name";
    stale.text =
        "schedule pipedream-2bw with sync allreduce trains on stale weights, and the objective "
        "sets allow_stale to false";
    stale.by = HV_UNKNOWN;
    check_row(*state, DENSE, &job, &stale);
    struct row apart = {ONE("'tp':2,'dp':2,'deal':'turns'"), ",'sync':{'kind':'none'}", OK};
    apart.code = HV_V_STALE;
    apart.where = "schedule.name";
    apart.text = "schedule 1f1b with sync none trains on stale weights, and the objective sets "
                 "allow_stale to false";
    apart.by = HV_UNKNOWN;
    check_row(*state, DENSE, &job, &apart);
    struct row alone = {ONE("'tp':4"), ",'sync':{'kind':'none'}", OK}; /* nobody to agree with */
    check_row(*state, DENSE, &job, &alone);
    drop.code = HV_V_DROP;
    drop.where = "replicas[0].stages[0].moe";
    drop.text =
        "capacity_factor 1.25 drops tokens above it, and the objective sets allow_drop to false; "
        "0 drops none";
    drop.by = 1.25;
    check_row(*state, EXPERTS, &job, &drop);
    job.objective.allow_stale = job.objective.allow_drop = true;
    stale.code = drop.code = HV_VIOLATION_N;
    check_row(*state, DENSE, &job, &stale);
    check_row(*state, EXPERTS, &job, &drop);
}

static void owners_of_ends(void **state)
{
    struct hv_plan_doc doc = build(*state, TWO("'layers':[[0,2],[6,8]]", "'layers':[2,6]"), "");
    const struct hv_replica *r = &doc.plan->replicas[0];
    assert_true(hv_stage_has_embedding(r, 0));
    assert_true(hv_stage_has_head(r, 0)); /* a V placement brings the last blocks back */
    assert_false(hv_stage_has_embedding(r, 1));
    assert_false(hv_stage_has_head(r, 1));
    hv_plan_doc_free(&doc);
    doc = build(*state, TWO("'layers':[0,0]", "'layers':[0,8]"), "");
    r = &doc.plan->replicas[0];
    assert_true(hv_stage_has_embedding(r, 0));
    assert_false(hv_stage_has_embedding(r, 1));
    assert_false(hv_stage_has_head(r, 0));
    assert_true(hv_stage_has_head(r, 1));
    hv_plan_doc_free(&doc);
}

/* Stages in any order, some without blocks: exactly one holds each end, the one that is furthest
 * out and behind which no empty stage stands. */
static void owners_of_ends_in_any_order(void **state)
{
    (void)state;
    enum { STAGES = 40, ROUNDS = 200 };
    struct hv_rng rng;
    hv_rng_seed(&rng, 7);
    for (int round = 0; round < ROUNDS; round++) {
        struct hv_stage stages[STAGES] = {0};
        struct hv_range ranges[STAGES];
        int at[STAGES], edge = 0;
        for (int i = 0; i < STAGES; i++) {
            int k = (int)hv_rng_below(&rng, (uint64_t)i + 1);
            at[i] = at[k];
            at[k] = i;
        }
        for (int i = 0; i < STAGES; i++) {
            int to = edge + (int)hv_rng_below(&rng, 3);
            ranges[at[i]] = (struct hv_range){.from2 = edge, .to2 = to};
            stages[at[i]] = (struct hv_stage){
                .ranges = &ranges[at[i]], .n_ranges = 1, .embedding = -1, .head = -1};
            edge = to;
        }
        const struct hv_replica r = {.count = 1, .stages = stages, .n_stages = STAGES};
        for (int i = 0; i < STAGES; i++) {
            bool first = true, last = true;
            for (int k = 0; k < STAGES; k++) {
                bool empty = ranges[k].from2 == ranges[k].to2;
                first = first && ranges[k].from2 >= ranges[i].from2 &&
                        (ranges[k].from2 > ranges[i].from2 || k >= i || !empty);
                last = last && ranges[k].to2 <= ranges[i].to2 &&
                       (ranges[k].to2 < ranges[i].to2 || k <= i || !empty);
            }
            assert_int_equal(hv_stage_has_embedding(&r, (size_t)i), first);
            assert_int_equal(hv_stage_has_head(&r, (size_t)i), last);
        }
    }
}

static void name_patterns(void **state)
{
    (void)state;
    assert_true(hv_name_match("*", ""));
    assert_true(hv_name_match("a*b*c", "a_b_b_c"));
    assert_true(hv_name_match("layer.?.w", "layer.3.w"));
    assert_false(hv_name_match("layer.?.w", "layer.33.w"));
    assert_false(hv_name_match("", "x"));
    assert_false(hv_name_match("a*b", "a_b_c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_sums),
        cmocka_unit_test(devices),
        cmocka_unit_test(degree_products),
        cmocka_unit_test(layers),
        cmocka_unit_test(shares),
        cmocka_unit_test(slices_need_a_causal_model),
        cmocka_unit_test(heads_and_sequence),
        cmocka_unit_test(experts),
        cmocka_unit_test(fabrics),
        cmocka_unit_test(schemes),
        cmocka_unit_test(objectives),
        cmocka_unit_test(owners_of_ends),
        cmocka_unit_test(owners_of_ends_in_any_order),
        cmocka_unit_test(name_patterns),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
