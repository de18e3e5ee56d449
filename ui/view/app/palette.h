/** The list of completions of the current line, above the `:` prompt. */
#ifndef HV_UI_VIEW_APP_PALETTE_H
#define HV_UI_VIEW_APP_PALETTE_H

#include "ui/view/app/app.h"

/**
 * Draws the list over the bottom of the body, the completion that Tab has put into the line
 * marked; nothing where there is no room or no completion. `describe` (may be NULL) gives few
 * words about a line. O(rows · completions).
 */
void hv_palette_draw(const struct hv_line *line, hv_describe_fn *describe, const void *model,
                     struct hv_grid *g, struct hv_rect body);

#endif
