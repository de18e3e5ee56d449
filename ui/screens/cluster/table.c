/* Rows of the cluster screen: node groups with their figures, sorting, filtering, totals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "ui/screens/cluster/cluster_int.h"

static const struct hv_column columns[] = {
#define X(c, word, title, align, width, flex, need) {title, align, width, flex},
    HV_CLUSTER_COLUMN_MAP(X)
#undef X
};
static const char *const sort_words[] = {
#define X(c, word, title, align, width, flex, need) word,
    HV_CLUSTER_COLUMN_MAP(X)
#undef X
};
static const int needs[] = {
#define X(c, word, title, align, width, flex, need) need,
    HV_CLUSTER_COLUMN_MAP(X)
#undef X
};

/* Word of a column for "sort:", "file order" for −1. */
static const char *sort_word(int column)
{
    return column < 0 ? "file order" : sort_words[column];
}

uint64_t hv_cluster_group_id(const struct hv_node_group *g)
{
    return hv_hash(HV_HASH_START, g->name, strlen(g->name));
}

uint64_t hv_cluster_version(const struct hv_cluster_screen *v, const char *part)
{
    const uint64_t of[] = {v->cluster_generation, v->job_generation};
    return hv_hash(hv_hash(HV_HASH_START, part, strlen(part)), of, sizeof of);
}

const struct hv_cluster *hv_cluster_shown(const struct hv_cluster_screen *v)
{
    return hv_session_cluster(v->session)->cluster;
}

static enum hv_precision precision(const struct hv_cluster_screen *v)
{
    return hv_session_job(v->session)->job.precision;
}

/* The first accelerator of a node, else its first device. */
static const struct hv_device_kind *main_kind(const struct hv_node_group *g)
{
    for (size_t i = 0; i < g->n_slots; i++) {
        if (g->slots[i].kind->cls != HV_CLASS_CPU) {
            return g->slots[i].kind;
        }
    }
    return g->slots[0].kind;
}

const struct hv_node_group *hv_cluster_selected(const struct hv_cluster_screen *v, size_t *index)
{
    if (v->order.n == 0) {
        return NULL;
    }
    size_t row = v->table.cursor < v->order.n ? v->table.cursor : v->order.n - 1;
    if (index != NULL) {
        *index = v->order.items[row];
    }
    return &hv_cluster_shown(v)->groups[v->order.items[row]];
}

bool hv_cluster_is_marked(const struct hv_cluster_screen *v, const struct hv_node_group *g)
{
    uint64_t id = hv_cluster_group_id(g);
    for (size_t i = 0; i < v->marks.n; i++) {
        if (v->marks.items[i] == id) {
            return true;
        }
    }
    return false;
}

void hv_cluster_number(struct hv_str *out, double x, const char *unit)
{
    char buf[HV_FMT_CAP];
    if (!hv_known(x)) {
        hv_str_adds(out, "-");
    } else {
        hv_str_adds(out, hv_fmt_general(buf, sizeof buf, x, 4));
        hv_str_adds(out, unit);
    }
}

static void money(struct hv_str *out, double usd)
{
    char buf[HV_FMT_CAP];
    if (!hv_known(usd)) {
        hv_str_adds(out, "-");
    } else {
        hv_str_adds(out, hv_fmt_fixed(buf, sizeof buf, usd, usd < 1000 ? 2 : 0));
    }
}

static void device_names(const struct hv_node_group *g, struct hv_str *out)
{
    for (size_t i = 0; i < g->n_slots; i++) {
        const struct hv_slots *s = &g->slots[i];
        if (g->n_slots > 1) {
            hv_str_addf(out, "%s%ux ", i > 0 ? " + " : "", s->count);
        }
        hv_str_adds(out, s->kind->name);
    }
}

static void flops_cell(const struct hv_cluster_screen *v, const struct hv_node_group *g,
                       struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    enum hv_precision p = precision(v);
    const struct hv_device_kind *k = main_kind(g);
    if (!hv_device_has(k, p)) {
        hv_str_addf(out, "no %s", hv_precision_name(p));
    } else {
        hv_fmt_si(buf, sizeof buf, hv_device_peak_flops_per_s(k, p), "F/s");
        hv_str_adds(out, buf);
    }
}

