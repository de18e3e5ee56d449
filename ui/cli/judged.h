/** A plan that a command reads and judges. */
#ifndef HV_UI_CLI_JUDGED_H
#define HV_UI_CLI_JUDGED_H

#include "solver/eval/eval.h"
#include "solver/io/own/docs.h"
#include "ui/command/command.h"

/** A plan with everything needed to judge it. Owner: hv_judged_free. */
struct hv_judged {
    struct hv_inputs inputs;
    struct hv_plan_doc plan;
    struct hv_cost *cost;
    struct hv_cost **jobs; /**< of a plan for many jobs: one each */
    struct hv_arena arena;
    struct hv_verdict verdict;
};
/** Reads the plan named first, with -c, -m and -j where given, and judges it. */
enum hv_status hv_cli_judge(const struct hv_args *args, bool timeline, struct hv_judged *out,
                            struct hv_err *err) HV_NODISCARD;
/** The same without a timeline, with progress and the command's --time-limit (watched.h). */
enum hv_status hv_cli_judge_watched(const struct hv_args *args, struct hv_judged *out,
                                    struct hv_err *err) HV_NODISCARD;
/** Frees all of it. */
void hv_judged_free(struct hv_judged *j);

#endif
