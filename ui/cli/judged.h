/** Judgements of a command: a plan that it reads and judges, and work that may take long and is
 * watched meanwhile. */
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
/** The same without a timeline, with progress and the command's --time-limit (hv_cli_watched). The
 * JSON of the plan is kept with --json only: else plan.json is empty. */
enum hv_status hv_cli_judge_watched(const struct hv_args *args, struct hv_judged *out,
                                    struct hv_err *err) HV_NODISCARD;
/** Frees all of it. */
void hv_judged_free(struct hv_judged *j);

/** Work that may take long; `watch` is NULL where nobody looks at it. */
typedef enum hv_status hv_cli_work(void *ctx, struct hv_eval_watch *watch, struct hv_err *err);
/**
 * Runs the work (watched.c). With --time-limit, or where standard error is a terminal and --quiet
 * is not given, it runs in a thread of its own, while this one shows progress on standard error and
 * looks at the limit and at signals: HV_ESTOPPED at the limit or after a signal. Work that does not
 * stop within a second of that ends the program with the same exit code (hv_interrupt_insist).
 */
enum hv_status hv_cli_watched(const struct hv_args *args, hv_cli_work *work, void *ctx,
                              struct hv_err *err) HV_NODISCARD;

#endif
