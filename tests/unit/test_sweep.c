/* Sweeps: axes, conditions, identities of cells, result files, the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/sweep/figures.h"
#include "solver/sweep/shard_file.h"
#include "solver/sweep/store.h"
#include "solver/sweep/sweep.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD                                                                                       \
    "{\"format\": \"hetviz.sweep/1\", \"cluster\": \"homogeneous\", \"model\": \"gpt3-125m\", "
#define NODES "{\"name\": \"nodes\", \"at\": \"cluster.nodes[0].count\", \"from\": 1, \"to\": 4}"
#define BATCH                                                                                      \
    "{\"name\": \"batch\", \"at\": \"job.global_batch\", \"from\": 64, \"to\": 256, \"times\": 2}"
#define TAIL ", \"strategies\": [\"uniform\", \"manual\"]}"

static enum hv_status read_text(struct hv_sweep *s, const char *text, struct hv_err *err)
{
    struct hv_json json = {0};
    *err = (struct hv_err){0};
    assert_int_equal(hv_json_parse(&json, text, strlen(text), "s.json", err), HV_OK);
    return hv_sweep_build(s, json, "", err);
}

static void must_read(struct hv_sweep *s, const char *text)
{
    struct hv_err err;
    if (read_text(s, text, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
}

static void refuse(const char *text, const char *said)
{
    struct hv_sweep s;
    struct hv_err err;
    enum hv_status st = read_text(&s, text, &err);
    assert_true(st == HV_EINPUT || st == HV_ELIMIT || st == HV_EIO);
    if (strstr(err.text, said) == NULL) {
        fail_msg("expected \"%s\" in \"%s\"", said, err.text);
    }
    hv_sweep_free(&s);
}

static void grid(void **state)
{
    struct hv_sweep s;
    (void)state;
    must_read(&s, HEAD "\"axes\": [" NODES ", " BATCH "]" TAIL);
    assert_int_equal(s.n_axes, 2);
    assert_int_equal(s.axes[0].n, 4);
    assert_int_equal(s.axes[1].n, 3);
    assert_int_equal(s.n_cells, 4 * 3 * 2);
    /* the last axis is the fastest, strategies faster still */
    assert_int_equal(hv_sweep_index(&s, &s.cells[2], 1), 1);
    assert_int_equal(s.cells[1].strategy, 1);
    assert_string_equal(hv_sweep_value(&s, &s.cells[23], 0)->label, "4");
    assert_string_equal(hv_sweep_value(&s, &s.cells[23], 1)->label, "256");
    hv_sweep_free(&s);
    must_read(&s, HEAD "\"strategies\": [\"uniform\"]}"); /* no axes: one cell */
    assert_int_equal(s.n_cells, 1);
    hv_sweep_free(&s);
}

/* A step that is no power of two must still reach its end: 0.1, 0.2, …, 1. */
static void ranges(void **state)
{
    struct hv_sweep s;
    (void)state;
    must_read(&s,
              HEAD "\"axes\": [{\"name\": \"a\", \"at\": \"options.a\", \"from\": 0.1, \"to\": 1, "
                   "\"step\": 0.1}]" TAIL);
    assert_int_equal(s.axes[0].n, 10);
    hv_sweep_free(&s);
    must_read(&s,
              HEAD "\"axes\": [{\"name\": \"a\", \"at\": \"options.a\", \"from\": 1, \"to\": 1000, "
                   "\"times\": 10}]" TAIL);
    assert_int_equal(s.axes[0].n, 4);
    assert_string_equal(s.axes[0].values[3].label, "1000");
    assert_true(json_is_integer(s.axes[0].values[3].value));
    hv_sweep_free(&s);
}

static void conditions(void **state)
{
    struct hv_sweep s;
    (void)state;
    must_read(&s, HEAD "\"axes\": [" NODES ", " BATCH "], \"where\": [\"batch >= 64 * nodes\", "
                       "\"strategy <> 'manual' OR nodes = 1\"]" TAIL);
    /* batch/64 is 1, 2, 4: nodes ≤ that is 1 + 2 + 4 points; manual only for the 3 with nodes = 1
     */
    assert_int_equal(s.n_cells, 7 + 3);
    hv_sweep_free(&s);
}

