/** Screen 5, Gantt: the timeline of one plan. */
#ifndef HV_UI_SCREENS_GANTT_GANTT_H
#define HV_UI_SCREENS_GANTT_GANTT_H

#include "ui/view/app/app.h"

/** The screen, for the list in screens.c; its model is a struct hv_ui. */
extern const struct hv_view_ops hv_screen_gantt;

#endif
