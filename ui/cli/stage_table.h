/** The stages of a judged plan as a table. */
#ifndef HV_UI_CLI_STAGE_TABLE_H
#define HV_UI_CLI_STAGE_TABLE_H

#include "solver/base/str.h"
#include "solver/eval/eval.h"

/**
 * Appends a heading and a line per stage: devices, blocks, degrees, forward and backward time of a
 * micro-batch, busy share, memory of its worst device. Consecutive stages with the same line share
 * one ("0/1-10"), and so do consecutive replicas whose stages all do ("0-3/0"). O(stages).
 */
void hv_cli_stage_table(const struct hv_plan *plan, const struct hv_verdict *v, struct hv_str *out);

#endif
