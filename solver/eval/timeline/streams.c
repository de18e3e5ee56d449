/** Lanes of gathers and scatters of sharded chunks, beside the compute lanes of their ranks. */
#include "solver/eval/timeline/timeline_int.h"

size_t hv__count_tasks(const struct hv__pipeline *pl)
{
    return pl->cost.stream != NULL ? pl->cost.stream->task_at[pl->n_ranks] : 0;
}

enum hv_status hv__paint_stream(struct hv__painter *p, size_t i_pipeline, size_t rank,
                                struct hv_err *err)
{
    const struct hv__pipeline *pl = &p->l->pipelines.items[i_pipeline];
    const struct hv_stream *x = pl->cost.stream;
    size_t row = p->l->pipelines.rank_at[i_pipeline] + rank;
    p->n_spans = 0;
    for (size_t k = x != NULL ? x->task_at[rank] : 0; x != NULL && k < x->task_at[rank + 1]; k++) {
        const struct hv_stream_task *t = &x->tasks[k];
        if (t->time_s > 0) {
            int32_t id = hv__paint_op(
                p, (struct hv_timeline_op){.stage = t->stage,
                                           .micro_batch = -1,
                                           .slice = -1,
                                           .paired = -1,
                                           .kind = t->scatter ? HV_SPAN_SCATTER : HV_SPAN_WHOLE,
                                           .slack_s = HV_UNKNOWN});
            hv__paint_span(p, pl->run.stream->start_s[k], pl->run.stream->end_s[k], id);
        }
    }
    if (p->n_spans == 0) {
        return HV_OK;
    }
    struct hv_timeline_link *link = &p->t->links[p->t->n_links++];
    *link = (struct hv_timeline_link){
        .from_row = row,
        .to_row = row,
        .place = "shards",
        .beside = true,
        .name = hv_arena_printf(p->l->arena, "  %s shards", hv__rank_name(p->l, pl, rank))};
    return hv__paint_lane(p, link->name, HV_RESOURCE_LINK, &link->lane, err);
}
