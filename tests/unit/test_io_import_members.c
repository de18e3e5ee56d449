/*
 * Nothing of an imported file is lost silently: every member of the seeds is named in the report by
 * its path, as understood, guessed or ignored. The walk through the trees is the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/io/import/text/trees.h"
#include "solver/io/import/text/xml.h"
#include "tests/unit/import_bench.h"
#include <unistd.h>

static struct hv_str seed(const char *name)
{
    struct hv_str path = {0}, text = {0};
    char file[256];
    (void)snprintf(file, sizeof file, "tests/fuzz/corpus/import/%s", name);
    assert_int_equal(hv_data_path(&path, file, NULL), HV_OK);
    assert_int_equal(hv_file_read(hv_str_cstr(&path), &text, NULL), HV_OK);
    hv_str_free(&path);
    return text;
}

static struct import import_seed(const char *name, const struct hv_str *text)
{
    struct import x = {.im = hv_import_new(&import_devices)};
    x.st = hv_import_text(x.im, NULL, name, hv_str_cstr(text), text->n, &x.err);
    x.st = x.st ? x.st : hv_import_finish(x.im, &x.err);
    if (x.st) {
        fail_msg("%s: %s", name, x.err.text);
    }
    return x;
}

/* A note "path", "path = value"; the number of levels that have one. */
static size_t levels_naming(const struct import *x, const char *path)
{
    size_t n, length = strlen(path);
    bool found[HV_IMPORT_LEVEL_N] = {false};
    const struct hv_import_note *notes = hv_import_notes(x->im, &n);
    for (size_t i = 0; i < n; i++) {
        bool same =
            strncmp(notes[i].text, path, length) == 0 &&
            (notes[i].text[length] == '\0' || strncmp(notes[i].text + length, " = ", 3) == 0);
        found[notes[i].level] = found[notes[i].level] || (same && notes[i].member);
    }
    return (size_t)found[0] + found[1] + found[2];
}

static void is_named(const struct import *x, const char *seed_name, const char *path)
{
    if (levels_naming(x, path) != 1) {
        fail_msg("%s: %s is named in %zu lists", seed_name, path, levels_naming(x, path));
    }
}

static void walk(const struct import *x, const char *name, json_t *v, const char *path)
{
    char below[512];
    const char *key;
    json_t *child;
    size_t i;
    bool nested = false;
    json_array_foreach(v, i, child)
    {
        nested = nested || json_is_object(child) || json_is_array(child);
    }
    if (json_is_object(v) && json_object_size(v) > 0 && strcmp(path, "weight_map") != 0) {
        json_object_foreach(v, key, child)
        {
            (void)snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
            walk(x, name, child, below);
        }
    } else if (nested) {
        (void)snprintf(below, sizeof below, "%s[]", path);
        json_array_foreach(v, i, child)
        {
            walk(x, name, child, below);
        }
    } else {
        is_named(x, name, path);
    }
}

static void members_of_trees(void **state)
{
    static const char *const seeds[] = {
        "deepspeed",         "hf_config",          "hf_config-hybrid",  "hf_config-shared",
        "hf_config-layers",  "slurm_json",         "slurm_json-groups", "k8s_nodes",
        "safetensors_index", "accelerate_yaml",    "k8s_nodes-yaml",    "cloud_prices-json",
        "nccl_tests-json",   "cloud_prices-lambda"};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(seeds); i++) {
        struct hv_str text = seed(seeds[i]);
        struct import x = import_seed(seeds[i], &text);
        struct hv__line_list lines = {0};
        struct hv_err err = {0};
        json_t *tree = json_loads(hv_str_cstr(&text), JSON_ALLOW_NUL, NULL);
        tree = tree ? tree : hv__yaml(seeds[i], hv_str_cstr(&text), text.n, &lines, &err);
        assert_non_null(tree);
        walk(&x, seeds[i], tree, "");
        json_decref(tree);
        hv_vec_free(&lines);
        hv_str_free(&text);
        import_free(&x);
    }
}

