/* All details of the selected group, as lines. */
#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "ui/screens/cluster/cluster_int.h"

enum { DEVICE_W = 5, MATRIX_DEVICES = 8 };

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
    hv_str_addf(out, "\n  figures %s\n",
                k->spec_verified ? "verified" : "from memory, not checked");
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
    double said = HV_UNKNOWN; /* value that `buf` shows; neighbours mostly have the same */
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
        hv_str_adds(out, "no group is visible\n");
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
    if (hv_known(g->host_memory_bytes)) {
        hv_str_addf(out, "\nhost    %.4g GiB", g->host_memory_bytes / HV_GIB);
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

static void draw_details(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect in,
                         bool focused)
{
    struct hv_str text = {0}, said = {0};
    struct hv_rect old = hv_grid_clip(g, in);
    add_details(v, &text);
    int line = 0;
    for (const char *p = hv_str_cstr(&text); *p != '\0'; line++) {
        const char *end = strchr(p, '\n');
        size_t n = end != NULL ? (size_t)(end - p) : strlen(p);
        hv_str_clear(&said);
        hv_str_add(&said, p, n);
        int y = in.y + line - v->side_top;
        bool head = *p != ' ' && (strncmp(p, "topology", 8) == 0 || strncmp(p, "prices", 6) == 0 ||
                                  strncmp(p, "slot", 4) == 0);
        if (line >= v->side_top && y < in.y + in.h) {
            hv_grid_put_field(g, (struct hv_rect){in.x, y, in.w, 1}, HV_LEFT, hv_str_cstr(&said),
                              head ? HV_STYLE_TITLE : HV_STYLE_TEXT);
        }
        p += n + (end != NULL);
    }
    if (focused) {
        hv_grid_cursor(g, in.x, in.y);
    }
    hv_grid_unclip(g, old);
    hv_str_free(&said);
    hv_str_free(&text);
}

/* Hash of the details of a group; equal for groups that differ only in name and position. Hashed
 * padding and addresses can only cause additional redraws. */
static uint64_t details_version(const struct hv_cluster_screen *v,
                                const struct hv_node_group *group)
{
    uint64_t h = hv_cluster_version(v, "details");
    if (group == NULL) {
        return h;
    }
    struct hv_node_group like = *group;
    like.name = NULL;
    like.slots = NULL;
    like.first_node = like.first_device = like.first_domain = 0;
    struct hv_str problem = {0};
    hv_cluster_problem(v, group, &problem);
    h = hv_hash(hv_hash(h, &like, sizeof like), group->slots,
                group->n_slots * sizeof *group->slots);
    h = hv_hash(h, hv_str_cstr(&problem), problem.n);
    hv_str_free(&problem);
    return h;
}

void hv_cluster_draw_side(const struct hv_cluster_screen *v, struct hv_grid *g, struct hv_rect r)
{
    const struct hv_node_group *group = hv_cluster_selected(v, NULL);
    bool focused = v->panel == HV_CLUSTER_SIDE && !v->form.open;
    struct hv_str title = {0};
    hv_str_adds(&title, "Details");
    if (group != NULL) {
        hv_str_adds(&title, " of ");
        hv_text_clean(&title, group->name, strlen(group->name));
    }
    hv_grid_box(g, r, hv_str_cstr(&title), focused,
                focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    hv_str_free(&title);
    const int of[] = {v->side_top, focused};
    struct hv_rect in = hv_rect_inner(r);
    if (!hv_grid_part(g, in, hv_hash(details_version(v, group), of, sizeof of))) {
        draw_details(v, g, in, focused);
        hv_grid_part_end(g);
    }
}
