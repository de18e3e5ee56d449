/* Texts of exports: comments, CSV, HTML, YAML and JSON, so that names stay data. */
#include <string.h>
#include <yaml.h>

#include "solver/base/units.h"
#include "solver/io/export/target/inside.h"

void hv__export_heading(const struct hv__exporting *x, const char *mark, struct hv_str *out)
{
    const struct hv_export_source *s = x->s;
    hv_text_addf(out, "%s written by hetviz " HV_VERSION "\n", mark);
    hv_text_addf(out, "%s plan %s of %s on %s\n", mark, s->name != NULL ? s->name : "plan",
                 s->model->name, s->plan->cluster->name);
}

void hv__export_csv_field(struct hv_str *out, const char *text)
{
    bool formula = text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL;
    bool quoted = formula || strpbrk(text, ",\"\r\n;") != NULL;
    hv_str_adds(out, quoted ? "\"" : "");
    hv_str_adds(out, formula ? "'" : "");
    for (const char *c = text; *c != '\0'; c++) {
        hv_str_addc(out, *c);
        if (*c == '"') {
            hv_str_addc(out, '"');
        }
    }
    hv_str_adds(out, quoted ? "\"" : "");
}

void hv__export_html(struct hv_str *out, const char *text)
{
    struct hv_str clean = {0};
    hv_text_clean(&clean, text, strlen(text));
    for (const char *c = hv_str_cstr(&clean); *c != '\0'; c++) {
        switch (*c) {
        case '&':
            hv_str_adds(out, "&amp;");
            break;
        case '<':
            hv_str_adds(out, "&lt;");
            break;
        case '>':
            hv_str_adds(out, "&gt;");
            break;
        case '"':
            hv_str_adds(out, "&quot;");
            break;
        case '\'':
            hv_str_adds(out, "&#39;");
            break;
        default:
            hv_str_addc(out, *c);
        }
    }
    hv_str_free(&clean);
}

bool hv__export_is_host(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = strlen(name), plain = strspn(name, letters);
    size_t all = 0;
    while (name[all] != '\0' &&
           (strchr(letters, name[all]) != NULL || strchr(".-_", name[all]) != NULL)) {
        all++;
    }
    return plain > 0 && all == n && n <= 253;
}

const char *hv__export_recompute(const struct hv_stage *s)
{
    unsigned mask = s->n_recompute_per > 0 ? s->recompute_per[0] : s->recompute;
    return mask == HV_RC_NONE ? "none" : mask == HV_RC_CORE ? "selective" : "full";
}

/* ---- YAML -------------------------------------------------------------------------------------
 */

static int append(void *ctx, unsigned char *bytes, size_t n)
{
    hv_str_add(ctx, (const char *)bytes, n);
    return 1;
}

static void emit(yaml_emitter_t *e, yaml_event_t *event)
{
    if (yaml_emitter_emit(e, event) == 0) {
        HV_BUG("YAML: %s", e->problem != NULL ? e->problem : "cannot be written");
    }
}

static void emit_scalar(yaml_emitter_t *e, const char *text, bool is_text)
{
    yaml_event_t event;
    (void)yaml_scalar_event_initialize(
        &event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), !is_text, is_text,
        is_text ? YAML_SINGLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE);
    emit(e, &event);
}

static void emit_value(yaml_emitter_t *e, const json_t *v)
{
    yaml_event_t event;
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_object(v)) {
        (void)yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
        emit(e, &event);
        json_object_foreach((json_t *)(uintptr_t)v, key, item)
        {
            emit_scalar(e, key, false);
            emit_value(e, item);
        }
        (void)yaml_mapping_end_event_initialize(&event);
        emit(e, &event);
    } else if (json_is_array(v)) {
        (void)yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_FLOW_SEQUENCE_STYLE);
        emit(e, &event);
        json_array_foreach(v, i, item)
        {
            emit_value(e, item);
        }
        (void)yaml_sequence_end_event_initialize(&event);
        emit(e, &event);
    } else if (json_is_string(v)) {
        emit_scalar(e, json_string_value(v), true);
    } else {
        struct hv_str text = {0};
        hv_json_write(&text, v, false);
        emit_scalar(e, hv_str_cstr(&text), false);
        hv_str_free(&text);
    }
}

void hv__export_yaml(struct hv__exporting *x, const char *file, json_t *tree)
{
    struct hv_str *out = hv__export_file(x, file);
    yaml_emitter_t e;
    yaml_event_t event;
    hv__export_heading(x, "#", out);
    if (yaml_emitter_initialize(&e) == 0) {
        hv_oom(sizeof e);
    }
    yaml_emitter_set_output(&e, append, out);
    yaml_emitter_set_unicode(&e, 1);
    yaml_emitter_set_width(&e, -1);
    (void)yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING);
    emit(&e, &event);
    (void)yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1);
    emit(&e, &event);
    emit_value(&e, tree);
    (void)yaml_document_end_event_initialize(&event, 1);
    emit(&e, &event);
    (void)yaml_stream_end_event_initialize(&event);
    emit(&e, &event);
    yaml_emitter_delete(&e);
    json_decref(tree);
}

void hv__export_json(struct hv__exporting *x, const char *file, json_t *tree)
{
    hv_json_write(hv__export_file(x, file), tree, true);
    json_decref(tree);
}
