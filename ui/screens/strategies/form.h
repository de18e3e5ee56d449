/** A strategy's options as a form, with the limits of every run below them. Values are checked
 * against the plugin's option rows and stored in the session. */
#ifndef HV_UI_SCREENS_STRATEGIES_FORM_H
#define HV_UI_SCREENS_STRATEGIES_FORM_H

#include "ui/session/session.h"
#include "ui/view/widget/widgets.h"

/** The form. `{0}` is an empty one. Owner: hv_strategy_form_free. */
struct hv_strategy_form {
    struct hv_form form;
    const struct hv_plugin *plugin; /**< borrowed from the session */
    char (*helps)[240];             /**< one per field */
    const char **schedules;         /**< choices of options that name a schedule; "" = none named */
    size_t n_schedules;
};

/** Takes the fields from a plugin (NULL = none) and their values from the session; cursor and text
 * being edited stay. */
void hv_strategy_form_fill(struct hv_strategy_form *f, const struct hv_session *s,
                           const struct hv_plugin *p);
/** Stores the value of a field in the session. Errors: those of hv_session_option_set. */
enum hv_status hv_strategy_form_store(struct hv_strategy_form *f, struct hv_session *s,
                                      size_t i_field, struct hv_err *err) HV_NODISCARD;
/** Sets an option back to its default; fields of limits are left alone. */
enum hv_status hv_strategy_form_reset(struct hv_strategy_form *f, struct hv_session *s,
                                      size_t i_field, struct hv_err *err) HV_NODISCARD;
/** Draws the form with the session's values of now (those being edited as typed). */
void hv_strategy_form_draw(const struct hv_strategy_form *f, const struct hv_session *s,
                           const struct hv_plugin *p, struct hv_grid *g, struct hv_rect r,
                           bool focused);
/** Frees fields and texts. */
void hv_strategy_form_free(struct hv_strategy_form *f);

#endif
