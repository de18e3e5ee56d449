/**
 * Import: converts files of other programs to hetviz's documents, with a report of understood,
 * guessed and ignored values.
 *
 * Formats are recognised by their content, never by their name (hv_import_format_at lists them).
 * Several files may describe one machine: their data are combined. Nothing is executed, no network
 * and no other file is touched; sizes, depths and counts are limited before anything is parsed.
 * Sources about the formats are named in each reader.
 */
#ifndef HV_SOLVER_IO_IMPORT_IMPORT_H
#define HV_SOLVER_IO_IMPORT_IMPORT_H

#include "solver/base/json/json.h"
#include "solver/inventory/device.h"
#include "solver/io/import/draft/choice.h"
#include "solver/io/import/draft/model_out.h"
#include "solver/io/import/draft/note.h"

/** Most bytes of one file, before and after it is unpacked. Chrome traces are read piece by piece
 * and may have 256 MiB. */
#define HV_IMPORT_MAX_BYTES ((size_t)64 << 20)

/** Subjects of a file. */
enum hv_import_part {
    HV_IMPORT_CLUSTER,  /**< nodes and devices */
    HV_IMPORT_LINKS,    /**< measured links: they complete a cluster */
    HV_IMPORT_PRICES,   /**< prices of machines */
    HV_IMPORT_MODEL,    /**< a model */
    HV_IMPORT_JOB,      /**< a training job, often with the layout it runs in */
    HV_IMPORT_SCHEDULE, /**< an order of operations: a plan */
    HV_IMPORT_TRACE,    /**< measured operations */
    HV_IMPORT_PART_N
};

/** One format. */
struct hv_import_format {
    const char *name;  /**< as typed: "nvidia_smi_xml" */
    const char *title; /**< description: "nvidia-smi -q -x" */
    enum hv_import_part part;
    const char *help; /**< the data that are read, and how such a file is made */
};
/** The formats one by one, in the order of detection; NULL beyond the last. */
const struct hv_import_format *hv_import_format_at(size_t i);
/** The format of that name (case and - for _ do not matter), or NULL. */
const struct hv_import_format *hv_import_format_find(const char *name);
/** "a cluster", "prices", …: name of a part. */
const char *hv_import_part_name(enum hv_import_part p);

struct hv_import;

/** A new import; `devices` is borrowed until hv_import_free. */
struct hv_import *hv_import_new(const struct hv_device_catalogue *devices);
/**
 * Reads one text. `format` NULL: detected. Bytes may be packed (gzip) and in UTF-16. Errors:
 * HV_EINPUT with position (broken text), HV_ELIMIT, HV_EINPUT for a text that is of no known
 * format, HV_ENO for one that holds nothing to import. Each message advises how to continue.
 */
enum hv_status hv_import_text(struct hv_import *im, const struct hv_import_format *format,
                              const char *name, const char *bytes, size_t n,
                              struct hv_err *err) HV_NODISCARD;
/** As hv_import_text for a file ("-": standard input). */
enum hv_status hv_import_file(struct hv_import *im, const struct hv_import_format *format,
                              const char *path, struct hv_err *err) HV_NODISCARD;
/**
 * Combines the data of all files. To be called once, after the last file. Errors: HV_ENO when they
 * give no document; HV_EINTERNAL when hetviz's own reader refuses it.
 */
enum hv_status hv_import_finish(struct hv_import *im, struct hv_err *err) HV_NODISCARD;

/** The document: the one part there is, or a workspace that holds several. Borrowed. */
json_t *hv_import_document(const struct hv_import *im);
/** A part as a document of its own (cluster, model or job), or NULL. Borrowed. */
json_t *hv_import_cluster(const struct hv_import *im);
json_t *hv_import_model(const struct hv_import *im);
json_t *hv_import_job(const struct hv_import *im);
/** Parameters of the imported model; HV_UNKNOWN without a model. */
double hv_import_parameters(const struct hv_import *im);
/** Options of the strategy `manual` that describe the layout of the files, or NULL. */
json_t *hv_import_layout(const struct hv_import *im);
/** True where the cluster is assumed, because no file describes one. */
bool hv_import_cluster_is_guess(const struct hv_import *im);
/** The detected format of each file, in the order given; NULL beyond the last. */
const struct hv_import_format *hv_import_format_of(const struct hv_import *im, size_t file);

/** Frees it. NULL is fine. */
void hv_import_free(struct hv_import *im);

#endif
