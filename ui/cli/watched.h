/** A judgement that may take long: it runs in a thread of its own, while this one shows progress
 * and looks at the time limit and at signals. */
#ifndef HV_UI_CLI_WATCHED_H
#define HV_UI_CLI_WATCHED_H

#include "solver/eval/eval.h"
#include "ui/command/command.h"

/** The work; `watch` is NULL where nobody looks at it. */
typedef enum hv_status hv_cli_work(void *ctx, struct hv_eval_watch *watch, struct hv_err *err);
/**
 * Runs the work. With --time-limit, or where standard error is a terminal and --quiet is not given,
 * it is watched: progress on standard error, HV_ESTOPPED at the limit or after a signal. Work that
 * does not stop within a second of that ends the program with the same exit code
 * (hv_interrupt_insist).
 */
enum hv_status hv_cli_watched(const struct hv_args *args, hv_cli_work *work, void *ctx,
                              struct hv_err *err) HV_NODISCARD;

#endif
