/* Imports that describe work: models, launch configurations, schedules, traces; and what holds for
 * every format: the table, hostile bytes, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/io/import/trace/scan.h"
#include "tests/unit/import_bench.h"

static void configs_become_models(void **state)
{
    (void)state;
    static const char config[] =
        "{\"model_type\": \"llama\",\n \"hidden_size\": 64, \"num_hidden_layers\": 2,\n"
        " \"num_attention_heads\": 4, \"intermediate_size\": 128, \"vocab_size\": 1000, "
        "\"hidden_act\": \"silu\",\n"
        " \"rope_scaling\": null, \"eps\": NaN, \"brand_new\": 7}";
    struct import x = import_one("hf_config", config);
    import_word(&x, "format", "hetviz.model/1");
    import_number(&x, "hidden", 64);
    import_word(&x, "ffn_kind", "swiglu");
    import_says(&x, HV_IMPORT_GUESSED, 0, "key/value heads is not given: 4");
    import_says(&x, HV_IMPORT_IGNORED, 0, "brand_new = 7");
    import_word(&x, "x-import.raw.brand_new", "7");
    import_free(&x);
    /* an index of weights checks the model that stands beside it: 2 bytes for each parameter */
    const char *const both[] = {
        config,
        "{\"metadata\":{\"total_size\":\"420480\"},\"weight_map\":{\"model.layers.0."
        "mlp.gate_proj.weight\":\"a\",\"model.layers.1.x\":\"a\"}}",
        NULL};
    x = import_texts(both);
    assert_int_equal(x.st, HV_OK);
    import_number(&x, "hidden", 64);
    import_says(&x, HV_IMPORT_UNDERSTOOD, 0, "index of weights gives");
    import_free(&x);
    /* alone it tells layers and size */
    x = import_one("safetensors_index",
                   "{\"metadata\":{\"total_size\":2.0e10},\"weight_map\":{\"lm_head.weight\":\"a\","
                   "\"model.layers.0.mlp.gate_proj.weight\":\"a\",\"model.layers.39.x\":\"b\"}}");
    import_number(&x, "layers", 40);
    import_says(&x, HV_IMPORT_GUESSED, 0, "names do not give shapes");
    struct hv_json json = {0};
    struct hv_model_doc doc;
    hv_json_wrap(&json, json_incref(hv_import_model(x.im)), "m");
    assert_int_equal(hv_model_doc_build(&doc, json, NULL), HV_OK);
    assert_true(fabs(hv_model_parameters(doc.model) / 1e10 - 1) < 0.02);
    hv_model_doc_free(&doc);
    import_free(&x);
}