static void cell_of(const struct hv_cluster_screen *v, const struct hv_node_group *g,
                    enum hv_cluster_column column, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    switch (column) {
    case HV_COLUMN_NAME:
        hv_str_adds(out, g->name);
        break;
    case HV_COLUMN_DEVICE:
        device_names(g, out);
        break;
    case HV_COLUMN_SHAPE:
        hv_str_addf(out, "%u x %u", g->count, g->n_devices);
        break;
    case HV_COLUMN_MEMORY:
        if (hv_known(main_kind(g)->memory_bytes)) {
            hv_str_adds(out, hv_fmt_bytes(buf, sizeof buf, main_kind(g)->memory_bytes));
        } else {
            hv_str_adds(out, "-");
        }
        break;
    case HV_COLUMN_FLOPS:
        flops_cell(v, g, out);
        break;
    case HV_COLUMN_INTRA:
        hv_str_adds(out, hv_link_kind_name(g->intra.kind));
        hv_str_addc(out, ' ');
        hv_cluster_number(out, g->intra.bytes_per_s / HV_GBPS, " GB/s");
        break;
    case HV_COLUMN_NIC:
        if (hv_known(g->nic.bytes_per_s)) {
            hv_str_adds(out, hv_fmt_general(buf, sizeof buf, g->nic.bytes_per_s / HV_GBPS, 3));
            hv_str_adds(out, " GB/s");
        } else {
            hv_str_addc(out, '-');
        }
        break;
    case HV_COLUMN_ZONE:
        hv_str_adds(out, g->zone != NULL ? g->zone : "-");
        break;
    case HV_COLUMN_PRICE:
        money(out, hv_node_price_usd_per_h(g, false));
        break;
    case HV_COLUMN_SPOT:
        money(out, hv_node_price_usd_per_h(g, true));
        break;
    case HV_COLUMN_STATE:
        hv_str_adds(out, hv_node_state_name(g->state));
        break;
    case HV_CLUSTER_COLUMN_N:
        break;
    }
}

static double sort_figure(const struct hv_cluster_screen *v, const struct hv_node_group *g)
{
    switch ((enum hv_cluster_column)v->sort) {
    case HV_COLUMN_SHAPE:
        return (double)g->count * g->n_devices;
    case HV_COLUMN_MEMORY:
        return main_kind(g)->memory_bytes;
    case HV_COLUMN_FLOPS:
        return hv_device_peak_flops_per_s(main_kind(g), precision(v));
    case HV_COLUMN_INTRA:
        return g->intra.bytes_per_s;
    case HV_COLUMN_NIC:
        return g->nic.bytes_per_s;
    case HV_COLUMN_PRICE:
        return hv_node_price_usd_per_h(g, false);
    case HV_COLUMN_SPOT:
        return hv_node_price_usd_per_h(g, true);
    case HV_COLUMN_STATE:
        return (double)g->state;
    case HV_COLUMN_NAME:
    case HV_COLUMN_DEVICE:
    case HV_COLUMN_ZONE:
    case HV_CLUSTER_COLUMN_N:
        break;
    }
    return HV_UNKNOWN;
}

/* A row while sorting: text or figure, and the place in the file to keep ties in order. */
struct sort_row {
    size_t group;
    double figure;
    char *text;
    bool descending;
};

static int by_key(const void *a, const void *b)
{
    const struct sort_row *x = a, *y = b;
    int order = 0;
    if (x->text != NULL) {
        order = strcmp(x->text, y->text);
    } else if (hv_known(x->figure) != hv_known(y->figure)) {
        return hv_known(x->figure) ? -1 : 1; /* unknown last, whatever the direction */
    } else if (hv_known(x->figure)) {
        order = (x->figure > y->figure) - (x->figure < y->figure);
    }
    if (order == 0) {
        return x->group < y->group ? -1 : 1;
    }
    return x->descending ? -order : order;
}

static void sort_order(struct hv_cluster_screen *v)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    bool text =
        v->sort == HV_COLUMN_NAME || v->sort == HV_COLUMN_DEVICE || v->sort == HV_COLUMN_ZONE;
    struct sort_row *rows = hv_xcalloc(v->order.n, sizeof *rows);
    for (size_t i = 0; i < v->order.n; i++) {
        const struct hv_node_group *g = &c->groups[v->order.items[i]];
        struct hv_str s = {0};
        if (text) {
            cell_of(v, g, (enum hv_cluster_column)v->sort, &s);
            hv_str_addc(&s, '\0');
        }
        rows[i] = (struct sort_row){v->order.items[i], sort_figure(v, g), s.p, v->descending};
    }
    qsort(rows, v->order.n, sizeof *rows, by_key);
    for (size_t i = 0; i < v->order.n; i++) {
        v->order.items[i] = rows[i].group;
        free(rows[i].text);
    }
    free(rows);
}

static bool passes(const struct hv_cluster_screen *v, const struct hv_node_group *g)
{
    if (v->filter[0] == '\0') {
        return true;
    }
    struct hv_str text = {0};
    for (int c = 0; c < HV_CLUSTER_COLUMN_N; c++) {
        cell_of(v, g, (enum hv_cluster_column)c, &text);
        hv_str_addc(&text, ' ');
    }
    bool fits = hv_text_has(hv_str_cstr(&text), v->filter);
    hv_str_free(&text);
    return fits;
}

