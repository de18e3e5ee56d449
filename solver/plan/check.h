/**
 * Validity: rules A–F of plan files. Every violation is a finding with code, text, place and
 * amount. The checks need no costs (memory and bandwidth findings come from eval).
 */
#ifndef HV_SOLVER_PLAN_CHECK_H
#define HV_SOLVER_PLAN_CHECK_H

#include "solver/plan/plan.h"

/* clang-format off */
/** Violation codes: constant, name in files, meaning. */
#define HV_VIOLATION_MAP(X) \
    X(HV_V_BATCH_SUM,       "batch_sum",        "sequences of all replicas do not add up to the global batch") \
    X(HV_V_DEVICES_OVERLAP, "devices_overlap",  "a device is in more than one stage") \
    X(HV_V_DEGREE_PRODUCT,  "degree_product",   "dp x cp x tp is not the number of devices") \
    X(HV_V_LAYERS_MISSING,  "layers_missing",   "a block of the model is held by no stage") \
    X(HV_V_LAYERS_TWICE,    "layers_twice",     "a block of the model is held more than once") \
    X(HV_V_DIVISIBLE,       "divisible",        "a size is not divisible by its degree") \
    X(HV_V_HEADS,           "heads",            "attention heads are not divisible by the degree that splits them") \
    X(HV_V_FABRIC,          "fabric",           "a collective would have to cross fabrics") \
    X(HV_V_PRECISION,       "precision",        "a device cannot compute in the job's precision") \
    X(HV_V_MEMORY,          "memory",           "peak memory is above what the device has") \
    X(HV_V_CAPACITY,        "capacity",         "a flow or token capacity is exceeded") \
    X(HV_V_SCHEDULE_NEEDS,  "schedule_needs",   "the schedule's constraints do not hold") \
    X(HV_V_ORDER_DEADLOCK,  "order_deadlock",   "the order of operations can never complete") \
    X(HV_V_STALE,           "stale_not_allowed","the plan uses stale weights and the objective does not allow it") \
    X(HV_V_DROP,            "drop_not_allowed", "the plan drops tokens and the objective does not allow it") \
    X(HV_V_UNKNOWN_DEVICE,  "unknown_device",   "an address names no device of the cluster") \
    X(HV_V_UNKNOWN_NAME,    "unknown_name",     "a name is no operator, dimension or axis that the plan can use") \
    X(HV_V_SCHEME,          "scheme",           "a key belongs to another scheme of parallelism") \
    X(HV_V_DEADLINE,        "deadline",         "an iteration takes longer than the objective allows") \
    X(HV_V_TARGET,          "target",           "the target that the job names cannot say the plan") \
    X(HV_V_RUNTIME,         "runtime",          "the runtime that the job names cannot run the plan") \
    X(HV_V_PRICE,           "price",            "the nodes in use cost more per hour than the objective allows")
/* clang-format on */
enum hv_violation_code {
#define X(c, name, text) c,
    HV_VIOLATION_MAP(X)
#undef X
        HV_VIOLATION_N
};
const char *hv_violation_name(enum hv_violation_code c); /**< name in files */
const char *hv_violation_meaning(enum hv_violation_code c);

/** One finding. */
struct hv_violation {
    enum hv_violation_code code;
    const char *where; /**< "replicas[0].stages[1].tp" */
    const char *text;  /**< text: the violation and its amount */
    double by;         /**< above the limit or missing (unit by code), or HV_UNKNOWN */
};

/** True for limits of the objective (deadline, price). Where no plan is within them, the best plan
 * is still a result, with a mark. All other violations mean that a plan cannot run. */
static inline bool hv_violation_is_limit(enum hv_violation_code c)
{
    return c == HV_V_DEADLINE || c == HV_V_PRICE;
}

/** Findings in the order found; items live in the arena given to the checks. */
struct hv_findings {
    struct hv_arena *arena; /**< set by the owner before use */
    struct hv_violation *items;
    size_t n, cap;
};

/** Number of findings that are not limits of the objective. O(n). */
size_t hv_findings_of_rules(const struct hv_findings *f);
/** Adds a finding; `where` and the formatted text are copied. */
void hv_finding_add(struct hv_findings *f, enum hv_violation_code code, double by,
                    const char *where, const char *fmt, ...) HV_PRINTF(5, 6);

/**
 * Checks rules A–F and everything that follows from shapes alone: batch sums, device exclusivity,
 * degree products, layer cover, divisibility, heads, fabrics, precisions, staleness and dropping;
 * and that names of operators, dimensions and axes exist (names.h). A
 * device on a node in state `drain` counts as unknown_device; a `spare` node may be used. Stale
 * weights and dropped tokens are violations only where the objective sets the key to `false`
 * (allow_*_given). What the job's target cannot say (says.h) is a violation of code `target`.
 * Schedules and their orders are judged by eval; a plan of `jobs` has no findings here, each of its
 * plans is checked alone. Complexity O(devices + layers + stages²).
 */
void hv_plan_check(const struct hv_plan *p, const struct hv_model *m, const struct hv_job *j,
                   struct hv_findings *out);

#endif
