/** Plans side by side: of two the differences in words, then field by field, then their stages; of
 * more a column each. Drawing only; the sentences are made in facts/differences.c. */
#include <stdio.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/facts/differences.h"
#include "ui/screens/plans/panels.h"

/** "+41.4% slower"; "" when there is nothing to compare. */
static void describe_change(double a, double b, enum hv_plan_field field, bool words,
                            struct hv_str *out)
{
    int better = hv_plan_field_better(field);
    if (!hv_known(a) || !hv_known(b)) {
        return;
    }
    bool is_share = field == HV_PLAN_MFU || field == HV_PLAN_MEMORY || field == HV_PLAN_BUBBLE ||
                    field == HV_PLAN_GAP;
    if (is_share) {
        hv_str_addf(out, "%+.1f pt", (b - a) * 100);
    } else if (a != 0) {
        hv_str_addf(out, "%+.1f%%", (b / a - 1) * 100);
    }
    if (words && better != 0 && a != b) {
        hv_str_adds(out, (b > a) == (better > 0) ? " better" : " worse");
    }
}

/** Puts four cells of a comparison line; the widths follow from the panel's. */
static void put_cells(struct hv_grid *g, struct hv_rect row, const char *const cells[4],
                      unsigned style, unsigned change_style)
{
    int name_w = row.w >= 60 ? 17 : 11, change_w = row.w >= 60 ? 16 : 8;
    int value_w = (row.w - name_w - change_w - 3) / 2;
    int x[4] = {row.x, row.x + name_w + 1, row.x + name_w + value_w + 2,
                row.x + name_w + 2 * value_w + 3};
    int w[4] = {name_w, value_w, value_w, change_w};
    for (int i = 0; i < 4; i++) {
        hv_grid_put_field(g, (struct hv_rect){x[i], row.y, w[i], 1}, HV_LEFT, cells[i],
                          i == 3 ? change_style : style);
    }
}

static void compare_field(const struct hv_plan_facts pair[2], enum hv_plan_field field,
                          struct hv_grid *g, struct hv_rect row)
{
    struct hv_str a = {0}, b = {0}, change = {0};
    double x = hv_plan_value(&pair[0], field), y = hv_plan_value(&pair[1], field);
    hv_plan_text(&pair[0], field, &a);
    hv_plan_text(&pair[1], field, &b);
    describe_change(x, y, field, row.w >= 60, &change);
    bool is_word = !hv_known(x) && !hv_known(y);
    if (is_word && strcmp(hv_str_cstr(&a), hv_str_cstr(&b)) != 0) {
        hv_str_adds(&change, "differs");
    }
    int better = hv_plan_field_better(field);
    unsigned style = better == 0 || !(x < y || x > y) ? HV_STYLE_DIM
                     : (y > x) == (better > 0)        ? HV_STYLE_GOOD
                                                      : HV_STYLE_WARNING;
    const char *cells[4] = {hv_plan_field_name(field), hv_str_cstr(&a), hv_str_cstr(&b),
                            hv_str_cstr(&change)};
    put_cells(g, row, cells, HV_STYLE_TEXT, style);
    hv_str_free(&a);
    hv_str_free(&b);
    hv_str_free(&change);
}

/** Memory and load of stage number i of the first replica entry, "" when it has none. */
static void describe_stage(const struct hv_plan_facts *f, size_t i, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    if (f->plan == NULL || f->plan->n_replicas == 0 || i >= f->plan->replicas[0].n_stages) {
        hv_str_adds(out, "-");
        return;
    }
    const struct hv_stage *st = &f->plan->replicas[0].stages[i];
    hv_plan_stage_layers(st, out);
    hv_str_addf(out, " L x%zu", st->n_devices);
    if (f->verdict != NULL && i < f->verdict->n_memory) {
        hv_str_addf(out, " %s", hv_fmt_bytes(buf, sizeof buf, f->verdict->memory[i].peak_bytes));
    }
}

static void compare_stage(const struct hv_plan_facts pair[2], size_t i, struct hv_grid *g,
                          struct hv_rect row)
{
    struct hv_str a = {0}, b = {0};
    char name[32];
    (void)snprintf(name, sizeof name, "stage %zu", i);
    describe_stage(&pair[0], i, &a);
    describe_stage(&pair[1], i, &b);
    bool same = strcmp(hv_str_cstr(&a), hv_str_cstr(&b)) == 0;
    const char *cells[4] = {name, hv_str_cstr(&a), hv_str_cstr(&b), same ? "" : "differs"};
    put_cells(g, row, cells, HV_STYLE_TEXT, HV_STYLE_DIM);
    hv_str_free(&a);
    hv_str_free(&b);
}