/* Names of other families, of two stacks, of towers and of quantised checkpoints; no size. */
static void indexes_of_many_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double layers;
        const char *guess;
    } rows[] = {
        /* BLOOM has no word before the stack, ChatGLM and BERT only an encoder */
        {"{\"metadata\":{\"total_size\":4e9},\"weight_map\":{\"h.0.mlp.weight\":\"a\",\"h.29.mlp."
         "weight\":\"a\",\"word_embeddings.weight\":\"a\"}}",
         30, "two bytes"},
        {"{\"metadata\":{\"total_size\":\"12e9\"},\"weight_map\":{\"transformer.encoder.layers.27."
         "x\":"
         "\"a\"}}",
         28, "two bytes"},
        {"{\"metadata\":{\"total_size\":9e9},\"weight_map\":{\"encoder.block.0.layer.0.q\":\"a\","
         "\"encoder.block.23.layer.1.wi_1.w\":\"a\",\"decoder.block.23.layer.0.q\":\"a\"}}",
         48, "two bytes"},
        {"{\"metadata\":{\"total_size\":9e9},\"weight_map\":{\"vision_tower.encoder.layers.26.x\":"
         "\"a\","
         "\"vision_tower.encoder.layers.0.x\":\"a\",\"language_model.layers.31.x\":\"a\"}}",
         32, "another tower"},
        {"{\"metadata\":{},\"weight_map\":{\"model.layers.39.x\":\"pytorch_model-00001-of-00003."
         "bin\"}}",
         40, "3 files of up to 5 GB"},
        {"{\"metadata\":null,\"weight_map\":{\"model.layers.39.x\":\"m.safetensors\"}}", 40,
         "1 files of up to 5 GB"},
        {"{\"metadata\":{\"total_size\":0},\"weight_map\":{\"model.layers.3.x.w\":\"m."
         "safetensors\"}}",
         4, "1 files"},
        {"{\"metadata\":{\"total_size\":36e9},\"weight_map\":{\"model.layers.79.x.qweight\":\"a\"}"
         "}",
         80, "quantised: 0.55 bytes"},
        {"{\"metadata\":{\"total_size\":688e9},\"weight_map\":{\"model.layers.60.x.weight_scale_"
         "inv\":"
         "\"a\",\"model.layers.60.mlp.experts.255.x.weight\":\"a\"}}",
         61, "256 experts"},
        {"{\"metadata\":{\"total_parameters\":70e9},\"weight_map\":{\"model.layers.79.x\":\"a\"}}",
         80, "7e+10 parameters"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct import x = import_one("safetensors_index", rows[i].text);
        double layers = json_number_value(import_at(x.doc, "layers"));
        if (fabs(layers - rows[i].layers) > 0.1) {
            fail_msg("row %zu: %g layers", i, layers);
        }
        import_says(&x, HV_IMPORT_GUESSED, 0, rows[i].guess);
        import_free(&x);
    }
}

/* Files as people write them: comments, Python's dicts, placeholders, YAML; parts of a config. */
static void deepspeed_as_people_write_it(void **state)
{
    (void)state;
    struct import x = import_one(
        "deepspeed",
        "{\n // why\n \"fp16\": {\"enabled\": true, \"loss_scale\": 1e-4}, # note \"x\"\n"
        " \"optimizer\": {\"type\": \"AdamW\"}, /* a\n b */\n}\n");
    import_word(&x, "precision", "fp16");
    import_word(&x, "optimizer", "adamw");
    import_free(&x);
    x = import_one("deepspeed", "{'train_batch_size': 16, 'a': 'it\\'s \"x\"', 'b': None, "
                                "'bf16': {'enabled': True}, 'zero_optimization': {'stage': 2}}");
    import_number(&x, "global_batch", 16);
    import_number(&x, "x-strategy.options.zero", 2);
    import_free(&x);
    x = import_one("deepspeed",
                   "{\"train_batch_size\": GBS, \"train_micro_batch_size_per_gpu\": ${MBS}, "
                   "\"zero_optimization\": {\"stage\": <STAGE>}}");
    import_says(&x, HV_IMPORT_GUESSED, 0, "train_batch_size is GBS");
    import_says(&x, HV_IMPORT_GUESSED, 0, "per_gpu is ${MBS}");
    import_free(&x);
    x = import_one("deepspeed", "train_batch_size: 64\nzero_optimization:\n  stage: 3\n");
    import_number(&x, "global_batch", 64);
    import_free(&x);
    x = import_one("deepspeed", "{\"tensor_parallel\":{\"tp_size\":4},\"dtype\":\"fp16\"}");
    import_number(&x, "x-strategy.options.tp", 4);
    import_word(&x, "precision", "fp16");
    import_free(&x);
}

