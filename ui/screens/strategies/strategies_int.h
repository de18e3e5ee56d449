/** Private to the files of the Strategies screen: its state, the rows of one frame, its layout. */
#ifndef HV_UI_SCREENS_STRATEGIES_STRATEGIES_INT_H
#define HV_UI_SCREENS_STRATEGIES_STRATEGIES_INT_H

#include "ui/screens/common/ui.h"
#include "ui/screens/strategies/form.h"
#include "ui/screens/strategies/panel.h"

/** Panels. */
enum hv_strategies_panel {
    HV_STRATEGIES_LIST,
    HV_STRATEGIES_PARAMS,
    HV_STRATEGIES_PROGRESS,
    HV_STRATEGIES_PANEL_N
};

/** State of the screen. */
struct hv_strategies {
    struct hv_table table;
    enum hv_strategies_panel focus;
    struct hv_strategy_form form;
    char filter[64];
};

/** The strategies shown. Made for one event or frame. */
struct hv_strategies_list {
    struct hv_session *s;
    const struct hv_plugin *plugins;
    size_t n;
    size_t *shown; /**< numbers in plugins; the caller frees it */
    size_t n_shown;
};

/** Appearance of the table. */
extern const struct hv_table_look hv_strategies_look;

/** The strategies that pass the filter. */
struct hv_strategies_list hv_strategies_list(const struct hv_strategies *st, struct hv_session *s);
/** Strategy in a row of the table, NULL when there is none. */
const struct hv_plugin *hv_strategies_at(const struct hv_strategies_list *l, size_t row);
/** Table source over a list. */
struct hv_table_source hv_strategies_source(const struct hv_strategies_list *l);
/** Panels for a body; empty ones are not shown. */
void hv_strategies_place(const struct hv_strategies *st, struct hv_rect body,
                         struct hv_rect out[HV_STRATEGIES_PANEL_N]);
/** Draws everything. */
void hv_strategies_draw(const void *state, const void *model, const struct hv_view_ctx *ctx);

#endif
