/** Progress of an evaluation. */
#include "solver/eval/train/lowered.h"

enum hv_status hv__report_progress(const struct hv__lowered *l, unsigned permille,
                                   struct hv_err *err)
{
    struct hv_eval_watch *w = l->watch;
    if (w == NULL) {
        return HV_OK;
    }
    if (atomic_load(&w->stop)) {
        return hv_err_set(err, HV_ESTOPPED, "stopped");
    }
    if (permille > atomic_load(&w->permille)) {
        atomic_store(&w->permille, permille);
    }
    return HV_OK;
}
