/* Table widget: rows come from a callback, so the cost of a table depends on the rows on screen
 * only. */
#include <string.h>

#include "solver/base/rng.h"
#include "ui/view/widget/plain.h"

#define MARK_W      2 /* mark and flag column */
#define MAX_COLUMNS 64

bool hv_text_has(const char *text, const char *word)
{
    size_t n = strlen(word);
    if (n == 0) {
        return false;
    }
    for (; *text; text++) {
        size_t i = 0;
        while (i < n) {
            char a = text[i], b = word[i];
            a = a >= 'A' && a <= 'Z' ? (char)(a - 'A' + 'a') : a;
            b = b >= 'A' && b <= 'Z' ? (char)(b - 'A' + 'a') : b;
            if (a != b) {
                break;
            }
            i++;
        }
        if (i == n) {
            return true;
        }
    }
    return false;
}

/* First row shown: the stored one, moved so that the cursor is inside. */
static size_t top_of(const struct hv_table *t, size_t n_rows, int height)
{
    size_t h = height > 0 ? (size_t)height : 1, top = t->top;
    size_t cursor = n_rows == 0 ? 0 : t->cursor < n_rows ? t->cursor : n_rows - 1;
    if (top > cursor) {
        top = cursor;
    }
    if (cursor >= top + h) {
        top = cursor - h + 1;
    }
    if (n_rows <= h) {
        top = 0;
    } else if (top > n_rows - h) {
        top = n_rows - h;
    }
    return top;
}

void hv_table_goto(struct hv_table *t, const struct hv_table_source *s, size_t row, int height)
{
    if (s->n_rows == 0) {
        t->cursor = t->top = 0;
        t->has_id = false;
        return;
    }
    t->cursor = row < s->n_rows ? row : s->n_rows - 1;
    t->cursor_id = s->id ? s->id(s->ctx, t->cursor) : t->cursor;
    t->has_id = true;
    t->top = top_of(t, s->n_rows, height);
}

bool hv_table_action(struct hv_table *t, const struct hv_table_source *s, enum hv_action a,
                     int height)
{
    size_t page = height > 1 ? (size_t)height - 1 : 1, half = page / 2 + 1, step;
    bool up = a == HV_ACT_UP || a == HV_ACT_PAGE_UP || a == HV_ACT_HALF_UP;
    if (a == HV_ACT_UP || a == HV_ACT_DOWN) {
        step = 1;
    } else if (a == HV_ACT_PAGE_UP || a == HV_ACT_PAGE_DOWN) {
        step = page;
    } else if (a == HV_ACT_HALF_UP || a == HV_ACT_HALF_DOWN) {
        step = half;
    } else if (a == HV_ACT_TOP || a == HV_ACT_BOTTOM) {
        step = s->n_rows;
    } else {
        return false;
    }
    up = up || a == HV_ACT_TOP;
    size_t row = up ? (t->cursor > step ? t->cursor - step : 0) : t->cursor + step;
    hv_table_goto(t, s, row, height);
    return true;
}

void hv_table_refresh(struct hv_table *t, const struct hv_table_source *s, int height)
{
    size_t row = t->cursor, offset = t->cursor >= t->top ? t->cursor - t->top : 0;
    if (t->has_id && s->id) {
        size_t i = 0;
        while (i < s->n_rows && s->id(s->ctx, i) != t->cursor_id) {
            i++;
        }
        if (i < s->n_rows) {
            row = i;
        }
    }
    t->top = row > offset ? row - offset : 0;
    hv_table_goto(t, s, row, height);
}

void hv_table_scroll(struct hv_table *t, const struct hv_table_source *s, int rows, int height)
{
    size_t h = height > 0 ? (size_t)height : 1;
    size_t last = s->n_rows > h ? s->n_rows - h : 0, n = (size_t)(rows < 0 ? -rows : rows);
    size_t top = top_of(t, s->n_rows, height);
    top = rows < 0 ? (top > n ? top - n : 0) : top + n;
    t->top = top < last ? top : last;
    size_t row = t->cursor < t->top ? t->top : t->cursor >= t->top + h ? t->top + h - 1 : t->cursor;
    hv_table_goto(t, s, row, height);
}

size_t hv_table_hit(const struct hv_table *t, const struct hv_table_source *s, struct hv_rect r,
                    int x, int y)
{
    if (!hv_rect_has(r, x, y) || y == r.y) {
        return SIZE_MAX;
    }
    size_t row = top_of(t, s->n_rows, r.h - 1) + (size_t)(y - r.y - 1);
    return row < s->n_rows ? row : SIZE_MAX;
}

