/*
 * Hugging Face config.json: io/own reads it, and this file reports the members that were read and
 * those that were not. Code that a config names (auto_map) is never read.
 */
#include "solver/io/import/draft/model_out.h"
#include "solver/io/import/draft/readers.h"
#include "solver/io/own/model/hf_int.h"
#include <string.h>

bool hv__is_hf_config(const struct hv__in *in)
{
    struct hv_json doc = {.root = in->tree, .name = (char *)(uintptr_t)in->name};
    struct hv_jp root = hv_jp_root(&doc);
    return json_is_object(in->tree) && in->is_json && hv__hf_looks_like(&root);
}

/* Marks the members that the reader looked up, by their paths. */
static void mark_read(struct hv__in *in, const struct hv__hf_report *r)
{
    for (void *it = json_object_iter(r->read); it; it = json_object_iter_next(r->read, it)) {
        const char *rest = json_object_iter_key(it);
        json_t *at = in->tree;
        while (at && *rest) {
            size_t n = strcspn(rest, ".");
            const char *key = hv_arena_strndup(&in->im->arena, rest, n);
            at = hv__get(in, at, key);
            rest += n + (rest[n] == '.');
        }
    }
}

/* Keeps the members of a config that were not read. */
static void keep_rest(struct hv__in *in, json_t *config, const char *inside,
                      const struct hv__hf_report *r)
{
    struct hv_str path = {0};
    for (void *it = json_object_iter(config); it; it = json_object_iter_next(config, it)) {
        const char *key = json_object_iter_key(it);
        json_t *v = json_object_iter_value(it);
        hv_str_clear(&path);
        hv_str_addf(&path, "%s%s", inside, key);
        if (json_object_get(r->read, hv_str_cstr(&path)) || json_is_null(v)) {
            continue;
        }
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
        hv__raw(in, key, json_is_string(v) ? json_string_value(v) : text ? text : "");
        free(text);
    }
    hv_str_free(&path);
}

static void tell_list(struct hv__in *in, json_t *list, bool guessed)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        if (guessed) {
            hv__guessed(in, 0, "%s", text);
        } else {
            hv__understood(in, 0, "%s", text);
        }
    }
}

static void take(struct hv__in *in, const struct hv_model *m, const struct hv__hf_report *report)
{
    mark_read(in, report);
    keep_rest(in, in->tree, "", report);
    keep_rest(in, json_object_get(in->tree, "text_config"), "text_config.", report);
    tell_list(in, report->counted, false);
    tell_list(in, report->guesses, true);
    hv__understood(in, 0, "%zu layers, %.4g parameters", m->n_blocks, hv_model_parameters(m));
    if (in->im->model) {
        hv__guessed(in, 0, "an earlier file describes a model too: this one replaces it");
        json_decref(in->im->model);
    }
    in->im->model = hv_import_model_json(m);
}

enum hv_status hv__read_hf_config(struct hv__in *in, struct hv_err *err)
{
    struct hv_json json = {0};
    struct hv__hf_report report = {0};
    if (!json_is_object(in->tree)) {
        return hv_err_at(err, HV_EINPUT, in->name, in->broken.line, in->broken.col, "%s",
                         in->broken.text[0] ? in->broken.text
                                            : "expected a config.json: an object");
    }
    hv_json_wrap(&json, json_incref(in->tree), in->name);
    struct hv_jp root = hv_jp_root(&json);
    enum hv_status st = HV_OK;
    if (!hv__hf_looks_like(&root)) {
        st = hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                       "expected a config.json with model_type, hidden_size or the like");
    }
    if (in->json.root) { /* errors get positions from the text */
        json.text = hv_xcalloc(in->n + 1, 1);
        memcpy(json.text, in->text, in->n);
        json.n = in->n;
    }
    struct hv_model *m = hv_xcalloc(1, sizeof *m);
    m->refs = 1;
    st = st ? st : hv__hf_read_noted(&root, m, &report, err);
    if (st == HV_OK) {
        take(in, m, &report);
    }
    hv__hf_report_free(&report);
    hv_model_unref(m);
    hv_json_free(&json);
    return st;
}