static size_t count_stages(const struct hv_plan_facts *f)
{
    return f->plan != NULL && f->plan->n_replicas > 0 ? f->plan->replicas[0].n_stages : 0;
}

/** Lines of the panel from `at` on; each part draws those of its own that are on screen. */
struct window {
    struct hv_grid *g;
    struct hv_rect r;
    size_t at, top;
};

/** Row of the next line, false when it is not on screen. */
static bool next_row(struct window *w, struct hv_rect *row)
{
    size_t i = w->at++;
    if (i < w->top || i - w->top >= (size_t)w->r.h) {
        return false;
    }
    *row = (struct hv_rect){w->r.x, w->r.y + (int)(i - w->top), w->r.w, 1};
    return true;
}

static void put_words(struct window *w, const char *text)
{
    struct hv_rect row;
    struct hv_str line = {0};
    while (*text != '\0') {
        size_t n = hv_text_wrap(text, w->r.w);
        hv_str_clear(&line);
        hv_str_add(&line, text, n);
        if (next_row(w, &row)) {
            hv_grid_put_field(w->g, row, HV_LEFT, hv_str_cstr(&line), HV_STYLE_TEXT);
        }
        text += n;
        text += *text == ' ' || *text == '\n';
    }
    hv_str_free(&line);
}

/** Draws what is on screen; returns how many lines there are. */
static size_t draw_all(const struct hv_plan_facts pair[2], const char *words, size_t top,
                       struct hv_grid *g, struct hv_rect r)
{
    struct window w = {.g = g, .r = r, .top = top};
    struct hv_rect row;
    const char *head[4] = {"FIELD", pair[0].row->name, pair[1].row->name, "CHANGE"};
    size_t n0 = count_stages(&pair[0]), n1 = count_stages(&pair[1]);
    put_words(&w, words);
    if (next_row(&w, &row)) {
        put_cells(g, row, head, HV_STYLE_HEADER, HV_STYLE_HEADER);
    }
    for (int f = HV_PLAN_ITERATION; f <= HV_PLAN_STATE; f++) {
        if (next_row(&w, &row)) {
            compare_field(pair, (enum hv_plan_field)f, g, row);
        }
    }
    for (size_t i = 0; i < (n0 > n1 ? n0 : n1); i++) {
        if (next_row(&w, &row)) {
            compare_stage(pair, i, g, row);
        }
    }
    return w.at;
}

void hv_plan_compare_draw(const struct hv_plan_facts pair[2], size_t top, struct hv_grid *g,
                          struct hv_rect r)
{
    if (r.h < 2 || r.w < 24) {
        return;
    }
    struct hv_str words = {0};
    hv_plan_differences(pair, &words);
    struct hv_rect old = hv_grid_clip(g, r);
    size_t n = draw_all(pair, hv_str_cstr(&words), SIZE_MAX, g, r); /* counts them */
    size_t last = n > (size_t)r.h ? n - (size_t)r.h : 0;
    (void)draw_all(pair, hv_str_cstr(&words), top < last ? top : last, g, r);
    hv_grid_unclip(g, old);
    hv_more_draw(g, r, n, top);
    hv_str_free(&words);
}

/* ---- three and more ---- */

/* Columns a plan has at least and at most, and those of the name of a line. */
enum { VALUE_MIN = 10, VALUE_MAX = 22, NAME_W = 16 };

/** Plans in columns. */
struct columns {
    const struct hv_plan_facts *set;
    size_t n, n_shown;
    int width;
};

static void put_name(struct hv_grid *g, struct hv_rect row, const char *name, unsigned style)
{
    hv_grid_put_field(g, (struct hv_rect){row.x, row.y, NAME_W, 1}, HV_LEFT, name, style);
}

static void put_value(const struct columns *c, size_t i, struct hv_grid *g, struct hv_rect row,
                      const char *text, unsigned style)
{
    int x = row.x + NAME_W + 1 + (int)i * c->width;
    hv_grid_put_field(g, (struct hv_rect){x, row.y, c->width - 1, 1}, HV_LEFT, text, style);
}

