/* Widgets as lines of words. Draws nothing. */
#include "ui/view/widget/plain.h"

#include <ctype.h>
#include <string.h>

#include "ui/view/grid/plain.h"

static void add_flags(struct hv_str *line, unsigned flags)
{
    static const struct {
        unsigned flag;
        const char *word;
    } words[] = {{HV_ROW_PROBLEM, "problem"},
                 {HV_ROW_MARKED, "marked"},
                 {HV_ROW_GOOD, "front"},
                 {HV_ROW_CLOSED, "closed"},
                 {HV_ROW_OPENED, "open"}};
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
    if (s->words != NULL && s->words(s->ctx, row, line)) {
        return;
    }
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
        hv_plain_line(g, look->empty);
    }
    if (from > 0) {
        hv_str_addf(out, "%zu rows before these\n", from);
    }
    for (size_t row = from; row < s->n_rows && row < from + HV_PLAIN_ROWS; row++) {
        hv_str_clear(&line);
        hv_str_addf(&line, "%zu%s ", row + 1, row == cursor ? " >" : "");
        add_row(&line, s, look, row);
        add_flags(&line, s->flags != NULL ? s->flags(s->ctx, row) : 0);
        hv_plain_line(g, hv_str_cstr(&line));
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
            hv_str_addf(&line, "%s: %s", d->name,
                        d->value[0] != '\0' ? d->value
                        : d->mixed          ? "mixed"
                                            : "not set");
            hv_str_addf(&line, "%s%s", d->unit != NULL ? " " : "", d->unit != NULL ? d->unit : "");
            for (size_t c = 0; d->kind == HV_FIELD_CHOICE && c < d->n_choices && c < 12; c++) {
                hv_str_addf(&line, "%s%s", c == 0 ? "; one of " : ", ", d->choices[c]);
            }
        }
        if (d->bad[0] != '\0') {
            hv_str_addf(&line, "; problem: %s", d->bad);
        }
        hv_plain_line(g, hv_str_cstr(&line));
    }
    hv_str_free(&line);
}

void hv_plain_bars(struct hv_grid *g, const struct hv_bar_row *rows, size_t n)
{
    struct hv_str line = {0};
    for (size_t i = 0; i < n; i++) {
        hv_str_clear(&line);
        hv_str_addf(&line, "%s: ", rows[i].name);
        hv_plain_words(&line, rows[i].text);
        if (line.n > 0 && line.p[line.n - 1] == '\n') {
            line.p[--line.n] = '\0';
        }
        hv_plain_line(g, hv_str_cstr(&line));
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
        hv_plain_line(g, hv_str_cstr(&line));
    }
    hv_str_free(&line);
}
