/** The right side of the Strategies screen: description of a strategy, and progress of its latest
 * run. */
#ifndef HV_UI_SCREENS_STRATEGIES_PANEL_H
#define HV_UI_SCREENS_STRATEGIES_PANEL_H

#include "ui/session/session.h"
#include "ui/view/widget/widgets.h"

/** Latest run of a strategy (compositions that begin with it count), or NULL. O(rows). */
const struct hv_row *hv_strategy_latest(const struct hv_session *s, const char *id);
/** Draws title, reference and summary, then state, progress, chart of best and bound, reason and
 * the end of the log. O(cells + points). */
void hv_strategy_panel_draw(struct hv_session *s, const struct hv_plugin *p, struct hv_grid *g,
                            struct hv_rect r);

#endif
