/* What a finished order tells of its ranks: whose an operation is, and activations alive at once.
 */
#include "solver/sim/schedule/schedule.h"

int32_t hv_schedule_rank_of(const struct hv_schedule *s, size_t i_op)
{
    int32_t lo = 0, hi = s->n_ranks - 1;
    while (lo < hi) {
        int32_t mid = lo + (hi - lo + 1) / 2;
        if (s->rank_at[mid] <= i_op) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    return lo;
}

void hv_schedule_peak_inflight(const struct hv_schedule *s, int32_t *out_per_rank)
{
    for (int32_t r = 0; r < s->n_ranks; r++) {
        int32_t now = 0, most = 0;
        for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1]; i++) {
            enum hv_op_kind k = (enum hv_op_kind)s->ops[i].kind;
            bool again = s->parts && s->ops[i].slice > 0; /* a further part of a counted forward */
            now += k == HV_OP_F && !again ? 1 : k == HV_OP_W || k == HV_OP_BW ? -1 : 0;
            most = now > most ? now : most;
        }
        out_per_rank[r] = most;
    }
    for (int32_t r = 0; r < s->n_ranks && s->stash; r++) {
        int32_t over = s->stash[r] > 0 ? out_per_rank[r] - s->stash[r] : 0;
        if (over > 0) {
            out_per_rank[r] -= over;
            out_per_rank[s->n_ranks - 1 - r] += over;
        }
    }
}
