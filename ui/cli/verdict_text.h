/** A verdict as text. */
#ifndef HV_UI_CLI_VERDICT_TEXT_H
#define HV_UI_CLI_VERDICT_TEXT_H

#include "solver/base/str.h"
#include "solver/eval/eval.h"
#include "solver/eval/goodput.h"
#include "solver/eval/stress/stress.h"
#include "solver/plan/plan.h"
#include <jansson.h>

/**
 * Appends the summary of a verdict as `eval` prints it. Consecutive stages with the same line share
 * one ("0/1-10"), and so do consecutive replicas whose stages all do ("0-3/0"). O(stages).
 */
void hv_cli_verdict_text(const struct hv_plan *plan, const struct hv_verdict *v,
                         struct hv_str *out);
/** One sentence for titles: "iteration 11.2 s, bubble 9.8%, …". */
void hv_cli_verdict_line(const struct hv_verdict *v, struct hv_str *out);
/** Appends lines about a plan tree (as returned by hv_run_strategy): each warning of its claim, and
 * where its formula lists effects that it leaves out and deviates from the simulation by more than
 * a tenth, one line about that. */
void hv_cli_claim_note(const char *strategy, const json_t *plan, struct hv_str *out);
/** Appends indented lines: throughput, price, time lost per failure, checkpoints. `tokens_per_s` is
 * the plan's without failures. */
void hv_cli_goodput_text(const struct hv_goodput *g, double tokens_per_s, struct hv_str *out);
/** Appends lines: what the plan loses in each way in which a run may turn out worse, and whether it
 * is robust. */
void hv_cli_stress_text(const struct hv_plan *plan, const struct hv_verdict *v,
                        const struct hv_stress *s, struct hv_str *out);

#endif
