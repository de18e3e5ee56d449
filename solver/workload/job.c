/* The training job: names, defaults and what one parameter or activation costs in bytes. */
#include "solver/workload/job.h"

#include "solver/base/units.h"

#define X(c, name, states) name,
static const char *const optimizer_names[HV_OPTIMIZER_N] = {HV_OPTIMIZER_MAP(X)};
#undef X
#define X(c, name, states) states,
static const double optimizer_states[HV_OPTIMIZER_N] = {HV_OPTIMIZER_MAP(X)};
#undef X
static const char *const minimize_names[HV_MINIMIZE_N] = {"time", "cost", "energy"};

const char *hv_optimizer_name(enum hv_optimizer o)
{
    return optimizer_names[o];
}

double hv_optimizer_state_values(enum hv_optimizer o)
{
    return optimizer_states[o];
}

const char *hv_minimize_name(enum hv_minimize m)
{
    return minimize_names[m];
}

struct hv_job hv_job_default(int max_sequence)
{
    return (struct hv_job){
        .global_batch = 256,
        .sequence = max_sequence > 0 ? max_sequence : 2048,
        .precision = HV_BF16,
        .optimizer = HV_OPT_ADAM,
        .master_weights = true,
        .grad_fp32 = true,
        .memory_reserve_bytes = HV_UNKNOWN,
        .objective = {.minimize = HV_MIN_TIME,
                      .max_usd_per_h = HV_UNKNOWN,
                      .deadline_s = HV_UNKNOWN},
    };
}

/* Weights of an fp8 job are kept in 16 bits; only the matrix products see 8. */
double hv_job_weight_bytes(const struct hv_job *j)
{
    double b = hv_precision_bytes(j->precision);
    return b < 2 ? 2 : b;
}

double hv_job_grad_bytes(const struct hv_job *j)
{
    return j->grad_fp32 ? 4 : hv_job_weight_bytes(j);
}

double hv_job_master_bytes(const struct hv_job *j)
{
    return j->master_weights && hv_job_weight_bytes(j) < 4 ? 4 : 0;
}

double hv_job_optimizer_bytes(const struct hv_job *j)
{
    return 4 * hv_optimizer_state_values(j->optimizer);
}

double hv_job_activation_bytes(const struct hv_job *j)
{
    return hv_job_weight_bytes(j);
}
