/** Inside of the console. */
#ifndef HV_SCRIPTING_WORKER_CONSOLE_INT_H
#define HV_SCRIPTING_WORKER_CONSOLE_INT_H

#include "scripting/host/host_int.h"
#include "scripting/host/run_state.h"
#include "scripting/worker/console.h"

/** Documents a line may change: cluster, model, job. */
#define HV__CONSOLE_DOCS 3

/** The workspace a console shows. Owner: hv__workspace_free. */
struct hv__workspace {
    json_t *trees[HV__CONSOLE_DOCS];   /**< documents as they are; NULL: not to be changed here */
    json_t *changed[HV__CONSOLE_DOCS]; /**< what the last line made of them, or NULL */
    json_t *plans;                     /**< plans reported so far, by name */
};

/** Pushes the table `workspace` {cluster, model, job, plans}. May raise a memory error. */
void hv__workspace_open(lua_State *L, struct hv__workspace *w, const struct hv_inputs *in);
/**
 * Compares the tables with the documents: appends commands to `out`, keeps changed trees. False
 * with err where a table cannot be a document.
 */
bool hv__workspace_take(lua_State *L, struct hv__workspace *w, json_t *out, struct hv_err *err);
/** Takes the changed trees over, or throws them away and puts the old ones into the tables. */
void hv__workspace_settle(lua_State *L, struct hv__workspace *w, bool keep);
void hv__workspace_free(struct hv__workspace *w);

#endif
