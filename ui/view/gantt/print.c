/*
 * A timeline as lines of text with a legend, for `hetviz gantt`. Drawn by the painter of
 * draw.c; not for screens.
 */
#include "solver/base/arena.h"
#include "ui/view/gantt/strips.h"
#include "ui/view/gantt/view.h"

static const struct {
    char letter, fill;
    unsigned style;
    const char *name;
} kinds[] = {
#define X(id, letter, fill, style, name) {letter, fill, HV_STYLE_##style, name},
    HV_GANTT_KIND_MAP(X)
#undef X
};

static void add_sgr(struct hv_str *out, const struct hv_style_look *k)
{
    hv_str_adds(out, "\033[0");
    if (k->attr & HV_ATTR_BOLD) {
        hv_str_adds(out, ";1");
    }
    if (k->attr & HV_ATTR_DIM) {
        hv_str_adds(out, ";2");
    }
    if (k->attr & HV_ATTR_UNDERLINE) {
        hv_str_adds(out, ";4");
    }
    if (k->attr & HV_ATTR_REVERSE) {
        hv_str_adds(out, ";7");
    }
    if (k->fg >= 0) {
        hv_str_addf(out, ";38;5;%d", k->fg);
    }
    if (k->bg >= 0) {
        hv_str_addf(out, ";48;5;%d", k->bg);
    }
    hv_str_addc(out, 'm');
}

/* A cell in which one bar ends and another begins: both backgrounds. */
static void add_edge(struct hv_str *out, const struct hv_theme *theme, const struct hv_cell *c)
{
    int left = theme->looks[c->style & HV_STYLE_ID_MASK].bg;
    int right = theme->looks[HV_STYLE_RIGHT(c->style)].bg;
    hv_str_adds(out, "\033[0");
    if (left < 0) { /* the terminal's own background cannot be a foreground, but in reverse it is */
        hv_str_addf(out, ";7;38;5;%dm", right);
    } else if (right < 0) {
        hv_str_addf(out, ";38;5;%dm", left);
    } else {
        hv_str_addf(out, ";38;5;%d;48;5;%dm", left, right);
    }
    hv_str_adds(out, c->utf8);
}

static void print_row(const struct hv_grid *g, int y, const struct hv_theme *theme,
                      struct hv_str *out)
{
    const struct hv_cell *row = &g->cells[(size_t)y * (size_t)g->w];
    int end = g->w;
    while (end > 0 && row[end - 1].utf8[0] == ' ' && row[end - 1].style == HV_STYLE_TEXT) {
        end--;
    }
    unsigned style = HV_STYLE_TEXT; /* set last; HV_STYLE_N after an edge */
    for (int x = 0; x < end; x++) {
        unsigned id = row[x].style & HV_STYLE_ID_MASK;
        if (HV_STYLE_RIGHT(row[x].style) != 0) {
            if (theme) {
                add_edge(out, theme, &row[x]);
            }
            style = HV_STYLE_N;
            continue;
        }
        if (theme && id != style && id < HV_STYLE_N) {
            add_sgr(out, &theme->looks[id]);
            style = id;
        }
        if (row[x].width > 0) {
            hv_str_adds(out, row[x].utf8);
        }
    }
    if (theme && style != HV_STYLE_TEXT) {
        hv_str_adds(out, "\033[0m");
    }
    hv_str_addc(out, '\n');
}

static size_t fullest_lane(const struct hv_gantt_source *src)
{
    size_t best = 0;
    double most = -1;
    for (size_t i = 0; src->memory_max_bytes && i < src->n_lanes; i++) {
        double use = src->memory_max_bytes(src->ctx, i, 0, src->end_s);
        double limit = src->memory_limit_bytes ? src->memory_limit_bytes(src->ctx, i) : 1;
        double share = limit > 0 ? use / limit : use;
        if (share > most) {
            most = share;
            best = i;
        }
    }
    return best;
}

/* Names of the kinds with their letters, from row y on; what does not fit begins a new row. Returns
 * the rows used. */
static int draw_legend(struct hv_grid *g, int y)
{
    int x = 1, first = y;
    for (size_t k = 0; k <= HV_COUNT(kinds); k++) {
        bool idle = k == HV_COUNT(kinds);
        const char *name = idle ? "idle" : kinds[k].name;
        char sample[2] = {idle ? '.' : kinds[k].letter, '\0'};
        if (x + 2 + hv_text_width(name) > g->w) {
            x = 1;
            y++;
        }
        x += hv_grid_put(g, x, y, -1, sample, idle ? HV_STYLE_IDLE : kinds[k].style) + 1;
        x += hv_grid_put(g, x, y, -1, name, HV_STYLE_DIM) + 2;
    }
    return y + 1 - first;
}

void hv_gantt_print(const struct hv_gantt_source *src, const struct hv_gantt_print *o,
                    struct hv_str *out)
{
    struct hv_gantt_state st;
    struct hv_grid g = {.ascii = o->ascii, .mono = !o->color};
    hv_gantt_init(&st, src);
    st.show_cursor = st.show_minimap = false;
    st.show_memory = !o->no_memory;
    st.lane = fullest_lane(src);
    st.show_critical = false;
    bool memory = st.show_memory && src->memory_max_bytes;
    size_t lanes = src->n_lanes < HV_GRID_MAX / 2 ? src->n_lanes : HV_GRID_MAX / 2;
    int rows_per_lane = lanes <= 40 ? 2 : 1, chart = (int)lanes * rows_per_lane;
    int h = 1 + chart + (memory ? 4 : 0);
    hv_grid_resize(&g, o->width < 30 ? 30 : o->width, h + (int)HV_COUNT(kinds) + 1);
    hv_gantt_draw(&st, src, &g, (struct hv_rect){0, 0, g.w, h});
    h += draw_legend(&g, h);
    for (int y = 0; y < h; y++) {
        print_row(&g, y, o->color ? o->theme : NULL, out);
    }
    hv_grid_free(&g);
}

/* More ranks are told in a row. */
enum { MOST_RANKS = 32 };

void hv_gantt_strips_print(const struct hv_gantt_strips *s, const struct hv_gantt_print *o,
                           struct hv_str *out)
{
    struct hv_grid g = {.ascii = o->ascii, .mono = !o->color};
    int all = hv_gantt_strips_height(s), most = all - (int)s->loads->ranks + MOST_RANKS;
    hv_grid_resize(&g, o->width < 40 ? 40 : o->width, all < most ? all : most);
    hv_gantt_strips_draw(s, &g, (struct hv_rect){0, 0, g.w, g.h});
    for (int y = 0; y < g.h; y++) {
        print_row(&g, y, o->color ? o->theme : NULL, out);
    }
    hv_str_addf(out,
                " height: rows of a rank against the mean of the ranks, which is half a cell "
                "(%s)\n",
                o->ascii ? "=" : "▄");
    hv_grid_free(&g);
}
