/* Values of single blocks on the model screen: the layer_list of a transformer, the layers of a
 * measured model. Members that a block leaves out come from the fields of the model. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/arena.h"
#include "solver/base/units.h"
#include "solver/io/import/import.h"
#include "ui/screens/common/ui.h"
#include "ui/screens/model/model_int.h"

#define LIST "model.layer_list"

static const char *const ffn_kinds[] = {
#define X(c, name, n) name,
    HV_FFN_KIND_MAP(X)
#undef X
};

#define OWN_WHOLE(name, path, help, least)                                                         \
    {                                                                                              \
        name, path, NULL, help, HV_DOC_WHOLE, true, NULL, 0, least, INT_MAX                        \
    }
static const struct hv_doc_row block_rows[] = {
    OWN_WHOLE("heads", "heads", "0: no attention; empty: as in the model", 0),
    OWN_WHOLE("kv heads", "kv_heads", "empty: as in the model", 1),
    OWN_WHOLE("head dim", "head_dim", "empty: as in the model", 1),
    OWN_WHOLE("ffn", "ffn", "width; 0: none; a value here makes the block dense", 0),
    {"ffn kind", "ffn_kind", NULL, "gated kinds use three matrices", HV_DOC_CHOICE, true, ffn_kinds,
     HV_COUNT(ffn_kinds), 0, 0},
    OWN_WHOLE("window", "window", "tokens that each token attends to; 0: all", 0),
    {"experts", "moe", NULL, "JSON such as {\"experts\": 8, \"top_k\": 2, \"ffn\": 4096}",
     HV_DOC_JSON, true, NULL, 0, 0, 0},
};

static const struct hv_model *model_of(const struct hv_session *s)
{
    return hv_session_model(s)->model;
}

/* ---- the list as a file has it, and one element per block ---- */

/* An object per block, without `repeat`. Owner: caller. */
static json_t *expand(const struct hv_session *s)
{
    const json_t *list = hv_session_get(s, LIST);
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i), *repeat = json_object_get(e, "repeat");
        json_int_t n = json_is_integer(repeat) ? json_integer_value(repeat) : 1;
        for (json_int_t k = 0; k < n && json_array_size(out) < model_of(s)->n_blocks; k++) {
            json_t *one = json_deep_copy(e);
            (void)json_object_del(one, "repeat");
            (void)json_array_append_new(out, one);
        }
    }
    while (json_array_size(out) < model_of(s)->n_blocks) {
        (void)json_array_append_new(out, json_object());
    }
    return out;
}

/* Equal neighbours joined, nothing behind the last block that has values of its own. NULL = no
 * block has any. Owner: caller. */
static json_t *compress(const json_t *blocks)
{
    size_t n = json_array_size(blocks);
    json_t *out = json_array();
    while (n > 0 && json_object_size(json_array_get(blocks, n - 1)) == 0) {
        n--;
    }
    for (size_t i = 0, to; i < n; i = to) {
        json_t *e = json_deep_copy(json_array_get(blocks, i));
        for (to = i + 1; to < n && json_equal(json_array_get(blocks, to), e); to++) {
        }
        if (to > i + 1) {
            json_t *with = json_pack("{s:I}", "repeat", (json_int_t)(to - i));
            (void)json_object_update(with, e);
            json_decref(e);
            e = with;
        }
        (void)json_array_append_new(out, e);
    }
    if (n == 0) {
        json_decref(out);
        return NULL;
    }
    return out;
}

/* Writes the blocks back as one undo step. Takes them over. */
static enum hv_status write_blocks(struct hv_session *s, json_t *blocks, struct hv_err *err)
{
    json_t *list = compress(blocks);
    json_decref(blocks);
    if (list != NULL) {
        return hv_session_set(s, LIST, list, err);
    }
    return hv_session_get(s, LIST) != NULL ? hv_session_remove(s, LIST, err) : HV_OK;
}

/* ---- the form's values ---- */

static const json_t *get_value(const void *ctx, const struct hv_session *s,
                               const struct hv_doc_row *row)
{
    const struct hv_model_screen *v = ctx;
    const json_t *list = hv_session_get(s, LIST);
    size_t at = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i), *repeat = json_object_get(e, "repeat");
        at += json_is_integer(repeat) ? (size_t)json_integer_value(repeat) : 1;
        if (v->layer_from < at) {
            return json_object_get(e, row->path);
        }
    }
    return NULL;
}

static bool is_config(const struct hv_session *s)
{
    return json_object_get(hv_session_tree(s, HV_DOC_MODEL), "format") == NULL;
}

/* A config.json has no values of single blocks: it is written out as a model of ours first, one
 * undo step. Refused where that would not be the same model. */
