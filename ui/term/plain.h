/**
 * The plain front end: the same screens, actions and commands as lines of text. For screen readers,
 * terminals that cannot place a cursor, pipes and files. Lines are only ever appended, no control
 * sequence is written, numbers choose.
 */
#ifndef HV_UI_TERM_PLAIN_H
#define HV_UI_TERM_PLAIN_H

#include "ui/session/session.h"
#include "ui/view/app/app.h"

/** What it runs on. */
struct hv_plain_config {
    struct hv_app *app;
    struct hv_session *session;
    int in, out;
    bool ascii; /**< write '?' for what is not ASCII */
};

/**
 * Reads lines from `in` until they end or the program is left. *abandoned = there were unsaved
 * changes when the input ended (the recovery file should keep them). Errors: HV_EIO when `out`
 * cannot be written.
 */
enum hv_status hv_plain_run(const struct hv_plain_config *config, bool *abandoned,
                            struct hv_err *err) HV_NODISCARD;

#endif
