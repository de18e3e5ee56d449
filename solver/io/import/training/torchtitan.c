/*
 * torchtitan's TOML files (up to February 2026; later versions are configured in Python). Flat
 * tables of `key = value`, which is all that is read of TOML. Source: torchtitan, job_config.py.
 */
#include "solver/io/import/draft/layout.h"
#include "solver/io/import/draft/readers.h"
#include <ctype.h>
#include <string.h>

/* Walks over the assignments: the table and the key, with dots between, and the value. */
struct toml {
    struct hv__lines lines;
    struct hv__piece table;
    char key[128];
    struct hv__piece value;
};

/* Removes a comment, but not inside quotation marks. */
static struct hv__piece uncomment(struct hv__piece s)
{
    char quote = '\0';
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (quote) {
            quote = c == quote ? '\0' : quote;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '#') {
            s.n = i;
        }
    }
    return hv__strip(s);
}

static bool next(struct toml *t)
{
    while (hv__next_line(&t->lines)) {
        struct hv__piece s = uncomment(t->lines.piece), value = s, key = hv__before(&value, '=');
        if (s.n > 2 && s.p[0] == '[' && s.p[s.n - 1] == ']' && key.n == s.n) {
            t->table = hv__strip((struct hv__piece){s.p + 1, s.n - 2});
            continue;
        }
        key = hv__unquote(key);
        if (key.n == 0 || key.n == s.n || t->table.n + key.n + 2 > sizeof t->key) {
            continue;
        }
        size_t n = t->table.n;
        memcpy(t->key, t->table.p, n);
        t->key[n] = '.';
        memcpy(t->key + n + 1, key.p, key.n);
        t->key[n + 1 + key.n] = '\0';
        t->value = hv__unquote(value);
        return true;
    }
    return false;
}

static struct toml open_toml(const struct hv__in *in)
{
    return (struct toml){.lines = {.rest = in->text, .left = in->n}, .table = {"", 0}};
}

bool hv__is_torchtitan_toml(const struct hv__in *in)
{
    struct toml t = open_toml(in);
    bool job = false, training = false;
    while (!in->xml && !in->tree && next(&t)) {
        training = training || hv__starts(t.table, "parallelism") ||
                   hv__starts(t.table, "experimental") || hv__is(t.table, "training");
        job = job || hv__is(t.table, "job") || hv__is(t.table, "model");
    }
    return job && training;
}

/* Settings of torchtitan. */
struct titan {
    struct hv__launch l;
    double replicate, shard;
    char model[64], flavor[64], ac[32], ac_option[32];
    bool compile, fp8;
};

static void copy_text(char *out, size_t cap, struct hv__piece s)
{
    size_t n = s.n < cap - 1 ? s.n : cap - 1;
    memcpy(out, s.p, n);
    out[n] = '\0';
}

static bool take(struct titan *t, const char *key, struct hv__piece v, struct hv_arena *a)
{
    const struct {
        const char *key;
        double *to;
    } numbers[] = {{"training.local_batch_size", &t->l.micro_batch},
                   {"training.batch_size", &t->l.micro_batch},
                   {"training.global_batch_size", &t->l.global_batch},
                   {"training.gradient_accumulation_steps", &t->l.accumulation},
                   {"training.seq_len", &t->l.sequence},
                   {"training.data_parallel_degree", &t->shard},
                   {"training.data_parallel_shard_degree", &t->shard},
                   {"training.data_parallel_replicate_degree", &t->replicate},
                   {"training.tensor_parallel_degree", &t->l.tp},
                   {"parallelism.data_parallel_replicate_degree", &t->replicate},
                   {"parallelism.data_parallel_shard_degree", &t->shard},
                   {"parallelism.tensor_parallel_degree", &t->l.tp},
                   {"parallelism.pipeline_parallel_degree", &t->l.pp},
                   {"parallelism.context_parallel_degree", &t->l.cp},
                   {"parallelism.expert_parallel_degree", &t->l.ep},
                   {"experimental.pipeline_parallel_degree", &t->l.pp},
                   {"experimental.context_parallel_degree", &t->l.cp}};
    for (size_t i = 0; i < HV_COUNT(numbers); i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            *numbers[i].to = hv__plain_number(v);
            return true;
        }
    }
    if (strcmp(key, "model.name") == 0) {
        copy_text(t->model, sizeof t->model, v);
    } else if (strcmp(key, "model.flavor") == 0) {
        copy_text(t->flavor, sizeof t->flavor, v);
    } else if (strcmp(key, "activation_checkpoint.mode") == 0) {
        copy_text(t->ac, sizeof t->ac, v);
    } else if (strcmp(key, "training.enable_cpu_offload") == 0) {
        t->l.offload = hv__is(v, "true") ? "weights,optimizer" : NULL;
    } else if (strcmp(key, "optimizer.name") == 0) {
        t->l.optimizer = hv__optimizer_word(hv__copy(a, v));
    } else if (strcmp(key, "model.converters") == 0) {
        t->fp8 = hv__find(v, "float8") != NULL || hv__find(v, "mx") != NULL;
    } else if (strstr(key, "pipeline_parallel_schedule") && !strstr(key, "csv")) {
        t->l.schedule = hv__copy(a, v);
    } else {
        return strcmp(key, "training.mixed_precision_param") == 0 &&
               (t->l.precision = hv__precision_word(hv__copy(a, v))) != NULL;
    }
    return true;
}

