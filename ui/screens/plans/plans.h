/** Screen 4, Plans: all plans as a table, a scatter, details and comparison. */
#ifndef HV_UI_SCREENS_PLANS_PLANS_H
#define HV_UI_SCREENS_PLANS_PLANS_H

#include "ui/view/app/app.h"

/** The screen, for the list in screens.c; its model is a struct hv_ui. */
extern const struct hv_view_ops hv_screen_plans;

#endif
