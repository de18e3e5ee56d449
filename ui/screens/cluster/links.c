/* Links between groups as a matrix. */
#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "ui/screens/cluster/cluster_int.h"

enum { CELL_MIN = 8, CELL_MAX = 13, MANY_GROUPS = 16 };

struct hv_path hv_cluster_group_path(const struct hv_cluster *c, size_t a, size_t b)
{
    const struct hv_node_group *x = &c->groups[a], *y = &c->groups[b];
    uint32_t from = x->first_device, to = y->first_device;
    if (a == b && x->count > 1) {
        to = from + x->n_devices;
    } else if (a == b && x->n_devices > 1) {
        to = from + 1;
    }
    return hv_cluster_path(c, from, to);
}

static const char *level_word(enum hv_path_level level)
{
    switch (level) {
    case HV_PATH_SELF:
        return "one device";
    case HV_PATH_ISLAND:
        return "one island";
    case HV_PATH_NODE:
        return "one node";
    case HV_PATH_DOMAIN:
        return "one link domain";
    case HV_PATH_NETWORK:
        return "network";
    case HV_PATH_WAN:
        return "between zones";
    }
    return "";
}

static void path_cell(struct hv_str *out, struct hv_path p)
{
    hv_str_clear(out);
    if (p.level == HV_PATH_SELF) {
        hv_str_adds(out, ".");
        return;
    }
    char buf[HV_FMT_CAP];
    hv_str_adds(out, hv_fmt_general(buf, sizeof buf, p.bytes_per_s / HV_GBPS, 3));
    hv_str_addc(out, '/');
    hv_str_adds(out, hv_fmt_general(buf, sizeof buf, p.latency_s / HV_US, 5));
}

/* Width of the matrix' columns: the widest figure of few groups, else the most. */
static int cell_width(const struct hv_cluster *c)
{
    int w = c->n_groups > MANY_GROUPS ? CELL_MAX : CELL_MIN;
    struct hv_str text = {0};
    for (size_t i = 0; w < CELL_MAX && i < c->n_groups * c->n_groups; i++) {
        path_cell(&text, hv_cluster_group_path(c, i / c->n_groups, i % c->n_groups));
        int need = (int)text.n + 1;
        w = need > w ? need : w;
    }
    hv_str_free(&text);
    return w < CELL_MAX ? w : CELL_MAX;
}

/* Columns of the groups' names and the blank behind them. */
static int name_width(const struct hv_cluster *c)
{
    int w = (int)sizeof "FROM/TO" + 1;
    for (size_t i = 0; w < CELL_MAX && i < c->n_groups && i < MANY_GROUPS; i++) {
        int need = hv_text_width(c->groups[i].name) + 1;
        w = need > w ? need : w;
    }
    return w < CELL_MAX ? w : CELL_MAX;
}

/* A name in a field of its own; of long ones both ends are shown. */
static void put_name(struct hv_grid *g, struct hv_rect at, enum hv_align align, const char *name,
                     unsigned style)
{
    struct hv_str text = {0};
    hv_text_squeeze(name, at.w, g->ascii, &text);
    hv_grid_put_field(g, at, align, hv_str_cstr(&text), style);
    hv_str_free(&text);
}

/* The visible part of the matrix and its layout. */
struct matrix {
    size_t top, left;   /* first row and column, pages of what fits: most keys only move the mark */
    size_t rows, cols;  /* that fit */
    int name_w, cell_w; /* columns of the groups' names and of a cell */
};

/* First of n lines in the page of `fits` lines that `cursor` is on; the last page is full. */
static size_t page_top(size_t cursor, size_t fits, size_t n)
{
    size_t top = fits > 0 ? cursor / fits * fits : 0;
    return top + fits > n ? n - fits : top;
}

static struct matrix matrix_of(const struct hv_cluster_screen *v, struct hv_rect inner)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct matrix m = {.name_w = name_width(c), .cell_w = cell_width(c)};
    int h = inner.h - 2, w = (inner.w - m.name_w) / m.cell_w;
    m.rows = h > 0 ? (size_t)h : 0;
    m.cols = w > 0 ? (size_t)w : 0;
    m.rows = m.rows < c->n_groups ? m.rows : c->n_groups;
    m.cols = m.cols < c->n_groups ? m.cols : c->n_groups;
    m.top = page_top(v->link_row, m.rows, c->n_groups);
    m.left = page_top(v->link_column, m.cols, c->n_groups);
    return m;
}

static void draw_link_row(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect at,
                          size_t row, const struct matrix *m)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct hv_str text = {0};
    struct hv_path said = {.bytes_per_s =
                               HV_UNKNOWN}; /* shown by `text`; neighbours mostly have the same */
    bool focused = v->panel == HV_CLUSTER_LINKS;
    put_name(g, (struct hv_rect){at.x, at.y, m->name_w - 1, 1}, HV_LEFT, c->groups[row].name,
             HV_STYLE_TEXT);
    if (row == v->link_row && !focused) { /* the group chosen in the table */
        int w = hv_text_width(c->groups[row].name);
        w = w < m->name_w - 1 ? w : m->name_w - 1;
        hv_grid_restyle(g, (struct hv_rect){at.x, at.y, w, 1}, 0, HV_STYLE_SELECTED_BLUR);
    }
    for (size_t i = 0; i < m->cols; i++) {
        size_t column = m->left + i;
        bool here = focused && row == v->link_row && column == v->link_column;
        unsigned style = here ? HV_STYLE_SELECTED : row == column ? HV_STYLE_DIM : HV_STYLE_TEXT;
        int x = at.x + m->name_w + (int)i * m->cell_w;
        struct hv_path p = hv_cluster_group_path(c, row, column);
        bool same = p.bytes_per_s >= said.bytes_per_s && p.bytes_per_s <= said.bytes_per_s &&
                    p.latency_s >= said.latency_s && p.latency_s <= said.latency_s;
        if (!same || (p.level == HV_PATH_SELF) != (said.level == HV_PATH_SELF)) {
            path_cell(&text, p);
            said = p;
        }
        hv_grid_put_field(g, (struct hv_rect){x, at.y, m->cell_w - 1, 1}, HV_RIGHT,
                          hv_str_cstr(&text), style);
        if (here) {
            hv_grid_cursor(g, x, at.y);
        }
    }
    hv_str_free(&text);
}

