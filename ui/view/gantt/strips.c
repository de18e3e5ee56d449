/* Strips of loads: numbers into cells. */
#include "ui/view/gantt/strips.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/view/gantt/gantt_int.h"
#include "ui/view/grid/plain.h"

/* Columns of names on the left and of means on the right. */
enum { NAME_W = 18, MEAN_W = 8 };
/* Above the first share of the mean a rank makes the others wait, below the second it waits. */
#define HOT  1.25
#define COLD 0.75
/* Levels of a cell: an eighth is a quarter of the mean, so that half a cell is the mean. */
enum { LEVELS = 8, MEAN_LEVEL = 4 };

static bool has_moves(const struct hv_gantt_strips *s)
{
    for (size_t t = 0; s->steps != NULL && t < s->loads->iterations; t++) {
        if (s->steps[t].moves > 0) {
            return true;
        }
    }
    return false;
}

/* Rows besides ranks: axis, hottest, busiest, moves. */
static int rows_around(const struct hv_gantt_strips *s)
{
    return 3 + has_moves(s);
}

int hv_gantt_strips_height(const struct hv_gantt_strips *s)
{
    return (int)s->loads->ranks + rows_around(s);
}

static int columns_in(int w)
{
    return w - NAME_W - MEAN_W > 4 ? w - NAME_W - MEAN_W : 4;
}

size_t hv_gantt_strips_each(const struct hv_gantt_strips *s, int w)
{
    size_t n = (size_t)columns_in(w);
    return (s->loads->iterations + n - 1) / n;
}

size_t hv_gantt_strips_ranks(const struct hv_gantt_strips *s, int h)
{
    int room = h - rows_around(s);
    size_t n = room > 0 ? (size_t)room : 0;
    return n >= s->loads->ranks ? s->loads->ranks : n > 1 ? n - 1 : n; /* one row tells of others */
}

/* Iterations [from, to) of a column. */
struct column {
    size_t from, to;
};

static struct column column_at(const struct hv_gantt_strips *s, size_t each, size_t c)
{
    struct column x = {c * each, (c + 1) * each};
    x.to = x.to < s->loads->iterations ? x.to : s->loads->iterations;
    return x;
}

static size_t columns_used(const struct hv_gantt_strips *s, size_t each)
{
    return (s->loads->iterations + each - 1) / each;
}

static unsigned style_of(double load)
{
    return load > HOT ? HV_STYLE_WARNING : load < COLD ? HV_STYLE_DIM : HV_STYLE_BAR;
}

static void put_level(struct hv_grid *g, int x, int y, double load, unsigned style)
{
    static const char *const blocks[LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const letters[LEVELS] = {".", ":", "-", "=", "+", "*", "#", "@"};
    long level = lround(load * MEAN_LEVEL);
    level = level < 1 ? 1 : level > LEVELS ? LEVELS : level;
    (void)hv_grid_put(g, x, y, 1, g->ascii ? letters[level - 1] : blocks[level - 1], style);
}

static void put_name(struct hv_grid *g, struct hv_rect r, int y, bool here, const char *name,
                     unsigned style)
{
    (void)hv_grid_put(g, r.x, y, 1, here ? ">" : " ", HV_STYLE_TITLE);
    hv_grid_put_field(g, (struct hv_rect){r.x + 1, y, NAME_W - 2, 1}, HV_LEFT, name, style);
}

static void put_mean(struct hv_grid *g, struct hv_rect r, int y, double x)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.2fx", x);
    hv_grid_put_field(g, (struct hv_rect){r.x + r.w - MEAN_W, y, MEAN_W - 1, 1}, HV_RIGHT, text,
                      HV_STYLE_TEXT);
}