/* Variables with defaults, sums, arrays; printed arguments; files of GPT-NeoX. */
static void megatron_as_people_write_it(void **state)
{
    (void)state;
    struct import x =
        import_one("megatron_args",
                   "LAYERS=24\nTP=${TP:-4}\nPP=${1-2}\nGPUS=$((TP * PP))\nARGS=(\n"
                   "  --num-layers ${LAYERS} --hidden-size 2048 --num-attention-heads 16\n"
                   "  --tensor-model-parallel-size $TP --pipeline-model-parallel-size=$PP --bf16\n"
                   ")\ntorchrun x.py ${ARGS[@]} --micro-batch-size 4 "
                   "--global-batch-size $((GPUS*(3+1) - 16/2%3))\n");
    import_number(&x, "strategies[0].options.tp", 4);
    import_number(&x, "strategies[0].options.pp", 2);
    import_number(&x, "job.global_batch", 30);
    import_word(&x, "job.precision", "bf16");
    import_says(&x, HV_IMPORT_UNDERSTOOD, 7, "bf16");
    assert_false(import_has(&x, "bf16 torchrun"));
    import_free(&x);
    x = import_one("megatron_args",
                   "  num_layers ............ 24\n[rank0]:  hidden_size ....... 2048\n"
                   "  num_attention_heads .... 16\n  tensor_model_parallel_size .... 2\n"
                   "  global_batch_size ...... 64\n  bf16 ........ True\n  fp16 ...... False\n");
    import_number(&x, "model.layers", 24);
    import_number(&x, "job.global_batch", 64);
    import_word(&x, "job.precision", "bf16");
    import_free(&x);
    x = import_one("megatron_yaml",
                   "{\n  # model\n  \"pipe-parallel-size\": 2, \"model-parallel-size\": 4,\n"
                   "  \"num-layers\": 24, \"hidden-size\": 2048, \"num-attention-heads\": 16,\n"
                   "  \"train_micro_batch_size_per_gpu\": 4, \"fp16\": {\"enabled\": True},\n"
                   "  \"zero_optimization\": {\"stage\": 1},\n}\n");
    import_number(&x, "strategies[0].options.pp", 2);
    import_number(&x, "strategies[0].options.tp", 4);
    import_number(&x, "strategies[0].options.zero", 1);
    import_number(&x, "model.layers", 24);
    import_free(&x);
}

static void deepspeed_and_accelerate(void **state)
{
    (void)state;
    struct import x =
        import_one("deepspeed",
                   "{\"train_batch_size\":64,\"train_micro_batch_size_per_gpu\":4,"
                   "\"gradient_accumulation_steps\":2,\"bf16\":{\"enabled\":true},"
                   "\"zero_optimization\":{\"stage\":3,\"offload_optimizer\":{\"device\":\"cpu\"}},"
                   "\"optimizer\":{\"type\":\"FusedAdam\"},\"steps_per_print\":1}");
    import_number(&x, "global_batch", 64);
    import_word(&x, "precision", "bf16");
    import_word(&x, "optimizer", "adam");
    import_number(&x, "x-strategy.options.dp", 8); /* train = micro x steps x dp */
    import_number(&x, "x-strategy.options.zero", 3);
    import_word(&x, "x-strategy.options.offload", "optimizer");
    import_free(&x);
    x = import_one("accelerate_yaml",
                   "distributed_type: FSDP\nfsdp_config:\n  fsdp_sharding_strategy: 2\n"
                   "  fsdp_activation_checkpointing: true\nmixed_precision: 'no'\n"
                   "num_processes: 16\nbrand_new: 1\n");
    import_number(&x, "x-strategy.options.zero", 2);
    import_number(&x, "x-strategy.options.dp", 16);
    import_word(&x, "x-strategy.options.recompute", "full");
    import_word(&x, "precision", "fp32");
    import_says(&x, HV_IMPORT_IGNORED, 7, "brand_new");
    import_free(&x);
}

