/** The panel of a plan's details, which three screens draw. */
#ifndef HV_UI_SCREENS_FACTS_DETAILS_H
#define HV_UI_SCREENS_FACTS_DETAILS_H

#include "ui/screens/facts/plan_facts.h"

/**
 * Draws why, breakdown bars and memory per stage of one plan, from line `top` on (clamped).
 * O(lines).
 */
void hv_plan_details_draw(const struct hv_plan_facts *f, size_t top, struct hv_grid *g,
                          struct hv_rect r);
/** Lines that the details have in a panel w columns wide. */
size_t hv_plan_details_lines(const struct hv_plan_facts *f, int w);

#endif
