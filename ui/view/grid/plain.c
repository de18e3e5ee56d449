/* Words instead of cells: see the header. Draws nothing. */
#include "ui/view/grid/plain.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "solver/base/units.h"

/* Appends a clean line. */
static void add_line(struct hv_str *out, const char *text)
{
    hv_text_clean(out, text, strlen(text));
    hv_str_addc(out, '\n');
}

/* A word that only draws: "[---o====]", "####", "|". */
static bool is_drawing(const char *word, size_t n)
{
    static const char strokes[] = "-=#.~^|+o*_:[]<>";
    size_t letters = 0;
    for (size_t i = 0; i < n; i++) {
        if (strchr(strokes, word[i]) == NULL) {
            return false;
        }
        letters += word[i] == 'o';
    }
    return (n >= 3 && letters <= 1) || (n == 1 && strchr("|^~", word[0]) != NULL);
}

/* A row of cells as words with single blanks. */
static void add_words(struct hv_str *out, const char *text)
{
    size_t start = out->n;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (n > 0 && !is_drawing(text, n)) {
            if (out->n > start) {
                hv_str_addc(out, ' ');
            }
            hv_str_add(out, text, n);
        }
        text += n + strspn(text + n, " ");
    }
    if (out->n > start) {
        hv_str_addc(out, '\n');
    }
}

/* Tells the cells of r and blanks them. */
static void take_cells(struct hv_grid *g, struct hv_rect r)
{
    struct hv_str row = {0};
    r = hv_rect_meet(r, (struct hv_rect){0, 0, g->w, g->h});
    for (int y = r.y; y < r.y + r.h; y++) {
        hv_str_clear(&row);
        for (int x = r.x; x < r.x + r.w; x++) {
            struct hv_cell *c = &g->cells[(size_t)y * (size_t)g->w + (size_t)x];
            if (c->width > 0) {
                hv_str_adds(&row, c->utf8);
            }
            *c = (struct hv_cell){.utf8 = " ", .width = 1};
        }
        add_words(g->plain->out, hv_str_cstr(&row));
    }
    hv_str_free(&row);
}

void hv_plain_panel(struct hv_grid *g, struct hv_rect r, const char *title)
{
    struct hv_plain *p = g->plain;
    if (p->panel.w > 0) {
        take_cells(g, p->panel);
    }
    p->panel = r;
    if (title != NULL && title[0] != '\0') {
        if (p->out->n > 0) {
            hv_str_addc(p->out, '\n');
        }
        struct hv_str words = {0};
        add_words(&words, title);
        if (words.n > 0) {
            words.p[--words.n] = '\0';
        }
        hv_text_clean(p->out, hv_str_cstr(&words), words.n);
        hv_str_adds(p->out, ":\n");
        hv_str_free(&words);
    }
}

void hv_plain_end(struct hv_grid *g)
{
    if (g->plain->panel.w > 0) {
        take_cells(g, g->plain->panel);
    }
    take_cells(g, (struct hv_rect){0, 0, g->w, g->h});
    g->plain->panel = (struct hv_rect){0};
}

static void add_flags(struct hv_str *line, unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *word;
    } words[] = {{HV_ROW_PROBLEM, "problem"}, {HV_ROW_MARKED, "marked"}, {HV_ROW_GOOD, "front"}};
    for (size_t i = 0; i < HV_COUNT(words); i++) {
        if (flags & words[i].flag) {
            hv_str_addf(line, "; %s", words[i].word);
        }
    }
}

/* Headings are words for the eye: "S/ITER" reads as s/iter. */
static void add_heading(struct hv_str *line, const char *title)
{
    for (; *title != '\0'; title++) {
        hv_str_addc(line, (char)tolower((unsigned char)*title));
    }
}

static void add_row(struct hv_str *line, const struct hv_table_source *s,
                    const struct hv_table_look *look, size_t row)
{
    struct hv_str cell = {0};
    const char *gap = "";
    for (size_t c = 0; c < look->n_columns; c++) {
        hv_str_clear(&cell);
        s->cell(s->ctx, row, c, &cell);
        const char *text = hv_str_cstr(&cell);
        text += strspn(text, " ");
        if (*text == '\0' || strcmp(text, "-") == 0) {
            continue;
        }
        hv_str_adds(line, gap);
        if (look->columns[c].title != NULL && look->columns[c].title[0] != '\0') {
            add_heading(line, look->columns[c].title);
            hv_str_adds(line, ": ");
        }
        hv_str_adds(line, text);
        gap = "; ";
    }
    hv_str_free(&cell);
}

void hv_plain_table(struct hv_grid *g, const struct hv_table *t, const struct hv_table_source *s,
                    const struct hv_table_look *look)
{
    struct hv_str *out = g->plain->out, line = {0};
    size_t last = s->n_rows > 0 ? s->n_rows - 1 : 0, cursor = t->cursor < last ? t->cursor : last;
    size_t from = cursor >= HV_PLAIN_ROWS ? cursor - HV_PLAIN_ROWS / 2 : 0;
    if (s->n_rows == 0 && look->empty != NULL) {
        add_line(out, look->empty);
    }
    if (from > 0) {
        hv_str_addf(out, "%zu rows before these\n", from);
    }
    for (size_t row = from; row < s->n_rows && row < from + HV_PLAIN_ROWS; row++) {
        hv_str_clear(&line);
        hv_str_addf(&line, "%zu%s ", row + 1, row == cursor ? " >" : "");
        add_row(&line, s, look, row);
        add_flags(&line, s->flags != NULL ? s->flags(s->ctx, row) : 0);
        add_line(out, hv_str_cstr(&line));
    }
    if (s->n_rows > from + HV_PLAIN_ROWS) {
        hv_str_addf(out, "and %zu more rows\n", s->n_rows - from - HV_PLAIN_ROWS);
    }
    hv_str_free(&line);
}

