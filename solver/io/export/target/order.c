/*
 * The order of operations as torch.distributed.pipelining reads it ("compute_only"): a line per
 * rank, cells of stage, operation and micro-batch: F, I (input gradient), W (weight gradient), B
 * (both). It is read off the simulated timeline, so it is the order that was judged. Source: torch,
 * distributed/pipelining/schedules.py (_load_csv, _Action.from_str).
 */
#include "solver/io/export/target/inside.h"

static char letter_of(uint8_t kind)
{
    return kind == HV_SPAN_F    ? 'F'
           : kind == HV_SPAN_B  ? 'I'
           : kind == HV_SPAN_W  ? 'W'
           : kind == HV_SPAN_BW ? 'B'
                                : '\0';
}

static enum hv_status add_row(struct hv__exporting *x, const struct hv_timeline *t,
                              const struct hv_timeline_row *row, struct hv_str *out)
{
    const struct hv_lane *lane = &t->lanes.items[row->compute_lane];
    bool any = false;
    for (size_t i = 0; i < lane->n_spans; i++) {
        const struct hv_timeline_op *op = &t->ops[lane->spans[i].id];
        char letter = letter_of(op->kind);
        if (op->kind == HV_SPAN_PAIR) {
            return hv_err_set(x->err, HV_ENO,
                              "overlapped pairs of operations have no words in a schedule CSV of "
                              "one operation per cell");
        }
        if (letter != '\0') {
            hv_str_addf(out, "%s%d%c%d", any ? "," : "", op->stage, letter, op->micro_batch);
            any = true;
        }
    }
    hv_str_adds(out, "\r\n");
    return HV_OK;
}

enum hv_status hv__export_order_of(struct hv__exporting *x, size_t replica, struct hv_str *out)
{
    const struct hv_timeline *t = x->s->verdict->timeline;
    if (t == NULL) {
        return hv_err_set(x->err, HV_ENO, "the plan has no timeline, so no order can be written");
    }
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < t->n_rows; i++) {
        if (t->rows[i].replica == replica) {
            st = add_row(x, t, &t->rows[i], out);
        }
    }
    return st;
}

enum hv_status hv__export_order(struct hv__exporting *x)
{
    const struct hv_plan *p = x->s->plan;
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < p->n_replicas; i++) {
        const char *name = p->n_replicas == 1
                               ? "schedule.csv"
                               : hv_arena_printf(&x->out->arena, "schedule-%zu.csv", i);
        struct hv_str rows = {0};
        st = hv__export_order_of(x, i, &rows);
        struct hv_str *out = hv__export_file(x, name);
        hv_str_add(out, hv_str_cstr(&rows), rows.n);
        hv_str_free(&rows);
    }
    return st;
}