static void walk_xml(const struct import *x, const char *name, const struct hv__xml *e,
                     const char *path)
{
    char below[512];
    for (size_t i = 0; e->attributes && e->attributes[i]; i += 2) {
        (void)snprintf(below, sizeof below, "%s@%s", path, e->attributes[i]);
        is_named(x, name, below);
    }
    if (!e->first && *path && *hv__xml_text(e)) {
        is_named(x, name, path);
    }
    for (const struct hv__xml *c = e->first; c; c = c->next) {
        (void)snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", c->name);
        walk_xml(x, name, c, below);
    }
}

static void members_of_xml(void **state)
{
    static const char *const seeds[] = {"nvidia_smi_xml", "nccl_topo_xml"};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(seeds); i++) {
        struct hv_str text = seed(seeds[i]);
        struct import x = import_seed(seeds[i], &text);
        struct hv_arena arena = {0};
        struct hv__xml *root = NULL;
        struct hv_err err = {0};
        assert_int_equal(hv__xml_parse(&arena, seeds[i], hv_str_cstr(&text), text.n, &root, &err),
                         HV_OK);
        walk_xml(&x, seeds[i], root, "");
        hv_arena_free(&arena);
        hv_str_free(&text);
        import_free(&x);
    }
}

/* Keys, columns and options of texts without a tree. */
static void members_of_texts(void **state)
{
    static const struct {
        const char *format, *text;
        const char *used[8], *unused[8];
    } rows[] = {
        {"slurm",
         "NodeName=a1 Arch=x86_64 CPUTot=64\n   Gres=gpu:h100:8 RealMemory=1000\n   State=IDLE "
         "Weight=1\n",
         {"NodeName", "CPUTot", "Gres", "RealMemory", "State"},
         {"Arch", "Weight"}},
        {"slurm",
         "ClusterName=c\nNodeName=DEFAULT Procs=4 Weight=1\nnodename=a[1-2] Gres=gpu:h100:8\n"
         "PartitionName=p Nodes=ALL MaxTime=1\nSchedulerType=x\n# Ended=1\n",
         {"NodeName", "Procs", "Gres", "PartitionName", "Nodes"},
         {"ClusterName", "Weight", "MaxTime", "SchedulerType"}},
        {"slurm",
         "NodeName=g[1-3] Name=gpu Type=t4 File=/dev/nvidia[0-3] Cores=1\n",
         {"NodeName", "Name", "Type", "File"},
         {"Cores"}},
        {"slurm",
         "PartitionName=b Nodes=o[1-2] TotalNodes=2 TRES=gres/gpu:p100=2 State=UP\n",
         {"PartitionName", "Nodes", "TotalNodes", "TRES"},
         {"State"}},
        {"slurm",
         "NODELIST GRES STATE TMP_DISK\na1 gpu:h100:8 idle 100\n",
         {"NODELIST", "GRES", "STATE"},
         {"TMP_DISK"}},
        {"sbatch",
         "#!/bin/sh\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:h100:8 --time=1:00\n#SBATCH -p x "
         "--exclusive\n",
         {"--nodes", "--gres", "-p"},
         {"--time", "--exclusive"}},
        {"nvidia_smi_csv",
         "name, memory.total [MiB], pstate\nNVIDIA H100 80GB HBM3, 81559 MiB, P0\n",
         {"name", "memory.total"},
         {"pstate"}},
        {"nvidia_smi_csv",
         "name, uuid, pci.bus_id, driver_version, vbios_version\n"
         "NVIDIA H100 80GB HBM3, GPU-1, 00000000:19:00.0, 550.1, 96.0\n",
         {"name", "uuid", "pci.bus_id", "driver_version"},
         {"vbios_version"}},
        {"cloud_prices",
         "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,Price\np5,H100,8,192,98.3\n",
         {"InstanceType", "AcceleratorName", "AcceleratorCount", "Price"},
         {"vCPUs"}},
        {"cloud_prices",
         "Vendor;GPU Type;GPUs;Per-Hour (USD);Uptime\nx;H100;8;20.5;99\n",
         {"Vendor", "GPU Type", "GPUs", "Per-Hour (USD)"},
         {"Uptime"}},
        {"cloud_prices",
         "{\"PriceList\":[\"{\\\"product\\\":{\\\"instanceType\\\":\\\"p4d.24xlarge\\\","
         "\\\"vcpu\\\":\\\"96\\\"},\\\"terms\\\":{\\\"pricePerUnit\\\":{\\\"USD\\\":"
         "\\\"32.77\\\"}}}\"],\"FormatVersion\":\"v1\"}",
         {"PriceList[].product.instanceType", "PriceList[].terms.pricePerUnit.USD"},
         {"PriceList[].product.vcpu", "FormatVersion"}},
        {"nccl_tests",
         "numCycle,Ranks,size,type,redop,time,algbw,busbw,#wrong\n"
         "0,8,1073741824,float,sum,10045,106.89,200.42,0\n",
         {"size", "type", "time", "algbw", "busbw"},
         {"numCycle", "Ranks", "redop", "#wrong"}},
        {"torchtitan_toml",
         "[job]\ndescription = \"x\"\n[training]\nlocal_batch_size = 2\n[parallelism]\n"
         "tensor_parallel_degree = 8\nenable_async_tensor_parallel = false\n",
         {"training.local_batch_size", "parallelism.tensor_parallel_degree"},
         {"job.description", "parallelism.enable_async_tensor_parallel"}},
        {"megatron_args",
         "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --micro-batch-size 1 "
         "--tensor-model-parallel-size 2 --lr 0.1 --clip-grad 1.0\n",
         {"num-layers", "hidden-size", "tensor-model-parallel-size"},
         {"lr", "clip-grad"}}};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct import x = import_one(rows[i].format, rows[i].text);
        for (size_t k = 0; k < 8 && rows[i].used[k]; k++) {
            is_named(&x, rows[i].format, rows[i].used[k]);
            import_says(&x, HV_IMPORT_UNDERSTOOD, 0, rows[i].used[k]);
        }
        for (size_t k = 0; k < 8 && rows[i].unused[k]; k++) {
            is_named(&x, rows[i].format, rows[i].unused[k]);
            import_says(&x, HV_IMPORT_IGNORED, 0, rows[i].unused[k]);
        }
        import_free(&x);
    }
}

