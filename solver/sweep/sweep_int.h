/** Internals of reading a sweep. */
#ifndef HV_SOLVER_SWEEP_SWEEP_INT_H
#define HV_SOLVER_SWEEP_SWEEP_INT_H

#include "solver/sweep/sweep.h"

/** Reads the list of axes at `list`; documents named by values are looked for beside `folder`
 * first. Errors: HV_EINPUT. */
enum hv_status hv__sweep_axes(struct hv_sweep *s, const struct hv_jp *list, const char *folder,
                              struct hv_err *err) HV_NODISCARD;
/**
 * Tree of a document given as a name, a file or an object at `at`. Owner of *out: caller. Errors:
 * HV_EINPUT, HV_EIO with the place.
 */
enum hv_status hv__sweep_document(enum hv_doc d, const struct hv_jp *at, const char *folder,
                                  json_t **out, struct hv_err *err) HV_NODISCARD;
/** Tree of the default job. Owner of *out: caller. */
enum hv_status hv__sweep_default_job(json_t **out, struct hv_err *err) HV_NODISCARD;
/** Makes the cells: every point that meets the conditions at `where`, once per strategy. Errors:
 * HV_EINPUT for a condition that is none, HV_ELIMIT. */
enum hv_status hv__sweep_cells(struct hv_sweep *s, const struct hv_jp *where,
                               struct hv_err *err) HV_NODISCARD;

/** Conditions, compiled. */
struct hv__where;
/**
 * Compiles the conditions at the list `at` (SQL expressions over the names of the axes). *out is
 * NULL where there are none. Owner: hv__where_free. Errors: HV_EINPUT at the condition.
 */
enum hv_status hv__where_new(struct hv__where **out, const struct hv_sweep *s,
                             const struct hv_jp *at, struct hv_err *err) HV_NODISCARD;
/** True in *holds where all conditions hold at a cell. Errors: HV_EINPUT at the condition. */
enum hv_status hv__where_holds(struct hv__where *w, const struct hv_sweep *s,
                               const struct hv_sweep_cell *cell, bool *holds,
                               struct hv_err *err) HV_NODISCARD;
void hv__where_free(struct hv__where *w);

#endif
