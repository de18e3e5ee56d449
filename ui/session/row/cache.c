/*
 * Entries of the cache of judged plans, and the inputs of multi-job plans. Both are filled in
 * judged.c and drawing.c.
 */
#include "ui/session/row/judged_int.h"

struct hv__judged *hv__cache_find(const struct hv__cache *cache, uint32_t row)
{
    for (size_t i = cache->judged.n; i-- > 0;) {
        if (cache->judged.items[i]->row == row) {
            return cache->judged.items[i];
        }
    }
    return NULL;
}

enum hv_status hv__cache_open_jobs(const struct hv_inputs *in, const struct hv_plan_doc *plan,
                                   struct hv_job_inputs **own, size_t *n_own,
                                   struct hv_cost ***costs, struct hv_err *err)
{
    enum hv_status st = hv_job_inputs_read(&plan->json, in, own, n_own, err);
    if (st == HV_OK) {
        *costs = hv_job_costs_new(in, *own, *n_own);
    }
    return st;
}