/* A note of the same member in the other import, at the same level and as often. */
static bool has_same(const struct import *x, const struct hv_import_note *of)
{
    size_t n;
    const struct hv_import_note *notes = hv_import_notes(x->im, &n);
    for (size_t i = 0; i < n; i++) {
        if (notes[i].member && notes[i].level == of->level && notes[i].times == of->times &&
            strcmp(notes[i].text, of->text) == 0) {
            return true;
        }
    }
    return false;
}

static size_t count_members(const struct import *x, const struct import *in)
{
    size_t n, members = 0;
    const struct hv_import_note *notes = hv_import_notes(x->im, &n);
    for (size_t i = 0; i < n; i++) {
        members += notes[i].member;
        if (notes[i].member && !has_same(in, &notes[i])) {
            fail_msg("%s, %u times, is in one of the reports only", notes[i].text, notes[i].times);
        }
    }
    return members;
}

/* A trace file is read piece by piece: its report is that of the same text as a whole. */
static void members_of_streams(void **state)
{
    static const struct {
        const char *text, *used[4], *unused[4];
    } rows[] = {
        {"{\"schemaVersion\":1,\"distributedInfo\":{\"rank\":1,\"backend\":\"nccl\"},"
         "\"traceEvents\":["
         "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":5,"
         "\"args\":{\"Group "
         "size\":2,\"grid\":[1,2,3],\"more\":[{\"a\":1},{\"a\":2}]}},{\"ph\":\"X\","
         "\"ts\":9,\"dur\":1,\"pid\":0,\"tid\":7,\"args\":{}}],\"traceName\":\"t\",\"stray\":{}}",
         {"traceEvents[].ph", "traceEvents[].args.Group size", "distributedInfo.rank", "traceName"},
         {"schemaVersion", "traceEvents[].args.grid", "traceEvents[].args.more[].a", "stray"}},
        {"[{\"ph\":\"X\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":1,\"dur\":5,\"sf\":3}]",
         {"[].ph", "[].name", "[].ts"},
         {"[].sf"}}};
    (void)state;
    char folder[] = "/tmp/hetviz-test-XXXXXX", path[256];
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/trace.json", folder);
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        struct import whole = import_one("chrome_trace", rows[i].text);
        struct import x = {.im = hv_import_new(&import_devices)};
        assert_int_equal(hv_file_write(path, rows[i].text, strlen(rows[i].text), &x.err), HV_OK);
        x.st = hv_import_file(x.im, NULL, path, &x.err);
        x.st = x.st ? x.st : hv_import_finish(x.im, &x.err);
        assert_int_equal(x.st, HV_OK);
        for (size_t k = 0; k < 4 && rows[i].used[k]; k++) {
            is_named(&x, "chrome_trace", rows[i].used[k]);
            import_says(&x, HV_IMPORT_UNDERSTOOD, 0, rows[i].used[k]);
        }
        for (size_t k = 0; k < 4 && rows[i].unused[k]; k++) {
            is_named(&x, "chrome_trace", rows[i].unused[k]);
            import_says(&x, HV_IMPORT_IGNORED, 0, rows[i].unused[k]);
        }
        assert_int_equal(count_members(&x, &whole), count_members(&whole, &x));
        import_free(&whole);
        import_free(&x);
    }
    (void)unlink(path);
    (void)rmdir(folder);
}

