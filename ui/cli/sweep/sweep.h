/** The actions of `hetviz sweep`: one function each; they print their own results. */
#ifndef HV_UI_CLI_SWEEP_SWEEP_H
#define HV_UI_CLI_SWEEP_SWEEP_H

#include "solver/base/str.h"
#include "solver/sweep/sweep.h"
#include "ui/command/command.h"

/** Name of the specification inside a folder of results, with every document in it. */
#define HV_SWEEP_SPEC "sweep.json"
/** Name of the store inside that folder. */
#define HV_SWEEP_STORE "sweep.sqlite"

/** Action: constant suffix, word, function, options beside --out that it takes. */
#define HV_SWEEP_ACTION_MAP(X)                                                                     \
    X(plan, "shards json")                                                                         \
    X(run, "shard jobs failed time-limit")                                                         \
    X(submit, "shards jobs slurm gnu-parallel retries dry-run")                                    \
    X(merge, "json")                                                                               \
    X(show, "where sort columns most pareto json csv svg x y value")

#define X(name, options)                                                                           \
    enum hv_status hv_cli_sweep_##name(struct hv_args *args, struct hv_err *err);
HV_SWEEP_ACTION_MAP(X)
#undef X

/** The file of the first argument behind the action, or NULL. */
const char *hv_cli_sweep_file(const struct hv_args *args);
/** DIR/NAME. */
void hv_cli_sweep_path(const char *folder, const char *name, struct hv_str *out);
/**
 * Writes the specification with all documents into the folder, which is made where there is none.
 * Errors: HV_EIO.
 */
enum hv_status hv_cli_sweep_keep(const struct hv_sweep *s, const char *folder,
                                 struct hv_err *err) HV_NODISCARD;
/**
 * Checks the strategies and their options, and the inputs with every value of every axis once.
 * O(values). Errors: HV_EUSAGE, HV_EINPUT with the cell that is wrong.
 */
enum hv_status hv_cli_sweep_check(const struct hv_sweep *s, struct hv_err *err) HV_NODISCARD;

#endif
