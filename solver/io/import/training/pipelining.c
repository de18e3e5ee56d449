/*
 * Schedules of torch.distributed.pipelining as CSV: one line per rank, cells such as 0F3 (stage,
 * operation, micro-batch), empty cells for idle steps. The file holds only the order: the plan made
 * from it has an assumed cluster and model of equal stages, so that it can be drawn and timed.
 * Source: torch.distributed.pipelining, schedules.py (_Action, _load_csv).
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>

#define MAX_RANKS  1024
#define MAX_STAGES 4096
#define MAX_CELLS  1000000

struct action {
    int stage, micro;
    char op; /* F, B (full), I (input gradient), W; 0: an operation without duration */
};

/* Most actions of one cell: the halves of an overlapped pair. */
#define MAX_PARTS 8

/* Operations without a duration of their own: transfers, their ends, and shards of weights. */
static bool is_silent(struct hv__piece s)
{
    static const char *const words[] = {"SEND_F",  "RECV_F",  "SEND_B",     "RECV_B",
                                        "UNSHARD", "RESHARD", "REDUCE_GRAD"};
    if (hv__starts(s, "WAIT_")) {
        s.p += strlen("WAIT_");
        s.n -= strlen("WAIT_");
    }
    for (size_t i = 0; i < HV_COUNT(words); i++) {
        size_t n = strlen(words[i]);
        struct hv__piece rest = {s.p + n, s.n - n};
        if (hv__starts(s, words[i]) && (rest.n == 0 || hv_known(hv__plain_number(rest)))) {
            return true;
        }
    }
    return false;
}

/* "12F3", "0SEND_F1", "0WAIT_SEND_F1", "1UNSHARD" */
static bool read_action(struct hv__piece s, struct action *out)
{
    size_t digits = 0;
    double stage = 0;
    *out = (struct action){.op = 0};
    while (digits < s.n && digits < 6 && isdigit((unsigned char)s.p[digits])) {
        stage = stage * 10 + (s.p[digits++] - '0');
    }
    struct hv__piece rest = {s.p + digits, s.n - digits};
    if (digits == 0 || rest.n == 0 || stage >= MAX_STAGES) {
        return false;
    }
    if (is_silent(rest)) {
        return true;
    }
    double micro = hv__plain_number((struct hv__piece){rest.p + 1, rest.n - 1});
    if (!strchr("FBIW", rest.p[0]) || !(micro >= 0 && micro < 1e6)) {
        return false;
    }
    *out = (struct action){(int)stage, (int)micro, rest.p[0]};
    return true;
}

/* The actions of a cell: "0F3", or "(0F7;7B3)OVERLAP_F_B" for those that run together. Returns
 * their number; 0: something else. */
static size_t read_cell(struct hv__piece s, struct action out[MAX_PARTS])
{
    if (s.p[0] != '(') {
        return s.n > 0 && read_action(s, &out[0]);
    }
    struct hv__piece rest = {s.p + 1, s.n - 1}, inside = hv__before(&rest, ')');
    size_t n = 0;
    if (!hv__starts(rest, "OVERLAP")) {
        return 0;
    }
    while (inside.n > 0) {
        if (n == MAX_PARTS || !read_action(hv__strip(hv__before(&inside, ';')), &out[n])) {
            return 0;
        }
        n++;
    }
    return n;
}

static struct hv__csv open_csv(const struct hv__in *in)
{
    return (struct hv__csv){
        .arena = &in->im->arena, .rest = in->text, .left = in->n, .separator = ','};
}

bool hv__is_pipelining_csv(const struct hv__in *in)
{
    struct hv__csv c = open_csv(in);
    struct hv__row r = {0};
    struct action a[MAX_PARTS];
    size_t good = 0;
    while (!in->tree && !in->xml && good == 0 && hv__csv_next(&c, &r)) {
        for (size_t i = 0; i < r.n; i++) {
            if (r.fields[i].n > 0 && read_cell(r.fields[i], a) == 0) {
                return false;
            }
            good += r.fields[i].n > 0;
        }
    }
    return good > 0;
}

/* Contents of the file: the order of each rank, and the rank of each stage. */
struct order {
    json_t *ranks;
    int rank_of[MAX_STAGES];
    int stages, micros;
    size_t n_ranks, cells;
    bool split;   /* I and W apart somewhere */
    size_t pairs; /* cells with operations that overlap */
};

