/** Sentences that are wider than the tree, as rows below each other with a hanging indent. */
#include <stdlib.h>

#include "ui/screens/explain/explain_int.h"
#include "ui/view/grid/grid.h"

/* Columns before the text at depth 0, and the least that a sentence is broken to. */
enum { FOLD_W = 2, HANG = 2, LEAST_W = 20 };

/** Rows of the result. */
struct rows {
    HV_VEC(struct hv_explain_row) items;
};

static void add_wrapped(struct hv_explain_data *d, struct rows *out,
                        const struct hv_explain_row *row)
{
    int room = d->wrap_w - 2 * row->depth - FOLD_W;
    const char *text = row->text;
    struct hv_explain_row part = *row;
    part.full = row->text;
    for (uint64_t k = 0; *text != '\0'; k++) {
        size_t n = hv_text_wrap(text, k == 0 ? room : room - HANG);
        if (n == 0) {
            break;
        }
        part.text = hv_arena_strndup(&d->arena, text, n);
        hv_vec_push(&out->items, part);
        text += n;
        while (*text == ' ') {
            text++;
        }
        part.id = row->id + ((k + 1) << 48); /* a row of its own for the cursor */
        part.depth = row->depth + HANG / 2;
        part.folds = part.open = false;
    }
}

void hv_explain_wrap(struct hv_explain_data *d)
{
    struct rows out = {0};
    if (d->wrap_w <= 0) {
        return;
    }
    for (size_t i = 0; i < d->rows.n; i++) {
        const struct hv_explain_row *row = &d->rows.items[i];
        int room = d->wrap_w - 2 * row->depth - FOLD_W;
        bool sentence = row->name == NULL && row->cells[0] == NULL && row->n_strip == 0 &&
                        !(row->frac >= 0) && room >= LEAST_W;
        if (sentence && hv_text_width(row->text) > room) {
            add_wrapped(d, &out, row);
        } else {
            hv_vec_push(&out.items, *row);
        }
    }
    d->rows.n = 0;
    for (size_t i = 0; i < out.items.n; i++) {
        hv_vec_push(&d->rows, out.items.items[i]);
    }
    hv_vec_free(&out.items);
}
