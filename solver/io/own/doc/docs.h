/**
 * Documents: a JSON tree as read (order, `x-` keys and all) together with the object built from it.
 *
 * An edit makes a new tree and builds it again; so a document is written back without loss, and
 * every edit is checked by the same code as a file. Readers never print.
 */
#ifndef HV_SOLVER_IO_OWN_DOC_DOCS_H
#define HV_SOLVER_IO_OWN_DOC_DOCS_H

#include "solver/base/json/json.h"
#include "solver/inventory/cluster.h"
#include "solver/plan/plan.h"
#include "solver/workload/job.h"
#include "solver/workload/model.h"

/** Folder in the user's data folder ($XDG_DATA_HOME/hetviz) with the calibrations on own runs. */
#define HV_CALIBRATIONS_FOLDER "calibrations"

/** Reads all of share/calibration, share/devices and share/profiles, then what the user measured
 * ($XDG_DATA_HOME/hetviz): calibrations and profiles, which take the place of shipped ones. Owner:
 * hv_device_catalogue_free. */
enum hv_status hv_device_catalogue_read(struct hv_device_catalogue *out,
                                        struct hv_err *err) HV_NODISCARD;
/** The same without calibrations on the user's own runs: what fits start from. */
enum hv_status hv_device_catalogue_read_shipped(struct hv_device_catalogue *out,
                                                struct hv_err *err) HV_NODISCARD;

/** Reads the profiles that the user measured again, in place of those that the kinds had; most
 * users have none. Clusters have to be rebuilt afterwards. Errors: HV_EINPUT, HV_EIO. */
enum hv_status hv_device_catalogue_own_profiles(struct hv_device_catalogue *c,
                                                struct hv_err *err) HV_NODISCARD;

/** A cluster document. Owner: hv_cluster_doc_free. */
struct hv_cluster_doc {
    struct hv_json json;
    struct hv_cluster *cluster;
    char *path; /**< file or catalogue name as given; NULL when made in memory */
};
/**
 * Builds a cluster from a parsed text; the catalogue supplies the figures that the file leaves out
 * (its kinds are copied into the cluster, so it may be freed afterwards). Takes over `json` also on
 * failure.
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
/** The graph of a transformer (hv_transformer_graph) as a document of kind graph. Errors: as there.
 */
struct hv_graph_of_model;
enum hv_status hv_model_doc_graph(const struct hv_model_doc *of, const struct hv_graph_of_model *q,
                                  struct hv_model_doc *out, struct hv_err *err) HV_NODISCARD;
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

#endif
