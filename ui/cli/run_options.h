/** Options of strategies as the command line gives them: `-o KEY=VALUE`, `-o NAME.KEY=VALUE`. */
#ifndef HV_UI_CLI_RUN_OPTIONS_H
#define HV_UI_CLI_RUN_OPTIONS_H

#include "scripting/plugin/plugin.h"
#include "solver/io/own/docs.h"
#include "ui/command/command.h"

/**
 * Options for one strategy or composition: {"id": {key: value}} for every part. A text without NAME
 * goes to every part that has the key. *out: owner is the caller.
 * @param used  [n], set where some part accepted the text; texts that no part accepted are left out
 * (compare passes options to many strategies). NULL: such a text is an error. Errors: HV_EUSAGE
 * naming the option, HV_EUSAGE for an unknown strategy.
 */
enum hv_status hv_cli_run_options(const struct hv_plugins *plugins, const char *strategy,
                                  const char *const *texts, size_t n, bool *used, json_t **out,
                                  struct hv_err *err) HV_NODISCARD;

/**
 * Applies the texts that change the inputs and are no options of strategies: `runtime=NAME`, and
 * `graph=true` or `graph=SEQUENCES`, which puts the graph of a transformer in its place. They hold
 * for every strategy, and hv_cli_run_options passes over them. Errors: HV_EUSAGE for a runtime that
 * does not exist, HV_EINPUT for a model that has no graph.
 */
enum hv_status hv_cli_job_options(const char *const *texts, size_t n, struct hv_inputs *inputs,
                                  struct hv_err *err) HV_NODISCARD;

#endif
