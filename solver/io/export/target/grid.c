/* A plan of alike stages as one set of degrees. */
#include "solver/io/export/target/inside.h"

struct hv__export_grid hv__export_grid_of(struct hv__exporting *x)
{
    const struct hv_plan *p = x->s->plan;
    const struct hv_replica *r = &p->replicas[0];
    const struct hv_stage *s = &r->stages[0];
    struct hv__export_grid g = {.tp = s->tp.degree,
                                .cp = s->cp.degree,
                                .pp = (int)r->n_stages,
                                .ep = hv_stage_experts_over(s),
                                .chunks = s->n_ranges > 0 ? (int)s->n_ranges : 1,
                                .dp = hv_plan_data_ranks(p),
                                .micro_batch = hv_stage_micro_batch(p, r, s) / s->dp,
                                .micro_batches = r->micro_batches,
                                .stage = s};
    int64_t holders = g.dp * g.cp;
    g.shards =
        s->zero.shard_group > 0 && s->zero.shard_group < holders ? s->zero.shard_group : holders;
    g.layers = hv_arena_new(&x->out->arena, int, (size_t)g.pp *(size_t)g.chunks + 1);
    for (int k = 0; k < g.pp; k++) {
        const struct hv_stage *at = &r->stages[k];
        for (int c = 0; c < g.chunks && (size_t)c < at->n_ranges; c++) {
            g.layers[c * g.pp + k] = (at->ranges[c].to2 - at->ranges[c].from2) / 2;
        }
    }
    return g;
}