static void megatron_scripts(void **state)
{
    (void)state;
    struct import x = import_one(
        "megatron_args",
        "#!/bin/bash\nLAYERS=${1:-8}\nTP=2\nARGS=(\n  --num-layers $LAYERS \\\n  --hidden-size "
        "4096 # w\n"
        "  --num-attention-heads 32 --seq-length=2048 --group-query-attention --num-query-groups "
        "8\n"
        "  --tensor-model-parallel-size ${TP}\n  --pipeline-model-parallel-size \"2\"\n"
        "  --num-experts 8 --moe-router-topk 2 --moe-layer-freq ([0]*3+[1]*5) --swiglu\n"
        "  --micro-batch-size 1 --global-batch-size 64 --bf16 --use-distributed-optimizer\n"
        "  --pipeline-model-parallel-layout Et|(tt|)*2t*3mL\n)\ntorchrun --nproc_per_node 8 "
        "--nnodes 2 x.py\n");
    import_word(&x, "format", "hetviz.workspace/1");
    import_number(&x, "model.layers", 8);
    import_number(&x, "model.kv_heads", 8);
    import_number(&x, "model.ffn", 10880); /* two thirds of 4 h in whole 64s */
    import_number(&x, "model.moe.first_dense", 3);
    import_number(&x, "job.global_batch", 64);
    import_number(&x, "strategies[0].options.tp", 2);
    import_number(&x, "strategies[0].options.dp", 4); /* 16 ranks */
    import_number(&x, "strategies[0].options.chunks", 2);
    import_word(&x, "strategies[0].options.layers", "1,2,2,3");
    import_number(&x, "strategies[0].options.zero", 1);
    import_says(&x, HV_IMPORT_GUESSED, 0, "no file lists the devices");
    assert_true(hv_import_cluster_is_guess(x.im));
    import_free(&x);
    x = import_one("megatron_yaml",
                   "MODEL_ARGS:\n  --num-layers: 13\n  --hidden-size: 512\n"
                   "  --num-attention-heads: 8\n  --tensor-model-parallel-size: 1\n"
                   "  --pipeline-model-parallel-size: 4\n"
                   "  --decoder-first-pipeline-num-layers: 1\n  --bf16: true\n"
                   "  --micro-batch-size: 4\n");
    import_word(&x, "strategies[0].options.layers", "1,4,4,4");
    import_free(&x);
}

static void torchtitan(void **state)
{
    (void)state;
    struct import x =
        import_one("torchtitan_toml",
                   "[job]\ndump_folder = \"./o\"\n[model]\nname = \"llama3\" # [x]\n[training]\n"
                   "local_batch_size = 2\nseq_len = 8_192\n[parallelism]\n"
                   "data_parallel_shard_degree = 4\ntensor_parallel_degree = 8\n"
                   "pipeline_parallel_degree = 2\npipeline_parallel_schedule = \"1F1B\"\n");
    import_number(&x, "sequence", 8192);
    import_number(&x, "x-strategy.options.tp", 8);
    import_number(&x, "x-strategy.options.zero", 3);
    import_number(&x, "global_batch", 8);
    import_word(&x, "x-strategy.options.schedule", "1f1b");
    import_free(&x);
}

static void schedules_become_plans(void **state)
{
    (void)state;
    struct import x =
        import_one("pipelining_csv", "0F0,0F1,,0B0,0B1\n,1F0,1F1,1I0,1W0,1B1,1SEND_B0\n");
    import_word(&x, "format", "hetviz.plan/1");
    import_word(&x, "schedule.name", "explicit");
    import_word(&x, "schedule.order[0][2]", "BW0.0");
    import_word(&x, "schedule.order[1][2]", "B1.0");
    import_number(&x, "replicas[0].micro_batches", 2);
    import_free(&x);
    import_refused("0F0,0F1\n0B0,1F0\n", 16, HV_EINPUT, "rank 0 already");
    /* files with the transfers and shards of the runtime (torch 2.15), and overlapped pairs */
    x = import_one("pipelining_csv",
                   ",,\n0UNSHARD,0F0,0SEND_F0,0F1,0WAIT_SEND_F0,0RECV_B0,0WAIT_RECV_B0,\"(1F0;0B0)"
                   "OVERLAP_F_B\",1F1,0B1,1B0,1B1,0REDUCE_GRAD,0RESHARD\n");
    import_word(&x, "schedule.order[0][0]", "F0.0");
    import_word(&x, "schedule.order[0][2]", "{F1.0|BW0.0}");
    import_says(&x, HV_IMPORT_UNDERSTOOD, 0, "1 pairs of operations that overlap");
    import_says(&x, HV_IMPORT_IGNORED, 0, "7 sends, receives and shardings");
    import_free(&x);
    import_refused("0F0,0WAIT_FOO1\n", 15, HV_EINPUT, "");
    import_refused("0F0,(0F1;1X1)OVERLAP_F_B\n", 25, HV_EINPUT, "");
}

