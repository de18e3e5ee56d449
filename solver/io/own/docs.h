/**
 * hetviz's own files: cluster, model, job, plan, workspace, and the inputs of a plan together.
 * Documents of one file each are in doc/docs.h.
 */
#ifndef HV_SOLVER_IO_OWN_DOCS_H
#define HV_SOLVER_IO_OWN_DOCS_H

#include "solver/cost/cost.h"
#include "solver/io/own/doc/docs.h"
#include "solver/plan/check.h"

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

/** Inputs of a strategy or of the simulator. Owner: hv_inputs_free. */
struct hv_inputs {
    struct hv_device_catalogue devices;
    struct hv_cluster_doc cluster;
    struct hv_model_doc model;
    struct hv_job_doc job;
    struct hv_job_inputs *own; /**< plan for many jobs: the inputs that each job names itself */
    size_t n_own;
};
/** Model and job of one job of a plan; where it names none, those of the whole plan. */
struct hv_job_inputs {
    struct hv_model_doc model; /**< model.model NULL: the plan's */
    struct hv_job_doc job;     /**< only where `has_job` */
    bool has_job;
};
/**
 * Reads the inputs that the jobs of a plan for many jobs name themselves (none for other plans).
 * Owner of *out, also on failure: hv_job_inputs_free.
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
    int64_t n_devices;        /**< number of devices that it requests; 0: not given */
    struct hv_job_inputs own; /**< model and job that it names */
};
/**
 * Reads the queue of the job document of `all` (none: *n = 0). Owner of *out, also on failure:
 * hv_queue_free; names live as long as the document. Errors: HV_EINPUT, HV_EIO with the place.
 */
enum hv_status hv_queue_read(const struct hv_inputs *all, struct hv_queued_job **out, size_t *n,
                             struct hv_err *err) HV_NODISCARD;
void hv_queue_free(struct hv_queued_job *queue, size_t n);
/** The context of one job of a plan or queue, with the inputs that it names itself. Owner:
 * hv_cost_free. */
struct hv_cost *hv_job_cost_new(const struct hv_inputs *all, const struct hv_job_inputs *own);
/** Contexts of all jobs, in the form of struct hv_eval_options; NULL where there are none. Owner:
 * hv_job_costs_free. */
struct hv_cost **hv_job_costs_new(const struct hv_inputs *all, const struct hv_job_inputs *own,
                                  size_t n);
void hv_job_costs_free(struct hv_cost **costs, size_t n);
/** Reads the three inputs (job may be NULL: default). */
enum hv_status hv_inputs_read(struct hv_inputs *out, const char *cluster, const char *model,
                              const char *job, struct hv_err *err) HV_NODISCARD;
/** Sets one key of the job to a text and reads the job again. Errors: as hv_job_doc_build; the job
 * then stays as it was. */
enum hv_status hv_inputs_set_job(struct hv_inputs *in, const char *key, const char *text,
                                 struct hv_err *err) HV_NODISCARD;
/** Puts the graph of the model, a transformer, in its place: `sequences` sequences of the job's
 * length, in the bytes of its precision. A graph model stays as it is. Errors: as
 * hv_model_doc_graph; the model then stays. */
enum hv_status hv_inputs_set_graph(struct hv_inputs *in, int64_t sequences,
                                   struct hv_err *err) HV_NODISCARD;
void hv_inputs_free(struct hv_inputs *in);

#endif