/* Widths of the columns that fit; returns how many. */
static size_t fit_columns(const struct hv_table_look *look, int width, int *widths)
{
    size_t n = look->n_columns < MAX_COLUMNS ? look->n_columns : MAX_COLUMNS, kept = 0;
    int used = 0, flex = 0;
    while (kept < n) {
        int want = look->columns[kept].min + (kept > 0);
        if (kept > 0 && used + want > width) {
            break;
        }
        used += want;
        widths[kept] = look->columns[kept].min;
        flex += look->columns[kept].flex;
        kept++;
    }
    int spare = width > used ? width - used : 0, seen = 0, given = 0;
    for (size_t i = 0; i < kept && flex > 0; i++) {
        seen += look->columns[i].flex;
        int upto = spare * seen / flex;
        widths[i] += upto - given;
        given = upto;
    }
    return kept;
}

int hv_table_column_w(const struct hv_table_look *look, int w, size_t column)
{
    int widths[MAX_COLUMNS];
    return column < fit_columns(look, w - MARK_W, widths) ? widths[column] : 0;
}

size_t hv_table_head_hit(const struct hv_table_look *look, struct hv_rect r, int x, int y)
{
    int widths[MAX_COLUMNS], at = r.x + MARK_W;
    size_t n = fit_columns(look, r.w - MARK_W, widths);
    for (size_t i = 0; i < n && y == r.y && x >= at; i++) {
        if (x < at + widths[i]) {
            return i;
        }
        at += widths[i] + 1;
    }
    return SIZE_MAX;
}

static void draw_head(const struct hv_table *t, const struct hv_table_look *look, struct hv_grid *g,
                      struct hv_rect r, const int *widths, size_t n)
{
    int x = r.x + MARK_W;
    hv_grid_fill(g, (struct hv_rect){r.x, r.y, r.w, 1}, ' ', HV_STYLE_HEADER);
    for (size_t i = 0; i < n; i++) {
        const struct hv_column *c = &look->columns[i];
        struct hv_rect at = {x, r.y, widths[i], 1};
        bool sorted = t->sort_column == (int)i;
        if (sorted && at.w > 1) {
            const char *arrow =
                g->ascii ? (t->sort_descending ? "v" : "^") : (t->sort_descending ? "▼" : "▲");
            at.w--;
            (void)hv_grid_put(g, x + at.w, r.y, 1, arrow, HV_STYLE_HEADER);
        }
        hv_grid_put_field(g, at, c->align, c->title,
                          HV_STYLE_HEADER | (sorted ? HV_STYLE_BOLD : 0));
        x += widths[i] + 1;
    }
}

static unsigned row_style(unsigned flags, bool cursor, bool focused)
{
    if (cursor) {
        return focused ? HV_STYLE_SELECTED : HV_STYLE_SELECTED_BLUR;
    }
    if (flags & HV_ROW_MARKED) {
        return HV_STYLE_MARKED;
    }
    if (flags & HV_ROW_PROBLEM) {
        return HV_STYLE_WARNING;
    }
    return flags & HV_ROW_DIM ? HV_STYLE_DIM : HV_STYLE_TEXT;
}

static void draw_marks(struct hv_grid *g, int x, int y, unsigned flags, bool cursor, unsigned style)
{
    const char *first = flags & HV_ROW_PROBLEM ? "!"
                        : flags & HV_ROW_GOOD  ? "P"
                        : flags & HV_ROW_CHECK ? "v"
                        : cursor               ? ">"
                                               : " ";
    (void)hv_grid_put(g, x, y, 1, first, style);
    const char *second = flags & HV_ROW_MARKED   ? "*"
                         : flags & HV_ROW_CLOSED ? (g->ascii ? "+" : "▸")
                         : flags & HV_ROW_OPENED ? (g->ascii ? "-" : "▾")
                                                 : " ";
    (void)hv_grid_put(g, x + 1, y, 1, second, style);
}

/* A row that is drawn: its number, how it looks, where it stands. */
struct row {
    size_t number;
    unsigned flags;
    bool cursor;
    struct hv_rect at;
};

/* Columns that are shown. */
struct shown_columns {
    int widths[MAX_COLUMNS];
    size_t n;
};

