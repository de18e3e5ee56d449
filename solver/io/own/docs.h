/**
 * hetviz's own files: cluster, model, job, plan, workspace (formats.md §1–5).
 *
 * A document is the JSON tree as read (order, `x-` keys and all) together with the noun built from
 * it. Editing makes a new tree and builds it again; so whatever is written back lost nothing, and
 * every edit is checked by the same code as a file. Readers never print.
 */
#ifndef HV_SOLVER_IO_OWN_DOCS_H
#define HV_SOLVER_IO_OWN_DOCS_H

#include "solver/base/json/json.h"
#include "solver/cost/cost.h"
#include "solver/inventory/cluster.h"
#include "solver/plan/check.h"
#include "solver/plan/plan.h"
#include "solver/workload/job.h"
#include "solver/workload/model.h"

/** Reads all of share/calibration, share/devices and share/profiles, then the profiles that the
 * user measured ($XDG_DATA_HOME/hetviz/profiles), which take the place of shipped ones. Owner:
 * hv_device_catalogue_free. */
enum hv_status hv_device_catalogue_read(struct hv_device_catalogue *out,
                                        struct hv_err *err) HV_NODISCARD;

/** Reads the profiles that the user measured again, over what the kinds had; most users have none.
 * Clusters are to be built anew after. Errors: HV_EINPUT, HV_EIO. */
enum hv_status hv_device_catalogue_own_profiles(struct hv_device_catalogue *c,
                                                struct hv_err *err) HV_NODISCARD;

/** A cluster document. Owner: hv_cluster_doc_free. */
struct hv_cluster_doc {
    struct hv_json json;
    struct hv_cluster *cluster;
    char *path; /**< file or catalogue name as given; NULL when made in memory */
};
/**
 * Builds a cluster from a parsed text; the catalogue supplies what the file leaves out (its kinds
 * are copied into the cluster, so it may be freed afterwards). Takes over `json` also on failure.
 */
enum hv_status hv_cluster_doc_build(struct hv_cluster_doc *out, struct hv_json json,
                                    const struct hv_device_catalogue *devices,
                                    struct hv_err *err) HV_NODISCARD;
/** Reads a file ("-" = standard input), or a shipped sample by name (samples/clusters/NAME.json).
 */
enum hv_status hv_cluster_doc_read(struct hv_cluster_doc *out, const char *path_or_name,
                                   const struct hv_device_catalogue *devices,
                                   struct hv_err *err) HV_NODISCARD;
void hv_cluster_doc_free(struct hv_cluster_doc *d);

/** A model document; also accepts a Hugging Face config.json as it is. Owner: hv_model_doc_free. */
struct hv_model_doc {
    struct hv_json json;
    struct hv_model *model;
    char *path;
};
enum hv_status hv_model_doc_build(struct hv_model_doc *out, struct hv_json json,
                                  struct hv_err *err) HV_NODISCARD;
/** Reads a file, or a model of the catalogue by name (share/models/NAME.json). */
enum hv_status hv_model_doc_read(struct hv_model_doc *out, const char *path_or_name,
                                 struct hv_err *err) HV_NODISCARD;
void hv_model_doc_free(struct hv_model_doc *d);

/** A job document. Owner: hv_job_doc_free. */
struct hv_job_doc {
    struct hv_json json;
    struct hv_arena arena;
    struct hv_job job;
    char *path;
};
/** `max_sequence` of the model supplies the default sequence. */
enum hv_status hv_job_doc_build(struct hv_job_doc *out, struct hv_json json, int max_sequence,
                                struct hv_err *err) HV_NODISCARD;
/** Reads a file or a shipped sample by name; path NULL: the default job. */
enum hv_status hv_job_doc_read(struct hv_job_doc *out, const char *path_or_name, int max_sequence,
                               struct hv_err *err) HV_NODISCARD;
void hv_job_doc_free(struct hv_job_doc *d);

