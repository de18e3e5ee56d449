/* Plan files: every knob read and written back, wrong values refused with their place, schema
 * agreement. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/plan/read.h"
#include "solver/io/own/plan/write.h"
#include "tests/plan_fixture.h"
#include <stdio.h>
#include <string.h>

static int setup(void **state)
{
    *state = fixture_cluster();
    return 0;
}

static int teardown(void **state)
{
    hv_cluster_unref(*state);
    return 0;
}

/* Text in single quotes for JSON. */
static enum hv_status build(struct hv_cluster *c, const char *quoted, struct hv_plan_doc *doc,
                            struct hv_err *err)
{
    struct hv_str text = {0};
    hv_str_adds(&text, quoted);
    for (size_t i = 0; i < text.n; i++) {
        text.p[i] = text.p[i] == '\'' ? '"' : text.p[i];
    }
    struct hv_json json;
    enum hv_status s = hv_json_parse(&json, text.p, text.n, "p.json", err);
    if (s == HV_OK) {
        s = hv_plan_doc_build(doc, json, c, err);
    }
    hv_str_free(&text);
    return s;
}

/* Every knob of the contract with a value that is not its default. */
static const char everything[] =
    "{'format':'hetviz.plan/1',"
    "'strategy':{'name':'s','options':{'faults':1,'order':'a,v','fast':true,'list':[1,2]}},"
    "'mode':'serve','micro_batch':4,"
    "'replicas':[{'count':2,'micro_batch':6,'micro_batches':[{'sequences':3,'tokens':99,'scale':"
    "{'llm':0.5}},{'sequences':2}],'stages':["
    "{'devices':['a[0].0-1','v[0].2'],'module':'llm','layers':[[0,2.5],[3,4]],'embedding':true,"
    "'head':false,'after':[1],'micro_batch':5,"
    "'tp':{'scheme':'2.5d','degree':8,'depth':2,'regather':true,'shares':[3,1,1,1,1,1,1,1]},'"
    "sequence_parallel':true,"
    "'cp':{'scheme':'dsp','degree':4,'ulysses':2,'inner':2,'layout':'striped','tile':64,"
    "'order':'ring_inner','backward':'q_do','dims':['s','t']},'dp':2,'shares':[3,2],'ep':4,"
    "'moe':[{'layers':[0,2],'ep':2,'capacity_factor':1.25,'min_capacity':4,'expert_shards':2,"
    "'all_to_all':'2dh','kernel':'block','degree':[2,4],'order':'optsche','move':'experts',"
    "'owners':[0,1],'copies':{'3':[0,1],'5':'*'},'copy_life':'iteration','off_node_frac':0.25,"
    "'target':[[0,1],[0.5,0]],'compress':{'ratio':0.5,'GBps':100}},{'layers':[2,4]}],"
    "'zero':{'stage':3,'shard_group':2,'unit':'chunk','reshard':false,'prefetch':2,'limit':3,"
    "'gather':'hierarchical','gather_at':'next_forward','reduce':'two_hop'},"
    "'degrees':[{'layers':[0,1],'tp':2,'sequence_parallel':true,'cp':{'scheme':'usp','degree':2,"
    "'ulysses':2},'dp':3,'zero':2},{'layers':[1,2]}],"
    "'recompute':['full','qkv+up','none','selective'],"
    "'offload':[{'what':'optimizer','frac':0.5},{'what':'weights','to':'m[0].0'}],'in_flight':3,"
    "'mesh':{'x':2,'y':4},'shard':{'mm*':{'x':'batch','y':'partial'}},'place':{'mm1':'a[0].0'},"
    "'fuse':[['a','b']]},"
    "{'devices':'a[1].*','ops':['x*','y?'],'after':[],'dp':4,'deal':'turns','recompute':'core+up'}"
    "]}],'flow':[['source',0,100.5],[0,1,50],[1,'sink',50]],"
    "'schedule':{'name':'explicit','group':4,'memory':0.5,'variant':'order','slices':[10,20],"
    "'order':[['F0.0','B0.0'],['F1.0']]},"
    "'sync':{'kind':'ps','algorithm':'tree','bucket_MiB':[1,25],'overlap':false,'cycle_ms':5,"
    "'chunk_MiB':4,'priority':'after_all_to_all','servers':'m[0].0','staleness':3,'group':2,"
    "'weights':'staleness'},"
    "'claimed':{'iteration_s':10.5,'tokens_per_s':7,'formula':'eq. "
    "4','leaves_out':'servers','warnings':['w 1','w "
    "2'],'terms':{'warmup_s':2}},'partial_inference':false}";

