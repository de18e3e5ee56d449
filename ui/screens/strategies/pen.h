/** Text put line by line into what is left of a panel. */
#ifndef HV_UI_SCREENS_STRATEGIES_PEN_H
#define HV_UI_SCREENS_STRATEGIES_PEN_H

#include "ui/view/widget/widgets.h"

/** The rest of a panel. */
struct hv_pen {
    struct hv_grid *g;
    struct hv_rect r;
};

/** Leaves out lines. */
void hv_pen_skip(struct hv_pen *p, int lines);
/** Puts text over as many lines as it needs, at most `most`. O(length). */
void hv_pen_put(struct hv_pen *p, const char *text, int most, unsigned style);
/** Puts a label and text that is wrapped behind it, at most `most` lines. O(length). */
void hv_pen_put_labelled(struct hv_pen *p, const char *label, const char *text, int most);

#endif
