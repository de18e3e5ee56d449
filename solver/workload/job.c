/* The training job: names, defaults, bytes per parameter and activation, and the choice of kernels
 * where the file does not state it. */
#include <math.h>

#include "solver/workload/job.h"

#include <string.h>

#include "solver/base/units.h"
#include "solver/workload/model.h"

/* Longest sequence at which GPT-style runs on Ampere stored the attention scores (estimated). */
#define LONGEST_UNFUSED 4096

#define X(c, name, states) name,
static const char *const optimizer_names[HV_OPTIMIZER_N] = {HV_OPTIMIZER_MAP(X)};
#undef X
#define X(c, name, states) states,
static const double optimizer_states[HV_OPTIMIZER_N] = {HV_OPTIMIZER_MAP(X)};
#undef X
#define X(c, name) name,
static const char *const attention_names[HV_ATTENTION_N] = {HV_ATTENTION_MAP(X)};
static const char *const dropout_names[HV_DROPOUT_N] = {HV_DROPOUT_MAP(X)};
#undef X
static const char *const minimize_names[HV_MINIMIZE_N] = {"time", "cost", "energy"};

const char *hv_optimizer_name(enum hv_optimizer o)
{
    return optimizer_names[o];
}

/* fp32 values per parameter. */
static double optimizer_state_values(enum hv_optimizer o)
{
    return optimizer_states[o];
}

const char *hv_attention_name(enum hv_attention a)
{
    return attention_names[a];
}

const char *hv_dropout_name(enum hv_dropout d)
{
    return dropout_names[d];
}

const char *hv_minimize_name(enum hv_minimize m)
{
    return minimize_names[m];
}

/* The assumed values. */
static struct hv_failure_rules failure_rules_default(void)
{
    return (struct hv_failure_rules){
#define X(member, key, value, least, most, help) .member = (value),
        HV_FAILURE_MAP(X)
#undef X
            .interval_s = HV_UNKNOWN,
    };
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
        .output_tokens = -1,
        .requests_per_s = HV_UNKNOWN,
        .objective = {.minimize = HV_MIN_TIME,
                      .max_usd_per_h = HV_UNKNOWN,
                      .deadline_s = HV_UNKNOWN},
        .failures = failure_rules_default(),
    };
}

int64_t hv_job_output_tokens(const struct hv_job *j)
{
    return j->output_tokens >= 0 ? j->output_tokens : j->sequence / 4;
}

bool hv_job_default_grad_fp32(enum hv_precision p)
{
    return p != HV_FP16;
}

/* Weights of an fp8 job are kept in 16 bits; only matrix products use 8 bits. */
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
    return 4 * optimizer_state_values(j->optimizer);
}

double hv_job_unscaled_bytes(const struct hv_job *j)
{
    return j->precision == HV_FP16 && !j->grad_fp32 && j->master_weights ? 4 : 0;
}

double hv_job_activation_bytes(const struct hv_job *j)
{
    return hv_job_weight_bytes(j);
}

/* Generations of GPUs between which published software stacks differ. */
enum era { BEFORE_AMPERE, AMPERE, LATER };

static enum era era_of(const struct hv_device_kind *d)
{
    static const char *const old[] = {"Kepler", "Maxwell", "Pascal", "Volta", "Turing"};
    for (size_t i = 0; d->arch && i < HV_COUNT(old); i++) {
        if (strcmp(d->arch, old[i]) == 0) {
            return BEFORE_AMPERE;
        }
    }
    return d->arch && strcmp(d->arch, "Ampere") == 0 ? AMPERE : LATER;
}

/* LayerNorm, plain feed-forward, a key for every query head, positions added or biased. */
static bool gpt_style(const struct hv_model *m)
{
    if (m->kind != HV_MODEL_TRANSFORMER || !m->n_blocks) {
        return false;
    }
    const struct hv_block *b = &m->blocks[0];
    return m->norm == HV_NORM_LAYERNORM && m->position != HV_POSITION_ROPE &&
           hv_ffn_kind_matrices(b->ffn_kind) == 2 && b->kv_heads == b->heads && !b->mla.kv_rank;
}

bool hv_job_flash_attention(const struct hv_job *j, const struct hv_model *m,
                            const struct hv_kernel_query *q)
{
    if (j->attention != HV_ATTENTION_AUTO) {
        return j->attention == HV_ATTENTION_FLASH;
    }
    switch (era_of(q->device)) {
    case BEFORE_AMPERE:
        return false;
    case AMPERE:
        return !gpt_style(m) || q->sharded_weights || q->context_parallel ||
               j->sequence > LONGEST_UNFUSED;
    case LATER:
        break;
    }
    return true;
}

bool hv_job_dropout(const struct hv_job *j, const struct hv_model *m,
                    const struct hv_kernel_query *q)
{
    if (j->dropout != HV_DROPOUT_AUTO) {
        return j->dropout == HV_DROPOUT_ON;
    }
    return gpt_style(m) && !q->sharded_weights && era_of(q->device) != LATER;
}

bool hv_job_eager_kernels(const struct hv_job *j, const struct hv_model *m,
                          const struct hv_kernel_query *q)
{
    if (j->kernels != HV_KERNELS_AUTO) {
        return j->kernels == HV_KERNELS_EAGER;
    }
    return gpt_style(m) && q->sharded_weights;
}

/* Lengths above the job's sequence are cut. */
static double bin_tokens(const struct hv_job *j, size_t i)
{
    return (double)(j->lengths[i].tokens < j->sequence ? j->lengths[i].tokens : j->sequence);
}

double hv_job_mean_tokens(const struct hv_job *j)
{
    double sum = 0;
    for (size_t i = 0; i < j->n_lengths; i++) {
        sum += j->lengths[i].frac * bin_tokens(j, i);
    }
    return j->n_lengths > 0 ? sum : (double)j->sequence;
}

double hv_job_padded_share(const struct hv_job *j, double sequences, double tokens)
{
    double share = 0;
    for (size_t i = 0; i < j->n_lengths; i++) {
        share += bin_tokens(j, i) <= tokens ? j->lengths[i].frac : 0;
    }
    return pow(fmin(share, 1), sequences);
}

double hv_job_padded_tokens(const struct hv_job *j, double sequences, double quantile)
{
    double least = 0, longest = 0;
    for (size_t i = 0; i < j->n_lengths; i++) {
        double own = bin_tokens(j, i);
        longest = fmax(longest, own);
        bool reaches = hv_job_padded_share(j, sequences, own) >= quantile;
        least = reaches && (least <= 0 || own < least) ? own : least;
    }
    return j->n_lengths == 0 ? (double)j->sequence : least > 0 ? least : longest;
}