static void refusals(void **state)
{
    (void)state;
    refuse(HEAD "\"axes\": [" NODES ", " NODES "]" TAIL, "two axes are called nodes");
    refuse(HEAD
           "\"axes\": [{\"name\": \"mfu\", \"at\": \"job.global_batch\", \"values\": [1]}]" TAIL,
           "column of every result");
    refuse(HEAD "\"axes\": [{\"at\": \"job.global_batch\", \"values\": [8, 8.0]}]" TAIL, "twice");
    refuse(HEAD "\"axes\": [{\"at\": \"plan.x\", \"values\": [8]}]" TAIL, "a key path begins with");
    refuse(HEAD "\"axes\": [{\"at\": \"strategies[0]\", \"values\": [8]}]" TAIL,
           "cluster, model, job");
    refuse(HEAD "\"axes\": [{\"at\": \"job.x\", \"from\": 2, \"to\": 1}]" TAIL, "goes upwards");
    refuse(HEAD "\"axes\": [{\"at\": \"job.x\", \"from\": 0, \"to\": 1, \"times\": 2}]" TAIL,
           "starts above 0");
    refuse(HEAD "\"axes\": [{\"at\": \"job.x\", \"values\": [1], \"to\": 1}]" TAIL, "not both");
    refuse(HEAD "\"axes\": [{\"at\": \"job.x\", \"values\": [[1]]}]" TAIL, "needs a label");
    refuse(HEAD "\"axes\": [" NODES "], \"where\": [\"node > 1\"]" TAIL, "no such column: node");
    refuse(HEAD "\"axes\": [" NODES "], \"where\": [\"nodes > 9\"]" TAIL, "no cell meets");
    refuse("{\"format\": \"hetviz.sweep/1\", \"cluster\": \"-\", \"model\": \"gpt3-125m\"" TAIL,
           "standard input");
    refuse("{\"format\": \"hetviz.sweep/1\", \"cluster\": \"none-such\", \"model\": "
           "\"gpt3-125m\"" TAIL,
           "none-such");
    refuse(HEAD "\"strategies\": []}", "strategies");
    refuse(HEAD "\"axes\": [{\"name\": \"a\", \"at\": \"options.a\", \"from\": 1, \"to\": 900000},"
                "{\"name\": \"b\", \"at\": \"options.b\", \"from\": 1, \"to\": 900000}]" TAIL,
           "more than");
}

/* What a condition may not do: other statements, other tables, endless work, changing functions. */
static void conditions_only_compute(void **state)
{
    static const char *const bad[] = {
        "1) ; (SELECT 1",
        "1 FROM sqlite_master) --",
        "nodes > 1 --",
        "random() > 0",
        "load_extension('x')",
        "zeroblob(100000000) IS NULL",
        "(SELECT 1, 2)",
        "\\\"nope\\\"",
        "(WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c)",
        ""};
    (void)state;
    for (size_t i = 0; i < HV_COUNT(bad); i++) {
        char text[1000];
        struct hv_sweep s;
        struct hv_err err;
        (void)snprintf(text, sizeof text, HEAD "\"axes\": [" NODES "], \"where\": [\"%s\"]" TAIL,
                       bad[i]);
        enum hv_status st = read_text(&s, text, &err);
        if (strcmp(bad[i], "nodes > 1 --") == 0) {
            assert_int_equal(st, HV_OK); /* a comment up to the end of the condition does no harm */
            hv_sweep_free(&s);
        } else if (st != HV_EINPUT) {
            fail_msg("accepted: %s", bad[i]);
        }
    }
}

static uint64_t id_of(const struct hv_sweep *s, const char *nodes, const char *batch)
{
    for (size_t i = 0; i < s->n_cells; i++) {
        bool found = s->cells[i].strategy == 0;
        for (size_t k = 0; k < s->n_axes && found; k++) {
            const char *want = strcmp(s->axes[k].name, "nodes") == 0 ? nodes : batch;
            found = strcmp(hv_sweep_value(s, &s->cells[i], k)->label, want) == 0;
        }
        if (found) {
            return s->cells[i].id;
        }
    }
    fail();
    return 0;
}

/* An identity stays where axes change places, values and conditions are added, and documents are
 * written out; it changes with an input. */
static void identities(void **state)
{
    struct hv_sweep a, b, c, d, e;
    (void)state;
    must_read(&a, HEAD "\"axes\": [" NODES ", " BATCH "]" TAIL);
    must_read(&b, HEAD "\"where\": [\"nodes > 1\"], \"axes\": [{\"name\": \"batch\", \"at\": "
                       "\"job.global_batch\", \"values\": [32, 64, 128]}, " NODES "]" TAIL);
    assert_true(id_of(&a, "2", "128") == id_of(&b, "2", "128"));
    assert_true(id_of(&a, "2", "128") != id_of(&a, "2", "64"));
    assert_true(a.id != b.id);
    json_t *whole = hv_sweep_whole(&a);
    struct hv_json json = {0};
    hv_json_wrap(&json, whole, "whole");
    struct hv_err err = {0};
    assert_int_equal(hv_sweep_build(&c, json, "", &err), HV_OK);
    assert_true(c.id == a.id);
    must_read(&d, HEAD "\"seed\": 2, \"axes\": [" NODES ", " BATCH "]" TAIL);
    assert_true(id_of(&a, "2", "128") != id_of(&d, "2", "128"));
    must_read(&e, "{\"format\": \"hetviz.sweep/1\", \"cluster\": \"homogeneous\", \"model\": "
                  "\"gpt3-350m\", \"axes\": [" NODES ", " BATCH "]" TAIL);
    assert_true(id_of(&a, "2", "128") != id_of(&e, "2", "128"));
    hv_sweep_free(&a);
    hv_sweep_free(&b);
    hv_sweep_free(&c);
    hv_sweep_free(&d);
    hv_sweep_free(&e);
}

