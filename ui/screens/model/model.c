/* Screen 2, Model: the model and the job, the layers with their cost, memory checks. Combines the
 * parts; drawing is in the other files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/file.h"
#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "ui/process/editor.h"
#include "ui/screens/common/ui.h"
#include "ui/screens/model/model.h"
#include "ui/screens/model/model_int.h"
#include "ui/session/import/import.h"
#include "ui/view/grid/layout.h"

enum { DONE = HV_APP_HANDLED | HV_APP_REDRAW, WHEEL_ROWS = 3, FIT_ROWS = 14, FIELDS_W = 56 };

/* State of the view, which drawing may update from the documents. */
struct state {
    struct hv_model_screen *screen;
};

static void sync_documents(struct hv_model_screen *v, struct hv_session *s)
{
    uint64_t model = hv_session_generation(s, HV_DOC_MODEL);
    uint64_t job = hv_session_generation(s, HV_DOC_JOB);
    uint64_t cluster = hv_session_generation(s, HV_DOC_CLUSTER);
    v->session = s;
    if (v->synced && model == v->model_generation && job == v->job_generation &&
        cluster == v->cluster_generation) {
        return;
    }
    v->synced = true;
    v->model_generation = model;
    v->job_generation = job;
    v->cluster_generation = cluster;
    hv_model_rows(v);
    hv_model_refit(v);
    hv_model_form_fill(v);
    hv_model_layer_fill(v);
}

/* The form in the panel of the fields: of single blocks while it is open. */
static struct hv_doc_form *form_of(struct hv_model_screen *v)
{
    return v->layer_form.open ? &v->layer_form : &v->form;
}

static struct hv_model_screen *screen_of(void *state, struct hv_app *app)
{
    struct hv_model_screen *v = ((struct state *)state)->screen;
    sync_documents(v, hv_ui_session(hv_app_model(app)));
    return v;
}

static void open_screen(void *state, struct hv_app *app)
{
    struct hv_model_screen *v = hv_xcalloc(1, sizeof *v);
    ((struct state *)state)->screen = v;
    v->table.sort_column = -1;
    sync_documents(v, hv_ui_session(hv_app_model(app)));
}

static void close_screen(void *state, struct hv_app *app)
{
    struct hv_model_screen *v = ((struct state *)state)->screen;
    (void)app;
    hv_doc_form_free(&v->form);
    hv_doc_form_free(&v->layer_form);
    hv_vec_free(&v->own);
    hv_vec_free(&v->rows);
    hv_str_free(&v->status);
    free(v);
}

/* ---- layout and drawing ---------------------------------------------------------------------- */

static void place(const struct hv_model_screen *v, struct hv_rect body, struct hv_rect *out)
{
    if (hv_layout_stacked(body)) {
        for (size_t i = 0; i < HV_MODEL_PANEL_N; i++) {
            out[i] = i == (size_t)v->panel ? body : (struct hv_rect){.x = body.x, .y = body.y};
        }
        return;
    }
    bool wide = hv_layout_columns(body.w) == 3;
    const struct hv_split columns[] = {{wide ? FIELDS_W : body.w / 2 - 4, 0, 0}, {0, 1, 40}};
    const struct hv_split rows[] = {{0, 1, 6},
                                    {body.h >= 2 * FIT_ROWS ? FIT_ROWS + 4 : FIT_ROWS - 1, 0, 0}};
    struct hv_rect halves[2], right[2];
    hv_layout_split(body, HV_COLUMNS, columns, 2, halves);
    hv_layout_split(halves[1], HV_ROWS, rows, 2, right);
    out[HV_MODEL_FIELDS] = halves[0];
    out[HV_MODEL_LAYERS_PANEL] = right[0];
    out[HV_MODEL_FIT_PANEL] = right[1];
}

