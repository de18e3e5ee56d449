/** Functions on the model that all screens share. */
#include "ui/screens/common/ui.h"

#include "ui/session/import/import.h"

struct hv_session *hv_ui_session(const void *model)
{
    const struct hv_ui *ui = model;
    return ui->session;
}

void hv_ui_error(struct hv_app *app, const struct hv_err *err)
{
    char buf[sizeof err->text + sizeof err->file + 64];
    hv_app_message(app, HV_MSG_ERROR, "%s", hv_err_format(err, buf, sizeof buf));
}

unsigned hv_ui_tick(void *state, struct hv_app *app, int64_t now_ms)
{
    (void)state;
    (void)now_ms;
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    bool changed = hv_session_tick(s);
    const char *notice = hv_session_notice(s);
    if (notice[0] != '\0') {
        hv_app_notice(app, notice);
        changed = true;
    }
    return changed ? HV_APP_REDRAW : 0;
}

int hv_ui_timeout_ms(const void *state, const void *model, int64_t now_ms)
{
    (void)state;
    (void)now_ms;
    return hv_session_timeout_ms(hv_ui_session(model));
}

void hv_ui_import(struct hv_app *app, const char *words)
{
    struct hv_ui *ui = hv_app_model(app);
    struct hv_err err = {0};
    hv_import_free(ui->import);
    ui->import_words = words;
    if (hv_session_import_read(ui->session, words, &ui->import, &err) != HV_OK ||
        hv_app_open(app, "import", &err) != HV_OK) {
        hv_ui_error(app, &err);
    }
    hv_import_free(ui->import);
    ui->import = NULL;
}