/* What was lost once: accumulation, offload, micro-batches, groups of shards. */
static void launches_keep_their_settings(void **state)
{
    (void)state;
    struct import x = import_one(
        "accelerate_yaml", "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\n"
                           "gradient_accumulation_steps: 4\nfsdp_config:\n"
                           "  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_offload_params: true\n"
                           "  fsdp_min_num_params: 7\n");
    import_number(&x, "global_batch", 64);
    import_number(&x, "x-strategy.options.shard_group", 8);
    import_word(&x, "x-strategy.options.offload", "weights,optimizer");
    is_named(&x, "accelerate", "fsdp_config.fsdp_min_num_params");
    import_free(&x);
    x = import_one("accelerate_yaml",
                   "distributed_type: FSDP\nnum_processes: 16\nparallelism_config:\n"
                   "  parallelism_config_dp_replicate_size: 2\n"
                   "  parallelism_config_dp_shard_size: 4\n  parallelism_config_tp_size: 2\n");
    import_number(&x, "x-strategy.options.dp", 8);
    import_number(&x, "x-strategy.options.shard_group", 4);
    import_number(&x, "x-strategy.options.tp", 2);
    import_free(&x);
    x = import_one("accelerate_yaml",
                   "distributed_type: DEEPSPEED\nnum_processes: 8\n"
                   "gradient_accumulation_steps: 2\ndeepspeed_config:\n  zero_stage: 3\n"
                   "  offload_optimizer_device: cpu\n  offload_param_device: none\n");
    import_number(&x, "global_batch", 16); /* the outer accumulation counts too */
    import_word(&x, "x-strategy.options.offload", "optimizer");
    import_free(&x);
    x = import_one("accelerate_yaml",
                   "distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config:\n"
                   "  megatron_lm_tp_degree: 2\n  megatron_lm_pp_degree: 2\n"
                   "  megatron_lm_num_micro_batches: 4\n");
    import_number(&x, "global_batch", 8); /* 4 micro-batches of 1 on dp 2 */
    import_free(&x);
    x = import_one("deepspeed", "{\"train_batch_size\":64,\"zero_optimization\":{\"stage\":3,"
                                "\"mics_shard_size\":8,\"overlap_comm\":false}}");
    import_number(&x, "x-strategy.options.shard_group", 8);
    import_word(&x, "x-strategy.options.overlap", "no");
    import_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_of_trees), cmocka_unit_test(members_of_xml),
        cmocka_unit_test(members_of_texts), cmocka_unit_test(members_of_streams),
        cmocka_unit_test(launches_keep_their_settings)};
    return cmocka_run_group_tests_name("io: members of imported files", tests, import_setup,
                                       import_teardown);
}