/** True where plan i is the best of those that fit. False where none fits, or all are equal. */
static bool is_best(const struct columns *c, size_t i, enum hv_plan_field field)
{
    double better = hv_plan_field_better(field), own = hv_plan_value(&c->set[i], field) * better;
    bool differs = false;
    for (size_t k = 0; k < c->n; k++) {
        if (!hv_plan_fits(&c->set[k])) {
            continue;
        }
        double other = hv_plan_value(&c->set[k], field) * better;
        if (other > own) {
            return false;
        }
        differs |= hv_known(other) && other < own;
    }
    return differs && hv_plan_fits(&c->set[i]);
}

static void put_field_row(const struct columns *c, enum hv_plan_field field, struct hv_grid *g,
                          struct hv_rect row)
{
    struct hv_str text = {0};
    put_name(g, row, hv_plan_field_name(field), HV_STYLE_TEXT);
    for (size_t i = 0; i < c->n_shown; i++) {
        hv_str_clear(&text);
        hv_plan_text(&c->set[i], field, &text);
        bool best = is_best(c, i, field);
        hv_str_adds(&text, best ? " *" : "");
        put_value(c, i, g, row, hv_str_cstr(&text), best ? HV_STYLE_GOOD : HV_STYLE_TEXT);
    }
    hv_str_free(&text);
}

static void put_stage_row(const struct columns *c, size_t stage, struct hv_grid *g,
                          struct hv_rect row)
{
    char name[32];
    struct hv_str text = {0};
    (void)snprintf(name, sizeof name, "stage %zu", stage);
    put_name(g, row, name, HV_STYLE_TEXT);
    for (size_t i = 0; i < c->n_shown; i++) {
        hv_str_clear(&text);
        describe_stage(&c->set[i], stage, &text);
        put_value(c, i, g, row, hv_str_cstr(&text), HV_STYLE_TEXT);
    }
    hv_str_free(&text);
}

/** Draws what is on screen; returns how many lines there are. */
static size_t draw_columns(const struct columns *c, const char *words, size_t top,
                           struct hv_grid *g, struct hv_rect r)
{
    struct window w = {.g = g, .r = r, .top = top};
    struct hv_rect row;
    size_t stages = 0;
    if (next_row(&w, &row)) {
        put_name(g, row, "* = best", HV_STYLE_HEADER);
        for (size_t i = 0; i < c->n_shown; i++) {
            put_value(c, i, g, row, c->set[i].row->name, HV_STYLE_HEADER);
        }
    }
    for (int f = HV_PLAN_STRATEGY; f <= HV_PLAN_STATE; f++) {
        if (next_row(&w, &row)) {
            put_field_row(c, (enum hv_plan_field)f, g, row);
        }
    }
    for (size_t i = 0; i < c->n; i++) {
        size_t n = count_stages(&c->set[i]);
        stages = n > stages ? n : stages;
    }
    for (size_t i = 0; i < stages; i++) {
        if (next_row(&w, &row)) {
            put_stage_row(c, i, g, row);
        }
    }
    put_words(&w, words);
    return w.at;
}

void hv_plan_compare_many_draw(const struct hv_plan_facts *set, size_t n, size_t top,
                               struct hv_grid *g, struct hv_rect r)
{
    struct columns c = {.set = set, .n = n};
    int room = r.w - NAME_W - 1;
    if (r.h < 2 || room < VALUE_MIN) {
        return;
    }
    c.n_shown = (size_t)(room / VALUE_MIN) < n ? (size_t)(room / VALUE_MIN) : n;
    c.width = room / (int)c.n_shown < VALUE_MAX ? room / (int)c.n_shown : VALUE_MAX;
    struct hv_str words = {0};
    if (c.n_shown < n) {
        hv_str_addf(&words, "%zu more plans do not fit here; a wider window shows them.\n",
                    n - c.n_shown);
    }
    for (size_t i = 1; i < n; i++) {
        hv_plan_differences((struct hv_plan_facts[2]){set[0], set[i]}, &words);
    }
    struct hv_rect old = hv_grid_clip(g, r);
    size_t lines = draw_columns(&c, hv_str_cstr(&words), SIZE_MAX, g, r); /* counts them */
    size_t last = lines > (size_t)r.h ? lines - (size_t)r.h : 0;
    (void)draw_columns(&c, hv_str_cstr(&words), top < last ? top : last, g, r);
    hv_grid_unclip(g, old);
    hv_more_draw(g, r, lines, top);
    hv_str_free(&words);
}
