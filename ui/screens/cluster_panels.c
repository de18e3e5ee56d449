/* Links between groups as a matrix, and everything known of the selected group as lines. */
#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "ui/screens/cluster_int.h"

enum { CELL_MIN = 8, CELL_MAX = 13, MANY_GROUPS = 16, DEVICE_W = 5, MATRIX_DEVICES = 8 };

/* ---- links ----------------------------------------------------------------------------------- */

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

/* How many rows and columns of the matrix fit. */
static void links_fit(const struct hv_cluster *c, struct hv_rect inner, size_t *rows, size_t *cols)
{
    int h = inner.h - 2, w = (inner.w - name_width(c)) / cell_width(c);
    *rows = h > 0 ? (size_t)h : 0;
    *cols = w > 0 ? (size_t)w : 0;
    *rows = *rows < c->n_groups ? *rows : c->n_groups;
    *cols = *cols < c->n_groups ? *cols : c->n_groups;
}

static size_t first_shown(size_t cursor, size_t fits)
{
    return fits > 0 && cursor >= fits ? cursor - fits + 1 : 0;
}

static void draw_link_row(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect at,
                          size_t row, size_t first, size_t n)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct hv_str text = {0};
    struct hv_path said = {.bytes_per_s = HV_UNKNOWN}; /* by `text`: neighbours mostly say it too */
    int cell = cell_width(c), name_w = name_width(c);
    bool focused = v->panel == HV_CLUSTER_LINKS;
    put_name(g, (struct hv_rect){at.x, at.y, name_w - 1, 1}, HV_LEFT, c->groups[row].name,
             HV_STYLE_TEXT);
    for (size_t i = 0; i < n; i++) {
        bool here = row == v->link_row && first + i == v->link_column;
        unsigned style = here ? (focused ? HV_STYLE_SELECTED : HV_STYLE_SELECTED_BLUR)
                              : (row == first + i ? HV_STYLE_DIM : HV_STYLE_TEXT);
        int x = at.x + name_w + (int)i * cell;
        struct hv_path p = hv_cluster_group_path(c, row, first + i);
        bool same = p.bytes_per_s >= said.bytes_per_s && p.bytes_per_s <= said.bytes_per_s &&
                    p.latency_s >= said.latency_s && p.latency_s <= said.latency_s;
        if (!same || (p.level == HV_PATH_SELF) != (said.level == HV_PATH_SELF)) {
            path_cell(&text, p);
            said = p;
        }
        hv_grid_put_field(g, (struct hv_rect){x, at.y, cell - 1, 1}, HV_RIGHT, hv_str_cstr(&text),
                          style);
        if (here && focused) {
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
    hv_str_addf(out, "%.4g GB/s, %.4g us, %s, limit: %s", p.bytes_per_s / HV_GBPS,
                p.latency_s / HV_US, level_word(p.level), p.why != NULL ? p.why : "-");
}

static void draw_matrix(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r)
{
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct hv_rect in = hv_rect_inner(r);
    struct hv_str line = {0};
    size_t rows, cols;
    int cell = cell_width(c), name_w = name_width(c);
    bool focused = v->panel == HV_CLUSTER_LINKS;
    hv_grid_box(g, r, "Links  GB/s / us", focused, focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    links_fit(c, in, &rows, &cols);
    size_t top = first_shown(v->link_row, rows), left = first_shown(v->link_column, cols);
    struct hv_rect old = hv_grid_clip(g, in);
    hv_grid_fill(g, (struct hv_rect){in.x, in.y, in.w, 1}, ' ', HV_STYLE_HEADER);
    hv_grid_put_field(g, (struct hv_rect){in.x, in.y, name_w - 1, 1}, HV_LEFT, "FROM/TO",
                      HV_STYLE_HEADER);
    for (size_t i = 0; i < cols; i++) {
        int x = in.x + name_w + (int)i * cell;
        put_name(g, (struct hv_rect){x, in.y, cell - 1, 1}, HV_RIGHT, c->groups[left + i].name,
                 HV_STYLE_HEADER);
    }
    for (size_t i = 0; i < rows; i++) {
        struct hv_rect at = {in.x, in.y + 1 + (int)i, in.w, 1};
        draw_link_row(v, g, at, top + i, left, cols);
    }
    if (in.h > 1) {
        hv_cluster_link_line(v, &line);
        hv_grid_put_field(g, (struct hv_rect){in.x, in.y + in.h - 1, in.w, 1}, HV_LEFT,
                          hv_str_cstr(&line), HV_STYLE_DIM);
    }
    hv_grid_unclip(g, old);
    hv_str_free(&line);
}

void hv_cluster_draw_links(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r)
{
    const uint64_t of[] = {v->link_row, v->link_column, v->panel == HV_CLUSTER_LINKS};
    if (!hv_grid_part(g, r, hv_hash(hv_cluster_version(v, "links"), of, sizeof of))) {
        draw_matrix(v, g, r);
        hv_grid_part_end(g);
    }
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
    const struct hv_cluster *c = hv_cluster_shown(v);
    struct hv_rect in = hv_rect_inner(r);
    size_t rows, cols;
    links_fit(c, in, &rows, &cols);
    int name_w = name_width(c), row = y - in.y - 1, col = (x - in.x - name_w) / cell_width(c);
    if (row < 0 || (size_t)row >= rows || x < in.x + name_w || (size_t)col >= cols) {
        return false;
    }
    size_t top = first_shown(v->link_row, rows), left = first_shown(v->link_column, cols);
    v->link_row = top + (size_t)row;
    v->link_column = left + (size_t)col;
    return true;
}

/* ---- details --------------------------------------------------------------------------------- */

static void add_bytes(struct hv_str *out, double bytes)
{
    char buf[HV_FMT_CAP];
    hv_str_adds(out, hv_known(bytes) ? hv_fmt_bytes(buf, sizeof buf, bytes) : "-");
}

static void add_si(struct hv_str *out, double x, const char *unit)
{
    char buf[HV_FMT_CAP];
    hv_str_adds(out, hv_known(x) ? hv_fmt_si(buf, sizeof buf, x, unit) : "-");
}

static void add_link(struct hv_str *out, struct hv_link l)
{
    hv_str_addf(out, "%s, ", hv_link_kind_name(l.kind));
    hv_cluster_number(out, l.bytes_per_s / HV_GBPS, " GB/s, ");
    hv_cluster_number(out, l.latency_s / HV_US, " us");
}

static void add_kind(struct hv_str *out, const struct hv_slots *s)
{
    const struct hv_device_kind *k = s->kind;
    if (s->count > 1) {
        hv_str_addf(out, "slots %u-%u", s->first, s->first + s->count - 1);
    } else {
        hv_str_addf(out, "slot %u", s->first);
    }
    hv_str_addf(out, "  %s (%s", k->name, k->vendor != NULL ? k->vendor : "-");
    if (k->year > 0) {
        hv_str_addf(out, ", %d", k->year);
    }
    hv_str_adds(out, ")\n");
    hv_str_adds(out, "  memory  ");
    add_bytes(out, k->memory_bytes);
    hv_str_addf(out, " %s, ", k->memory_type != NULL ? k->memory_type : "");
    add_si(out, k->memory_bytes_per_s, "B/s");
    hv_str_adds(out, "\n");
    int on_line = 0;
    for (int p = 0; p < HV_PRECISION_N; p++) {
        if (hv_known(k->flops_per_s[p])) {
            hv_str_adds(out, on_line == 0 ? (p == 0 ? "  peak    " : "          ") : ", ");
            add_si(out, k->flops_per_s[p], "F/s");
            hv_str_addf(out, " %s", hv_precision_name((enum hv_precision)p));
            on_line = (on_line + 1) % 2;
            hv_str_adds(out, on_line == 0 ? "\n" : "");
        }
    }
    hv_str_adds(out, on_line != 0 ? "\n" : "");
    if (hv_known(k->matmul_flops_per_s)) {
        hv_str_adds(out, "  matmul  ");
        add_si(out, k->matmul_flops_per_s, "F/s measured, 16 bit\n");
    }
    hv_str_adds(out, "  power   ");
    hv_cluster_number(out, k->tdp_w, " W");
    hv_str_addf(out, "\n  figures %s\n", k->spec_verified ? "verified" : "recalled, not checked");
    if (k->spec_source != NULL) {
        hv_str_addf(out, "  source  %s\n", k->spec_source);
    }
    if (k->note != NULL) {
        hv_str_addf(out, "  note    %s\n", k->note);
    }
}

/* A text at the right of DEVICE_W columns. */
static void add_right(struct hv_str *out, const char *text)
{
    for (size_t n = strlen(text); n < DEVICE_W; n++) {
        hv_str_addc(out, ' ');
    }
    hv_str_adds(out, text);
}

static void add_topology(struct hv_str *out, const struct hv_node_group *g)
{
    char buf[HV_FMT_CAP] = "";
    double said = HV_UNKNOWN; /* what `buf` says: neighbours mostly say the same */
    uint32_t n = g->n_devices < MATRIX_DEVICES ? g->n_devices : MATRIX_DEVICES;
    hv_str_addf(out, "topology of one node, GB/s from row to column%s\n",
                n < g->n_devices ? " (first 8)" : "");
    hv_str_adds(out, "      ");
    for (uint32_t i = 0; i < n; i++) {
        hv_str_addf(out, "%*u", DEVICE_W, i);
    }
    hv_str_addc(out, '\n');
    for (uint32_t i = 0; i < n; i++) {
        hv_str_addf(out, "  %-4u", i);
        for (uint32_t k = 0; k < n; k++) {
            double gbps = hv_node_group_path(g, i, k).bytes_per_s / HV_GBPS;
            if (i != k && gbps != said) {
                (void)hv_fmt_general(buf, sizeof buf, gbps, 3);
                said = gbps;
            }
            add_right(out, i == k ? "." : buf);
        }
        hv_str_addc(out, '\n');
    }
    for (size_t i = 0; i < g->n_islands; i++) {
        const struct hv_island *s = &g->islands[i];
        hv_str_addf(out, "  island %u-%u: ", s->first, s->first + s->count - 1);
        add_link(out, s->link);
        hv_str_adds(out, s->shared ? ", shared by all\n" : " per device\n");
    }
}

static void add_price(struct hv_str *out, const struct hv_price *p)
{
    hv_str_addf(out, "  %s %s  $", p->provider != NULL ? p->provider : "-",
                p->instance != NULL ? p->instance : "");
    hv_cluster_number(out, p->usd_per_h, "/h");
    if (hv_known(p->spot_usd_per_h)) {
        hv_str_addf(out, ", spot $%.4g/h", p->spot_usd_per_h);
    }
    hv_str_addf(out, "  %s, %s\n", p->date != NULL ? p->date : "no date",
                p->verified ? "verified" : "recalled");
}

static void add_prices(struct hv_str *out, const struct hv_node_group *g)
{
    hv_str_adds(out, "prices per device in the catalogue\n");
    size_t n = 0;
    for (size_t i = 0; i < g->n_slots; i++) {
        const struct hv_device_kind *k = g->slots[i].kind;
        for (size_t p = 0; p < k->n_prices; p++, n++) {
            add_price(out, &k->prices[p]);
        }
    }
    hv_str_adds(out, n == 0 ? "  none known\n" : "");
}

static void add_details(const struct hv_cluster_screen *v, struct hv_str *out)
{
    const struct hv_node_group *g = hv_cluster_selected(v, NULL);
    if (g == NULL) {
        hv_str_adds(out, "no group is shown\n");
        return;
    }
    size_t before = out->n;
    hv_cluster_problem(v, g, out);
    hv_str_adds(out, out->n > before ? "\n" : "");
    hv_str_addf(out, "%u node%s of %u device%s, state %s%s%s\n", g->count, g->count > 1 ? "s" : "",
                g->n_devices, g->n_devices > 1 ? "s" : "", hv_node_state_name(g->state),
                g->zone != NULL ? ", zone " : "", g->zone != NULL ? g->zone : "");
    hv_str_adds(out, "intra   ");
    add_link(out, g->intra);
    hv_str_adds(out, " per device");
    if (g->domain_nodes > 1) {
        hv_str_addf(out, "\ndomain  %u nodes on that link", g->domain_nodes);
    }
    hv_str_addf(out, "\nnic     %u port%s, ", g->n_nics, g->n_nics > 1 ? "s" : "");
    hv_cluster_number(out, g->nic.bytes_per_s / HV_GBPS, " GB/s together, ");
    hv_cluster_number(out, g->nic.latency_s / HV_US, " us");
    if (hv_known(g->host_memory_bytes_per_s)) {
        hv_str_addf(out, "\nhost    %.4g GB/s memory", g->host_memory_bytes_per_s / HV_GBPS);
    }
    bool own = hv_known(g->price_usd_per_h);
    hv_str_adds(out, "\nprice   $");
    hv_cluster_number(out, hv_node_price_usd_per_h(g, false), "/h per node");
    double spot = hv_node_price_usd_per_h(g, true);
    hv_str_addf(out, " (%s)\nspot    %s", own ? "file" : "catalogue",
                hv_known(spot) ? "$" : "no price known");
    if (hv_known(spot)) {
        hv_cluster_number(out, spot, "/h per node");
    }
    if (hv_known(g->preemptions_per_h)) {
        hv_str_addf(out, ", %.4g preemptions/h", g->preemptions_per_h);
    }
    hv_str_addc(out, '\n');
    for (size_t i = 0; i < g->n_slots; i++) {
        add_kind(out, &g->slots[i]);
    }
    add_topology(out, g);
    add_prices(out, g);
}

int hv_cluster_side_line(const struct hv_cluster_screen *v, const char *section)
{
    struct hv_str text = {0};
    add_details(v, &text);
    int line = 0, found = 0;
    size_t n = strlen(section);
    for (const char *p = hv_str_cstr(&text); *p != '\0'; line++) {
        if (strncmp(p, section, n) == 0) {
            found = line;
        }
        const char *end = strchr(p, '\n');
        p = end != NULL ? end + 1 : p + strlen(p);
    }
    hv_str_free(&text);
    return found;
}

static void draw_details(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r)
{
    const struct hv_node_group *group = hv_cluster_selected(v, NULL);
    struct hv_rect in = hv_rect_inner(r);
    struct hv_str text = {0}, title = {0};
    bool focused = v->panel == HV_CLUSTER_SIDE && !v->form.open;
    hv_str_adds(&title, "Details");
    if (group != NULL) {
        hv_str_adds(&title, " of ");
        hv_text_clean(&title, group->name, strlen(group->name));
    }
    hv_grid_box(g, r, hv_str_cstr(&title), focused,
                focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    struct hv_rect old = hv_grid_clip(g, in);
    add_details(v, &text);
    int line = 0;
    for (const char *p = hv_str_cstr(&text); *p != '\0'; line++) {
        const char *end = strchr(p, '\n');
        size_t n = end != NULL ? (size_t)(end - p) : strlen(p);
        hv_str_clear(&title);
        hv_str_add(&title, p, n);
        int y = in.y + line - v->side_top;
        bool head = *p != ' ' && (strncmp(p, "topology", 8) == 0 || strncmp(p, "prices", 6) == 0 ||
                                  strncmp(p, "slot", 4) == 0);
        if (line >= v->side_top && y < in.y + in.h) {
            hv_grid_put_field(g, (struct hv_rect){in.x, y, in.w, 1}, HV_LEFT, hv_str_cstr(&title),
                              head ? HV_STYLE_TITLE : HV_STYLE_TEXT);
        }
        p += n + (end != NULL);
    }
    if (focused) {
        hv_grid_cursor(g, in.x, in.y);
    }
    hv_grid_unclip(g, old);
    hv_str_free(&title);
    hv_str_free(&text);
}

void hv_cluster_draw_side(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r)
{
    size_t group = SIZE_MAX;
    (void)hv_cluster_selected(v, &group);
    const uint64_t of[] = {group, (uint64_t)v->side_top, v->panel == HV_CLUSTER_SIDE, v->form.open};
    if (!hv_grid_part(g, r, hv_hash(hv_cluster_version(v, "details"), of, sizeof of))) {
        draw_details(v, g, r);
        hv_grid_part_end(g);
    }
}