static enum hv_status write_out(struct hv_session *s, struct hv_err *err)
{
    const struct hv_model *m = model_of(s);
    double parameters = hv_model_parameters(m), active = hv_model_active_parameters(m);
    enum hv_status st = hv_session_replace(s, HV_DOC_MODEL, hv_import_model_json(m),
                                           "config.json written out as a hetviz model", err);
    if (st != HV_OK) {
        return st;
    }
    m = model_of(s);
    if (fabs(hv_model_parameters(m) / parameters - 1) > 1e-9 ||
        fabs(hv_model_active_parameters(m) / active - 1) > 1e-9) {
        (void)hv_session_undo(s);
        return hv_err_set(
            err, HV_ENO,
            "this config.json has blocks that a hetviz model cannot describe one by one");
    }
    return HV_OK;
}

static enum hv_status set_value(const void *ctx, struct hv_session *s, const struct hv_doc_row *row,
                                json_t *value, struct hv_err *err)
{
    const struct hv_model_screen *v = ctx;
    enum hv_status st = is_config(s) ? write_out(s, err) : HV_OK;
    if (st != HV_OK) {
        json_decref(value);
        return st;
    }
    json_t *blocks = expand(s);
    for (size_t i = v->layer_from; i < v->layer_to; i++) {
        json_t *one = json_array_get(blocks, i);
        if (json_is_null(value)) {
            (void)json_object_del(one, row->path);
        } else {
            (void)json_object_set(one, row->path, value);
        }
    }
    json_decref(value);
    return write_blocks(s, blocks, err);
}

static const struct hv_doc_store store = {get_value, set_value};

static void block_default(const void *ctx, const struct hv_session *s, const struct hv_doc_row *row,
                          size_t base, struct hv_str *out)
{
    (void)base;
    const struct hv_model_screen *v = ctx;
    const struct hv_model *m = model_of(s);
    const struct hv_block *b = &m->blocks[v->layer_from];
    const struct {
        const char *path;
        int value;
    } figures[] = {{"heads", b->heads},
                   {"kv_heads", b->kv_heads},
                   {"head_dim", b->head_dim},
                   {"ffn", b->ffn},
                   {"window", b->window}};
    for (size_t i = 0; i < HV_COUNT(figures); i++) {
        if (strcmp(row->path, figures[i].path) == 0) {
            hv_str_addf(out, "%d", figures[i].value);
        }
    }
    if (strcmp(row->path, "ffn_kind") == 0) {
        hv_str_adds(out, hv_ffn_kind_name(b->ffn_kind));
    } else if (strcmp(row->path, "moe") == 0 && b->experts > 0) {
        hv_str_addf(out, "{\"experts\": %d, \"top_k\": %d, \"ffn\": %d}", b->experts, b->top_k,
                    b->expert_ffn);
    }
}

/* Times and sizes of a measured layer: members of the file. */
static void add_measured(struct hv_model_screen *v)
{
    static const char *const sizes[][2] = {{"parameters", "parameter_bytes"},
                                           {"activations", "activation_bytes"},
                                           {"output", "output_bytes"}};
    static const char *const passes[][2] = {{"fwd", "forward_ms"}, {"bwd", "backward_ms"}};
    char base[64], path[96], name[32];
    (void)snprintf(base, sizeof base, "model.layers[%zu]", v->layer_from);
    hv_doc_form_base(&v->layer_form, base);
    for (size_t p = 0; p < HV_COUNT(passes); p++) {
        const json_t *times = NULL;
        const char *device = NULL;
        json_t *value = NULL,
               *layer = json_array_get(
                   json_object_get(hv_session_tree(v->session, HV_DOC_MODEL), "layers"),
                   v->layer_from);
        times = json_object_get(layer, passes[p][1]);
        json_object_foreach((json_t *)(uintptr_t)times, device, value)
        {
            (void)snprintf(path, sizeof path, "%s.%s", passes[p][1], device);
            (void)snprintf(name, sizeof name, "%s %.20s", passes[p][0], device);
            hv_doc_form_add(&v->layer_form,
                            &(struct hv_doc_row){.name = name,
                                                 .path = path,
                                                 .unit = "ms",
                                                 .help = "of one sequence, measured",
                                                 .value = HV_DOC_NUMBER,
                                                 .max = 1e12});
        }
    }
    for (size_t i = 0; i < HV_COUNT(sizes); i++) {
        hv_doc_form_add(&v->layer_form, &(struct hv_doc_row){.name = sizes[i][0],
                                                             .path = sizes[i][1],
                                                             .unit = "bytes",
                                                             .help = "of one sequence",
                                                             .value = HV_DOC_NUMBER,
                                                             .max = 1e18});
    }
}

void hv_model_layer_fill(struct hv_model_screen *v)
{
    struct hv_doc_form *f = &v->layer_form;
    const struct hv_model *m = model_of(v->session);
    bool blocks = m->kind == HV_MODEL_TRANSFORMER;
    hv_doc_form_clear(f);
    if (!f->open || v->layer_to > m->n_blocks || (!blocks && m->kind != HV_MODEL_LAYERS)) {
        f->open = false;
        return;
    }
    f->ctx = v;
    f->fallback = blocks ? block_default : NULL;
    f->store = blocks ? &store : NULL;
    if (!blocks) {
        add_measured(v);
    }
    for (size_t i = 0; blocks && i < HV_COUNT(block_rows); i++) {
        hv_doc_form_add(f, &block_rows[i]);
    }
    hv_doc_form_load(f, v->session);
}