/* Registers an operation: its stage, rank and micro-batch. */
static enum hv_status count_action(struct hv__in *in, struct order *o, const struct action *a,
                                   unsigned line, struct hv_err *err)
{
    int *owner = &o->rank_of[a->stage];
    if (*owner >= 0 && *owner != (int)o->n_ranks) {
        return hv_err_at(err, HV_EINPUT, in->name, line, 0,
                         "stage %d is on rank %d already: a stage lives on one rank", a->stage,
                         *owner);
    }
    *owner = (int)o->n_ranks;
    o->stages = a->stage >= o->stages ? a->stage + 1 : o->stages;
    o->micros = a->micro >= o->micros ? a->micro + 1 : o->micros;
    o->split = o->split || a->op == 'I';
    o->cells++;
    return HV_OK;
}

/* An operation as a plan's order writes it. */
static void add_token(struct hv_str *out, const struct action *a)
{
    const char *letter = a->op == 'B' ? "BW" : a->op == 'I' ? "B" : a->op == 'W' ? "W" : "F";
    hv_str_addf(out, "%s%d.%d", letter, a->stage, a->micro);
}

/* Adds the operations of a cell to a rank's order; two that run together are "{F0.7|BW7.3}". */
static void add_cell(struct order *o, json_t *list, const struct action *a, size_t n)
{
    struct hv_str s = {0};
    size_t timed = 0;
    for (size_t i = 0; i < n; i++) {
        timed += a[i].op != 0;
    }
    bool pair = timed == 2 && n > 1;
    o->pairs += pair;
    for (size_t i = 0; i < n; i++) {
        if (a[i].op == 0) {
            continue;
        }
        if (pair) {
            hv_str_addc(&s, s.n == 0 ? '{' : '|');
        }
        add_token(&s, &a[i]);
        if (!pair) {
            json_array_append_new(list, json_string(hv_str_cstr(&s)));
            hv_str_clear(&s);
        }
    }
    if (pair) {
        hv_str_addc(&s, '}');
        json_array_append_new(list, json_string(hv_str_cstr(&s)));
    }
    hv_str_free(&s);
}

/* What a row has besides operations. */
struct rest {
    size_t silent, idle;
};

static enum hv_status take_cell(struct hv__in *in, struct order *o, json_t *list,
                                const struct hv__row *r, size_t i, struct rest *rest,
                                struct hv_err *err)
{
    struct action a[MAX_PARTS];
    struct hv__piece cell = r->fields[i];
    if (cell.n == 0) {
        rest->idle++;
        return HV_OK;
    }
    size_t n = read_cell(cell, a);
    if (n == 0) {
        return hv_err_at(err, HV_EINPUT, in->name, r->line, 0,
                         "cell %zu: expected such as 0F3 or (0F7;7B3)OVERLAP_F_B, found \"%.*s\"",
                         i + 1, (int)(cell.n < 30 ? cell.n : 30), cell.p);
    }
    for (size_t k = 0; k < n; k++) {
        rest->silent += a[k].op == 0;
        enum hv_status st = a[k].op ? count_action(in, o, &a[k], r->line, err) : HV_OK;
        if (st != HV_OK) {
            return st;
        }
    }
    add_cell(o, list, a, n);
    return o->cells > MAX_CELLS ? hv_err_at(err, HV_ELIMIT, in->name, r->line, 0, "too many cells")
                                : HV_OK;
}

static void note_rest(struct hv__in *in, const struct order *o, const struct rest *rest)
{
    if (rest->silent + rest->idle > 0) {
        hv__ignored(
            in, 0, "%zu idle cells, %zu sends, receives and shardings, which follow from the order",
            rest->idle, rest->silent);
    }
    if (o->pairs > 0) {
        hv__understood(in, 0, "%zu pairs of operations that overlap", o->pairs);
    }
}

