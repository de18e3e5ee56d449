/* Layers of the model folded into runs of equal blocks, with their cost on the cluster's devices:
 * one sequence, no parallelism. */
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/model/model_int.h"

/* From this many runs on, classes are shown instead of runs (layers that alternate). */
enum { MANY_RUNS = 12, FOLD_BITS = 64 };

enum column {
    COLUMN_INDEX,
    COLUMN_KIND,
    COLUMN_PARAMETERS,
    COLUMN_FORWARD,
    COLUMN_ACTIVATION,
    COLUMN_BACKWARD,
    COLUMN_FLOPS,
    COLUMN_OTHERS, /* forward time on the second kind, the third … */
    COLUMN_N = COLUMN_OTHERS + HV_MODEL_KINDS - 1
};

static const struct hv_model *model_of(const struct hv_model_screen *v)
{
    return hv_session_model(v->session)->model;
}

static const struct hv_job *job_of(const struct hv_model_screen *v)
{
    return &hv_session_job(v->session)->job;
}

size_t hv_model_n_columns(void)
{
    return COLUMN_N;
}

/* The cluster's accelerators that can compute in the job's precision, fastest first. */
static void list_kinds(struct hv_model_screen *v)
{
    const struct hv_cluster *c = hv_session_cluster(v->session)->cluster;
    enum hv_precision p = job_of(v)->precision;
    v->n_kinds = 0;
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct hv_device_kind *k = c->kinds[i];
        if (k->cls == HV_CLASS_CPU || !hv_device_has(k, p)) {
            continue;
        }
        size_t at = v->n_kinds;
        double flops = hv_device_peak_flops_per_s(k, p);
        while (at > 0 && hv_device_peak_flops_per_s(v->kinds[at - 1], p) < flops) {
            at--;
        }
        if (at == HV_MODEL_KINDS) {
            continue;
        }
        size_t last = v->n_kinds < HV_MODEL_KINDS ? v->n_kinds : HV_MODEL_KINDS - 1;
        memmove(&v->kinds[at + 1], &v->kinds[at], (last - at) * sizeof *v->kinds);
        v->kinds[at] = k;
        v->n_kinds = last + 1;
    }
}

static bool is_unfolded(const struct hv_model_screen *v, unsigned run)
{
    return run < FOLD_BITS && ((v->unfolded >> run) & 1u) != 0;
}

static void push_run(struct hv_model_screen *v, size_t from, size_t to, size_t n)
{
    unsigned run = 0;
    for (size_t i = v->rows.n; i > 0; i--) {
        if (v->rows.items[i - 1].kind == HV_LAYER_BLOCKS) {
            run = v->rows.items[i - 1].run + 1;
            break;
        }
    }
    hv_vec_push(&v->rows, (struct hv_layer_row){HV_LAYER_BLOCKS, from, to, n, run});
    if (is_unfolded(v, run) && model_of(v)->kind == HV_MODEL_TRANSFORMER) {
        hv_vec_push(&v->rows, (struct hv_layer_row){HV_LAYER_ATTENTION, from, to, n, run});
        hv_vec_push(&v->rows, (struct hv_layer_row){HV_LAYER_FFN, from, to, n, run});
    }
}

static void push_blocks(struct hv_model_screen *v, const struct hv_cost *k, size_t n_blocks)
{
    size_t n_runs = 0;
    for (size_t i = 0; i < n_blocks; i++) {
        n_runs += i == 0 || hv_cost_block_class(k, i) != hv_cost_block_class(k, i - 1);
    }
    if (n_runs > MANY_RUNS && hv_cost_n_classes(k) <= MANY_RUNS) {
        for (unsigned cls = 0; cls < hv_cost_n_classes(k); cls++) {
            size_t from = n_blocks, to = 0, n = 0;
            for (size_t i = 0; i < n_blocks; i++) {
                if (hv_cost_block_class(k, i) == cls) {
                    from = from < i ? from : i;
                    to = i + 1;
                    n++;
                }
            }
            push_run(v, from, to, n);
        }
        return;
    }
    for (size_t from = 0, to; from < n_blocks; from = to) {
        to = from + 1;
        while (to < n_blocks && hv_cost_block_class(k, to) == hv_cost_block_class(k, from)) {
            to++;
        }
        push_run(v, from, to, to - from);
    }
}

