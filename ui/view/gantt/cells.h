/**
 * Shares of kinds of work as cells: which one or two kinds each cell of a lane shows, and how much
 * of the first.
 *
 * Every lane keeps a credit per kind: what its columns so far hold of the kind less what their
 * cells show, in cells. A cell is chosen so that little credit is left (error diffusion), so no
 * error grows along a lane and rounding hides no kind for good. Pure functions on numbers.
 */
#ifndef HV_UI_VIEW_GANTT_CELLS_H
#define HV_UI_VIEW_GANTT_CELLS_H

#include "ui/view/gantt/view.h"

/** Idle time as a kind, and the number of kinds with it. */
enum { HV__GANTT_IDLE = HV_GANTT_KIND_N, HV__GANTT_SHARES };

/** What a column holds: shares of all kinds, which add up to 1. */
struct hv__gantt_mix {
    double share[HV__GANTT_SHARES];
};

/** One cell. A whole one has only its first part. */
struct hv__gantt_cell {
    uint8_t kind[2];   /**< of the left (or lower) part, and of the rest */
    uint8_t eighths;   /**< of the first part: 1 … 8 */
    int32_t i_span[2]; /**< what they show, where operations are told apart; -1 = idle, or shares */
};

/**
 * Cells of a lane that shows shares: column i becomes a stack of `rows` cells in the order of
 * kinds, with the first kind below and idle on top. out is [rows][n], the top row first. O(n · rows
 * · pairs of kinds that the lane has).
 */
void hv__gantt_stack(const struct hv__gantt_mix *mix, int n, int rows, struct hv__gantt_cell *out);
/** As hv__gantt_stack where a cell can show one kind only, the one that is owed most. */
void hv__gantt_letters(const struct hv__gantt_mix *mix, int n, int rows,
                       struct hv__gantt_cell *out);
/**
 * Cells of a lane whose operations are told apart: column i is [at_s[i], at_s[i + 1]). A cell shows
 * one or two of the operations (or the idle time) in its column, or those of the column before that
 * are still owed, in the order of time. `whole`: cells cannot be cut (ASCII, no colours), and each
 * of the `rows` is chosen; else all rows are the same and only the first is written. out:
 * [rows][n]. O(n + n_spans).
 */
void hv__gantt_operations(const struct hv_gantt_span *spans, size_t n_spans, const double *at_s,
                          int n, int rows, bool whole, struct hv__gantt_cell *out);

#endif