void hv_plain_form(struct hv_grid *g, const struct hv_form *f)
{
    struct hv_str line = {0};
    for (size_t i = 0; i < f->n_fields; i++) {
        const struct hv_field *d = &f->fields[i];
        hv_str_clear(&line);
        if (d->kind == HV_FIELD_LABEL && d->value[0] == '\0') {
            hv_str_addf(&line, "%s:", d->name);
        } else {
            hv_str_addf(&line, "%s: %s", d->name, d->value[0] != '\0' ? d->value : "not set");
            hv_str_addf(&line, "%s%s", d->unit != NULL ? " " : "", d->unit != NULL ? d->unit : "");
            for (size_t c = 0; d->kind == HV_FIELD_CHOICE && c < d->n_choices && c < 12; c++) {
                hv_str_addf(&line, "%s%s", c == 0 ? "; one of " : ", ", d->choices[c]);
            }
        }
        if (d->bad[0] != '\0') {
            hv_str_addf(&line, "; problem: %s", d->bad);
        }
        add_line(g->plain->out, hv_str_cstr(&line));
    }
    hv_str_free(&line);
}

void hv_plain_bars(struct hv_grid *g, const struct hv_bar_row *rows, size_t n)
{
    struct hv_str line = {0};
    for (size_t i = 0; i < n; i++) {
        hv_str_clear(&line);
        hv_str_addf(&line, "%s: ", rows[i].name);
        add_words(&line, rows[i].text);
        if (line.n > 0 && line.p[line.n - 1] == '\n') {
            line.p[--line.n] = '\0';
        }
        add_line(g->plain->out, hv_str_cstr(&line));
    }
    hv_str_free(&line);
}

void hv_plain_chart(struct hv_grid *g, const struct hv_chart *c)
{
    struct hv_str line = {0};
    for (size_t i = 0; i < c->n_series; i++) {
        const struct hv_series *s = &c->series[i];
        if (s->n == 0) {
            continue;
        }
        const struct hv_point a = s->points[0], b = s->points[s->n - 1];
        hv_str_clear(&line);
        if (s->n == 1) {
            hv_str_addf(&line, "chart: one point, %.4g at %.4g", a.y, a.x);
        } else {
            hv_str_addf(&line, "chart: %zu points, from %.4g at %.4g to %.4g at %.4g", s->n, a.y,
                        a.x, b.y, b.x);
        }
        add_line(g->plain->out, hv_str_cstr(&line));
    }
    hv_str_free(&line);
}

/* ---- timelines --------------------------------------------------------------------------------
 */

static void add_op(struct hv_str *line, const struct hv_gantt_span *s)
{
    static const char letters[] = {
#define X(id, letter, fill, style, name) letter,
        HV_GANTT_KIND_MAP(X)
#undef X
    };
    hv_str_addc(line, letters[s->kind]);
    if (s->micro_batch >= 0) {
        hv_str_addf(line, "%d", (int)s->micro_batch);
    }
}

static void add_ops(struct hv_str *line, const struct hv_gantt_source *src, size_t lane)
{
    struct hv_gantt_span s;
    size_t n = 0;
    bool more = src->next(src->ctx, lane, -1, &s);
    for (; more && n < HV_PLAIN_OPS; n++) {
        hv_str_addc(line, ' ');
        add_op(line, &s);
        more = src->next(src->ctx, lane, s.start_s, &s);
    }
    if (more) {
        hv_str_adds(line, " and more");
    }
    if (n == 0) {
        hv_str_adds(line, " nothing");
    }
}

static void add_lane(struct hv_str *line, const struct hv_gantt_source *src, size_t lane)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    struct hv_gantt_lane l;
    src->lane(src->ctx, lane, &l);
    hv_str_addf(line, "%zu %s", lane + 1, l.name);
    if (l.sublabel != NULL) {
        hv_str_addf(line, "; %s", l.sublabel);
    }
    if (src->memory_max_bytes != NULL) {
        double most = src->memory_max_bytes(src->ctx, lane, 0, src->end_s);
        double limit = src->memory_limit_bytes(src->ctx, lane);
        hv_str_addf(line, "; memory %s", hv_fmt_bytes(a, sizeof a, most));
        if (hv_known(limit)) {
            hv_str_addf(line, " of %s", hv_fmt_bytes(b, sizeof b, limit));
        }
    }
    hv_str_adds(line, "; order:");
    add_ops(line, src, lane);
}

void hv_plain_gantt(struct hv_grid *g, const struct hv_gantt_state *st,
                    const struct hv_gantt_source *src)
{
    char a[HV_FMT_CAP];
    struct hv_str line = {0};
    hv_str_addf(g->plain->out, "%zu lanes; the step ends at %s\n", src->n_lanes,
                hv_fmt_seconds(a, sizeof a, src->end_s));
    for (size_t i = 0; i < src->n_lanes && i < HV_PLAIN_ROWS; i++) {
        hv_str_clear(&line);
        if (i == st->lane) {
            hv_str_adds(&line, "> ");
        }
        add_lane(&line, src, i);
        add_line(g->plain->out, hv_str_cstr(&line));
    }
    hv_str_adds(g->plain->out, "letters: f forward, b backward, w weight gradient, r recompute, "
                               "c communication, o other; the number is the micro-batch\n");
    hv_str_free(&line);
}
