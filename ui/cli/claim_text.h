/** What a strategy's own formula says beside the simulation, as text. */
#ifndef HV_UI_CLI_CLAIM_TEXT_H
#define HV_UI_CLI_CLAIM_TEXT_H

#include "solver/base/str.h"
#include "solver/eval/eval.h"
#include "solver/plan/plan.h"
#include <jansson.h>

/** Appends the lines of a plan's claim: figure, formula, and what the formula leaves out. Nothing
 * where nothing is claimed. */
void hv_cli_claim_text(const struct hv_claim *c, struct hv_str *out);
/** Appends one line about a plan tree (as hv_run_strategy gives it) whose formula says what it
 * leaves out and is off the simulation by more than a tenth; else nothing. */
void hv_cli_claim_note(const char *strategy, const json_t *plan, struct hv_str *out);

#endif
