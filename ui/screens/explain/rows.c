/** Rows of the tree: adding, folding, and the names that several kinds of rows use. */
#include "solver/base/units.h"
#include "ui/screens/explain/explain_int.h"

struct hv_explain_row *hv_explain_add(struct hv_explain_data *d, uint64_t id, int depth,
                                      const char *text)
{
    struct hv_explain_row r = {
        .id = id, .depth = depth, .text = text, .frac = HV_UNKNOWN, .style = HV_STYLE_TEXT};
    hv_vec_push(&d->rows, r);
    return &d->rows.items[d->rows.n - 1];
}

bool hv_explain_is_open(const struct hv_explain_data *d, uint64_t id)
{
    for (size_t i = 0; i < d->open.n; i++) {
        if (d->open.items[i] == id) {
            return true;
        }
    }
    return false;
}

void hv_explain_fold(struct hv_explain_data *d, uint64_t id, bool open)
{
    for (size_t i = 0; i < d->open.n; i++) {
        if (d->open.items[i] == id) {
            d->open.items[i] = d->open.items[--d->open.n];
            break;
        }
    }
    if (open) {
        hv_vec_push(&d->open, id);
    }
}

bool hv_explain_heading(struct hv_explain_data *d, uint64_t id, int depth, const char *text)
{
    struct hv_explain_row *r = hv_explain_add(d, id, depth, text);
    r->folds = true;
    r->open = hv_explain_is_open(d, id);
    r->style = depth == 0 ? HV_STYLE_TITLE : HV_STYLE_TEXT;
    return r->open;
}

const char *hv_explain_stage_name(struct hv_explain_data *d, size_t replica, size_t stage)
{
    return d->facts.plan->n_replicas > 1 ? hv_arena_printf(&d->arena, "r%zu s%zu", replica, stage)
                                         : hv_arena_printf(&d->arena, "s%zu", stage);
}

struct hv_evidence hv_explain_on_lane(size_t replica, size_t stage, double at_s)
{
    return (struct hv_evidence){
        .kind = HV_EVIDENCE_GANTT, .replica = replica, .stage = stage, .at_s = at_s};
}