static void inputs(void **state)
{
    struct hv_sweep s;
    struct hv_sweep_inputs i;
    struct hv_err err = {0};
    (void)state;
    must_read(&s, HEAD
              "\"axes\": [{\"at\": \"model\", \"values\": [\"gpt3-125m\", \"gpt3-350m\"]}, " NODES
              ", " BATCH "]" TAIL);
    assert_int_equal(hv_sweep_inputs_begin(&i, &err), HV_OK);
    for (size_t k = s.n_cells; k-- > 0;) {
        assert_int_equal(hv_sweep_inputs_of(&i, &s, &s.cells[k], &err), HV_OK);
        double nodes = json_number_value(hv_sweep_value(&s, &s.cells[k], 1)->value);
        double batch = json_number_value(hv_sweep_value(&s, &s.cells[k], 2)->value);
        bool large = hv_sweep_index(&s, &s.cells[k], 0) == 1;
        assert_int_equal(i.in.cluster.cluster->n_devices, (int)nodes * 8);
        assert_int_equal(i.in.job.job.global_batch, (int)batch);
        assert_int_equal(i.in.model.model->hidden, large ? 1024 : 768);
    }
    hv_sweep_free(&s);
    hv_sweep_inputs_free(&i);
    assert_int_equal(hv_sweep_inputs_begin(&i, &err), HV_OK);
    must_read(
        &s, HEAD
        "\"axes\": [{\"name\": \"n\", \"at\": \"cluster.nodes[7].count\", \"values\": [2]}]" TAIL);
    assert_int_equal(hv_sweep_inputs_of(&i, &s, &s.cells[0], &err), HV_EINPUT);
    assert_non_null(strstr(err.text, "n=2"));
    hv_sweep_inputs_free(&i);
    hv_sweep_free(&s);
}

/* ---- result files ---------------------------------------------------------------------------- */

struct folder {
    char path[64];
};

static void make_folder(struct folder *f)
{
    (void)snprintf(f->path, sizeof f->path, "%s", "/tmp/hv-sweep-XXXXXX");
    assert_non_null(mkdtemp(f->path));
}

static void remove_folder(const struct folder *f)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", f->path);
    assert_int_equal(system(command), 0);
}

static void add(struct hv_shard_file *f, const struct hv_sweep *s, size_t cell,
                enum hv_sweep_state state, double iteration_s)
{
    struct hv_str line = {0};
    struct hv_err err = {0};
    json_t *plan = state == HV_SWEEP_PLAN
                       ? json_pack("{s:{s:f,s:b,s:[f,f]}}", "simulated", "iteration_s", iteration_s,
                                   "exact", 1, "peak_memory_GiB", 3.0, 5.0)
                       : NULL;
    struct hv_sweep_result r = {.state = state, .reason = plan == NULL ? "so" : NULL, .plan = plan};
    hv_sweep_line(s, &s->cells[cell], &r, &line);
    assert_int_equal(line.p[line.n - 1], '\n');
    assert_int_equal(hv_shard_append(f, &line, &err), HV_OK);
    hv_str_free(&line);
    json_decref(plan);
}

static struct hv_shard_file *must_open(const struct hv_sweep *s, const struct folder *f, size_t k,
                                       size_t n, bool again, bool *has)
{
    struct hv_shard_file *file = NULL;
    struct hv_err err = {0};
    memset(has, 0, s->n_cells * sizeof *has);
    if (hv_shard_open(&file, s, f->path, k, n, again, has, &err) != HV_OK) {
        fail_msg("%s", err.text);
    }
    return file;
}