static void traces_are_summed_up(void **state)
{
    (void)state;
    struct import x = import_one(
        "chrome_trace",
        "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"GPU\"}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"pid\":0,\"tid\":7,"
        "\"ts\":10,"
        "\"dur\":6,\"args\":{\"In msg nelems\":4,\"dtype\":\"BFloat16\",\"Group size\":2}},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":\"8\",\"ts\":12,"
        "\"dur\":9},"
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":\"8\",\"ts\":14,"
        "\"dur\":1},"
        "{\"ph\":\"B\",\"name\":\"a\",\"pid\":\"x\",\"tid\":1,\"ts\":1},"
        "{\"ph\":\"E\",\"pid\":\"x\",\"tid\":1,\"ts\":4},"
        "{\"ph\":\"s\",\"id\":1,\"ts\":3,\"pid\":1,\"tid\":1},\n");
    import_number(&x, "wall_ms", 0.020);
    import_number(&x, "communication_ms", 0.006);
    import_number(&x, "hidden_communication_ms", 0.004); /* 12 to 16 */
    import_number(&x, "collectives[0].bytes", 8);
    import_word(&x, "kernels[0].name", "gemm");
    import_number(&x, "kernels[0].count", 2);
    import_number(&x, "streams[1].busy_ms", 0.009);
    import_says(&x, HV_IMPORT_GUESSED, 0, "incomplete or not strict");
    import_free(&x);
}

/* ---- every format -----------------------------------------------------------------------------
 */

static void the_table_is_whole(void **state)
{
    (void)state;
    size_t n = 0;
    for (; hv_import_format_at(n) != NULL; n++) {
        const struct hv_import_format *f = hv_import_format_at(n);
        assert_ptr_equal(hv_import_format_find(f->name), f);
        assert_true(strlen(f->title) > 3 && strlen(f->help) > 10);
    }
    assert_true(n >= 24);
    assert_ptr_equal(hv_import_format_find("NVIDIA-SMI-XML"),
                     hv_import_format_find("nvidia_smi_xml"));
    assert_null(hv_import_format_find("nvidia"));
}

static void hostile_bytes_are_refused_with_a_word(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum hv_status st;
        const char *words;
    } rows[] = {
        {"", HV_ENO, "empty"},
        {"hello\nworld\n", HV_EINPUT, "not one that hetviz knows"},
        {"{\"hidden_size\": 1", HV_EINPUT, "expected"},
        {"{\"a\":1}{\"weight_map\":{}}", HV_EINPUT, ""},
        {"{\"format\":\"hetviz.cluster/1\"}", HV_EINPUT, "hetviz's own"},
        {"<a><b></a>", HV_EINPUT, "XML is broken"},
        {"<html></html>", HV_EINPUT, "not one that hetviz knows"},
        {"<nvidia_smi_log></nvidia_smi_log>", HV_ENO, "no card"},
        {"bash: nvidia-smi: command not found\n", HV_ENO, "command not found"},
        {"PK\003\004xxxx", HV_EINPUT, "zip"},
        {"SQLite format 3\n", HV_EINPUT, "SQLite"},
        {"\x1F\x8B\x08\x00garbage", HV_EINPUT, "gzip"},
        {"distributed_type: *nowhere\n", HV_EINPUT, "alias"},
        {"distributed_type: &a [*a]\n", HV_EINPUT, "holds itself"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        import_refused(rows[i].text, strlen(rows[i].text), rows[i].st, rows[i].words);
    }
    /* entities do not read files, and do not grow without end */
    import_refused("<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>"
                   "<nvidia_smi_log><gpu><product_name>&x;</product_name></gpu></nvidia_smi_log>",
                   strlen("<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>") +
                       strlen("<nvidia_smi_log><gpu><product_name>&x;</product_name></gpu>"),
                   HV_EINPUT, "broken");
    char deep[4000];
    memset(deep, '[', sizeof deep);
    import_refused(deep, sizeof deep, HV_EINPUT, "");
}

