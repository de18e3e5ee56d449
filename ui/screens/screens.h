/**
 * The application: all screens over a session. The list of the screens stands in screens.c; a
 * screen of several files has a folder, one of a single file stands here.
 */
#ifndef HV_UI_SCREENS_SCREENS_H
#define HV_UI_SCREENS_SCREENS_H

#include "ui/screens/common/ui.h"

/** Screen 8: the log, with every change as the command that repeats it. */
extern const struct hv_view_ops hv_screen_console;
/** The first screen of the first start. */
extern const struct hv_view_ops hv_screen_welcome;
/** The report of an import before it is applied. */
extern const struct hv_view_ops hv_screen_import;

/** A new application over the session: screens, `:` commands, save, undo. Owner: hv_app_free.
 * Borrows ui and keys. */
struct hv_app *hv_ui_app(struct hv_ui *ui, struct hv_keymap *keys, bool ascii);
/** All screens (screens.c); `n` gets how many. */
const struct hv_view_ops *const *hv_ui_screens(size_t *n);
/** Starts the tour, or ends it (tour.c). */
void hv_ui_tour(struct hv_ui *ui, struct hv_app *app);
/** Appends the next step, for hv_app_config. */
void hv_ui_tour_guide(const void *model, const char *view, struct hv_str *out);
/** Advances where the action completes the step, for hv_app_config. */
void hv_ui_tour_did(void *model, struct hv_app *app, const char *view, enum hv_action a);
/**
 * Runs a `:` line about the screens: `set ascii`, `set noascii`, `set mouse`, `set nomouse`, `set
 * theme NAME`, `bind VIEW KEY ACTION`, or the name of an action ("gantt-fit", on the Gantt also
 * "fit"), followed by the answer to its question ("goto 1.4s"). False when it is none of these: a
 * command of the session (commands.c).
 */
bool hv_ui_command(struct hv_app *app, const char *line);
/** Completion of `:` for hv_app_config: the session's, then screens and actions. */
bool hv_ui_complete(const void *model, const char *text, size_t n, struct hv_str *out);
/** Few words about a `:` line that is a command or an action without arguments (hv_describe_fn). */
void hv_ui_describe(const void *model, const char *line, struct hv_str *out);

#endif
