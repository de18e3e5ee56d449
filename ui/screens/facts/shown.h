/** The plan shown by screens about one plan, and their page where there is none. */
#ifndef HV_UI_SCREENS_FACTS_SHOWN_H
#define HV_UI_SCREENS_FACTS_SHOWN_H

#include "ui/screens/common/ui.h"
#include "ui/screens/facts/plan_facts.h"

/** The row that screens about one plan show: the selected one, else the first with a plan; or NULL.
 */
const struct hv_row *hv_ui_plan_row(const struct hv_session *s);
/** Selects the row before or after `id` that has a plan; a message when there is none. */
void hv_ui_switch_plan(struct hv_ui *ui, struct hv_app *app, uint32_t id, int step);
/** What the key bar shows while there is no plan; NULL while there is one. */
const enum hv_action *hv_ui_no_plan_keybar(const struct hv_row *row);
/** Draws the reason why no plan can be shown, and the keys to continue. Facts with row NULL: no
 * plan yet; `reason` "": the violations of the verdict. */
void hv_ui_no_plan(const struct hv_plan_facts *facts, const char *reason, struct hv_grid *g,
                   struct hv_rect body);

#endif