static enum hv_status read_order(struct hv__in *in, struct order *o, struct hv_err *err)
{
    struct hv__csv csv = open_csv(in);
    struct hv__row r = {0};
    struct rest rest = {0};
    while (hv__csv_next(&csv, &r)) {
        json_t *list = json_array();
        json_array_append_new(o->ranks, list);
        for (size_t i = 0; i < r.n; i++) {
            enum hv_status st = take_cell(in, o, list, &r, i, &rest, err);
            if (st != HV_OK) {
                return st;
            }
        }
        if (json_array_size(list) == 0) {
            json_array_remove(o->ranks, json_array_size(o->ranks) - 1);
        } else if (++o->n_ranks > MAX_RANKS) {
            return hv_err_at(err, HV_ELIMIT, in->name, r.line, 0, "more than %d ranks", MAX_RANKS);
        }
    }
    note_rest(in, o, &rest);
    return HV_OK;
}

static json_t *stages_json(const struct order *o)
{
    json_t *stages = json_array();
    for (int rank = 0; rank < (int)o->n_ranks; rank++) {
        json_t *layers = json_array();
        for (int s = 0; s < o->stages; s++) {
            if (o->rank_of[s] == rank) {
                json_array_append_new(layers, json_pack("[i, i]", s, s + 1));
            }
        }
        bool one = json_array_size(layers) == 1;
        json_array_append_new(stages,
                              json_pack("{s:o, s:O}", "devices", json_sprintf("rank[%d].0", rank),
                                        "layers", one ? json_array_get(layers, 0) : layers));
        json_decref(layers);
    }
    return stages;
}

static json_t *plan_json(const struct order *o)
{
    static const char device[] = "H100-SXM-80GB";
    json_t *layers = json_array();
    for (int i = 0; i < o->stages; i++) {
        json_array_append_new(layers, json_pack("{s:o, s:{s:f}, s:{s:f}, s:i, s:i, s:i}", "name",
                                                json_sprintf("stage-%d", i), "forward_ms", device,
                                                1.0, "backward_ms", device, 2.0, "parameter_bytes",
                                                0, "activation_bytes", 0, "output_bytes", 0));
    }
    json_t *cluster = json_pack("{s:s, s:s, s:[{s:s, s:i, s:s, s:i}]}", "format",
                                "hetviz.cluster/1", "name", "ranks", "nodes", "name", "rank",
                                "count", (int)o->n_ranks, "device", device, "devices", 1);
    json_t *model = json_pack("{s:s, s:s, s:s, s:o}", "format", "hetviz.model/1", "name",
                              "equal-stages", "kind", "layers", "layers", layers);
    json_t *p = json_pack("{s:s, s:o, s:o, s:{s:i}}", "format", "hetviz.plan/1", "cluster", cluster,
                          "model", model, "job", "global_batch", o->micros);
    json_object_set_new(p, "micro_batch", json_integer(1));
    json_object_set_new(p, "replicas",
                        json_pack("[{s:i, s:i, s:o}]", "count", 1, "micro_batches", o->micros,
                                  "stages", stages_json(o)));
    json_object_set_new(p, "schedule",
                        json_pack("{s:s, s:O}", "name", "explicit", "order", o->ranks));
    return p;
}

enum hv_status hv__read_pipelining_csv(struct hv__in *in, struct hv_err *err)
{
    struct order *o = hv_arena_new(&in->im->arena, struct order, 1);
    o->ranks = json_array();
    for (int i = 0; i < MAX_STAGES; i++) {
        o->rank_of[i] = -1;
    }
    enum hv_status st = read_order(in, o, err);
    for (int s = 0; st == HV_OK && s < o->stages; s++) {
        if (o->rank_of[s] < 0) {
            st = hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                           "stage %d is on no rank, though stage %d is: is the file whole?", s,
                           o->stages - 1);
        }
    }
    if (st == HV_OK && o->cells == 0) {
        st = hv_err_at(err, HV_ENO, in->name, 0, 0, "there is no operation in it");
    }
    if (st == HV_OK) {
        hv__understood(in, 0, "%zu ranks, %d stages, %d micro-batches, %zu operations", o->n_ranks,
                       o->stages, o->micros, o->cells);
        hv__guessed(in, 0,
                    "the file has no times: every stage takes 1 ms forward and 2 ms backward, on "
                    "assumed devices");
        json_decref(in->im->plan);
        in->im->plan = plan_json(o);
    }
    json_decref(o->ranks);
    return st;
}
