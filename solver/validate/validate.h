/**
 * Predicted against published measurements: rows, their prediction, and statistics over them.
 *
 * A row is one published configuration turned into a cluster, a model, a job and a uniform plan;
 * rows share clusters and models where they are equal. Nothing here parses or prints.
 */
#ifndef HV_SOLVER_VALIDATE_VALIDATE_H
#define HV_SOLVER_VALIDATE_VALIDATE_H

#include "solver/eval/eval.h"
#include "solver/plan/grid.h"

/** Recomputation according to the source. */
enum hv_row_recompute {
    HV_ROW_RECOMPUTE_STATED,  /**< grid.recompute is the setting of the run */
    HV_ROW_RECOMPUTE_UNKNOWN, /**< none is assumed: most recipes that state none ran without */
};

/** Method by which the source measured memory. */
enum hv_memory_meter {
    HV_METER_ALLOCATED, /**< by the framework's allocator: without context, communicators and
                           fragmentation */
    HV_METER_DEVICE,    /**< the whole device, as nvidia-smi shows it */
};

/** One published configuration. Strings and figures live in the set's arena. */
struct hv_validation_row {
    const char *id;     /**< unique in its source */
    const char *source; /**< unit that is left out together when fitting: the file */
    const char *table;  /**< group of published comparisons, or NULL */
    const char *device; /**< name of the device kind, of several joined by + */
    bool mixed;         /**< devices of several kinds: not used in fits, predicted with the shipped
                           calibration */
    bool held_out;      /**< no fit uses it, the shipped one neither */
    struct hv_cluster *cluster;
    struct hv_model *model;
    struct hv_job job;
    struct hv_grid grid;
    enum hv_row_recompute recompute;
    enum hv_memory_meter meter;
    double measured_s;      /**< iteration time; HV_UNKNOWN: memory only */
    double measured_bytes;  /**< peak memory of the worst device, or HV_UNKNOWN */
    double rival_s;         /**< prediction of Calculon, or HV_UNKNOWN */
    bool from_flops;        /**< measured_s was computed from a printed FLOP/s figure */
    bool oom;               /**< the run did not fit */
    bool low_bits, experts; /**< 8 bits or fewer; mixture of experts */
};

/** Reason why rows were left out, and their number. */
struct hv_validation_skip {
    const char *why;
    size_t n;
};

/** All rows, in the order read. Owner: hv_validation_free. */
struct hv_validation {
    struct hv_arena arena;
    struct hv_validation_row *rows;
    size_t n_rows, cap_rows;
    struct hv_cluster **clusters; /**< distinct ones, owned */
    struct hv_model **models;     /**< likewise */
    size_t n_clusters, n_models;
    struct hv_validation_skip *skipped;
    size_t n_skipped;
};
/** Frees everything; `{0}` is fine. */
void hv_validation_free(struct hv_validation *v);
/** Appends a row (copied). */
void hv_validation_add(struct hv_validation *v, const struct hv_validation_row *row);
/** Counts a row that is left out. `why` is static text. */
void hv_validation_skip(struct hv_validation *v, const char *why);

/** Calibration used for a prediction. */
enum hv_predicted_by {
    HV_BY_SHIPPED,  /**< the values of the catalogue */
    HV_BY_HELD_OUT, /**< the same, of a row that had no part in them */
    HV_BY_LEFT_OUT, /**< the device class fitted on all sources but this row's */
    HV_BY_RELATIVE, /**< the similar class named in the file, fitted without this row's source */
    HV_BY_GENERIC,  /**< the mean of other classes' fits, because no other source has this class */
};

/** Prediction of one row. */
struct hv_prediction {
    enum hv_predicted_by by;
    double iteration_s;
    double exposed_frac; /**< part of the iteration that is exposed exchange */
    double peak_bytes;   /**< memory by the row's method of measurement */
    bool fits;           /**< no memory violation */
    unsigned recompute;  /**< the mask that was taken */
    const char *failure; /**< NULL, or why nothing could be predicted (in the arena given) */
};

/** Predicts one row under the calibration its cluster has now. O(evaluation). */
void hv_validation_predict(const struct hv_validation_row *row, struct hv_arena *arena,
                           struct hv_prediction *out);
/** Predicts all rows; equal configurations are evaluated once. `out`: one per row. */
void hv_validation_predict_all(const struct hv_validation *v, struct hv_arena *arena,
                               struct hv_prediction *out);
/** True where two rows have the same configuration and so the same prediction. */
bool hv_validation_same(const struct hv_validation_row *a, const struct hv_validation_row *b);
/** Iteration time of a plan made of the row's grid, under the calibration its cluster has now;
 * HV_UNKNOWN where it cannot be timed. `exposed_frac`: the part of it that is exposed exchange, or
 * NULL. `scratch` is left as it was. */
double hv_validation_time_s(const struct hv_validation_row *row, const struct hv_plan *plan,
                            struct hv_arena *scratch, double *exposed_frac);

/** Error figures of some rows. All HV_UNKNOWN when n is 0. */
struct hv_error_stats {
    size_t n;
    double mape_frac; /**< mean of |predicted / measured − 1| */
    double bias_frac; /**< mean of predicted / measured − 1 */
    double spearman;  /**< rank correlation with mean ranks for ties; HV_UNKNOWN below 3 rows */
};
/** Compares n pairs; pairs with an unknown member are left out. O(n log n). */
void hv_error_stats(const double *predicted, const double *measured, size_t n,
                    struct hv_error_stats *out);

/**
 * The one-parameter baseline: constant hardware efficiency per device kind, width of the number
 * format and sort of model (dense, experts), the median over all rows of *other* sources (each
 * source weighs the same). HV_UNKNOWN where no other source has such a row. `taken`: the
 * predictions of the rows, for the recomputation that is counted as work. Writes one time per row
 * into out_s. O(rows² ).
 */
void hv_validation_baseline(const struct hv_validation *v, const struct hv_prediction *taken,
                            double *out_s);
/** Operations that the devices execute per iteration of a row: model, and the operations repeated
 * by `recompute`. */
double hv_validation_flops(const struct hv_validation_row *row, unsigned recompute);

/** Rows of one source, device kind, width and sort of model; or of one published comparison. */
struct hv_validation_group {
    const char *name;   /**< source, or name of the comparison */
    const char *device; /**< NULL for a comparison */
    bool low_bits, experts;
    bool borrowed; /**< predicted by another class's fit, because no other source measured this
                      class */
    struct hv_error_stats time, baseline, rival;
};
/** Statistics. Lists live in the arena given. */
struct hv_validation_report {
    struct hv_validation_group *groups; /**< sorted by name, device, width, sort */
    size_t n_groups;
    struct hv_validation_group *tables; /**< sorted by name */
    size_t n_tables;
    struct hv_validation_group *memory; /**< peak memory per source, in `time` */
    size_t n_memory;
    double dense16, dense8, moe; /**< mean of group MAPEs; moe over both widths */
    /** The same over groups whose class of devices another source measured too. */
    double own_dense16, own_dense8, own_moe;
    double memory_mape; /**< mean over sources */
    size_t n_oom, n_oom_called_fitting;
    size_t n_rows, n_predicted;
};
/** Sums up predictions; `baseline_s` from hv_validation_baseline. O(rows × groups). */
void hv_validation_sum_up(const struct hv_validation *v, const struct hv_prediction *predicted,
                          const double *baseline_s, struct hv_arena *arena,
                          struct hv_validation_report *out);

#endif