void hv_model_rows(struct hv_model_screen *v)
{
    const struct hv_model *m = model_of(v);
    v->rows.n = 0;
    list_kinds(v);
    hv_model_layer_marks(v);
    if (m->kind == HV_MODEL_MODULES) {
        for (size_t i = 0; i < m->n_modules; i++) {
            hv_vec_push(&v->rows, (struct hv_layer_row){HV_LAYER_MODULE, i, i + 1, 1, 0});
        }
    } else {
        bool ends = m->kind == HV_MODEL_TRANSFORMER;
        if (ends) {
            hv_vec_push(&v->rows, (struct hv_layer_row){.kind = HV_LAYER_EMBEDDING, .n = 1});
        }
        push_blocks(v, hv_session_cost(v->session), m->n_blocks);
        if (ends) {
            hv_vec_push(&v->rows, (struct hv_layer_row){.kind = HV_LAYER_HEAD, .n = 1});
        }
    }
    struct hv_table_source s = hv_model_source(v);
    hv_table_refresh(&v->table, &s, HV_GRID_MAX);
}

void hv_model_count(struct hv_str *out, double n)
{
    static const struct {
        double unit;
        const char *name;
    } steps[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "K"}};
    for (size_t i = 0; i < HV_COUNT(steps); i++) {
        if (n >= steps[i].unit) {
            hv_str_addf(out, "%.3g%s", n / steps[i].unit, steps[i].name);
            return;
        }
    }
    if (hv_known(n)) {
        hv_str_addf(out, "%.0f", n);
    } else {
        hv_str_addc(out, '-');
    }
}

static struct hv_layer_price no_price(void)
{
    return (struct hv_layer_price){HV_UNKNOWN, HV_UNKNOWN, HV_UNKNOWN, HV_UNKNOWN, HV_UNKNOWN};
}

static void add_part(struct hv_layer_price *sum, struct hv_part_cost c)
{
    sum->parameters += c.parameters + c.expert_parameters;
    sum->forward_s += c.forward_s + c.tp_forward_s;
    sum->backward_s += c.input_grad_s + c.weight_grad_s + c.tp_backward_s;
    sum->saved_bytes += c.saved_bytes;
    sum->flops += c.flops_forward;
}

struct hv_layer_price hv_model_price(const struct hv_model_screen *v,
                                     const struct hv_layer_row *row,
                                     const struct hv_device_kind *kind, int tp)
{
    const struct hv_model *m = model_of(v);
    if (row->kind == HV_LAYER_MODULE) {
        struct hv_layer_price p = no_price();
        p.parameters = hv_model_parameters(m->modules[row->from].model);
        p.flops =
            hv_model_forward_flops(m->modules[row->from].model, (double)job_of(v)->sequence, true);
        return p;
    }
    if (kind == NULL) {
        return no_price();
    }
    struct hv_part_query q = {.device = kind,
                              .tp = tp,
                              .cp = 1,
                              .ep = 1,
                              .sequence_parallel = tp > 1,
                              .sequences = 1,
                              .tokens = m->patch_tokens > 0 ? m->patch_tokens
                                                            : (double)job_of(v)->sequence};
    struct hv_cost *k = hv_session_cost(v->session);
    struct hv_layer_price sum = {0};
    if (row->kind == HV_LAYER_EMBEDDING || row->kind == HV_LAYER_HEAD) {
        enum hv_part part = row->kind == HV_LAYER_HEAD ? HV_PART_HEAD : HV_PART_EMBEDDING;
        add_part(&sum, hv_cost_part(k, part, 0, &q, NULL));
        return sum;
    }
    if (row->kind != HV_LAYER_FFN) {
        add_part(&sum, hv_cost_part(k, HV_PART_ATTENTION, row->from, &q, NULL));
    }
    if (row->kind != HV_LAYER_ATTENTION) {
        add_part(&sum, hv_cost_part(k, HV_PART_FFN, row->from, &q, NULL));
    }
    return sum;
}

