/** Screen 2, Model: layers, memory, and the form that edits them. */
#ifndef HV_UI_SCREENS_MODEL_MODEL_H
#define HV_UI_SCREENS_MODEL_MODEL_H

#include "ui/view/app/app.h"

/** The screen, for the list in screens.c; its model is a struct hv_ui. */
extern const struct hv_view_ops hv_screen_model;

#endif