/* Hash of the content of all rows (hv_grid_part); 0 where the source has no version. */
static uint64_t version_of(const struct hv_table *t, const struct hv_table_source *s,
                           const struct hv_table_look *look, const struct shown_columns *columns)
{
    if (s->version == 0) {
        return 0;
    }
    uint64_t h = hv_hash(s->version, &look->focused, sizeof look->focused);
    h = hv_hash(h, columns->widths, columns->n * sizeof *columns->widths);
    return t->find ? hv_hash(h, t->find, strlen(t->find)) : h;
}

/* The same for one of them. */
static uint64_t row_version(uint64_t all, const struct row *row)
{
    const uint64_t of = (uint64_t)row->number << 8 ^ row->flags << 1 ^ row->cursor;
    return all ? hv_hash(all, &of, sizeof of) : 0;
}

static void draw_row(const struct hv_table *t, const struct hv_table_source *s,
                     const struct hv_table_look *look, struct hv_grid *g,
                     const struct shown_columns *columns, const struct row *row)
{
    struct hv_str text = {0};
    unsigned style = row_style(row->flags, row->cursor, look->focused);
    int x = row->at.x + MARK_W, y = row->at.y;
    hv_grid_fill(g, row->at, ' ', style);
    draw_marks(g, row->at.x, y, row->flags, row->cursor, style);
    for (size_t i = 0; i < columns->n; i++) {
        hv_str_clear(&text);
        s->cell(s->ctx, row->number, i, &text);
        bool hit = t->find && hv_text_has(hv_str_cstr(&text), t->find);
        unsigned own = s->style && !row->cursor ? s->style(s->ctx, row->number, i) : 0;
        unsigned cell_style = !hit          ? (own != 0 ? own : style)
                              : row->cursor ? style | HV_STYLE_UNDERLINE
                                            : HV_STYLE_MATCH;
        hv_grid_put_field(g, (struct hv_rect){x, y, columns->widths[i], 1}, look->columns[i].align,
                          hv_str_cstr(&text), cell_style);
        x += columns->widths[i] + 1;
    }
    if (row->cursor && look->focused) {
        hv_grid_cursor(g, row->at.x, y);
    }
    hv_str_free(&text);
}

void hv_table_draw(const struct hv_table *t, const struct hv_table_source *s,
                   const struct hv_table_look *look, struct hv_grid *g, struct hv_rect r)
{
    struct shown_columns columns;
    if (r.w <= MARK_W || r.h < 2) {
        return;
    }
    if (g->plain) {
        hv_plain_table(g, t, s, look);
        return;
    }
    struct hv_rect old = hv_grid_clip(g, r);
    size_t top = top_of(t, s->n_rows, r.h - 1);
    columns.n = fit_columns(look, r.w - MARK_W, columns.widths);
    draw_head(t, look, g, r, columns.widths, columns.n);
    if (s->n_rows == 0 && look->empty) {
        (void)hv_grid_put(g, r.x + MARK_W, r.y + 1, r.w - MARK_W, look->empty, HV_STYLE_DIM);
    }
    uint64_t version = version_of(t, s, look, &columns);
    size_t last = s->n_rows > 0 ? s->n_rows - 1 : 0, cursor = t->cursor < last ? t->cursor : last;
    for (size_t i = top; i < s->n_rows && i - top < (size_t)r.h - 1; i++) {
        struct row row = {i,
                          s->flags ? s->flags(s->ctx, i) : 0,
                          i == cursor,
                          {r.x, r.y + 1 + (int)(i - top), r.w, 1}};
        if (hv_grid_part(g, row.at, row_version(version, &row))) {
            continue;
        }
        draw_row(t, s, look, g, &columns, &row);
        hv_grid_part_end(g);
    }
    hv_grid_unclip(g, old);
}

bool hv_table_find(struct hv_table *t, const struct hv_table_source *s,
                   const struct hv_table_look *look, const char *text, int direction)
{
    struct hv_str cell = {0};
    bool found = false;
    size_t n = s->n_rows, row = t->cursor < n ? t->cursor : 0;
    for (size_t step = direction == 0 ? 0 : 1; n > 0 && step <= n && !found; step++) {
        size_t i = direction < 0 ? (row + n - step % n) % n : (row + step) % n;
        for (size_t c = 0; c < look->n_columns && !found; c++) {
            hv_str_clear(&cell);
            s->cell(s->ctx, i, c, &cell);
            found = hv_text_has(hv_str_cstr(&cell), text);
        }
        if (found) {
            t->cursor = i;
            t->cursor_id = s->id ? s->id(s->ctx, i) : i;
            t->has_id = true;
        }
    }
    hv_str_free(&cell);
    return found;
}
