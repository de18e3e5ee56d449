/** Iterations that are known to take too long before they are simulated to their end: the searches
 * ask for the time of those only that may be the best. */
#include "solver/eval/exchange/exchange.h"
#include "solver/eval/exchange/exchange_int.h"

/** Iterations that are longer by less than this share are simulated to the end. */
#define GIVE_UP_REL 1e-6

/** End of what a rank runs. */
static double end_s(const struct hv__pipeline *pl, size_t rank, bool together)
{
    if (together) {
        return hv__own_end_s(&pl->ranks[rank]);
    }
    if (pl->more_mb > 0) {
        return pl->idle[rank].last_s;
    }
    int32_t from = pl->pipe->rank_node_at[rank], to = pl->pipe->rank_node_at[rank + 1];
    return to > from ? pl->run.node_end_s[to - 1] : 0;
}

/** What every rank has to do by itself: its passes, its part of the optimizer step, and the gather
 * of its weights; then the host work of the step. */
static double least_s(struct hv__lowered *l, bool together)
{
    double least_s = 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        l->iteration.pipeline_s = fmax(l->iteration.pipeline_s, pl->run.makespan_s);
        for (size_t r = 0; r < pl->n_ranks && (pl->like == NULL || together); r++) {
            const struct hv__rank *rk = &pl->ranks[r];
            double alone_s = hv__least_optimizer_s(l, pl, rk) + hv__flat_copies_s(l, pl, rk);
            least_s = fmax(least_s, end_s(pl, r, together) + alone_s);
        }
    }
    least_s = fmax(least_s, l->iteration.pipeline_s) + hv__step_s(l);
    l->iteration.pipeline_s = together ? l->iteration.pipeline_s : 0; /* of runs that share links */
    return least_s;
}

bool hv__too_long(struct hv__lowered *l, double time_s)
{
    bool longer = l->give_up_s > 0 && time_s * (1 - GIVE_UP_REL) > l->give_up_s;
    l->iteration.least_s = longer ? time_s : 0;
    return longer;
}

/** True where shared links only delay passes: gathers beside passes, moves and ranks that take
 * turns may be less in each other's way when some are later. */
static bool is_only_delayed(const struct hv__lowered *l)
{
    bool only = true;
    for (size_t i = 0; i < l->pipelines.n && only; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        only = pl->moving.n == 0 && !hv__has_stream(pl) && hv__split_of(l, pl->i_replica) == NULL;
    }
    return only;
}

bool hv__gives_up(struct hv__lowered *l, bool together)
{
    bool known = l->give_up_s > 0 && !l->schedule.stale && (together || is_only_delayed(l));
    return known && hv__too_long(l, least_s(l, together));
}
