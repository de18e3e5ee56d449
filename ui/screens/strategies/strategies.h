/** Screen 3, Strategies: what there is, its parameters, its runs. */
#ifndef HV_UI_SCREENS_STRATEGIES_STRATEGIES_H
#define HV_UI_SCREENS_STRATEGIES_STRATEGIES_H

#include "ui/view/app/app.h"

/** The screen, for the list in screens.c; its model is a struct hv_ui. */
extern const struct hv_view_ops hv_screen_strategies;

#endif
