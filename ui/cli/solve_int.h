/** Shared by the files of `hetviz solve`. */
#ifndef HV_UI_CLI_SOLVE_INT_H
#define HV_UI_CLI_SOLVE_INT_H

#include "solver/base/json/json.h"
#include "solver/io/own/instance/partition_file.h"

/** Options of the command. */
struct hv__solve_ask {
    const char *write_lp; /**< file, or NULL */
    double time_limit_s;  /**< 0 = none */
    bool certify;         /**< a longer time limit for lp_solve */
    bool progress;        /**< a live line on standard error */
};

/** The answer to an instance of any kind. Owner: hv__solve_answer_free. */
struct hv__solve_answer {
    bool feasible, proven, stopped;
    double objective, bound, seconds;
    const char *method, *unit; /**< unit of objective and bound, may be "" */
    struct hv_str certificate;
    struct hv_str table; /**< the solution as text, one line per item */
    json_t *solution;
};

/** Solves an instance. `seconds` is the time of the solver alone. Errors: as the solvers'. */
enum hv_status hv__solve_instance(const struct hv_instance *in, const struct hv__solve_ask *ask,
                                  struct hv_arena *arena, struct hv__solve_answer *out,
                                  struct hv_err *err) HV_NODISCARD;
/**
 * Solves a chain with lp_solve as well, in a child process; appends the outcome to the certificate.
 * Clears `proven` where the results contradict.
 */
void hv__solve_certify(const struct hv_partition *p, const struct hv_partition_result *r,
                       const struct hv__solve_ask *ask, struct hv__solve_answer *out);
/** Frees it. */
void hv__solve_answer_free(struct hv__solve_answer *w);

#endif