static void kind_cell(const struct hv_model *m, const struct hv_layer_row *row, struct hv_str *out)
{
    switch (row->kind) {
    case HV_LAYER_EMBEDDING:
        hv_str_adds(out, "embedding");
        return;
    case HV_LAYER_HEAD:
        hv_str_adds(out, m->tied_embeddings ? "head (tied)" : "head");
        return;
    case HV_LAYER_MODULE:
        hv_str_adds(out, m->modules[row->from].name);
        return;
    case HV_LAYER_ATTENTION:
        hv_str_adds(out, "attention");
        return;
    case HV_LAYER_FFN:
        hv_str_adds(out, m->blocks[row->from].experts > 0 ? "experts" : "feed-forward");
        return;
    case HV_LAYER_BLOCKS:
        break;
    }
    if (m->kind == HV_MODEL_LAYERS) {
        hv_str_adds(out, m->measured[row->from].name);
    } else if (m->kind == HV_MODEL_GRAPH) {
        hv_str_adds(out, m->ops[row->from].id);
    } else {
        const struct hv_block *b = &m->blocks[row->from];
        if (b->experts > 0) {
            hv_str_addf(out, "MoE %d of %d", b->top_k, b->experts);
        } else {
            hv_str_adds(out, "decoder");
        }
        if (b->window > 0) {
            hv_str_addf(out, " w%d", b->window);
        }
    }
}

static void index_cell(const struct hv_model_screen *v, const struct hv_layer_row *row,
                       struct hv_str *out)
{
    if (row->kind == HV_LAYER_MODULE) {
        hv_str_addf(out, "%zu", row->from);
    }
    if (row->kind != HV_LAYER_BLOCKS) {
        return;
    }
    bool halves = model_of(v)->kind == HV_MODEL_TRANSFORMER && row->run < FOLD_BITS;
    hv_str_adds(out, !halves ? "" : is_unfolded(v, row->run) ? "- " : "+ ");
    hv_str_addf(out, "%zu", row->from);
    if (row->to > row->from + 1) {
        hv_str_addf(out, "-%zu", row->to - 1);
    }
    if (row->n < row->to - row->from) {
        hv_str_addf(out, " (%zu)", row->n);
    }
}

static void add_seconds(struct hv_str *out, double s)
{
    char buf[HV_FMT_CAP];
    hv_str_adds(out, hv_known(s) ? hv_fmt_seconds(buf, sizeof buf, s) : "-");
}

static void add_si(struct hv_str *out, double x, const char *unit)
{
    char buf[HV_FMT_CAP];
    hv_str_adds(out, hv_known(x) ? hv_fmt_si(buf, sizeof buf, x, unit) : "-");
}

static void table_cell(const void *ctx, size_t i, size_t column, struct hv_str *out)
{
    const struct hv_model_screen *v = ctx;
    const struct hv_layer_row *row = &v->rows.items[i];
    const struct hv_device_kind *kind = v->n_kinds > 0 ? v->kinds[0] : NULL;
    char buf[HV_FMT_CAP];
    if (column == COLUMN_INDEX || column == COLUMN_KIND) {
        if (column == COLUMN_INDEX) {
            index_cell(v, row, out);
        } else {
            kind_cell(model_of(v), row, out);
        }
        return;
    }
    if (column >= COLUMN_OTHERS) {
        size_t k = column - COLUMN_OTHERS + 1;
        if (k < v->n_kinds) {
            add_seconds(out, hv_model_price(v, row, v->kinds[k], 1).forward_s);
        }
        return;
    }
    struct hv_layer_price p = hv_model_price(v, row, kind, 1);
    switch ((enum column)column) {
    case COLUMN_PARAMETERS:
        hv_model_count(out, p.parameters);
        break;
    case COLUMN_FORWARD:
        add_seconds(out, p.forward_s);
        break;
    case COLUMN_BACKWARD:
        add_seconds(out, p.backward_s);
        break;
    case COLUMN_ACTIVATION:
        hv_str_adds(out,
                    hv_known(p.saved_bytes) ? hv_fmt_bytes(buf, sizeof buf, p.saved_bytes) : "-");
        break;
    case COLUMN_FLOPS:
        add_si(out, p.flops, "FLOP");
        break;
    case COLUMN_INDEX:
    case COLUMN_KIND:
    case COLUMN_OTHERS:
    case COLUMN_N:
        break;
    }
}

