/** Plans of runs that have no plan file: what a trainer was launched with. */
#ifndef HV_UI_CLI_CALIBRATE_LAUNCHED_H
#define HV_UI_CLI_CALIBRATE_LAUNCHED_H

#include "solver/io/own/docs.h"

/** True for a file that `import` reads as a launch; a document of hetviz is none. */
bool hv_cli_is_launch(const char *path);

/** Inputs that were named beside the launch: paths or catalogue names, NULL where none was. */
struct hv_cli_named {
    const char *cluster, *model, *job;
};
/**
 * The plan of a launch (arguments of Megatron-LM, configurations of DeepSpeed or torchtitan, as
 * `import` reads them): what the strategy `manual` makes of its layout on the cluster. Model and
 * job are those of the launch where none is named. Owner: hv_plan_doc_free, hv_inputs_free. Errors:
 * HV_EINPUT where the file has no layout, or what it leaves open is not named; those of `import`
 * and of the strategy.
 */
enum hv_status hv_cli_read_launch(const char *path, const struct hv_cli_named *named,
                                  struct hv_plan_doc *out, struct hv_inputs *inputs,
                                  struct hv_err *err) HV_NODISCARD;

#endif