void hv_cluster_link_line(const struct hv_cluster_screen *v, struct hv_str *out)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct hv_path p = hv_cluster_group_path(c, v->link_row, v->link_column);
    hv_str_addf(out, "%s -> %s: ", c->groups[v->link_row].name, c->groups[v->link_column].name);
    if (p.level == HV_PATH_SELF) {
        hv_str_adds(out, "a single device, no link");
        return;
    }
    char latency[HV_FMT_CAP];
    hv_str_addf(out, "%.4g GB/s, %s, %s, limit: %s", p.bytes_per_s / HV_GBPS,
                hv_fmt_seconds(latency, sizeof latency, p.latency_s), level_word(p.level),
                p.why != NULL ? p.why : "-");
}

static void draw_link_head(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect at,
                           const struct matrix *m)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    hv_grid_fill(g, at, ' ', HV_STYLE_HEADER);
    hv_grid_put_field(g, (struct hv_rect){at.x, at.y, m->name_w - 1, 1}, HV_LEFT, "FROM/TO",
                      HV_STYLE_HEADER);
    for (size_t i = 0; i < m->cols; i++) {
        int x = at.x + m->name_w + (int)i * m->cell_w;
        put_name(g, (struct hv_rect){x, at.y, m->cell_w - 1, 1}, HV_RIGHT,
                 c->groups[m->left + i].name, HV_STYLE_HEADER);
    }
}

/* A row of the matrix as a part of the frame: `row` SIZE_MAX is its head. */
static void draw_link_part(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect at,
                           size_t row, const struct matrix *m)
{
    size_t marked = row == v->link_row ? v->link_column + 1 : 0;
    const uint64_t of[] = {row,
                           m->left,
                           m->cols,
                           (uint64_t)m->name_w,
                           (uint64_t)m->cell_w,
                           marked,
                           v->panel == HV_CLUSTER_LINKS};
    if (hv_grid_part(g, at, hv_hash(hv_cluster_version(v, "links"), of, sizeof of))) {
        return;
    }
    if (row == SIZE_MAX) {
        draw_link_head(v, g, at, m);
    } else {
        draw_link_row(v, g, at, row, m);
    }
    hv_grid_part_end(g);
}

void hv_cluster_draw_links(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r)
{
    struct hv_rect in = hv_rect_inner(r);
    struct matrix m = matrix_of(v, in);
    bool focused = v->panel == HV_CLUSTER_LINKS;
    hv_grid_box(g, r, "Links  GB/s / us", focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    struct hv_rect old = hv_grid_clip(g, in);
    draw_link_part(v, g, (struct hv_rect){in.x, in.y, in.w, 1}, SIZE_MAX, &m);
    for (size_t i = 0; i < m.rows; i++) {
        draw_link_part(v, g, (struct hv_rect){in.x, in.y + 1 + (int)i, in.w, 1}, m.top + i, &m);
    }
    if (in.h > 1) {
        struct hv_str line = {0};
        hv_cluster_link_line(v, &line);
        hv_grid_put_field(g, (struct hv_rect){in.x, in.y + in.h - 1, in.w, 1}, HV_LEFT,
                          hv_str_cstr(&line), HV_STYLE_DIM);
        hv_str_free(&line);
    }
    hv_grid_unclip(g, old);
}

bool hv_cluster_links_action(struct hv_cluster_screen *v, enum hv_action a)
{
    size_t last = hv_cluster_shown(v)->n_groups - 1;
    size_t *at = a == HV_ACT_LEFT || a == HV_ACT_RIGHT ? &v->link_column : &v->link_row;
    if (a == HV_ACT_UP || a == HV_ACT_LEFT) {
        *at -= *at > 0;
    } else if (a == HV_ACT_DOWN || a == HV_ACT_RIGHT) {
        *at += *at < last;
    } else if (a == HV_ACT_TOP) {
        v->link_row = v->link_column = 0;
    } else if (a == HV_ACT_BOTTOM) {
        v->link_row = v->link_column = last;
    } else {
        return false;
    }
    return true;
}

bool hv_cluster_links_click(struct hv_cluster_screen *v, struct hv_rect r, int x, int y)
{
    struct hv_rect in = hv_rect_inner(r);
    struct matrix m = matrix_of(v, in);
    int row = y - in.y - 1, col = (x - in.x - m.name_w) / m.cell_w;
    if (row < 0 || (size_t)row >= m.rows || x < in.x + m.name_w || (size_t)col >= m.cols) {
        return false;
    }
    v->link_row = m.top + (size_t)row;
    v->link_column = m.left + (size_t)col;
    return true;
}