/** A plan document. Owner: hv_plan_doc_free. */
struct hv_plan_doc {
    struct hv_json json;
    struct hv_plan *plan;
    char *path;
};
/**
 * Builds a plan; device addresses are resolved in `cluster`, which the plan keeps a reference to. A
 * plan's members `cluster`, `model` and `job` are only kept here (see hv_plan_doc_read).
 */
enum hv_status hv_plan_doc_build(struct hv_plan_doc *out, struct hv_json json,
                                 struct hv_cluster *cluster, struct hv_err *err) HV_NODISCARD;
void hv_plan_doc_free(struct hv_plan_doc *d);
/**
 * Reads a plan (file, "-" = standard input, or a shipped one by name: samples/plans/NAME.json)
 * together with its inputs: cluster, model and job are those given (path or
 * catalogue name, NULL = as named or held inline in the plan; relative names are tried beside the
 * plan file first).
 */
struct hv_inputs;
enum hv_status hv_plan_doc_read(struct hv_plan_doc *out, const char *path, const char *cluster,
                                const char *model, const char *job, struct hv_inputs *inputs,
                                struct hv_err *err) HV_NODISCARD;

/** Everything a strategy or a judge starts from. Owner: hv_inputs_free. */
struct hv_inputs {
    struct hv_device_catalogue devices;
    struct hv_cluster_doc cluster;
    struct hv_model_doc model;
    struct hv_job_doc job;
    struct hv_job_inputs *own; /**< of a plan for many jobs: what each names itself */
    size_t n_own;
};
/** Model and job of one job of a plan; where it names none, those of the whole plan. */
struct hv_job_inputs {
    struct hv_model_doc model; /**< model.model NULL: the plan's */
    struct hv_job_doc job;     /**< only where `has_job` */
    bool has_job;
};
/**
 * Reads what the jobs of a plan for many name themselves (none of other plans). Owner of *out, also
 * on failure: hv_job_inputs_free.
 */
enum hv_status hv_job_inputs_read(const struct hv_json *plan, const struct hv_inputs *all,
                                  struct hv_job_inputs **out, size_t *n,
                                  struct hv_err *err) HV_NODISCARD;
void hv_job_inputs_free(struct hv_job_inputs *own, size_t n);
/** A job of a queue (job file, member `jobs`). */
struct hv_queued_job {
    const char *name; /**< borrowed from the job document; its own in the queue */
    double arrival_s, weight;
    double iterations;        /**< HV_UNKNOWN: without end */
    double deadline_s;        /**< from the arrival to the last iteration; HV_UNKNOWN: none */
    int64_t n_devices;        /**< how many it asks for; 0: it does not say */
    struct hv_job_inputs own; /**< model and job that it names */
};
/**
 * Reads the queue of the job document of `all` (none: *n = 0). Owner of *out, also on failure:
 * hv_queue_free; names live as long as the document. Errors: HV_EINPUT, HV_EIO with the place.
 */
enum hv_status hv_queue_read(const struct hv_inputs *all, struct hv_queued_job **out, size_t *n,
                             struct hv_err *err) HV_NODISCARD;
void hv_queue_free(struct hv_queued_job *queue, size_t n);
/** The context of one job of a plan or queue, with what it names itself. Owner: hv_cost_free. */
struct hv_cost *hv_job_cost_new(const struct hv_inputs *all, const struct hv_job_inputs *own);
/** One for each, as struct hv_eval_options takes them; NULL for none. Owner: hv_job_costs_free. */
struct hv_cost **hv_job_costs_new(const struct hv_inputs *all, const struct hv_job_inputs *own,
                                  size_t n);
void hv_job_costs_free(struct hv_cost **costs, size_t n);
/** Reads the three inputs (job may be NULL: default). */
enum hv_status hv_inputs_read(struct hv_inputs *out, const char *cluster, const char *model,
                              const char *job, struct hv_err *err) HV_NODISCARD;
void hv_inputs_free(struct hv_inputs *in);

#endif