/* Numbers of iterations above the columns, and what a column is where it is several. */
static void draw_axis(const struct hv_gantt_strips *s, struct hv_grid *g, struct hv_rect r,
                      size_t each)
{
    int n = (int)columns_used(s, each), x0 = r.x + NAME_W;
    char text[64];
    if (each > 1) {
        (void)snprintf(text, sizeof text, " %zu its. each, most", each);
        (void)hv_grid_put(g, r.x, r.y, NAME_W - 1, text, HV_STYLE_DIM);
    } else {
        (void)hv_grid_put(g, r.x, r.y, NAME_W - 1, " iteration", HV_STYLE_DIM);
    }
    hv_grid_hline(g, x0, r.y, n, HV_STYLE_AXIS);
    for (int c = 0; c < n; c += 20) {
        (void)snprintf(text, sizeof text, "%zu", (size_t)c * each);
        if (c > 0 && c + 1 + (int)strlen(text) > n) {
            break;
        }
        (void)hv_grid_put(g, x0 + c, r.y, 1, g->ascii ? "|" : "├", HV_STYLE_AXIS);
        (void)hv_grid_put(g, x0 + c + 1, r.y, -1, text, HV_STYLE_AXIS);
    }
    hv_grid_put_field(g, (struct hv_rect){r.x + r.w - MEAN_W, r.y, MEAN_W - 1, 1}, HV_RIGHT, "load",
                      HV_STYLE_DIM);
}

static void draw_rank(const struct hv_gantt_strips *s, struct hv_grid *g, struct hv_rect r, int y,
                      size_t each, size_t rank)
{
    const struct hv_expert_loads *l = s->loads;
    double sum = 0;
    put_name(g, r, y, s->cursor && rank == s->rank, l->names[rank], HV_STYLE_TEXT);
    for (size_t c = 0; c < columns_used(s, each); c++) {
        struct column at = column_at(s, each, c);
        double most = 0;
        for (size_t t = at.from; t < at.to; t++) {
            most = fmax(most, l->loads[t * l->ranks + rank]);
            sum += l->loads[t * l->ranks + rank];
        }
        put_level(g, r.x + NAME_W + (int)c, y, most, style_of(most));
    }
    put_mean(g, r, y, sum / (double)l->iterations);
}

/* The iteration of a column in which the hottest expert has most. */
static size_t hottest_in(const struct hv_expert_loads *l, struct column at)
{
    size_t best = at.from;
    for (size_t t = at.from; t < at.to; t++) {
        best = l->times[t] > l->times[best] ? t : best;
    }
    return best;
}

/* One character: 0 to 9, a to z, + for more. */
static char digit_of(size_t n)
{
    return n < 10 ? (char)('0' + n) : n < 36 ? (char)('a' + n - 10) : '+';
}

static void draw_hottest(const struct hv_gantt_strips *s, struct hv_grid *g, struct hv_rect r,
                         int y, size_t each)
{
    const struct hv_expert_loads *l = s->loads;
    double sum = 0;
    put_name(g, r, y, false, "hottest expert", HV_STYLE_CRITICAL);
    for (size_t c = 0; c < columns_used(s, each); c++) {
        size_t t = hottest_in(l, column_at(s, each, c));
        hv_grid_fill(g, (struct hv_rect){r.x + NAME_W + (int)c, y, 1, 1}, digit_of(l->hottest[t]),
                     HV_STYLE_CRITICAL);
    }
    for (size_t t = 0; t < l->iterations; t++) {
        sum += l->times[t];
    }
    put_mean(g, r, y, sum / (double)l->iterations);
}

static void draw_busiest(const struct hv_gantt_strips *s, struct hv_grid *g, struct hv_rect r,
                         int y, size_t each)
{
    const struct hv_expert_loads *l = s->loads;
    double sum = 0;
    put_name(g, r, y, false, "busiest rank", HV_STYLE_TITLE);
    for (size_t c = 0; c < columns_used(s, each); c++) {
        struct column at = column_at(s, each, c);
        double most = 0;
        for (size_t t = at.from; t < at.to; t++) {
            most = fmax(most, l->busiest[t]);
            sum += l->busiest[t];
        }
        put_level(g, r.x + NAME_W + (int)c, y, most, style_of(most));
    }
    put_mean(g, r, y, sum / (double)l->iterations);
}

