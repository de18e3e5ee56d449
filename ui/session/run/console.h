/**
 * The console's Lua: a worker with a copy of the workspace that lives from line to line. The output
 * of a line goes to the log; its changes are returned as commands, which are passed to a callback
 * of the owner.
 */
#ifndef HV_UI_SESSION_RUN_CONSOLE_H
#define HV_UI_SESSION_RUN_CONSOLE_H

#include "ui/process/pool.h"
#include "ui/session/doc/documents.h"
#include "ui/session/log/log.h"

/** Configuration of a console. All pointers are borrowed for the life of the console. */
struct hv__console_config {
    const struct hv__docs *docs;
    struct hv__log *log;
    const char *const *worker_argv; /**< as in struct hv_pool_config */
    double (*now_s)(void *ctx);     /**< clock of the session */
    /** Carries out the commands of an answer as edits; they are not empty. */
    void (*on_commands)(void *ctx, const json_t *commands);
    void *ctx; /**< for the functions */
};

/** A console. Owner: hv__console_free. */
struct hv__console;

/** A console without a worker; the first line starts one. */
struct hv__console *hv__console_new(const struct hv__console_config *config);
/** Ends the worker and frees. */
void hv__console_free(struct hv__console *c);
/** Runs a line. A worker whose copy is older than the documents is replaced first; `seed` is for a
 * new one. */
void hv__console_line(struct hv__console *c, const char *text, uint64_t seed);
/** True where the last line is an incomplete statement. The next line continues it. */
bool hv__console_wants_more(const struct hv__console *c);
/** True while a line runs. */
bool hv__console_is_busy(const struct hv__console *c);
/** Ends the running line; false where there is none. All variables are lost. */
bool hv__console_stop(struct hv__console *c);

/** Processes the output of the worker. */
void hv__console_poll(struct hv__console *c);
/** As hv_pool_fds and hv_pool_timeout_ms. */
size_t hv__console_fds(const struct hv__console *c, struct pollfd *out, size_t cap);
int hv__console_timeout_ms(const struct hv__console *c);
/** Counter that increases with every event of the worker. */
uint64_t hv__console_changes(const struct hv__console *c);

#endif
