/**
 * Lua line by line: the sandbox of plugins with `ctx` and everything of `hv`, on a copy of the
 * inputs. A line changes no file and no workspace: the table `workspace` {cluster, model, job,
 * plans} holds the documents as their files have them, and the changes that a line makes to it are
 * returned as commands, which the owner of the workspace may carry out and undo.
 */
#ifndef HV_SCRIPTING_WORKER_CONSOLE_H
#define HV_SCRIPTING_WORKER_CONSOLE_H

#include "scripting/plugin/plugin.h"
#include "solver/base/str.h"
#include "solver/io/own/docs.h"

/** A console. Owner: hv_console_free. */
struct hv_console;

/** Inputs and limits of a console. Borrowed until it is freed. */
struct hv_console_config {
    const struct hv_inputs *inputs;
    const struct hv_plugins *plugins; /**< for hv.strategy */
    uint64_t seed;
    bool (*cancel)(void *ctx); /**< true ends the line that runs; may be NULL */
    void *ctx;
};

/** Result of a line. */
enum hv_console_state {
    HV_CONSOLE_DONE, /**< it ran */
    HV_CONSOLE_MORE, /**< the line is incomplete: pass it again together with the next line */
    HV_CONSOLE_ERROR /**< err holds the error */
};

/** A new console. Errors: HV_ELIMIT. */
enum hv_status hv_console_new(struct hv_console **out, const struct hv_console_config *config,
                              struct hv_err *err) HV_NODISCARD;
/**
 * Runs a chunk: an expression, or statements. What it prints and what it gives is appended to
 * `out`, tables as JSON. Globals stay from line to line; a line that had to be killed takes them
 * along (the text in err says so).
 */
enum hv_console_state hv_console_eval(struct hv_console *c, const char *text, struct hv_str *out,
                                      struct hv_err *err);
/**
 * What the lines since the last call have changed, in order, or NULL when nothing: a list of
 *   {"do": "set", "path": "cluster.nodes[0].count", "value": 4}
 *   {"do": "insert", "path": "cluster.nodes[2]", "value": {…}}   before that element
 *   {"do": "remove", "path": "job.master_weights"}
 *   {"do": "plan", "name": "mine", "plan": {…}}                  a new or another plan of that name
 * with key paths as in ui/session. `ctx` shows the changes from the next line on; a change that no
 * document may have is an error of its line and is taken back. Owner: caller.
 */
json_t *hv_console_commands(struct hv_console *c);
/** Frees it; NULL is fine. */
void hv_console_free(struct hv_console *c);

#endif
