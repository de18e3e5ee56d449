/** Private to the files of the What-if screen: the sliders of one plan, their result, the curve of
 * one. */
#ifndef HV_UI_SCREENS_WHAT_IF_WHAT_IF_INT_H
#define HV_UI_SCREENS_WHAT_IF_WHAT_IF_INT_H

#include "solver/base/vec.h"
#include "ui/lever/lever.h"
#include "ui/screens/facts/shown.h"

/** Panels in the order of Tab. */
enum hv_what_if_panel { HV_WHAT_IF_SLIDERS, HV_WHAT_IF_RESULT, HV_WHAT_IF_PANEL_N };

/** A point of the curve. */
struct hv_what_if_point {
    double value; /**< of the lever */
    bool failed;
    struct hv_figures figures;
};

/** Data of one plan. */
struct hv_what_if_data {
    uint32_t row;
    const json_t *plan; /**< tree it was made from */
    uint64_t generation[HV_DOC_N];
    struct hv_plan_facts facts; /**< borrowed from the session */
    struct hv_err err;          /**< why there is no verdict */
    struct hv_levers levers;
    double *values; /**< one per lever */
    struct hv_figures base, now;
    bool failed;         /**< there are no figures for these values … */
    struct hv_err why;   /**< … because of this */
    double took_s;       /**< for the last judgement */
    size_t curve_lever;  /**< the lever of the curve */
    size_t n_curve_done; /**< positions tried; all of them: finished */
    HV_VEC(struct hv_what_if_point) curve;
    struct hv_table table; /**< the sliders */
    struct {
        bool due;          /**< to be solved, so long after the last key: */
        double turned_s;   /**< clock of that key */
        bool done, failed; /**< solved for the values as they are; not possible, see why */
        struct hv_share result;
        double *values; /**< with the layers shared so */
        struct hv_err why;
    } share; /**< the layers shared out anew, by linear program */
};

/** State of the screen. */
struct hv_what_if {
    struct hv_what_if_data *data; /**< refreshed also while drawing */
    enum hv_what_if_panel focus;
};

/** Updates the data to the selected row and the present documents. Changed levers are kept for the
 * same row where they still exist. */
void hv_what_if_sync(struct hv_what_if_data *d, struct hv_session *s);
/** Sets the lever selected by another screen and moves the cursor to it. */
void hv_what_if_take_turn(struct hv_what_if_data *d, struct hv_ui *ui);
/** Resets every lever to its base, without an evaluation. */
void hv_what_if_reset(struct hv_what_if_data *d);
/** Evaluates the present values. */
void hv_what_if_judge(struct hv_what_if_data *d, struct hv_session *s);
/** Starts the curve of a lever anew. */
void hv_what_if_curve_start(struct hv_what_if_data *d, size_t lever);
/** Adds points until `budget_s` is spent (one at least); true while some are left. */
bool hv_what_if_curve_some(struct hv_what_if_data *d, struct hv_session *s, double budget_s);
/** Milliseconds until the layers are to be shared out anew; -1 = they are, or nothing is turned. */
int hv_what_if_share_wait_ms(const struct hv_what_if_data *d, struct hv_session *s);
/** Redistributes the layers where that is due; true where it did. */
bool hv_what_if_share_tick(struct hv_what_if_data *d, struct hv_session *s);
/** True where the redistribution is better: faster, or with fewer violations. */
bool hv_what_if_share_helps(const struct hv_what_if_data *d);
/** Applies the redistribution; false where there is none. */
bool hv_what_if_share_take(struct hv_what_if_data *d, struct hv_session *s);
/** Number of levers that are not at their base. */
size_t hv_what_if_turned(const struct hv_what_if_data *d);
/** Frees everything. */
void hv_what_if_free(struct hv_what_if_data *d);

/** The figure plotted for a lever. */
enum hv_what_if_figure {
#define X(field, name, better) HV_FIGURE_##field,
    HV_FIGURE_MAP(X)
#undef X
        HV_FIGURE_N
};
enum hv_what_if_figure hv_what_if_figure(const struct hv_lever *l);

/** Panels for a body; empty ones are not shown. */
void hv_what_if_place(const struct hv_what_if *st, struct hv_rect body,
                      struct hv_rect out[HV_WHAT_IF_PANEL_N]);
/** Draws everything. */
void hv_what_if_draw(const void *state, const void *model, const struct hv_view_ctx *ctx);
/** Table source over the sliders, for moves and find. */
struct hv_table_source hv_what_if_source(const struct hv_what_if_data *d);

#endif