/* A few lines of YAML that would be 8^9 values. */
static void aliases_do_not_multiply(void **state)
{
    (void)state;
    struct hv_str s = {0};
    hv_str_adds(&s, "distributed_type: FSDP\nl0: &l0 [x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 10; i++) {
        hv_str_addf(&s, "l%d: &l%d [*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d,*l%d]\n", i, i, i - 1, i - 1,
                    i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    import_refused(hv_str_cstr(&s), s.n, HV_ELIMIT, "aliases");
    hv_str_free(&s);
}

/* Collects events as text. */
static void note_event(void *ctx, json_t *event)
{
    char *text = json_dumps(event, JSON_COMPACT | JSON_SORT_KEYS);
    hv_str_addf(ctx, "%s\n", text);
    free(text);
}

/* A trace is split into its events in whatever pieces it arrives; strings may hold brackets. */
static void traces_arrive_in_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text, *events, *head;
        bool cut;
    } rows[] = {
        {"{\"a\":[{\"b\":1}],\"traceEvents\":[ {\"n\":\"}]{[\\\"\"} "
         ",{\"m\":[{}]}],\"z\":{\"y\":2}}",
         "{\"n\":\"}]{[\\\"\"}\n{\"m\":[{}]}\n",
         "{\"a\":[{\"b\":1}],\"traceEvents\":[],\"z\":{\"y\":2}}", false},
        {"[{\"n\":NaN},{\"n\":2}\n]", "{\"n\":null}\n{\"n\":2}\n", "[]", false},
        {"[{\"n\":1},{\"n\":2", "{\"n\":1}\n", NULL, true},
        {"{\"x\":{\"traceEvents\":[{\"n\":1}]},\"traceEvents\":[]}", "",
         "{\"x\":{\"traceEvents\":[{\"n\":1}]},\"traceEvents\":[]}", false},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        for (size_t piece = 1; piece < 64; piece += piece) {
            struct hv_str events = {0};
            struct hv__scan scan = {.each = note_event, .ctx = &events};
            size_t n = strlen(rows[i].text);
            for (size_t at = 0; at < n; at += piece) {
                hv__scan_feed(&scan, rows[i].text + at, at + piece < n ? piece : n - at);
            }
            assert_string_equal(hv_str_cstr(&events), rows[i].events);
            assert_int_equal(hv__scan_is_cut(&scan), rows[i].cut);
            json_t *head = hv__scan_head(&scan);
            char *text = rows[i].head ? json_dumps(head, JSON_COMPACT) : NULL;
            assert_true(!text || strcmp(text, rows[i].head) == 0);
            free(text);
            json_decref(head);
            hv__scan_free(&scan);
            hv_str_free(&events);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configs_become_models),
        cmocka_unit_test(indexes_of_many_names),
        cmocka_unit_test(deepspeed_and_accelerate),
        cmocka_unit_test(deepspeed_as_people_write_it),
        cmocka_unit_test(megatron_as_people_write_it),
        cmocka_unit_test(megatron_scripts),
        cmocka_unit_test(torchtitan),
        cmocka_unit_test(schedules_become_plans),
        cmocka_unit_test(traces_are_summed_up),
        cmocka_unit_test(traces_arrive_in_pieces),
        cmocka_unit_test(the_table_is_whole),
        cmocka_unit_test(hostile_bytes_are_refused_with_a_word),
        cmocka_unit_test(aliases_do_not_multiply),
    };
    return cmocka_run_group_tests(tests, import_setup, import_teardown);
}
