/** The figures of a result: one table for result files, the store, and what is shown of them. */
#ifndef HV_SOLVER_SWEEP_FIGURES_H
#define HV_SOLVER_SWEEP_FIGURES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/** A figure: its key in `simulated` of a plan, and what it says. */
struct hv_sweep_figure {
    const char *key;
    const char *help;
    bool more_is_better;
};
/** All figures, in the order of the columns. */
const struct hv_sweep_figure *hv_sweep_figures(size_t *n);
/** The figure of that key, or NULL. */
const struct hv_sweep_figure *hv_sweep_figure(const char *key);
/** Names of the columns that every store has and that are no figures: identity, strategy, state. */
const char *const *hv_sweep_columns(size_t *n);
/** True for the name of a column that every result has (identity, strategy, state, figures). */
bool hv_sweep_is_column(const char *name);
/** The figures of a verdict as an object {key: number}; peak memory is that of the fullest device.
 * Owner: caller. */
json_t *hv_sweep_figures_of(const json_t *simulated);

#endif
