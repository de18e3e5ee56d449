/* Cells that change: runs of them put or blanked, and halves of wide graphemes. */
#include "ui/view/grid/grid_int.h"

const struct hv_cell hv__cell_blank = {.utf8 = " ", .width = 1, .style = 0};

/* Cells of a row that nobody drew become blank. */
static void blank_run(struct hv_grid *g, int x, int y, int n)
{
    struct hv_cell *to = hv__grid_at(g, x, y);
    int first = n, last = -1;
    if (to[0].width == 0) {
        hv__grid_break_wide(g, x, y);
    }
    if (to[n - 1].width == 2) {
        hv__grid_break_wide(g, x + n - 1, y);
    }
    for (int i = 0; i < n; i++) {
        if (!hv__cell_same(&to[i], &hv__cell_blank)) {
            to[i] = hv__cell_blank;
            first = i < first ? i : first;
            last = i;
        }
    }
    hv__grid_drawn(g, y, x, x + n);
    if (last >= 0) {
        hv__grid_changed(g, y, x + first, x + last + 1);
    }
}

void hv__grid_blank_rest(struct hv_grid *g, struct hv_rect r)
{
    for (int y = r.y; y < r.y + r.h; y++) {
        for (int x = r.x; x < r.x + r.w;) {
            uint64_t rest = ~g->drawn[(size_t)y * g->n_words + (size_t)x / 64] >> (x % 64);
            int n = rest == 0 ? 64 - x % 64 : __builtin_ctzll(rest);
            if (n == 0) {
                n = rest == UINT64_MAX ? 64 : __builtin_ctzll(~rest);
                n = n < r.x + r.w - x ? n : r.x + r.w - x;
                blank_run(g, x, y, n);
            }
            x += n;
        }
    }
}

void hv__grid_break_wide(struct hv_grid *g, int x, int y)
{
    uint8_t width = hv__grid_at(g, x, y)->width;
    int other = width == 0 ? x - 1 : width == 2 ? x + 1 : -1;
    if (other < 0 || other >= g->w) {
        return;
    }
    struct hv_cell *c = hv__grid_at(g, other, y);
    uint16_t style = c->style;
    *c = hv__cell_blank;
    c->style = style;
    hv__grid_changed(g, y, other, other + 1);
}

void hv__grid_put_cells(struct hv_grid *g, int x, int y, const struct hv_cell *from, int n)
{
    struct hv_cell *to = hv__grid_at(g, x, y);
    int first = 0, last = n;
    if (to[0].width == 0) {
        hv__grid_break_wide(g, x, y);
    }
    if (to[n - 1].width == 2) {
        hv__grid_break_wide(g, x + n - 1, y);
    }
    hv__grid_drawn(g, y, x, x + n);
    if (memcmp(to, from, (size_t)n * sizeof *to) == 0) {
        return;
    }
    while (first < n && hv__cell_same(&to[first], &from[first])) {
        first++;
    }
    while (last > first && hv__cell_same(&to[last - 1], &from[last - 1])) {
        last--;
    }
    memcpy(to, from, (size_t)n * sizeof *to);
    if (last > first) {
        hv__grid_changed(g, y, x + first, x + last);
    }
}
