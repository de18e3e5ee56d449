/** What failures leave of a plan, as text. */
#ifndef HV_UI_CLI_GOODPUT_TEXT_H
#define HV_UI_CLI_GOODPUT_TEXT_H

#include "solver/base/str.h"
#include "solver/eval/goodput.h"

/** Appends indented lines: throughput, price, what a failure costs, checkpoints. `tokens_per_s` is
 * the plan's without failures. */
void hv_cli_goodput_text(const struct hv_goodput *g, double tokens_per_s, struct hv_str *out);

#endif
