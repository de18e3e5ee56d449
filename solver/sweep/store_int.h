/** Shared by writing and reading the store. */
#ifndef HV_SOLVER_SWEEP_STORE_INT_H
#define HV_SOLVER_SWEEP_STORE_INT_H

#include "solver/sweep/sql.h"
#include "solver/sweep/store.h"

/** Value of the key `format` in the table `sweep`. */
#define HV__STORE_FORMAT "hetviz.sweep-store/1"

/** The error of the last call on a database. Returns HV_EIO. */
enum hv_status hv__store_fail(sqlite3 *db, const char *path, struct hv_err *err);

#endif