void hv_cluster_reorder(struct hv_cluster_screen *v)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    v->order.n = 0;
    v->order_version++;
    for (size_t i = 0; i < c->n_groups; i++) {
        if (passes(v, &c->groups[i])) {
            hv_vec_push(&v->order, i);
        }
    }
    if (v->sort >= 0 && v->order.n > 1) {
        sort_order(v);
    }
    struct hv_table_source s = hv_cluster_source(v);
    hv_table_refresh(&v->table, &s, HV_GRID_MAX);
}

static void table_cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    const struct hv_cluster_screen *v = ctx;
    cell_of(v, &hv_cluster_shown(v)->groups[v->order.items[row]], (enum hv_cluster_column)column,
            out);
}

static bool has_problem(const struct hv_cluster_screen *v, const struct hv_node_group *g)
{
    return !hv_device_has(main_kind(g), precision(v));
}

static unsigned table_flags(const void *ctx, size_t row)
{
    const struct hv_cluster_screen *v = ctx;
    const struct hv_node_group *g = &hv_cluster_shown(v)->groups[v->order.items[row]];
    return (has_problem(v, g) ? HV_ROW_PROBLEM : 0u) |
           (g->state == HV_NODE_OK ? 0u : (unsigned)HV_ROW_DIM) |
           (hv_cluster_is_marked(v, g) ? HV_ROW_MARKED : 0u);
}

static uint64_t table_id(const void *ctx, size_t row)
{
    const struct hv_cluster_screen *v = ctx;
    return hv_cluster_group_id(&hv_cluster_shown(v)->groups[v->order.items[row]]);
}

struct hv_table_source hv_cluster_source(const struct hv_cluster_screen *v)
{
    return (struct hv_table_source){
        .ctx = v, .n_rows = v->order.n, .cell = table_cell, .flags = table_flags, .id = table_id};
}

void hv_cluster_problem(const struct hv_cluster_screen *v, const struct hv_node_group *g,
                        struct hv_str *out)
{
    enum hv_precision p = precision(v);
    const struct hv_device_kind *k = main_kind(g);
    if (!hv_device_has(k, p)) {
        hv_str_addf(out, "%s: %s does not support %s, the precision of the job", g->name, k->name,
                    hv_precision_name(p));
    } else if (g->state != HV_NODE_OK) {
        hv_str_addf(out, "%s: %s, plans do not use it (D puts it back)", g->name,
                    g->state == HV_NODE_DRAIN ? "drained" : "spare");
    }
}

void hv_cluster_group_line(const struct hv_node_group *g, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    double bytes = 0;
    for (size_t i = 0; i < g->n_slots; i++) {
        bool counts = g->slots[i].kind->cls != HV_CLASS_CPU;
        bytes += counts ? (double)g->count * g->slots[i].count * g->slots[i].kind->memory_bytes : 0;
    }
    double usd = g->count * hv_node_price_usd_per_h(g, false);
    hv_str_addf(out, "%s: %u x %u ", g->name, g->count, g->n_devices);
    device_names(g, out);
    if (hv_known(bytes)) {
        hv_str_addf(out, ", %s", hv_fmt_bytes(buf, sizeof buf, bytes));
    }
    if (hv_known(usd)) {
        hv_str_adds(out, ", $");
        money(out, usd);
        hv_str_adds(out, "/h");
    }
    if (g->zone != NULL) {
        hv_str_addf(out, ", zone %s", g->zone);
    }
}

/* Price of the groups in use; groups without a known price are counted separately. */
static void add_price(const struct hv_cluster *c, bool spot, struct hv_str *out)
{
    double sum = 0;
    size_t unknown = 0, known = 0;
    for (size_t i = 0; i < c->n_groups; i++) {
        double each = hv_node_price_usd_per_h(&c->groups[i], spot);
        if (c->groups[i].state == HV_NODE_OK) {
            known += hv_known(each);
            unknown += !hv_known(each);
            sum += c->groups[i].count * hv_or(each, 0);
        }
    }
    if (known == 0 || (spot && unknown > 0)) {
        hv_str_adds(out, spot ? "" : ", price unknown");
        return;
    }
    hv_str_adds(out, spot ? ", spot $" : ", $");
    money(out, sum);
    hv_str_adds(out, "/h");
    if (unknown > 0) {
        hv_str_addf(out, " (%zu unknown)", unknown);
    }
}