/* Names of torch's schedules, and hetviz's names. */
static const char *schedule_word(struct hv__in *in, const char *torch)
{
    static const struct {
        const char *torch, *word;
    } rows[] = {{"1F1B", "1f1b"},
                {"GPipe", "gpipe"},
                {"Interleaved1F1B", "interleaved"},
                {"InterleavedZeroBubble", "zb-h1"},
                {"ZBVZeroBubble", "zb-v"},
                {"DualPipeV", "dualpipev"},
                {"LoopedBFS", "breadth-first"}};
    for (size_t i = 0; torch && i < HV_COUNT(rows); i++) {
        if (hv__like(hv__piece_of(torch), rows[i].torch)) {
            return rows[i].word;
        }
    }
    if (torch && *torch) {
        hv__ignored(in, 0, "the schedule %s", torch);
    }
    return NULL;
}

static void settle(struct hv__in *in, struct titan *t)
{
    struct hv__launch *l = &t->l;
    bool all = !hv_known(t->shard) || t->shard < 0;
    l->zero = all || t->shard > 1 ? 3 : 0;
    if (all) {
        hv__guessed(in, 0,
                    "the data-parallel degree is set by the remaining ranks, whose number is not "
                    "known here");
    } else {
        l->dp = fmax(t->shard, 1) * fmax(hv_or(t->replicate, 1), 1);
        l->shard_group = t->replicate > 1 && t->shard > 1 ? t->shard : HV_UNKNOWN;
    }
    l->recompute = strcmp(t->ac, "full") == 0        ? "full"
                   : strcmp(t->ac, "selective") == 0 ? "selective"
                                                     : NULL;
    if (t->fp8) {
        l->precision = "fp8";
    } else if (!l->precision) {
        l->precision = "bf16";
        hv__guessed(in, 0, "the precision is not given: bf16, the default of torchtitan, is used");
    }
    bool pipelined = hv_or(l->pp, 1) > 1;
    l->schedule = pipelined ? schedule_word(in, l->schedule) : NULL;
    if (*t->model) {
        hv__guessed(in, 0,
                    "the model is %s %s: pick it from the catalogue, or import its config.json",
                    t->model, t->flavor);
        hv__raw(in, "model", hv_arena_printf(&in->im->arena, "%s %s", t->model, t->flavor));
    }
}

enum hv_status hv__read_torchtitan_toml(struct hv__in *in, struct hv_err *err)
{
    struct toml t = open_toml(in);
    struct titan x = {.l = hv__launch_unknown(), .replicate = HV_UNKNOWN, .shard = HV_UNKNOWN};
    size_t n = 0;
    while (next(&t)) {
        bool good = take(&x, t.key, t.value, &in->im->arena);
        n += good;
        hv__member(in, good, t.lines.line, t.key, hv__copy(&in->im->arena, t.value));
    }
    if (n == 0) {
        return hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                         "no setting of torchtitan's tables [training] and [parallelism] in it");
    }
    settle(in, &x);
    hv__launch_take(in, &x.l);
    return HV_OK;
}