static unsigned table_flags(const void *ctx, size_t row)
{
    const struct hv_model_screen *v = ctx;
    enum hv_layer_row_kind kind = v->rows.items[row].kind;
    if (kind == HV_LAYER_BLOCKS && hv_model_layer_is_own(v, &v->rows.items[row])) {
        return HV_ROW_MARKED;
    }
    return kind == HV_LAYER_ATTENTION || kind == HV_LAYER_FFN ? HV_ROW_DIM : 0;
}

static uint64_t table_id(const void *ctx, size_t i)
{
    const struct hv_model_screen *v = ctx;
    const struct hv_layer_row *row = &v->rows.items[i];
    return ((uint64_t)row->from << 4) | (uint64_t)row->kind;
}

struct hv_table_source hv_model_source(const struct hv_model_screen *v)
{
    return (struct hv_table_source){
        .ctx = v, .n_rows = v->rows.n, .cell = table_cell, .flags = table_flags, .id = table_id};
}

bool hv_model_unfold(struct hv_model_screen *v)
{
    if (v->table.cursor >= v->rows.n || model_of(v)->kind != HV_MODEL_TRANSFORMER) {
        return false;
    }
    const struct hv_layer_row *row = &v->rows.items[v->table.cursor];
    bool run = row->kind == HV_LAYER_BLOCKS || row->kind == HV_LAYER_ATTENTION ||
               row->kind == HV_LAYER_FFN;
    if (!run || row->run >= FOLD_BITS) {
        return false;
    }
    v->unfolded ^= (uint64_t)1 << row->run;
    hv_model_rows(v);
    return true;
}

void hv_model_draw_layers(const struct hv_model_screen *v, struct hv_grid *g, struct hv_rect r)
{
    struct hv_column columns[COLUMN_N] = {{"BLOCKS", HV_LEFT, 7, 0},    {"KIND", HV_LEFT, 9, 1},
                                          {"PARAM", HV_RIGHT, 5, 0},    {"FWD", HV_RIGHT, 7, 0},
                                          {"ACT", HV_RIGHT, 8, 0},      {"BWD", HV_RIGHT, 7, 0},
                                          {"FWD FLOP", HV_RIGHT, 10, 0}};
    char titles[HV_MODEL_KINDS][12];
    for (size_t k = 1; k < v->n_kinds; k++) {
        (void)snprintf(titles[k], sizeof titles[k], "%.*s FWD",
                       (int)strcspn(v->kinds[k]->name, "-"), v->kinds[k]->name);
        columns[COLUMN_OTHERS + k - 1] = (struct hv_column){titles[k], HV_RIGHT, 10, 0};
    }
    bool focused = v->panel == HV_MODEL_LAYERS_PANEL;
    struct hv_str title = {0};
    struct hv_table_source s = hv_model_source(v);
    s.version = hv_model_version(v, "layers");
    struct hv_rect in = hv_rect_inner(r);
    size_t n = COLUMN_OTHERS + (v->n_kinds > 1 ? v->n_kinds - 1 : 0);
    struct hv_table_look look = {columns, n, focused, "no layers"};
    hv_str_adds(&title, "Layers, 1 sequence");
    hv_str_addf(&title, v->n_kinds > 0 ? " on %s" : ", no device for %s",
                v->n_kinds > 0 ? v->kinds[0]->name : hv_precision_name(job_of(v)->precision));
    hv_grid_box(g, r, hv_str_cstr(&title), focused,
                focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    hv_table_draw(&v->table, &s, &look, g, in);
    hv_table_more_draw(&v->table, &s, in, g, in);
    hv_str_free(&title);
}
