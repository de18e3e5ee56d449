/**
 * Sweeps: one question asked for many clusters, models, jobs and options.
 *
 * A specification (hetviz.sweep/1) names inputs, axes and strategies. A *cell* is one point of the
 * grid of the axes and one strategy. Cells are independent of each other: a *shard* is every n-th
 * cell, so that any engine that starts programs can run a sweep (Slurm arrays, GNU parallel).
 *
 * The identity of a cell is a hash of what decides its result: the three documents, the values of
 * its axes, strategy, seed and limits. It does not depend on other cells, on names of files or on
 * the order of axes, so results stay valid where values are added to an axis.
 */
#ifndef HV_SOLVER_SWEEP_SWEEP_H
#define HV_SOLVER_SWEEP_SWEEP_H

#include "solver/base/arena.h"
#include "solver/base/json/json.h"
#include "solver/io/own/doc/key_path.h"
#include "solver/io/own/docs.h"

/** Most axes of a sweep, and most cells of its grid before conditions. */
#define HV_SWEEP_AXES_MAX  16
#define HV_SWEEP_CELLS_MAX 10000000
/** Bytes of the text of an identity, with the NUL at its end. */
#define HV_SWEEP_ID_CAP 17

/** A value of an axis. */
struct hv_sweep_value {
    const char *label; /**< as shown and filtered: a number, a word, or the name of a document */
    json_t *value;     /**< put into the document or the options */
    uint64_t hash;     /**< of the value */
};

/** An axis: values of one place. */
struct hv_sweep_axis {
    const char *name;        /**< a word: letters, digits and _ */
    const char *at;          /**< "cluster.nodes[0].count", "model", "options.tp" */
    const char *option;      /**< options: the key; else NULL */
    struct hv_key_path path; /**< where `option` is NULL */
    struct hv_sweep_value *values;
    size_t n;
    bool numeric; /**< all values are numbers */
};

/** A cell. */
struct hv_sweep_cell {
    uint64_t id;
    uint64_t point;    /**< number of the point in the grid; the last axis is the fastest */
    uint32_t strategy; /**< index */
};

/** What a result keeps. */
enum hv_sweep_keep { HV_SWEEP_FIGURES, HV_SWEEP_PLANS };

/** A sweep as read. Owner: hv_sweep_free. */
struct hv_sweep {
    struct hv_json json;
    struct hv_arena arena;
    json_t *docs[HV_DOC_INPUTS]; /**< cluster, model, job */
    struct hv_sweep_axis axes[HV_SWEEP_AXES_MAX];
    size_t n_axes;
    size_t n_where; /**< number of conditions */
    const char **strategies;
    size_t n_strategies;
    uint64_t seed;
    int64_t budget;      /**< evaluations per cell; 0: no limit */
    double time_limit_s; /**< wall clock per cell; 0: no limit */
    enum hv_sweep_keep keep;
    struct hv_sweep_cell *cells; /**< on the heap, by point, then by strategy */
    size_t n_cells;
    uint64_t id; /**< of the whole: of all cells and what is kept */
};

/**
 * Reads a specification and makes its cells. Names of documents are files (tried beside the
 * specification first) or shipped ones; they are read here, once. O(points × conditions).
 * Errors: HV_EINPUT with the place; HV_ELIMIT for too many points.
 */
enum hv_status hv_sweep_read(struct hv_sweep *out, const char *path,
                             struct hv_err *err) HV_NODISCARD;
/** The same from a parsed text, which is taken over, also on failure; `folder` is where names of
 * files are tried first ("": only as they are). */
enum hv_status hv_sweep_build(struct hv_sweep *out, struct hv_json json, const char *folder,
                              struct hv_err *err) HV_NODISCARD;
/** Frees it; {0} is fine. */
void hv_sweep_free(struct hv_sweep *s);
/**
 * The same sweep with every document inside, so that it can be read where the files are not.
 * Owner: caller.
 */
json_t *hv_sweep_whole(const struct hv_sweep *s);

/** Text of an identity: 16 hexadecimal digits. Returns `out`. */
const char *hv_sweep_id_text(uint64_t id, char out[HV_SWEEP_ID_CAP]);
/** Index of the value of an axis at a cell. */
size_t hv_sweep_index(const struct hv_sweep *s, const struct hv_sweep_cell *cell, size_t axis);
/** Value of an axis at a cell. */
const struct hv_sweep_value *hv_sweep_value(const struct hv_sweep *s,
                                            const struct hv_sweep_cell *cell, size_t axis);
/** Options of the strategy at a cell: an object. Owner: caller. */
json_t *hv_sweep_options(const struct hv_sweep *s, const struct hv_sweep_cell *cell);

/** The inputs of one cell of a sweep after another: a document is built again only where it
 * changes. {0} and hv_sweep_inputs_begin; owner: hv_sweep_inputs_free. */
struct hv_sweep_inputs {
    struct hv_inputs in;
    uint64_t built[HV_DOC_INPUTS]; /**< hash of the axis values that the document has */
    bool has[HV_DOC_INPUTS];
};
/** Reads the catalogue of devices; no file is read after that. */
enum hv_status hv_sweep_inputs_begin(struct hv_sweep_inputs *i, struct hv_err *err) HV_NODISCARD;
/** Builds the inputs of a cell in i->in. Errors: HV_EINPUT with the axis values that are wrong. */
enum hv_status hv_sweep_inputs_of(struct hv_sweep_inputs *i, const struct hv_sweep *s,
                                  const struct hv_sweep_cell *cell,
                                  struct hv_err *err) HV_NODISCARD;
void hv_sweep_inputs_free(struct hv_sweep_inputs *i);

#endif
