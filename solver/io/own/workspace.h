/**
 * Workspaces (hetviz.workspace/1): a cluster, a model and a job, strategies with their options, and
 * the resulting plans.
 *
 * Either a folder with workspace.json, whose names are tried beside it first, or one file with
 * everything inline. As with every document the JSON tree is kept: a change makes a new tree and
 * builds the workspace again.
 */
#ifndef HV_SOLVER_IO_OWN_WORKSPACE_H
#define HV_SOLVER_IO_OWN_WORKSPACE_H

#include "solver/base/arena.h"
#include "solver/base/json/json.h"
#include "solver/io/own/docs.h"

/** A document named (path or shipped name) or held inline; both NULL: not given. */
struct hv_workspace_ref {
    const char *name;
    json_t *inline_; /**< object, borrowed from the workspace's tree */
};

/** A strategy to run. */
struct hv_workspace_strategy {
    const char *id;
    json_t *options; /**< object, borrowed; NULL without options */
};

/** One of several jobs that share the cluster. */
struct hv_workspace_job {
    const char *name;
    struct hv_workspace_ref model, job;
    double arrival_s, weight;
};

/** A workspace. Owner: hv_workspace_free. */
struct hv_workspace {
    struct hv_json json;
    struct hv_arena arena;
    char *path;   /**< the file; NULL when made in memory */
    char *folder; /**< where names are tried first; NULL: nowhere */
    const char *name;
    struct hv_workspace_ref cluster, model, job;
    struct hv_workspace_strategy *strategies;
    size_t n_strategies;
    struct hv_workspace_ref *plans;
    size_t n_plans;
    struct hv_workspace_job *jobs;
    size_t n_jobs;
};

/** Builds a workspace from a parsed text; takes over `json` also on failure. `folder` may be NULL.
 */
enum hv_status hv_workspace_build(struct hv_workspace *out, struct hv_json json, const char *folder,
                                  struct hv_err *err) HV_NODISCARD;
/** Reads a folder, a file ("-" = standard input) or a shipped one by name
 * (samples/workspaces/NAME). */
enum hv_status hv_workspace_read(struct hv_workspace *out, const char *path_or_name,
                                 struct hv_err *err) HV_NODISCARD;
/** Path of a name of the workspace: beside it when such a file exists, else the name itself. */
void hv_workspace_resolve(const struct hv_workspace *w, const char *name, struct hv_str *out);
/** Reads cluster, model and job (default when not given). */
enum hv_status hv_workspace_inputs(const struct hv_workspace *w, struct hv_inputs *out,
                                   struct hv_err *err) HV_NODISCARD;
/** Frees it. */
void hv_workspace_free(struct hv_workspace *w);

#endif