static void draw(const void *state, const void *model, const struct hv_view_ctx *ctx)
{
    struct hv_model_screen *v = ((const struct state *)state)->screen;
    struct hv_rect at[HV_MODEL_PANEL_N];
    sync_documents(v, hv_ui_session(model));
    place(v, ctx->body, at);
    const char *find = hv_app_find_text(ctx->app);
    v->table.find = find[0] != '\0' ? find : NULL;
    if (at[HV_MODEL_FIELDS].w > 0) {
        bool focused = v->panel == HV_MODEL_FIELDS;
        char title[64] = "Model and job";
        if (v->layer_form.open) {
            hv_model_layer_title(v, title, sizeof title);
        }
        hv_grid_box(ctx->grid, at[HV_MODEL_FIELDS], title, focused,
                    focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
        hv_doc_form_draw(form_of(v), v->session, ctx->grid, hv_rect_inner(at[HV_MODEL_FIELDS]),
                         focused);
    }
    if (at[HV_MODEL_LAYERS_PANEL].w > 0) {
        hv_model_draw_layers(v, ctx->grid, at[HV_MODEL_LAYERS_PANEL]);
    }
    if (at[HV_MODEL_FIT_PANEL].w > 0) {
        hv_model_draw_fit(v, ctx->grid, at[HV_MODEL_FIT_PANEL]);
    }
}

static void status(const void *state, const void *model, struct hv_str *out)
{
    struct hv_model_screen *v = ((const struct state *)state)->screen;
    sync_documents(v, hv_ui_session(model));
    uint64_t version = hv_model_version(v, "status");
    if (v->status_version != version) {
        hv_str_clear(&v->status);
        hv_model_status(v, &v->status);
        v->status_version = version;
    }
    hv_str_adds(out, hv_str_cstr(&v->status));
}

/* ---- import and export ----------------------------------------------------------------------- */

static unsigned import_model(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_model_doc doc = {0};
    struct hv_err err = {0};
    char label[160];
    (void)ctx;
    if (!hv_import_is_own(path)) {
        hv_ui_import(app, path);
        return HV_APP_REDRAW;
    }
    if (hv_model_doc_read(&doc, path, &err) != HV_OK) {
        hv_ui_error(app, &err);
        return HV_APP_REDRAW;
    }
    (void)snprintf(label, sizeof label, "import %.140s", path);
    double parameters = hv_model_parameters(doc.model);
    size_t blocks = doc.model->n_blocks;
    json_t *tree = json_incref(doc.json.root);
    hv_model_doc_free(&doc);
    if (hv_session_replace(s, HV_DOC_MODEL, tree, label, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        struct hv_str count = {0};
        hv_model_count(&count, parameters);
        hv_app_message(app, HV_MSG_INFO,
                       "imported %s parameters in %zu layers; u restores the old model",
                       hv_str_cstr(&count), blocks);
        hv_str_free(&count);
    }
    return HV_APP_REDRAW;
}

static unsigned export_model(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_str text = {0};
    struct hv_err err = {0};
    (void)ctx;
    hv_json_write(&text, hv_session_tree(s, HV_DOC_MODEL), true);
    if (hv_file_write(path, hv_str_cstr(&text), text.n, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "model written to %s", path);
    }
    hv_str_free(&text);
    return HV_APP_REDRAW;
}

/* ---- actions --------------------------------------------------------------------------------- */

static void move_panel(struct hv_model_screen *v, int step)
{
    int n = HV_MODEL_PANEL_N;
    v->panel = (enum hv_model_panel)(((int)v->panel + n + step) % n);
}

static unsigned form_key(struct hv_model_screen *v, struct hv_app *app, enum hv_key_code code)
{
    struct hv_rect at[HV_MODEL_PANEL_N];
    struct hv_event ev = hv_event_key((struct hv_key){.code = code});
    place(v, hv_app_body(app), at);
    return hv_doc_form_event(form_of(v), app, v->session, &ev, hv_rect_inner(at[HV_MODEL_FIELDS]));
}

static unsigned scroll_checks(struct hv_model_screen *v, enum hv_action a)
{
    struct hv_str text = {0};
    hv_model_checks(v, &text);
    int lines = 0;
    for (size_t i = 0; i < text.n; i++) {
        lines += text.p[i] == '\n';
    }
    hv_str_free(&text);
    if (a == HV_ACT_UP || a == HV_ACT_DOWN) {
        v->fit_top += a == HV_ACT_UP ? -1 : 1;
    } else if (a == HV_ACT_TOP || a == HV_ACT_BOTTOM) {
        v->fit_top = a == HV_ACT_TOP ? 0 : lines - 1;
    } else if (a == HV_ACT_LEFT || a == HV_ACT_RIGHT) {
        hv_model_step_tp(v, a == HV_ACT_RIGHT ? 1 : -1);
    } else {
        return 0;
    }
    v->fit_top = v->fit_top > lines - 1 ? lines - 1 : v->fit_top;
    v->fit_top = v->fit_top < 0 ? 0 : v->fit_top;
    return DONE;
}

/* Enter, e, moves and pages where the focus is. */
static unsigned panel_action(struct hv_model_screen *v, struct hv_app *app, enum hv_action a)
{
    struct hv_rect at[HV_MODEL_PANEL_N];
    place(v, hv_app_body(app), at);
    bool open = a == HV_ACT_OPEN || a == HV_ACT_EDIT;
    if (v->panel == HV_MODEL_FIT_PANEL) {
        return scroll_checks(v, a);
    }
    if (v->panel == HV_MODEL_FIELDS) {
        if (open) {
            return form_key(v, app, HV_KEY_ENTER);
        }
        struct hv_doc_form *f = form_of(v);
        if (a == HV_ACT_TOP || a == HV_ACT_BOTTOM) {
            f->form.cursor = a == HV_ACT_TOP ? 0 : f->form.n_fields - 1;
            hv_doc_form_load(f, v->session);
            return DONE;
        }
        return 0;
    }
    struct hv_table_source s = hv_model_source(v);
    if (a == HV_ACT_OPEN) {
        return hv_model_unfold(v) ? DONE : 0;
    }
    if (a == HV_ACT_EDIT || a == HV_ACT_DELETE || a == HV_ACT_RELOAD) {
        (a == HV_ACT_EDIT ? hv_model_layer_edit : hv_model_layer_reset)(v, app);
        return DONE;
    }
    return hv_table_action(&v->table, &s, a, hv_rect_inner(at[HV_MODEL_LAYERS_PANEL]).h - 1) ? DONE
                                                                                             : 0;
}

/* ---- measured profiles ---- */

/* A measurement while the terminal is its own. */
struct measuring {
    enum hv_status status;
    struct hv_err err;
};

/* Its output stays on the screen; a path with a quotation mark in it is no program of ours. */
static void run_profiler(void *ctx)
{
    struct measuring *m = ctx;
    struct hv_str program = {0}, command = {0};
    m->status = HV_ENO;
    if (!hv_program_beside(&program, "hetviz") || strchr(hv_str_cstr(&program), '\'') != NULL) {
        (void)hv_err_set(&m->err, HV_ENO,
                         "the program hetviz was not found, so nothing can be measured");
    } else {
        hv_str_addf(&command,
                    "profile() { '%s' \"$@\"; rc=$?; echo; echo 'press Enter to go back'; read -r "
                    "_; return $rc; }; profile profile",
                    hv_str_cstr(&program));
        m->status = hv_editor_call(hv_str_cstr(&command), "--quick", NULL);
        if (m->status != HV_OK) {
            (void)hv_err_set(&m->err, HV_ENO,
                             "nothing was measured; `hetviz profile` prints the reason");
        }
    }
    hv_str_free(&program);
    hv_str_free(&command);
}

static unsigned answer_profile(void *ctx, struct hv_app *app, const char *path)
{
    struct hv_session *s = hv_ui_session(hv_app_model(app));
    struct hv_str said = {0};
    struct measuring m = {0};
    (void)ctx;
    if (path[0] != '\0') {
        m.status = hv_session_profile_load(s, path, &said, &m.err);
    } else {
        hv_app_outside(app, run_profiler, &m);
        if (m.status == HV_OK) {
            hv_str_adds(&said, "measured: the profile now prices this kind of device");
            m.status = hv_session_profiles_reload(s, &m.err);
        }
    }
    if (m.status != HV_OK) {
        hv_ui_error(app, &m.err);
    } else {
        hv_app_message(app, HV_MSG_INFO, "%s", hv_str_cstr(&said));
    }
    hv_str_free(&said);
    return HV_APP_REDRAW;
}

static unsigned action(void *state, struct hv_app *app, enum hv_action a)
{
    struct hv_model_screen *v = screen_of(state, app);
    if (a == HV_ACT_PANEL_NEXT || a == HV_ACT_PANEL_PREV) {
        move_panel(v, a == HV_ACT_PANEL_NEXT ? 1 : -1);
        return DONE;
    }
    if (a == HV_ACT_MODEL_CHECKS) {
        v->only_checks = v->panel != HV_MODEL_FIT_PANEL || !v->only_checks;
        v->panel = HV_MODEL_FIT_PANEL;
        v->fit_top = 0;
        return DONE;
    }
    if (a == HV_ACT_MODEL_TABLE) {
        v->unfolded = v->unfolded == 0 ? UINT64_MAX : 0;
        hv_model_rows(v);
        return DONE;
    }
    if (a == HV_ACT_MODEL_PROFILE) {
        hv_app_ask_path(app, "profile to load (Enter alone measures this machine's GPU): ", "",
                        answer_profile, NULL);
        return DONE;
    }
    if (a == HV_ACT_IMPORT) {
        hv_app_ask_path(app, "config.json, model file or name: ", "", import_model, NULL);
        return DONE;
    }
    if (a == HV_ACT_EXPORT) {
        hv_app_ask(app, "write model to: ", "model.json", export_model, NULL);
        return DONE;
    }
    if (a == HV_ACT_CANCEL && v->layer_form.open) {
        hv_model_layer_close(v);
        return DONE;
    }
    if (a == HV_ACT_CANCEL && v->panel != HV_MODEL_FIELDS) {
        v->panel = HV_MODEL_FIELDS;
        v->only_checks = false;
        return DONE;
    }
    return panel_action(v, app, a);
}

/* ---- events ---------------------------------------------------------------------------------- */

static unsigned mouse(struct hv_model_screen *v, struct hv_app *app, const struct hv_event *ev,
                      const struct hv_rect *at)
{
    struct hv_table_source s = hv_model_source(v);
    struct hv_rect layers = hv_rect_inner(at[HV_MODEL_LAYERS_PANEL]);
    bool wheel = ev->mouse == HV_MOUSE_WHEEL_UP || ev->mouse == HV_MOUSE_WHEEL_DOWN;
    if (wheel && hv_rect_has(layers, ev->x, ev->y)) {
        hv_table_scroll(&v->table, &s, ev->mouse == HV_MOUSE_WHEEL_UP ? -WHEEL_ROWS : WHEEL_ROWS,
                        layers.h - 1);
        return DONE;
    }
    if (wheel && hv_rect_has(at[HV_MODEL_FIELDS], ev->x, ev->y)) {
        return form_key(v, app, ev->mouse == HV_MOUSE_WHEEL_UP ? HV_KEY_UP : HV_KEY_DOWN);
    }
    if (ev->mouse != HV_MOUSE_PRESS) {
        return 0;
    }
    for (size_t i = 0; i < HV_MODEL_PANEL_N; i++) {
        if (hv_rect_has(at[i], ev->x, ev->y)) {
            v->panel = (enum hv_model_panel)i;
        }
    }
    size_t row = hv_table_hit(&v->table, &s, layers, ev->x, ev->y);
    if (row != SIZE_MAX) {
        bool again = row == v->table.cursor;
        hv_table_goto(&v->table, &s, row, layers.h - 1);
        (void)(again && hv_model_unfold(v));
    }
    return DONE;
}

static unsigned event(void *state, struct hv_app *app, const struct hv_event *ev)
{
    struct hv_model_screen *v = screen_of(state, app);
    struct hv_rect at[HV_MODEL_PANEL_N];
    place(v, hv_app_body(app), at);
    const struct hv_doc_form *form = form_of(v);
    bool typing = form->form.editing || form->pick.open;
    bool leaves = ev->type == HV_EV_KEY && !typing &&
                  (ev->key.code == HV_KEY_TAB || ev->key.code == HV_KEY_ESC);
    if (v->panel == HV_MODEL_FIELDS && !leaves) {
        bool wheel = ev->type == HV_EV_MOUSE && ev->mouse != HV_MOUSE_PRESS;
        unsigned flags = wheel ? 0
                               : hv_doc_form_event(form_of(v), app, v->session, ev,
                                                   hv_rect_inner(at[HV_MODEL_FIELDS]));
        sync_documents(v, hv_ui_session(hv_app_model(app)));
        if (flags != 0 || typing) {
            return flags | HV_APP_HANDLED;
        }
    }
    return ev->type == HV_EV_MOUSE ? mouse(v, app, ev, at) : 0;
}

static unsigned find(void *state, struct hv_app *app, const char *text, int direction)
{
    struct hv_model_screen *v = screen_of(state, app);
    struct hv_table_source s = hv_model_source(v);
    struct hv_table_look look = {.n_columns = hv_model_n_columns()};
    struct hv_doc_form *f = form_of(v);
    size_t n = f->form.n_fields;
    for (size_t step = direction == 0 ? 0 : 1; v->panel == HV_MODEL_FIELDS && step < n; step++) {
        size_t i = (f->form.cursor + (direction < 0 ? n - step : step)) % n;
        const struct hv_field *d = &f->fields[i];
        bool can = !d->read_only && d->kind != HV_FIELD_LABEL;
        if (can && (hv_text_has(d->name, text) || hv_text_has(d->value, text))) {
            f->form.cursor = i;
            return DONE;
        }
    }
    bool found = hv_table_find(&v->table, &s, &look, text, direction);
    v->panel = found ? HV_MODEL_LAYERS_PANEL : v->panel;
    return found ? DONE : 0;
}

static const enum hv_action bar[] = {HV_ACT_EDIT,        HV_ACT_IMPORT,        HV_ACT_PANEL_NEXT,
                                     HV_ACT_UNDO,        HV_ACT_MODEL_CHECKS,  HV_ACT_FIND,
                                     HV_ACT_MODEL_TABLE, HV_ACT_MODEL_PROFILE, HV_ACT_SAVE,
                                     HV_ACT_REDO,        HV_ACT_EXPORT,        HV_ACT_NONE};

static const struct hv_key_hint *hints(const void *state, const void *model)
{
    struct hv_model_screen *v = ((const struct state *)state)->screen;
    (void)model;
    return v->panel == HV_MODEL_FIELDS ? hv_doc_form_hints(form_of(v)) : NULL;
}

const struct hv_view_ops hv_screen_model = {
    .name = "model",
    .title = "Model",
    .short_title = "Mod",
    .tab = 2,
    .state_size = sizeof(struct state),
    .keybar = bar,
    .hints = hints,
    .help = "Enter edits a field or opens its list; in Layers it unfolds a run of blocks.\nIn "
            "Layers e sets individual values for blocks (*), d removes them.\nIn Fit and checks h "
            "and l change the tensor-parallel degree of the preview.\np loads a measured profile, "
            "which then prices its kind of GPU.\nImport reads a hetviz model, a config.json of "
            "Hugging Face or a catalogue name.",
    .open = open_screen,
    .close = close_screen,
    .draw = draw,
    .action = action,
    .event = event,
    .find = find,
    .status = status,
    .tick = hv_ui_tick,
    .timeout_ms = hv_ui_timeout_ms};
