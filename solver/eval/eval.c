/** The judge's front. Plans for one job are judged in one.c, plans for several in jobs.c. */
#include "solver/eval/judges.h"

enum hv_status hv_eval(struct hv_cost *k, const struct hv_plan *p, const struct hv_eval_options *o,
                       struct hv_arena *arena, struct hv_verdict *out, struct hv_err *err)
{
    struct hv_err own = {0}; /* findings quote the error, also where the caller passes no `err` */
    const struct hv__question q = {.k = k, .plan = p, .options = o, .arena = arena};
    err = err != NULL ? err : &own;
    return p->n_jobs > 0 ? hv__judge_jobs(&q, out, err) : hv__judge_one(&q, out, err);
}
