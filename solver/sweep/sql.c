/* The authorizer of conditions. */
#include "solver/sweep/sql.h"

#include "solver/base/arena.h"

int hv__sql_reads(void *ctx, int action, const char *a, const char *b, const char *c, const char *d)
{
    static const char *const refused[] = {"random",   "randomblob", "zeroblob", "load_extension",
                                          "date",     "time",       "datetime", "julianday",
                                          "strftime", "printf",     "format"};
    (void)ctx;
    (void)a;
    (void)c;
    (void)d;
    if (action != SQLITE_FUNCTION) {
        return action == SQLITE_SELECT || action == SQLITE_READ ? SQLITE_OK : SQLITE_DENY;
    }
    for (size_t i = 0; i < HV_COUNT(refused); i++) {
        if (b == NULL || sqlite3_stricmp(b, refused[i]) == 0) {
            return SQLITE_DENY;
        }
    }
    return SQLITE_OK;
}

int hv__sql_give_up(void *ctx)
{
    (void)ctx;
    return 1;
}
