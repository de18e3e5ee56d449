/** What conditions in SQL may do. */
#ifndef HV_SOLVER_SWEEP_SQL_H
#define HV_SOLVER_SWEEP_SQL_H

#include <sqlite3.h>

/** An authorizer of SQLite (sqlite3_set_authorizer) that allows reading, and functions that give
 * the same every time and make no large texts. */
int hv__sql_reads(void *ctx, int action, const char *a, const char *b, const char *c,
                  const char *d);
/** A progress handler (sqlite3_progress_handler) that ends what has taken all its steps. */
int hv__sql_give_up(void *ctx);

#endif
