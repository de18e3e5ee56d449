/** What the tests of the session share: a folder, a small workspace, a clock and two strategies. */
#ifndef HV_TESTS_UNIT_SESSION_BENCH_H
#define HV_TESTS_UNIT_SESSION_BENCH_H

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "ui/session/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BENCH_CLUSTER                                                                              \
    "{\"format\": \"hetviz.cluster/1\", \"name\": \"two\", \"nodes\": ["                           \
    "{\"name\": \"a\", \"count\": 2, \"device\": \"A100-SXM-80GB\", \"devices\": 8, "              \
    "\"x-rack\": \"r1\"}, "                                                                        \
    "{\"name\": \"v\", \"count\": 1, \"device\": \"V100-SXM2-32GB\", \"devices\": 8}]}"
#define BENCH_MODEL                                                                                \
    "{\"format\": \"hetviz.model/1\", \"name\": \"tiny\", \"kind\": \"transformer\", "             \
    "\"layers\": 8, \"hidden\": 1024, \"heads\": 16, \"kv_heads\": 16, \"ffn\": 4096, "            \
    "\"ffn_kind\": \"gelu\", \"vocab\": 32000, \"max_sequence\": 2048}"
#define BENCH_JOB "{\"format\": \"hetviz.job/1\", \"global_batch\": 64, \"precision\": \"fp16\"}"
#define BENCH_PLAN                                                                                 \
    "{\"format\":\"hetviz.plan/1\",\"strategy\":{\"name\":\"mine\"},\"micro_batch\":2,"            \
    "\"replicas\":[{\"micro_batches\":32,\"stages\":["                                             \
    "{\"devices\":\"a[0-1].*\",\"layers\":[0,6],\"tp\":8,\"dp\":2},"                               \
    "{\"devices\":\"v[0].*\",\"layers\":[6,8],\"tp\":8}]}],\"schedule\":{\"name\":\"1f1b\"}}"

/** A clock that only the test moves. */
static double bench_now_s(void *ctx)
{
    return *(double *)ctx;
}

static const char *const bench_modes[] = {"fast", "exact"};
static json_t *bench_default_faults;

static struct hv_option_row bench_options[] = {
    {.key = "faults",
     .help = "failures to survive",
     .type = HV_OPTION_INTEGER,
     .min = 0,
     .max = 16},
    {.key = "mode",
     .help = "how to search",
     .type = HV_OPTION_CHOICE,
     .min = HV_UNKNOWN,
     .max = HV_UNKNOWN,
     .choices = (const char **)(uintptr_t)bench_modes,
     .n_choices = 2},
};
static struct hv_plugin bench_plugins[] = {
    {.id = "mine",
     .title = "Mine",
     .kind = "planner",
     .options = bench_options,
     .n_options = 2,
     .has = {[HV_PLUGIN_PLAN] = true}},
    {.id = "fold", .title = "Fold", .kind = "memory", .has = {[HV_PLUGIN_APPLY] = true}},
    {.id = "other", .title = "Other", .kind = "planner", .has = {[HV_PLUGIN_PLAN] = true}},
};

/** A folder, entered; with a workspace in `ws` made of three files. */
struct bench {
    char *folder;
    double clock_s;
    struct hv_session_env env;
};

static inline void bench_put(const char *path, const char *text)
{
    assert_int_equal(hv_file_write(path, text, strlen(text), NULL), HV_OK);
}

/** Text of a file. Owner: caller frees p. */
static inline struct hv_str bench_get(const char *path)
{
    struct hv_str s = {0};
    struct hv_err err;
    assert_int_equal(hv_file_read(path, &s, &err), HV_OK);
    return s;
}

static inline int bench_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    struct hv_str p = {0};
    struct bench *b = hv_xcalloc(1, sizeof *b);
    hv_str_addf(&p, "%s/hv_test_XXXXXX", tmp && tmp[0] ? tmp : P_tmpdir);
    if (!mkdtemp(p.p) || chdir(p.p) != 0 || hv_file_mkdirs("ws", NULL) != HV_OK) {
        return -1;
    }
    b->folder = p.p;
    b->clock_s = 1000;
    bench_default_faults = json_integer(1);
    bench_options[0].def = bench_default_faults;
    static const char *const no_worker[] = {"/bin/false", NULL};
    b->env = (struct hv_session_env){.ctx = &b->clock_s,
                                     .now_s = bench_now_s,
                                     .state_dir = "state",
                                     .worker_argv = no_worker,
                                     .n_workers = 2,
                                     .plugins = bench_plugins,
                                     .n_plugins = HV_COUNT(bench_plugins)};
    bench_put("ws/cluster.json", BENCH_CLUSTER);
    bench_put("ws/model.json", BENCH_MODEL);
    bench_put(
        "ws/workspace.json",
        "{\"format\": \"hetviz.workspace/1\", \"name\": \"lab\", \"cluster\": \"cluster.json\", "
        "\"model\": \"model.json\", \"job\": " BENCH_JOB
        ", \"strategies\": [\"mine\"], \"x-owner\": \"me\"}");
    *state = b;
    return 0;
}

static inline int bench_teardown(void **state)
{
    struct bench *b = *state;
    char command[512];
    json_decref(bench_default_faults);
    if (chdir("/") != 0) {
        return -1;
    }
    snprintf(command, sizeof command, "chmod -R u+w '%s'; rm -rf '%s'", b->folder, b->folder);
    free(b->folder);
    free(b);
    return system(command);
}

static inline struct hv_session *bench_open(struct bench *b, const char *path)
{
    struct hv_session *s = NULL;
    struct hv_err err = {0};
    if (hv_session_open(&s, path, &b->env, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return s;
}

/** All documents as one text. Owner: caller frees p. */
static inline struct hv_str bench_bytes(const struct hv_session *s)
{
    struct hv_str out = {0};
    for (int d = 0; d < HV_DOC_N; d++) {
        hv_json_write(&out, hv_session_tree(s, (enum hv_doc)d), true);
    }
    return out;
}

/** Adds the plan above as a row. */
static inline uint32_t bench_add_plan(struct hv_session *s, const char *name)
{
    struct hv_err err = {0};
    uint32_t id = 0;
    if (hv_session_row_add(s, name, json_loads(BENCH_PLAN, 0, NULL), &id, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return id;
}

#endif
