/*
 * Schedules for stages that form a graph instead of a chain (towers that meet, branches): GraphPipe
 * and DistMM. The order depends on the distance of a stage from the last one, not on the number of
 * stages.
 */
#include "solver/sim/schedule/schedule_int.h"

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* stages on the longest way from each stage to an end, itself included. O(stages + edges). Owner:
 * the caller frees */
static int32_t *depths(const struct hv_stage_graph *g, int32_t n_stages)
{
    size_t n = (size_t)n_stages, n_edges = g ? (size_t)g->n_edges : 0;
    int32_t *depth = hv_xcalloc(n, sizeof *depth);
    int32_t *at = hv_xcalloc(n + 2 + n_edges, sizeof *at), *to = at + n + 2;
    for (size_t e = 0; e < n_edges; e++) {
        at[g->from[e] + 2]++;
    }
    for (size_t s = 2; s < n + 2; s++) {
        at[s] += at[s - 1];
    }
    for (size_t e = 0; e < n_edges; e++) {
        to[at[g->from[e] + 1]++] = g->to[e];
    }
    for (int32_t s = n_stages - 1; s >= 0; s--) {
        depth[s] = g || s == n_stages - 1 ? 1 : depth[s + 1] + 1; /* no graph: a chain */
        for (int32_t k = at[s]; k < at[s + 1]; k++) {
            depth[s] = depth[to[k]] + 1 > depth[s] ? depth[to[k]] + 1 : depth[s];
        }
    }
    free(at);
    return depth;
}

/* every stage runs `ahead` forwards more than its depth requires, then one backward and one forward
 * in turn */
static enum hv_status generate(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               int32_t ahead, struct hv_err *err)
{
    int32_t m = in->micro_batches;
    for (int32_t e = 0; in->graph && e < in->graph->n_edges; e++) {
        int32_t from = in->graph->from[e], to = in->graph->to[e];
        if (from < 0 || from >= to || to >= b->n_stages) {
            return hv_err_set(err, HV_EUSAGE,
                              "stage edge %d → %d: stages run from 0 to %d and feed later ones",
                              from, to, b->n_stages - 1);
        }
    }
    int32_t *depth = depths(in->graph, b->n_stages);
    for (int32_t s = 0; s < b->n_stages; s++) {
        int32_t warm = min32(m, ahead + depth[s] - 1);
        for (int32_t i = -warm; i < m; i++) {
            if (i + warm < m) {
                hv__add(b, HV_OP_F, s, i + warm);
            }
            if (i >= 0) {
                hv__add(b, HV_OP_BW, s, i);
            }
        }
        hv__rank_done(b);
    }
    free(depth);
    return HV_OK;
}

/* GraphPipe (ASPLOS'25): 1F1B with as many forwards ahead as the longest way to the end has stages,
 * where a chain through all of them would need one per stage */
enum hv_status hv__gen_graphpipe(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                                 struct hv_err *err)
{
    return generate(in, b, 0, err);
}

/*
 * DistMM (NSDI'24): a contrastive loss needs the forwards of a whole group before the first of its
 * backwards. Every stage runs a group ahead; the forwards of the next group fill the gaps between
 * the backwards of this one. The loss is the last stage, which all towers feed.
 */
enum hv_status hv__gen_distmm(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              struct hv_err *err)
{
    int64_t asked = hv__option(in, "barrier");
    int32_t group = asked > 0 && asked < in->micro_batches ? (int32_t)asked : in->micro_batches;
    return generate(in, b, group - 1, err);
}
