/** The actions of `hetviz sweep`: one function each; they print their own results. */
#ifndef HV_UI_CLI_CMD_SWEEP_H
#define HV_UI_CLI_CMD_SWEEP_H

#include "ui/command/command.h"

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

#endif
