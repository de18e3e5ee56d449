/** Operations, spans and lanes of a timeline under construction. */
#include "solver/eval/timeline/timeline_int.h"

int32_t hv__paint_op(struct hv__painter *p, struct hv_timeline_op op)
{
    p->t->ops[p->t->n_ops] = op;
    return (int32_t)p->t->n_ops++;
}

void hv__paint_span(struct hv__painter *p, double start_s, double end_s, int32_t id)
{
    const struct hv_timeline_op *op = &p->t->ops[id];
    p->spans[p->n_spans++] = (struct hv_span){.start_s = start_s,
                                              .end_s = end_s,
                                              .id = id,
                                              .item = op->micro_batch,
                                              .group = op->stage,
                                              .kind = op->kind,
                                              .flags = op->critical ? HV_SPAN_CRITICAL : 0};
}

const char *hv__rank_name(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t rank)
{
    size_t stage = pl->ranks[rank].stage, written = hv__written_stage(l, pl->i_replica, stage);
    if (hv_stage_lanes(&pl->replica->stages[stage]) < 2) {
        return hv_arena_printf(l->arena, "s%zu", written);
    }
    return hv_arena_printf(l->arena, "s%zu turn %zu", written,
                           stage - hv__first_lane(l, pl->i_replica, stage));
}

enum hv_status hv__paint_lane(struct hv__painter *p, const char *name, enum hv_resource_kind kind,
                              size_t *out, struct hv_err *err)
{
    struct hv_lane lane = {
        .name = name, .resource = kind, .spans = p->spans, .n_spans = p->n_spans};
    *out = p->t->lanes.n;
    return hv_lanes_add(p->l->arena, &p->t->lanes, &lane, err);
}
