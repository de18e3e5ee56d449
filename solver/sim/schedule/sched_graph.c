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

static enum hv_status check_edges(const struct hv_schedule_input *in, int32_t n_stages,
                                  struct hv_err *err)
{
    for (int32_t e = 0; in->graph && e < in->graph->n_edges; e++) {
        int32_t from = in->graph->from[e], to = in->graph->to[e];
        if (from < 0 || from >= to || to >= n_stages) {
            return hv_err_set(err, HV_EUSAGE,
                              "stage edge %d → %d: stages run from 0 to %d and feed later ones",
                              from, to, n_stages - 1);
        }
    }
    return HV_OK;
}

/* Micro-batches that every stage holds when it would hold own[s]: within its limit, and never more
 * than a stage before it, which could not feed it. O(stages · edges) at most. */
static void keep_limits(const struct hv_schedule_input *in, int32_t n_stages, int32_t *own)
{
    for (int32_t s = 0; s < n_stages; s++) {
        own[s] = (int32_t)hv__limit(in, s, own[s]);
        own[s] = !in->graph && s > 0 ? min32(own[s], own[s - 1]) : own[s];
    }
    for (bool more = in->graph != NULL; more;) {
        more = false;
        for (int32_t e = 0; e < in->graph->n_edges; e++) {
            int32_t from = in->graph->from[e], to = in->graph->to[e];
            more = more || own[from] < own[to];
            own[to] = min32(own[to], own[from]);
        }
    }
}

/* every stage holds the micro-batches of its depth and `ahead` more, then runs one backward and one
 * forward in turn */
static enum hv_status generate(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               int32_t ahead, struct hv_err *err)
{
    int32_t m = in->micro_batches;
    enum hv_status st = check_edges(in, b->n_stages, err);
    if (st != HV_OK) {
        return st;
    }
    int32_t *holds = depths(in->graph, b->n_stages);
    for (int32_t s = 0; s < b->n_stages; s++) {
        holds[s] = min32(m, holds[s] + ahead);
    }
    keep_limits(in, b->n_stages, holds);
    for (int32_t s = 0; s < b->n_stages && st == HV_OK; s++) {
        if (holds[s] < min32(m, ahead + 1)) {
            st = hv_err_set(err, HV_ENO,
                            "schedule %s: the loss needs the forwards of %d micro-batches before "
                            "their first backward, and stage %d may hold %d; allow %d on it and "
                            "the stages before it, or a smaller barrier",
                            in->row->name, ahead + 1, s, holds[s], ahead + 1);
        }
    }
    for (int32_t s = 0; s < b->n_stages && st == HV_OK; s++) {
        int32_t warm = holds[s] - 1;
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
    free(holds);
    return st;
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
