/**
 * Scripts: keys and checks as a text file, for tests and `hetviz --script FILE`.
 *
 * Lines: `keys jj<Enter>`, `resize 80x24`, `wait TEXT [MS]` (until TEXT is on screen, 5000 ms),
 * `settle [MS]` (until nothing runs, 600000 ms), `:save-screen FILE` (`-` = into the output),
 * `:anything` (a command of any length), `# comment`.
 */
#ifndef HV_UI_VIEW_APP_SCRIPT_H
#define HV_UI_VIEW_APP_SCRIPT_H

#include "solver/base/status.h"
#include "ui/view/app/app.h"

/** Wait function of a script: waits at most `ms` milliseconds while processing events; NULL =
 * `wait` only checks once. */
typedef void hv_script_idle(void *ctx, struct hv_app *app, int ms);

/** Environment of a script. */
struct hv_script {
    struct hv_app *app;
    struct hv_grid *grid;
    hv_script_idle *idle;
    void *idle_ctx;
    bool (*busy)(void *ctx); /**< true while a run is active; gets idle_ctx; NULL = never */
    struct hv_str *out;      /**< gets screens saved to `-`; may be NULL */
};

/** Runs a script's text. Errors: HV_EINPUT with file:line; HV_ENO where a `wait` timed out;
 * HV_EIO. */
enum hv_status hv_script_run(struct hv_script *s, const char *text, size_t n, const char *name,
                             struct hv_err *err) HV_NODISCARD;

#endif
