/* The rows above and below the lanes that tell of those that are hidden. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/view/gantt/gantt_int.h"

/* Lanes whose figures are added up for one row, at most: very many are rather a number. */
enum { MOST_LOOKED_AT = 1000 };

size_t hv__gantt_short_name(const char *name, const char **at)
{
    name += strspn(name, " ");
    size_t n = strcspn(name, " ");
    bool replica = name[0] == 'r' && n > 1 && strspn(name + 1, "0123456789") == n - 1;
    if (replica && name[n] == ' ') {
        n += 1 + strcspn(name + n + 1, " ");
    }
    *at = name;
    return n;
}

/* Lanes from one to another, without the pinned one. */
struct hidden {
    size_t from, to;
};

static void add_name(const struct hv_gantt_source *src, size_t lane, struct hv_str *out)
{
    struct hv_gantt_lane info = {0};
    const char *at = "";
    src->lane(src->ctx, lane, &info);
    size_t n = hv__gantt_short_name(info.name ? info.name : "", &at);
    hv_str_add(out, at, n);
}

/* "3 more: s7 to s9, busy 84 to 100%"; true where the critical path runs there. */
static bool add_hidden(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                       struct hidden h, bool pinned, struct hv_str *out)
{
    double least = 1, most = 0;
    bool critical = false;
    size_t n = h.to - h.from - pinned, looked = n < MOST_LOOKED_AT ? h.to : h.from + MOST_LOOKED_AT;
    for (size_t lane = h.from; lane < looked; lane++) {
        struct hv_gantt_cover c = {0};
        src->columns(src->ctx, lane, (const double[]){0, src->end_s}, 1, &c);
        least = fmin(least, c.busy_frac);
        most = fmax(most, c.busy_frac);
        critical |= st->show_critical && src->path && src->path_most.row >= 0 &&
                    src->path_row(src->ctx, lane) == src->path_most.row;
    }
    hv_str_addf(out, "%zu more: ", n);
    add_name(src, h.from, out);
    if (n > 1) {
        hv_str_adds(out, " to ");
        add_name(src, h.to - 1, out);
    }
    hv_str_addf(out, ", busy %.0f", least * 100);
    if (round(most * 100) > round(least * 100)) {
        hv_str_addf(out, " to %.0f", most * 100);
    }
    hv_str_adds(out, "%");
    if (critical) {
        hv_str_addf(out, "; the critical path is s%d", (int)src->path_most.stage);
    }
    return critical;
}

static void draw_hidden(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                        struct hv_grid *g, struct hv_rect at, struct hidden h, bool pinned)
{
    bool up = h.from == 0;
    struct hv_str text = {0};
    hv_str_adds(&text, g->ascii ? (up ? "^ " : "v ") : (up ? "▴ " : "▾ "));
    bool critical = add_hidden(st, src, h, pinned, &text);
    at.x++;
    at.w--;
    hv_grid_put_field(g, at, HV_LEFT, hv_str_cstr(&text),
                      critical ? HV_STYLE_WARNING : HV_STYLE_DIM);
    hv_str_free(&text);
}

void hv__gantt_hidden_draw(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                           struct hv_grid *g, const struct hv_gantt_places *p)
{
    size_t first = p->top_lane + p->pinned, last = p->top_lane + p->n_shown;
    if (p->above.h > 0) {
        draw_hidden(st, src, g, p->above, (struct hidden){0, first}, p->pinned);
    }
    if (p->below.h > 0) {
        draw_hidden(st, src, g, p->below, (struct hidden){last, src->n_lanes}, false);
    }
}
