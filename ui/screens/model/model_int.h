/** Private to the files of the model screen: its state, layer rows, memory preview and checks. */
#ifndef HV_UI_SCREENS_MODEL_MODEL_INT_H
#define HV_UI_SCREENS_MODEL_MODEL_INT_H

#include "solver/base/vec.h"
#include "solver/cost/cost.h"
#include "ui/screens/form/doc_form.h"
#include "ui/session/session.h"
#include "ui/view/app/app.h"
#include "ui/view/widget/widgets.h"

/** Panels in the order of Tab. */
enum hv_model_panel {
    HV_MODEL_FIELDS,
    HV_MODEL_LAYERS_PANEL,
    HV_MODEL_FIT_PANEL,
    HV_MODEL_PANEL_N
};

/** Kinds of rows of the layers panel. */
enum hv_layer_row_kind {
    HV_LAYER_EMBEDDING,
    HV_LAYER_BLOCKS,    /**< a run of equal blocks */
    HV_LAYER_ATTENTION, /**< half of an unfolded run */
    HV_LAYER_FFN,       /**< the other half */
    HV_LAYER_HEAD,
    HV_LAYER_MODULE /**< a whole sub-model */
};

/** A row: blocks [from, to), `n` of them (classes that alternate are folded, then n < to − from).
 */
struct hv_layer_row {
    enum hv_layer_row_kind kind;
    size_t from, to, n;
    unsigned run; /**< number of the run, for unfolding */
};

/** Prices of a row on one device, one sequence, no parallelism. */
struct hv_layer_price {
    double parameters;            /**< of one block */
    double forward_s, backward_s; /**< of one block */
    double saved_bytes, flops;    /**< of one block, one sequence */
};

/** Parallel layout of the preview. */
struct hv_model_fit {
    int tp, pp;
    double weights_bytes, gradients_bytes, optimizer_bytes, activation_bytes;
    double limit_bytes; /**< memory of one device */
    bool fits;
};
/** Most kinds of devices with a column of their own. */
#define HV_MODEL_KINDS 4

/** The screen. Owner: the view. */
struct hv_model_screen {
    struct hv_session *session; /**< borrowed */
    uint64_t model_generation, job_generation, cluster_generation;
    bool synced;
    enum hv_model_panel panel;
    struct hv_doc_form form;
    struct hv_doc_form layer_form; /**< of blocks [layer_from, layer_to), in place of the other */
    size_t layer_from, layer_to;
    HV_VEC(bool) own; /**< blocks with values of their own; shorter than the model: none there */
    struct hv_table table;
    HV_VEC(struct hv_layer_row) rows;
    uint64_t unfolded;                                  /**< bit per run */
    const struct hv_device_kind *kinds[HV_MODEL_KINDS]; /**< fastest first; borrowed */
    size_t n_kinds;
    bool only_checks;
    int fit_top; /**< first line of the checks shown */
    struct hv_model_fit fit;
    int tp; /**< tensor-parallel degree of the preview; 0 = the largest that divides */
    struct hv_str status;    /**< the status line, made when something of it changed */
    uint64_t status_version; /**< of what it was made */
};

/** Hash of the content of a part of the screen, without focus and scroll position: for
 * hv_grid_part. */
uint64_t hv_model_version(const struct hv_model_screen *v, const char *part);

/* ---- layers (table.c) */

/** Lists runs, kinds and unfolded halves anew. O(blocks). */
void hv_model_rows(struct hv_model_screen *v);
/** Price of a row on a kind; figures are HV_UNKNOWN where the model cannot be priced. */
struct hv_layer_price hv_model_price(const struct hv_model_screen *v,
                                     const struct hv_layer_row *row,
                                     const struct hv_device_kind *kind, int tp);
/** Rows for the table widget, for a panel of that width. */
struct hv_table_source hv_model_source(const struct hv_model_screen *v);
/** Appends a count of parameters in short form: "8.03B", "525M"; "-" when unknown. */
void hv_model_count(struct hv_str *out, double n);
/** Draws the layers. */
void hv_model_draw_layers(const struct hv_model_screen *v, struct hv_grid *g, struct hv_rect r);
/** Folds or unfolds the run under the cursor; false when it has no halves. */
bool hv_model_unfold(struct hv_model_screen *v);
/** Number of table columns. */
size_t hv_model_n_columns(void);

/* ---- memory and checks (facts.c) */

/** The preview on the fastest kind: tp as wished or the largest that divides, pp the first power of
 * two that fits. Kept in `fit`. O(layers log layers). */
void hv_model_refit(struct hv_model_screen *v);
/** Appends the checks, one line each; lines that begin with '!' are problems. */
void hv_model_checks(const struct hv_model_screen *v, struct hv_str *out);
/** Appends the status line: the model in numbers, and how many checks it fails. */
void hv_model_status(const struct hv_model_screen *v, struct hv_str *out);
/** Draws memory bars and checks. */
void hv_model_draw_fit(const struct hv_model_screen *v, struct hv_grid *g, struct hv_rect r);
/** The next degree of tensor parallelism for the preview. */
void hv_model_step_tp(struct hv_model_screen *v, int step);

/* ---- values of single blocks (layer.c) */

/** Finds the blocks with values of their own. O(blocks). */
void hv_model_layer_marks(struct hv_model_screen *v);
/** True where one of the row's blocks has values of its own. */
bool hv_model_layer_is_own(const struct hv_model_screen *v, const struct hv_layer_row *row);
/** Opens the form of the blocks under the cursor; with a question where there are several. */
void hv_model_layer_edit(struct hv_model_screen *v, struct hv_app *app);
/** Removes the own values of the blocks under the cursor. */
void hv_model_layer_reset(struct hv_model_screen *v, struct hv_app *app);
/** Fills the form anew; closes it when its blocks are gone. */
void hv_model_layer_fill(struct hv_model_screen *v);
/** Closes the form; the cursor is on its blocks. */
void hv_model_layer_close(struct hv_model_screen *v);
/** "Values of block 3". */
void hv_model_layer_title(const struct hv_model_screen *v, char *buf, size_t cap);

/* ---- fields (form.c) */

/** Fills the form from the present documents. */
void hv_model_form_fill(struct hv_model_screen *v);

#endif