void hv_cluster_totals(const struct hv_cluster_screen *v, struct hv_str *out)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    enum hv_precision p = precision(v);
    char buf[HV_FMT_CAP];
    double nodes = 0, out_of_use = 0, gpus = 0, bytes = 0, flops = 0;
    for (size_t i = 0; i < c->n_groups; i++) {
        const struct hv_node_group *g = &c->groups[i];
        if (g->state != HV_NODE_OK) {
            out_of_use += g->count;
            continue;
        }
        nodes += g->count;
        for (size_t k = 0; k < g->n_slots; k++) {
            const struct hv_device_kind *kind = g->slots[k].kind;
            double n = (double)g->count * g->slots[k].count;
            if (kind->cls != HV_CLASS_CPU) {
                gpus += n;
                bytes += n * hv_or(kind->memory_bytes, 0);
                flops += n * (hv_device_has(kind, p) ? hv_or(hv_device_peak_flops_per_s(kind, p), 0)
                                                     : 0);
            }
        }
    }
    hv_str_addf(out, "%.0f node%s", nodes, nodes > 1 || nodes < 1 ? "s" : "");
    if (out_of_use > 0) {
        hv_str_addf(out, " (+%.0f not in use)", out_of_use);
    }
    hv_str_addf(out, ", %.0f GPU%s, %s", gpus, gpus > 1 || gpus < 1 ? "s" : "",
                hv_fmt_bytes(buf, sizeof buf, bytes));
    hv_str_addf(out, ", %s %s", hv_fmt_si(buf, sizeof buf, flops, "FLOP/s"), hv_precision_name(p));
    add_price(c, false, out);
    add_price(c, true, out);
}

struct hv_rect hv_cluster_table_rect(struct hv_rect nodes)
{
    struct hv_rect r = hv_rect_inner(nodes);
    r.h -= r.h > 3 ? 1 : 0;
    return r;
}

int hv_cluster_table_height(struct hv_rect nodes)
{
    return hv_cluster_table_rect(nodes).h - 1;
}

/* A source that shows only some columns. */
struct some_columns {
    const struct hv_cluster_screen *v;
    size_t ids[HV_CLUSTER_COLUMN_N];
};

static void some_cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    const struct some_columns *s = ctx;
    table_cell(s->v, row, s->ids[column], out);
}

static unsigned some_flags(const void *ctx, size_t row)
{
    return table_flags(((const struct some_columns *)ctx)->v, row);
}

static uint64_t some_id(const void *ctx, size_t row)
{
    return table_id(((const struct some_columns *)ctx)->v, row);
}

void hv_cluster_draw_nodes(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r)
{
    struct hv_column shown[HV_CLUSTER_COLUMN_N];
    struct some_columns some = {.v = v};
    struct hv_table table = v->table;
    struct hv_rect at = hv_cluster_table_rect(r);
    struct hv_str text = {0};
    size_t n = 0;
    table.sort_column = -1;
    table.sort_descending = v->descending;
    for (size_t c = 0; c < HV_CLUSTER_COLUMN_N; c++) {
        if (needs[c] <= at.w) {
            table.sort_column = v->sort == (int)c ? (int)n : table.sort_column;
            shown[n] = columns[c];
            some.ids[n++] = c;
        }
    }
    bool focused = v->panel == HV_CLUSTER_NODES;
    hv_str_addf(&text, "Nodes  sort: %s", sort_word(v->sort));
    if (v->filter[0] != '\0') {
        hv_str_addf(&text, "  filter: %s", v->filter);
    }
    if (v->marks.n > 0) {
        hv_str_addf(&text, "  marked: %zu", v->marks.n);
    }
    hv_grid_box(g, r, hv_str_cstr(&text), focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    /* the columns shown depend on the width, the group of a row on the orders */
    uint64_t version = hv_hash(hv_cluster_version(v, "nodes"), &at.w, sizeof at.w);
    version = hv_hash(version, &v->order_version, sizeof v->order_version);
    struct hv_table_source s = {.ctx = &some,
                                .n_rows = v->order.n,
                                .cell = some_cell,
                                .flags = some_flags,
                                .id = some_id,
                                .version = version};
    struct hv_table_look look = {shown, n, focused,
                                 "no group matches; f with an empty text shows all"};
    hv_table_draw(&table, &s, &look, g, at);
    hv_table_more_draw(&table, &s, at, g, hv_rect_inner(r));
    struct hv_rect inner = hv_rect_inner(r), totals = {inner.x, inner.y + at.h, inner.w, 1};
    if (inner.h > at.h) {
        hv_grid_put_field(g, totals, HV_LEFT, hv_str_cstr(&v->totals), HV_STYLE_TITLE);
    }
    hv_str_free(&text);
}