/* Which fields hold what, for one representative of every group of knobs. */
static void all_knobs(void **state)
{
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    if (build(*state, everything, &doc, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    const struct hv_plan *p = doc.plan;
    const struct hv_replica *r = &p->replicas[0];
    const struct hv_stage *s = &r->stages[0];
    assert_string_equal(p->strategy_options[0].value, "1");
    assert_string_equal(p->strategy_options[3].value, "[1,2]");
    assert_int_equal(hv_replica_sequences(p, r), 5);
    assert_int_equal(hv_stage_micro_batch(p, r, s), 5);
    assert_int_equal(hv_stage_micro_batch(p, r, &r->stages[1]), 6);
    assert_int_equal(s->n_devices, 3);
    assert_int_equal(s->devices[2], 8 + 2);
    assert_int_equal(s->ranges[0].to2, 5);
    assert_int_equal(s->tp.scheme, HV_TP_25D);
    assert_int_equal(s->cp.layout, HV_CP_STRIPED);
    assert_int_equal(s->moe[0].degree_backward, 4);
    assert_true(s->moe[0].copies[1].everywhere);
    assert_true(s->moe[0].compress_bytes_per_s == 1e11);
    assert_int_equal(s->moe[1].ep, 0);
    assert_int_equal(s->n_degrees, 2);
    assert_true(s->degrees[0].from == 0 && s->degrees[0].to == 1 && s->degrees[0].tp.degree == 2);
    assert_true(s->degrees[0].sequence_parallel && s->degrees[0].cp.ulysses == 2);
    assert_true(s->degrees[0].dp == 3 && s->degrees[0].zero.reduce == HV_REDUCE_EACH);
    assert_true(s->degrees[1].tp.degree == 1 && s->degrees[1].dp == 1 &&
                s->degrees[1].zero.limit == 2);
    assert_int_equal(s->recompute_per[1], HV_RC_QKV | HV_RC_UP);
    assert_int_equal(s->recompute_per[3], HV_RC_CORE);
    assert_true(s->offload[0].to_host);
    assert_int_equal(s->offload[1].devices[0], 12);
    assert_int_equal(r->stages[1].n_after, 0);
    assert_int_equal(r->stages[1].deal, HV_DEAL_TURNS);
    const char *memory = NULL;
    for (size_t i = 0; i < p->schedule.n_options; i++) {
        assert_string_not_equal(p->schedule.options[i].key, "slices");
        if (strcmp(p->schedule.options[i].key, "memory") == 0) {
            memory = p->schedule.options[i].value;
        }
    }
    assert_string_equal(memory, "0.5");
    assert_int_equal(p->schedule.slices, 2);
    assert_int_equal(p->schedule.n_order[0], 2);
    assert_true(p->sync.bucket_bytes[1] == 25 * HV_MIB);
    assert_true(p->sync.cycle_s == 0.005);
    assert_true(p->claimed.iteration_s == 10.5);
    assert_string_equal(p->claimed.leaves_out, "servers");
    assert_int_equal(p->claimed.n_warnings, 2);
    assert_string_equal(p->claimed.warnings[1], "w 2");
    assert_false(p->partial_inference);
    assert_int_equal(p->flow[2].to, -2);
    hv_plan_doc_free(&doc);
}

/* Writing gives the file's own tree back, and building that the same tree again. */
static void write_is_inverse(void **state)
{
    struct hv_plan_doc doc, again;
    struct hv_err err = {0};
    assert_int_equal(build(*state, everything, &doc, &err), HV_OK);
    json_t *tree = hv_plan_to_json(doc.plan, NULL, NULL, NULL);
    if (!json_equal(tree, doc.json.root)) {
        char *mine = json_dumps(tree, JSON_COMPACT);
        fail_msg("written: %s", mine);
    }
    struct hv_json json;
    hv_json_wrap(&json, json_incref(tree), "again");
    assert_int_equal(hv_plan_doc_build(&again, json, *state, &err), HV_OK);
    json_t *third = hv_plan_to_json(again.plan, NULL, NULL, NULL);
    struct hv_str a = {0}, b = {0};
    hv_json_write(&a, tree, true);
    hv_json_write(&b, third, true);
    assert_string_equal(hv_str_cstr(&a), hv_str_cstr(&b));
    hv_str_free(&a);
    hv_str_free(&b);
    json_decref(tree);
    json_decref(third);
    hv_plan_doc_free(&doc);
    hv_plan_doc_free(&again);
}

static void defaults_are_left_out(void **state)
{
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    assert_int_equal(build(*state,
                           "{'format':'hetviz.plan/1','micro_batch':1,'mode':'train','replicas':[{"
                           "'count':1,'micro_batches':2,'stages':[{'devices':['a[0].0','a[0].1'],"
                           "'layers':[0,8],'tp':2,'cp':1,'dp':1,'zero':0,'recompute':'none','cp':{"
                           "'tile':128}}]}],'sync':{'kind':'allreduce','bucket_MiB':25}}",
                           &doc, &err),
                     HV_EINPUT); /* cp twice: a duplicate key */
    assert_non_null(strstr(err.text, "cp"));
    assert_int_equal(build(*state,
                           "{'format':'hetviz.plan/1','micro_batch':1,'mode':'train','replicas':[{"
                           "'count':1,'micro_batches':2,'stages':[{'devices':['a[0].0','a[0].1'],"
                           "'layers':[0,8],'tp':{'degree':2},'cp':{'tile':128},'dp':1,'zero':0,"
                           "'recompute':'none'}]}],'sync':{'kind':'allreduce','bucket_MiB':25}}",
                           &doc, &err),
                     HV_OK);
    json_t *tree = hv_plan_to_json(doc.plan, "c.json", "m", NULL);
    char *text = json_dumps(tree, JSON_COMPACT);
    assert_string_equal(text,
                        "{\"format\":\"hetviz.plan/1\",\"cluster\":\"c.json\",\"model\":\"m\","
                        "\"replicas\":[{\"micro_batches\":2,\"stages\":[{\"devices\":"
                        "\"a[0].0-1\",\"layers\":[0,8],\"tp\":2}]}],\"schedule\":{\"name\":"
                        "\"1f1b\"}}");
    free(text);
    json_decref(tree);
    hv_plan_doc_free(&doc);
}

struct wrong {
    const char *stage, *rest,
        *text; /* members added to a stage and to the plan; part of the message */
};

/* Every refusal names the key path and has a position. */
static void wrong_values(void **state)
{
    static const struct wrong rows[] = {
        {"'tpp':2", "", "tp"},
        {"'tp':'2'", "", "stages[0].tp"},
        {"'tp':0", "", "stages[0].tp"},
        {"'tp':{'degree':2.5}", "", "tp.degree"},
        {"'tp':{'degree':2,'shares':[1,2,3]}", "", "tp.shares"},
        {"'tp':{'shares':[1,0]}", "", "tp.shares[1]"},
        {"'tp':{'scheme':'2e'}", "", "tp.scheme"},
        {"'sequence_parallel':1", "", "sequence_parallel"},
        {"'cp':[]", "", "stages[0].cp"},
        {"'cp':{'layout':'zig'}", "", "cp.layout"},
        {"'cp':{'scheme':'rings'}", "", "cp.scheme"},
        {"'cp':{'dims':[1]}", "", "cp.dims[0]"},
        {"'dp':-1", "", "stages[0].dp"},
        {"'deal':'turn'", "", "stages[0].deal"},
        {"'dp':2,'shares':[1]", "", "expected 2 shares, one per dp rank, found 1"},
        {"'dp':2,'deal':'turns','shares':[1,1]", "", "stages[0].shares"},
        {"'ep':true", "", "stages[0].ep"},
        {"'moe':{'degree':[1]}", "", "moe.degree"},
        {"'moe':{'copies':{'x':'*'}}", "", "expected the number of an expert as key, found \"x\""},
        {"'moe':{'target':[[1,2]]}", "", "moe.target[0]"},
        {"'moe':[{'compress':{}}]", "", "ratio"},
        {"'moe':{'capacity_factor':-1}", "", "moe.capacity_factor"},
        {"'moe':{'off_node_frac':2}", "", "moe.off_node_frac"},
        {"'zero':4", "", "stages[0].zero"},
        {"'zero':{'unit':'block'}", "", "zero.unit"},
        {"'zero':{'limit':0}", "", "zero.limit"},
        {"'recompute':'qkv+'", "", "stages[0].recompute"},
        {"'recompute':'up+up'", "", "stages[0].recompute"},
        {"'recompute':[]", "", "stages[0].recompute"},
        {"'recompute':true", "", "stages[0].recompute"},
        {"'offload':[{'frac':1}]", "", "what"},
        {"'offload':[{'what':'weights','to':'q[0].0'}]", "", "offload[0].to"},
        {"'offload':{'what':'weights'}", "", "stages[0].offload"},
        {"'in_flight':'2'", "", "stages[0].in_flight"},
        {"'mesh':{'x':0}", "", "mesh.x"},
        {"'shard':{'a':'b'}", "", "shard.a"},
        {"'place':{'a':'q[0]'}", "", "place.a"},
        {"'fuse':[['a']]", "", "fuse[0]"},
        {"'after':[0]", "", "after[0]"},
        {"'after':[1]", "", "after[0]"},
        {"'embedding':'yes'", "", "stages[0].embedding"},
        {"'ops':['x']", "", "either layers or ops"},
        {"", ",'mode':'training'", "mode"},
        {"", ",'micro_batch':0", "micro_batch"},
        {"", ",'jobs':[]", "jobs"},
        {"", ",'flow':[[0,1]]", "flow[0]"},
        {"", ",'flow':[['sink',0,1]]", "flow[0][0]"},
        {"", ",'schedule':'1f1b'", "schedule"},
        {"", ",'schedule':{'slices':0}", "schedule.slices"},
        {"", ",'schedule':{'order':[1]}", "schedule.order[0]"},
        {"", ",'schedule':{'group':{}}", "schedule.group"},
        {"", ",'sync':{'kind':'all'}", "sync.kind"},
        {"", ",'sync':{'bucket_MiB':[]}", "sync.bucket_MiB"},
        {"", ",'sync':{'bucket_MiB':-1}", "sync.bucket_MiB"},
        {"", ",'sync':{'servers':'q'}", "sync.servers"},
        {"", ",'sync':{'overlap':0}", "sync.overlap"},
        {"", ",'sync':{'staleness':-1}", "sync.staleness"},
        {"", ",'claimed':{'iteration_s':'x'}", "claimed.iteration_s"},
        {"", ",'simulated':1", "simulated"},
        {"", ",'violations':{}", "violations"},
        {"", ",'cluster':1", "cluster"},
        {"", ",'strategy':{}", "name"},
        {"", ",'replica':[]", "replicas"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_str text = {0};
        struct hv_plan_doc doc;
        struct hv_err err = {0};
        hv_str_addf(&text,
                    "{'format':'hetviz.plan/1','replicas':[{'micro_batches':1,'stages':[{'devices':"
                    "'a[0].0','layers':[0,8]%s%s}]}]%s}",
                    rows[i].stage[0] != '\0' ? "," : "", rows[i].stage, rows[i].rest);
        if (build(*state, hv_str_cstr(&text), &doc, &err) != HV_EINPUT) {
            fail_msg("accepted: %s", text.p);
        }
        if (strstr(err.text, rows[i].text) == NULL || err.line != 1 || err.col == 0) {
            fail_msg("%s: %u:%u: %s", text.p, err.line, err.col, err.text);
        }
        hv_str_free(&text);
    }
}

static void wrong_shapes(void **state)
{
    static const char *const rows[][2] = {
        {"[]", "(top level)"},
        {"{'format':'hetviz.plan/2','replicas':[]}", "format"},
        {"{'format':'hetviz.plan/1'}", "replicas"},
        {"{'format':'hetviz.plan/1','replicas':[]}", "replicas"},
        {"{'format':'hetviz.plan/1','replicas':[{'stages':[]}]}", "micro_batches"},
        {"{'format':'hetviz.plan/1','replicas':[{'micro_batches':[],'stages':[]}]}",
         "replicas[0].micro_batches"},
        {"{'format':'hetviz.plan/1','replicas':[{'micro_batches':1,'stages':[]}]}",
         "replicas[0].stages"},
        {"{'format':'hetviz.plan/1','replicas':[{'micro_batches':1,'stages':[{'layers':[0,1]}]}]}",
         "devices"},
        {"{'format':'hetviz.plan/1','replicas':[{'micro_batches':1,'stages':[{'devices':'a'}]}]}",
         "layers"},
        {"{'format':'hetviz.plan/1','replicas':[{'micro_batches':1,'stages':[{'devices':'a[7]',"
         "'layers':[0,1]}]}]}",
         "replicas[0].stages[0].devices"},
        {"{'format':'hetviz.plan/1','replicas':[{'micro_batches':1,'stages':[{'devices':'a',"
         "'layers':[0,1.25]}]}]}",
         "layers[1]"},
        {"{'format':'hetviz.plan/1','replicas':[{'micro_batches':1,'stages':[{'devices':'a',"
         "'layers':[3,1]}]}]}",
         "layers"},
        {"{'format':'hetviz.plan/1','replicas':[{'micro_batches':1,'stages':[{'devices':'a[0]',"
         "'layers':[0,1],'after':[1]},{'devices':'a[1]','layers':[1,2],'after':[0]}]}]}",
         "without a cycle"},
        {"{'format':'hetviz.plan/1','jobs':[{'name':'j','plan':{'jobs':[]}}]}",
         "jobs[0].plan.jobs"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct hv_plan_doc doc;
        struct hv_err err = {0};
        if (build(*state, rows[i][0], &doc, &err) != HV_EINPUT) {
            fail_msg("accepted: %s", rows[i][0]);
        }
        if (strstr(err.text, rows[i][1]) == NULL || err.line != 1) {
            fail_msg("%s: %s", rows[i][0], err.text);
        }
    }
}

static void jobs(void **state)
{
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    if (build(
            *state,
            "{'format':'hetviz.plan/1','jobs':[{'name':'one','plan':{'replicas':[{'micro_batches':"
            "2,'stages':[{'devices':'a[0].0','layers':[0,8]}]}]}}]}",
            &doc, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(doc.plan->n_jobs, 1);
    assert_string_equal(doc.plan->jobs[0].name, "one");
    assert_int_equal(doc.plan->jobs[0].plan->replicas[0].micro_batches, 2);
    hv_plan_doc_free(&doc);
}

/* Option texts keep their text, whatever JSON type they are written as. */
static void option_texts(void **state)
{
    static const char *const texts[] = {"1",   "1.5",   "true",  "a,b", "007",
                                        "1e3", "\"x\"", "[1,2]", "-"};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(texts); i++) {
        json_t *v = hv_option_to_json(texts[i]);
        struct hv_str text = {0};
        if (json_is_string(v)) {
            hv_str_adds(&text, json_string_value(v));
        } else {
            hv_json_write(&text, v, false);
        }
        assert_string_equal(hv_str_cstr(&text), texts[i]);
        hv_str_free(&text);
        json_decref(v);
    }
}

/* The shipped plans name their inputs by catalogue name and keep every rule. */
static void samples(void **state)
{
    static const char *const names[] = {"uniform", "two-replicas", "three-generations",
                                        "zero-bubble", "experts"};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        struct hv_str path = {0}, file = {0};
        struct hv_err err = {0};
        struct hv_plan_doc doc;
        struct hv_inputs in;
        hv_str_addf(&file, "samples/plans/%s.json", names[i]);
        if (hv_data_path(&path, hv_str_cstr(&file), &err) != HV_OK ||
            hv_plan_doc_read(&doc, hv_str_cstr(&path), NULL, NULL, NULL, &in, &err) != HV_OK) {
            fail_msg("%s: %s", names[i], err.text);
        }
        struct hv_arena arena = {0};
        struct hv_findings f = {.arena = &arena};
        hv_plan_check(doc.plan, in.model.model, &in.job.job, &f);
        if (f.n > 0) {
            fail_msg("%s: %s: %s", names[i], f.items[0].where, f.items[0].text);
        }
        hv_arena_free(&arena);
        hv_plan_doc_free(&doc);
        hv_inputs_free(&in);
        hv_str_free(&path);
        hv_str_free(&file);
    }
}

/* Inputs held by the plan itself need no format; what the caller names wins; nothing named is an
 * error. */
static void inputs_of_a_plan(void **state)
{
    static const char plan[] =
        "{\"format\":\"hetviz.plan/1\",\"cluster\":{\"name\":\"c\",\"nodes\":[{\"name\":\"n\","
        "\"device\":\"A100-SXM-80GB\",\"devices\":2}]},\"job\":{\"global_batch\":4,\"sequence\":"
        "1024,\"objective\":{\"allow_stale\":false}},\"replicas\":[{\"micro_batches\":4,\"stages\":"
        "[{\"devices\":\"n[0].*\",\"layers\":"
        "[0,32],\"tp\":2}]}]}";
    static const char name[] = "test_io_plan.tmp.json";
    struct hv_plan_doc doc;
    struct hv_inputs in;
    struct hv_err err = {0};
    (void)state;
    assert_int_equal(hv_file_write(name, plan, sizeof plan - 1, &err), HV_OK);
    assert_int_equal(hv_plan_doc_read(&doc, name, NULL, NULL, NULL, &in, &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "\"model\""));
    assert_non_null(strstr(err.text, "-m MODEL"));
    if (hv_plan_doc_read(&doc, name, NULL, "llama-3-8b", NULL, &in, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(in.job.job.global_batch, 4);
    assert_true(in.job.job.objective.allow_stale_given);
    assert_false(in.job.job.objective.allow_drop_given);
    assert_int_equal(doc.plan->cluster->n_devices, 2);
    hv_plan_doc_free(&doc);
    hv_inputs_free(&in);
    /* another cluster: the plan's address is then unknown */
    assert_int_equal(hv_plan_doc_read(&doc, name, "homogeneous", "llama-3-8b", NULL, &in, &err),
                     HV_EINPUT);
    assert_non_null(strstr(err.text, "replicas[0].stages[0].devices"));
    assert_int_equal(remove(name), 0);
}

/* The schema knows exactly the keys of the reader. */
static void schema_agrees(void **state)
{
    (void)state;
    struct hv_str path = {0}, text = {0};
    struct hv_err err = {0};
    if (hv_data_path(&path, "share/schema/plan.schema.json", &err) != HV_OK ||
        hv_file_read(hv_str_cstr(&path), &text, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    json_t *schema = json_loadb(text.p, text.n, 0, NULL);
    assert_non_null(schema);
    for (size_t i = 0; i < HV_PLAN_OBJECT_N; i++) {
        const struct hv_plan_object_keys *o = &hv_plan_objects[i];
        const json_t *def = i == HV_PLAN_OBJECT_plan
                                ? schema
                                : json_object_get(json_object_get(schema, "$defs"), o->name);
        const json_t *properties = json_object_get(def, "properties");
        if (json_object_size(properties) != o->n) {
            fail_msg("%s: %zu keys in the schema, %zu in the reader", o->name,
                     json_object_size(properties), o->n);
        }
        for (size_t k = 0; k < o->n; k++) {
            if (json_object_get(properties, o->keys[k]) == NULL) {
                fail_msg("%s: the schema lacks %s", o->name, o->keys[k]);
            }
        }
    }
    json_decref(schema);
    hv_str_free(&path);
    hv_str_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_knobs),
        cmocka_unit_test(write_is_inverse),
        cmocka_unit_test(defaults_are_left_out),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(wrong_shapes),
        cmocka_unit_test(jobs),
        cmocka_unit_test(option_texts),
        cmocka_unit_test(schema_agrees),
        cmocka_unit_test(samples),
        cmocka_unit_test(inputs_of_a_plan),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