void hv_model_layer_title(const struct hv_model_screen *v, char *buf, size_t cap)
{
    if (v->layer_to > v->layer_from + 1) {
        (void)snprintf(buf, cap, "Values of blocks %zu-%zu", v->layer_from, v->layer_to - 1);
    } else {
        (void)snprintf(buf, cap, "Values of block %zu", v->layer_from);
    }
}

/* ---- opening and removing ---- */

void hv_model_layer_close(struct hv_model_screen *v)
{
    v->layer_form.open = false;
    v->panel = HV_MODEL_LAYERS_PANEL;
    for (size_t i = 0; i < v->rows.n; i++) {
        const struct hv_layer_row *row = &v->rows.items[i];
        if (row->kind == HV_LAYER_BLOCKS && row->from <= v->layer_from && v->layer_from < row->to) {
            struct hv_table_source s = hv_model_source(v);
            hv_table_goto(&v->table, &s, i, HV_GRID_MAX);
            return;
        }
    }
}

static void open_form(struct hv_model_screen *v, size_t from, size_t to)
{
    v->layer_from = from;
    v->layer_to = to;
    v->layer_form.open = true;
    v->layer_form.form.cursor = 0;
    v->panel = HV_MODEL_FIELDS;
    hv_model_layer_fill(v);
}

static unsigned answer_blocks(void *ctx, struct hv_app *app, const char *text)
{
    struct hv_model_screen *v = ctx;
    unsigned long from = 0, to = 0;
    size_t n = model_of(v->session)->n_blocks;
    char more;
    int read = sscanf(text, "%lu-%lu%c", &from, &to, &more);
    to = read == 1 ? from : to;
    if (read < 1 || read > 2 || text[0] == '-' || to < from || to >= n) {
        hv_app_message(app, HV_MSG_ERROR,
                       "expected a block such as 5, or 3-7, of 0-%zu; found '%s'", n - 1, text);
        return HV_APP_REDRAW;
    }
    open_form(v, from, to + 1);
    return HV_APP_REDRAW;
}

/* The blocks of the row under the cursor, or NULL with a word why they cannot be changed. */
static const struct hv_layer_row *blocks_here(const struct hv_model_screen *v, struct hv_app *app)
{
    const struct hv_model *m = model_of(v->session);
    const struct hv_layer_row *row =
        v->table.cursor < v->rows.n ? &v->rows.items[v->table.cursor] : NULL;
    const char *why = NULL;
    if (row == NULL || row->kind == HV_LAYER_EMBEDDING || row->kind == HV_LAYER_HEAD ||
        row->kind == HV_LAYER_MODULE || m->kind == HV_MODEL_GRAPH) {
        why = "only blocks can have individual values";
    } else if (m->kind == HV_MODEL_LAYERS &&
               !json_is_array(hv_session_get(v->session, "model.layers"))) {
        why = "the layers are in a profile, not in the model";
    }
    if (why != NULL) {
        hv_app_message(app, HV_MSG_INFO, "%s", why);
    }
    return why == NULL ? row : NULL;
}

void hv_model_layer_edit(struct hv_model_screen *v, struct hv_app *app)
{
    const struct hv_layer_row *row = blocks_here(v, app);
    char question[96], first[32];
    if (row == NULL) {
        return;
    }
    if (row->to == row->from + 1) {
        open_form(v, row->from, row->to);
        return;
    }
    (void)snprintf(question, sizeof question,
                   "blocks to change, of %zu-%zu (5, or 3-7): ", row->from, row->to - 1);
    (void)snprintf(first, sizeof first, "%zu", row->from);
    hv_app_ask(app, question, first, answer_blocks, v);
}

void hv_model_layer_reset(struct hv_model_screen *v, struct hv_app *app)
{
    const struct hv_layer_row *row = blocks_here(v, app);
    struct hv_err err = {0};
    if (row == NULL) {
        return;
    }
    if (model_of(v->session)->kind != HV_MODEL_TRANSFORMER || !hv_model_layer_is_own(v, row)) {
        hv_app_message(app, HV_MSG_INFO, "these blocks have no individual values");
        return;
    }
    size_t from = row->from, to = row->to;
    json_t *blocks = expand(v->session);
    for (size_t i = from; i < to; i++) {
        (void)json_object_clear(json_array_get(blocks, i));
    }
    if (write_blocks(v->session, blocks, &err) != HV_OK) {
        hv_ui_error(app, &err);
    } else {
        hv_app_message(app, HV_MSG_INFO,
                       "the blocks follow the model again; u restores their values");
    }
}