static void resumed(void **state)
{
    struct hv_sweep s;
    struct folder f;
    struct hv_err err = {0};
    bool has[64];
    struct hv_shard_file *other = NULL;
    char path[128];
    (void)state;
    must_read(&s, HEAD "\"axes\": [" NODES "]" TAIL);
    make_folder(&f);
    struct hv_shard_file *file = must_open(&s, &f, 1, 2, false, has);
    assert_int_equal(hv_shard_open(&other, &s, f.path, 1, 2, false, has, &err), HV_EIO);
    assert_non_null(strstr(err.text, "another program"));
    add(file, &s, 0, HV_SWEEP_PLAN, 1);
    add(file, &s, 2, HV_SWEEP_FAILED, 0);
    assert_int_equal(hv_shard_close(file, &err), HV_OK);
    /* a program that was killed while it wrote */
    (void)snprintf(path, sizeof path, "%s/shard-1-of-2.jsonl", f.path);
    FILE *torn = fopen(path, "a");
    assert_non_null(torn);
    (void)fputs("{\"id\": \"0123", torn);
    (void)fclose(torn);
    file = must_open(&s, &f, 1, 2, false, has);
    assert_true(has[0] && has[2] && !has[4]);
    add(file, &s, 4, HV_SWEEP_PLAN, 2);
    assert_int_equal(hv_shard_close(file, &err), HV_OK);
    /* another division into shards finds the same results; what failed is tried again if asked */
    file = must_open(&s, &f, 1, 1, true, has);
    assert_true(has[0] && !has[2] && has[4]);
    add(file, &s, 2, HV_SWEEP_PLAN, 3);
    assert_int_equal(hv_shard_close(file, &err), HV_OK);
    file = must_open(&s, &f, 1, 1, true, has);
    assert_true(has[2]);
    assert_int_equal(hv_shard_close(file, &err), HV_OK);
    remove_folder(&f);
    hv_sweep_free(&s);
}

struct seen {
    size_t n;
    double first, last;
};

static enum hv_status see(void *ctx, const struct hv_store_value *v, struct hv_err *err)
{
    struct seen *seen = ctx;
    (void)err;
    seen->first = seen->n++ == 0 ? v[0].number : seen->first;
    seen->last = v[0].number;
    return HV_OK;
}

static void store(void **state)
{
    static const char *const columns[] = {"iteration_s", "nodes", "peak_memory_GiB"};
    struct hv_sweep s;
    struct folder f;
    struct hv_err err = {0};
    bool has[64];
    char path[128];
    struct hv_store_counts n;
    struct hv_store *db = NULL;
    struct seen seen = {0};
    (void)state;
    must_read(&s, HEAD "\"axes\": [" NODES "]" TAIL);
    make_folder(&f);
    (void)snprintf(path, sizeof path, "%s/s.sqlite", f.path);
    struct hv_shard_file *file = must_open(&s, &f, 1, 1, false, has);
    add(file, &s, 0, HV_SWEEP_FAILED, 0);
    add(file, &s, 0, HV_SWEEP_PLAN, 5); /* tried again */
    add(file, &s, 2, HV_SWEEP_PLAN, 3);
    add(file, &s, 2, HV_SWEEP_FAILED, 0); /* does not undo a result */
    add(file, &s, 3, HV_SWEEP_NOT_FOR_IT, 0);
    add(file, &s, 4, HV_SWEEP_FAILED, 0);
    assert_int_equal(hv_shard_close(file, &err), HV_OK);
    assert_int_equal(hv_store_write(path, &s, f.path, &n, &err), HV_OK);
    assert_int_equal(n.cells, 8);
    assert_int_equal(n.done, 3);
    assert_int_equal(n.failed, 1);
    assert_int_equal(n.missing, 4);
    assert_int_equal(hv_store_open(&db, path, &err), HV_OK);
    struct hv_store_query q = {.where = "state = 'plan' AND nodes < 3",
                               .columns = columns,
                               .n_columns = HV_COUNT(columns),
                               .sort = "iteration_s"};
    assert_int_equal(hv_store_read(db, &q, see, &seen, &err), HV_OK);
    assert_int_equal(seen.n, 2);
    assert_true(seen.first == 3 && seen.last == 5);
    q.columns = &columns[2]; /* memory of the fullest device */
    q.n_columns = 1;
    seen = (struct seen){0};
    assert_int_equal(hv_store_read(db, &q, see, &seen, &err), HV_OK);
    assert_true(seen.first == 5);
    q.where = "1; DROP TABLE cells";
    assert_int_equal(hv_store_read(db, &q, see, &seen, &err), HV_EUSAGE);
    q.where = NULL;
    q.sort = "iteration";
    assert_int_equal(hv_store_read(db, &q, see, &seen, &err), HV_EUSAGE);
    assert_non_null(strstr(err.text, "iteration_s"));
    hv_store_close(db);
    assert_int_equal(hv_store_open(&db, "/dev/null", &err), HV_EINPUT);
    remove_folder(&f);
    hv_sweep_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grid),       cmocka_unit_test(ranges),
        cmocka_unit_test(conditions), cmocka_unit_test(conditions_only_compute),
        cmocka_unit_test(refusals),   cmocka_unit_test(identities),
        cmocka_unit_test(inputs),     cmocka_unit_test(resumed),
        cmocka_unit_test(store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
