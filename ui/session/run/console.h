/**
 * The console's Lua: a worker with a copy of the workspace that lives from line to line. What a
 * line prints goes to the log; what it changes comes back as commands, which are handed to
 * a function of the console's owner.
 */
#ifndef HV_UI_SESSION_RUN_CONSOLE_H
#define HV_UI_SESSION_RUN_CONSOLE_H

#include "ui/process/pool.h"
#include "ui/session/doc/documents.h"
#include "ui/session/log/log.h"

/** What a console is made with. Everything is borrowed while the console lives. */
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
/** Was the last line the beginning of something? The next one is put behind it. */
bool hv__console_wants_more(const struct hv__console *c);
/** Does a line run? */
bool hv__console_is_busy(const struct hv__console *c);
/** Ends the line that runs; false when none does. Variables begin anew. */
bool hv__console_stop(struct hv__console *c);

/** Takes in what the worker wrote. */
void hv__console_poll(struct hv__console *c);
/** As hv_pool_fds and hv_pool_timeout_ms. */
size_t hv__console_fds(const struct hv__console *c, struct pollfd *out, size_t cap);
int hv__console_timeout_ms(const struct hv__console *c);
/** Goes up with every event of the worker. */
uint64_t hv__console_changes(const struct hv__console *c);

#endif
