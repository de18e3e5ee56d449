/** Screen 7, What if: levers over one plan, judged at each turn. */
#ifndef HV_UI_SCREENS_WHAT_IF_WHAT_IF_H
#define HV_UI_SCREENS_WHAT_IF_WHAT_IF_H

#include "ui/view/app/app.h"

/** The screen, for the list in screens.c; its model is a struct hv_ui. */
extern const struct hv_view_ops hv_screen_what_if;

#endif
