/** Help overlay: the action table as a searchable list, keys of the current view first. */
#ifndef HV_UI_VIEW_APP_HELP_H
#define HV_UI_VIEW_APP_HELP_H

#include "ui/view/app/app.h"

/** State of the overlay. `{0}` is valid; free with hv_help_free. */
struct hv_help {
    const struct hv_keymap *keys;
    const struct hv_view_ops *view;
    unsigned tabs; /**< bit n: screen n exists; keys of other screens are not listed */
    struct hv_line search;
    size_t cursor;
};

/** Starts with an empty search for the view on top of this application. */
void hv_help_open(struct hv_help *h, const struct hv_app_config *config,
                  const struct hv_view_ops *view);
/** Frees the search text. */
void hv_help_free(struct hv_help *h);
/**
 * Feeds a key: typing searches, Up/Down/pages move, Enter puts the action into *run and closes,
 * Esc, F1 or ? close. Returns false when the overlay is closed.
 */
bool hv_help_key(struct hv_help *h, struct hv_key k, int height, enum hv_action *run);
/** Text of the status row while help is open: the chosen key's help in full once one was moved
 * to. */
const char *hv_help_status(const struct hv_help *h);
/** Draws it over the body. */
void hv_help_draw(const struct hv_help *h, struct hv_grid *g, struct hv_rect body);

#endif
