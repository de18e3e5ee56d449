/** Screen 6, Explain: causes of the iteration time of a plan, and possible improvements. */
#ifndef HV_UI_SCREENS_EXPLAIN_EXPLAIN_H
#define HV_UI_SCREENS_EXPLAIN_EXPLAIN_H

#include "ui/view/app/app.h"

/** The screen, for the list in screens.c; its model is a struct hv_ui. */
extern const struct hv_view_ops hv_screen_explain;

#endif