/* Experts placed anew before the iterations of a column; blank: none. */
static void draw_moves(const struct hv_gantt_strips *s, struct hv_grid *g, struct hv_rect r, int y,
                       size_t each)
{
    char text[32];
    size_t all = 0;
    put_name(g, r, y, false, "moves before", HV_STYLE_TEXT);
    for (size_t c = 0; c < columns_used(s, each); c++) {
        struct column at = column_at(s, each, c);
        size_t n = 0;
        for (size_t t = at.from; t < at.to; t++) {
            n += s->steps[t].moves;
        }
        all += n;
        hv_grid_fill(g, (struct hv_rect){r.x + NAME_W + (int)c, y, 1, 1}, n > 0 ? digit_of(n) : ' ',
                     HV_STYLE_TITLE);
    }
    (void)snprintf(text, sizeof text, "%zu", all);
    hv_grid_put_field(g, (struct hv_rect){r.x + r.w - MEAN_W, y, MEAN_W - 1, 1}, HV_RIGHT, text,
                      HV_STYLE_TEXT);
}

/* The same in words, for a grid that has a `plain`. */
static void say_strips(const struct hv_gantt_strips *s, struct hv_grid *g)
{
    const struct hv_expert_loads *l = s->loads;
    struct hv_str text = {0};
    for (size_t r = 0; r < l->ranks && r < HV_PLAIN_ROWS; r++) {
        double sum = 0;
        size_t most = 0;
        for (size_t t = 0; t < l->iterations; t++) {
            sum += l->loads[t * l->ranks + r];
            most = l->loads[t * l->ranks + r] > l->loads[most * l->ranks + r] ? t : most;
        }
        hv_str_clear(&text);
        hv_str_addf(&text, "%s%s, mean load %.2fx, most %.2fx in iteration %zu",
                    s->cursor && r == s->rank ? "> " : "", l->names[r], sum / (double)l->iterations,
                    l->loads[most * l->ranks + r], most);
        hv_plain_line(g, hv_str_cstr(&text));
    }
    for (size_t t = 0; s->steps != NULL && t < l->iterations; t++) {
        if (s->steps[t].moves > 0) {
            hv_str_clear(&text);
            hv_str_addf(&text, "%zu experts move before iteration %zu", s->steps[t].moves, t);
            hv_plain_line(g, hv_str_cstr(&text));
        }
    }
    hv_str_free(&text);
}

void hv_gantt_strips_draw(const struct hv_gantt_strips *s, struct hv_grid *g, struct hv_rect r)
{
    const struct hv_expert_loads *l = s->loads;
    size_t each = hv_gantt_strips_each(s, r.w), shown = hv_gantt_strips_ranks(s, r.h);
    int y = r.y + 1;
    char text[64];
    if (g->plain) {
        say_strips(s, g);
        return;
    }
    draw_axis(s, g, r, each);
    for (size_t k = 0; k < shown && s->top + k < l->ranks; k++) {
        draw_rank(s, g, r, y++, each, s->top + k);
    }
    if (shown < l->ranks) {
        (void)snprintf(text, sizeof text, "%zu more ranks", l->ranks - shown);
        put_name(g, r, y++, false, text, HV_STYLE_DIM);
    }
    draw_hottest(s, g, r, y++, each);
    draw_busiest(s, g, r, y++, each);
    if (has_moves(s)) {
        draw_moves(s, g, r, y++, each);
    }
    if (s->cursor) {
        int x = r.x + NAME_W + (int)(s->iteration / each);
        int row = s->rank >= s->top ? (int)(s->rank - s->top) : 0;
        hv_grid_restyle(g, (struct hv_rect){x, r.y, 1, 1}, 0xffffu, HV_STYLE_REVERSE);
        hv_grid_restyle(g, (struct hv_rect){x, r.y + 1 + row, 1, 1}, 0xffffu, HV_STYLE_REVERSE);
        hv_grid_cursor(g, x, r.y + 1 + row);
    }
}

bool hv_gantt_strips_hit(const struct hv_gantt_strips *s, struct hv_rect r, int x, int y,
                         size_t *rank, size_t *iteration)
{
    size_t each = hv_gantt_strips_each(s, r.w), shown = hv_gantt_strips_ranks(s, r.h);
    int c = x - r.x - NAME_W, row = y - r.y - 1;
    if (c < 0 || (size_t)c >= columns_used(s, each) || row < 0 || (size_t)row >= shown) {
        return false;
    }
    *rank = s->top + (size_t)row;
    *iteration = (size_t)c * each;
    return true;
}
