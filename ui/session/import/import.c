/** Merges imports into the workspace. Not for reading files (solver/io/import). */
#include "ui/session/import/import.h"

#include "solver/base/file.h"
#include "ui/command/command.h"
#include "ui/session/import/local.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const way_texts[HV_IMPORT_WAY_N] = {"replace the cluster", "add its nodes",
                                                       "update nodes with equal devices"};

const char *hv_import_way_text(enum hv_import_way w)
{
    return way_texts[w];
}

enum hv_import_way hv_import_way_usual(const struct hv_import *im)
{
    bool only = hv_import_format_of(im, 0) != NULL;
    for (size_t i = 0; hv_import_format_of(im, i) != NULL; i++) {
        enum hv_import_part p = hv_import_format_of(im, i)->part;
        only = only && (p == HV_IMPORT_LINKS || p == HV_IMPORT_PRICES);
    }
    return only ? HV_IMPORT_UPDATE : HV_IMPORT_REPLACE;
}

bool hv_import_is_own(const char *text)
{
    char head[256] = "";
    if (strcmp(text, "local") == 0 || strchr(text, ' ') != NULL) {
        return false;
    }
    if (access(text, F_OK) != 0) {
        return strchr(text, '/') == NULL;
    }
    FILE *f = fopen(text, "rb");
    size_t n = f != NULL ? fread(head, 1, sizeof head - 1, f) : 0;
    if (f != NULL) {
        (void)fclose(f);
    }
    head[n] = '\0';
    return strstr(head, "\"hetviz.") != NULL;
}

enum hv_status hv_session_import_read(const struct hv_session *s, const char *words,
                                      struct hv_import **out, struct hv_err *err)
{
    struct hv_arena a = {0};
    static const char device[] = "--device";
    const char **files = NULL;
    size_t n = 0;
    *out = hv_import_new(hv_session_devices(s));
    enum hv_status st = hv_command_split(&a, words, &files, &n, err);
    if (st == HV_OK && n == 0) {
        st = hv_err_set(err, HV_EUSAGE, "import: give a file, or `local`");
    }
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        if (strncmp(files[i], device, strlen(device)) == 0) {
            const char *setting = files[i] + strlen(device);
            setting += *setting == '=';
            st = *setting == '\0' && i + 1 < n ? hv_import_device(*out, files[++i], err)
                                               : hv_import_device(*out, setting, err);
            continue;
        }
        st = strcmp(files[i], "local") == 0 ? hv_import_local(*out, err)
                                            : hv_import_file(*out, NULL, files[i], err);
    }
    if (st == HV_OK) {
        st = hv_import_finish(*out, err);
    }
    if (st != HV_OK) {
        hv_import_free(*out);
        *out = NULL;
    }
    hv_arena_free(&a);
    return st;
}

static bool has_cluster(const struct hv_import *im)
{
    return hv_import_cluster(im) != NULL && !hv_import_cluster_is_guess(im);
}

static bool import_fits(const struct hv_import *im)
{
    return has_cluster(im) || hv_import_model(im) != NULL || hv_import_job(im) != NULL ||
           hv_import_layout(im) != NULL;
}

void hv_session_import_parts(const struct hv_import *im, struct hv_str *out)
{
    json_t *nodes = json_object_get(hv_import_cluster(im), "nodes"), *v;
    double count = 0;
    size_t i;
    json_array_foreach(nodes, i, v)
    {
        count += json_number_value(json_object_get(v, "count"));
    }
    if (has_cluster(im)) {
        hv_str_addf(out, "cluster: %.0f node%s in %zu group%s\n", count, count > 1 ? "s" : "",
                    json_array_size(nodes), json_array_size(nodes) > 1 ? "s" : "");
    }
    if (hv_import_model(im) != NULL) {
        hv_str_addf(out, "model: %s\n",
                    json_string_value(json_object_get(hv_import_model(im), "name")));
    }
    if (hv_import_job(im) != NULL && json_object_size(hv_import_job(im)) > 1) {
        hv_str_adds(out, "job: batch, sequence and precision, if the file has them\n");
    }
    if (hv_import_layout(im) != NULL) {
        hv_str_adds(out, "layout: options of the strategy manual\n");
    }
    if (!import_fits(im)) {
        hv_str_adds(
            out,
            "the result is not part of a workspace: `hetviz import auto FILE --out F` writes it\n");
    }
}

/* ---- clusters -------------------------------------------------------------------------------- */

static bool has_name(json_t *nodes, const char *name)
{
    size_t i;
    json_t *v;
    json_array_foreach(nodes, i, v)
    {
        const char *other = json_string_value(json_object_get(v, "name"));
        if (other != NULL && strcmp(other, name) == 0) {
            return true;
        }
    }
    return false;
}

/** The present tree with the imported groups appended; names stay unique. */
static json_t *appended(const json_t *there, json_t *cluster)
{
    json_t *tree = json_deep_copy(there), *nodes = json_object_get(tree, "nodes"), *v;
    json_t *kinds = json_object_get(cluster, "devices");
    size_t i;
    json_array_foreach(json_object_get(cluster, "nodes"), i, v)
    {
        json_t *copy = json_deep_copy(v);
        char name[300];
        const char *own = json_string_value(json_object_get(v, "name"));
        (void)snprintf(name, sizeof name, "%.200s", own);
        for (unsigned k = 2; has_name(nodes, name); k++) {
            (void)snprintf(name, sizeof name, "%.200s-%u", own, k);
        }
        (void)json_object_set_new(copy, "name", json_string(name));
        (void)json_array_append_new(nodes, copy);
    }
    if (kinds != NULL) {
        json_t *mine = json_object_get(tree, "devices");
        if (!json_is_object(mine)) {
            mine = json_object();
            (void)json_object_set_new(tree, "devices", mine);
        }
        (void)json_object_update_missing(mine, kinds);
    }
    return tree;
}

static bool same_devices(const json_t *a, const json_t *b)
{
    json_t *x = json_object_get(a, "devices"), *y = json_object_get(b, "devices");
    json_t *one = json_integer(1);
    bool same = json_equal(json_object_get(a, "device"), json_object_get(b, "device")) &&
                json_equal(x != NULL ? x : one, y != NULL ? y : one);
    json_decref(one);
    return same;
}

/** True where `b` has a lower price. A group without a price comes last. */
static bool is_cheaper(const json_t *a, const json_t *b)
{
    json_t *x = json_object_get(a, "price_usd_per_hour"),
           *y = json_object_get(b, "price_usd_per_hour");
    return json_is_number(y) && (!json_is_number(x) || json_number_value(y) < json_number_value(x));
}

/** The imported group with the same devices, the cheapest of several; or NULL. */
static json_t *equal_group(const json_t *node, json_t *groups)
{
    json_t *best = NULL, *g;
    size_t i;
    json_array_foreach(groups, i, g)
    {
        if (same_devices(node, g) && (best == NULL || is_cheaper(best, g))) {
            best = g;
        }
    }
    return best;
}

/** The present tree with links and prices of imported groups of the same devices. */
static json_t *updated(const json_t *there, json_t *cluster, size_t *changed)
{
    static const char *const keys[] = {"intra", "nic", "price_usd_per_hour", "spot_usd_per_hour"};
    json_t *tree = json_deep_copy(there), *v;
    size_t i;
    *changed = 0;
    json_array_foreach(json_object_get(tree, "nodes"), i, v)
    {
        json_t *from = equal_group(v, json_object_get(cluster, "nodes"));
        for (size_t m = 0; from != NULL && m < HV_COUNT(keys); m++) {
            json_t *x = json_object_get(from, keys[m]);
            if (x != NULL) {
                (void)json_object_set(v, keys[m], x);
            }
        }
        *changed += from != NULL;
    }
    return tree;
}

/* ---- all parts ------------------------------------------------------------------------------- */

/** The strategies with `options` for manual. */
static json_t *with_layout(const json_t *there, json_t *options)
{
    json_t *tree = json_is_array(there) ? json_deep_copy(there) : json_array(), *v;
    json_t *mine = json_pack("{s:s, s:O}", "id", "manual", "options", options);
    size_t i;
    json_array_foreach(tree, i, v)
    {
        const char *id = json_string_value(json_is_string(v) ? v : json_object_get(v, "id"));
        if (id != NULL && strcmp(id, "manual") == 0) {
            (void)json_array_set_new(tree, i, mine);
            return tree;
        }
    }
    (void)json_array_append_new(tree, mine);
    return tree;
}

/** A part as the tree of its document, or NULL when the import has none. */
static json_t *part_tree(const struct hv_session *s, const struct hv_import *im, enum hv_doc d,
                         enum hv_import_way way, size_t *changed)
{
    const json_t *there = hv_session_tree(s, d);
    *changed = 1;
    if (d == HV_DOC_CLUSTER && has_cluster(im)) {
        return way == HV_IMPORT_REPLACE  ? json_deep_copy(hv_import_cluster(im))
               : way == HV_IMPORT_APPEND ? appended(there, hv_import_cluster(im))
                                         : updated(there, hv_import_cluster(im), changed);
    }
    if (d == HV_DOC_MODEL && hv_import_model(im) != NULL) {
        return json_deep_copy(hv_import_model(im));
    }
    if (d == HV_DOC_JOB && hv_import_job(im) != NULL) {
        json_t *tree = json_deep_copy(there);
        (void)json_object_update(tree, hv_import_job(im));
        return tree;
    }
    return d == HV_DOC_STRATEGIES && hv_import_layout(im) != NULL
               ? with_layout(there, hv_import_layout(im))
               : NULL;
}

enum hv_status hv_session_import(struct hv_session *s, const struct hv_import *im,
                                 enum hv_import_way way, const char *label, struct hv_err *err)
{
    size_t start = hv_session_n_undo(s), changed = 1;
    enum hv_status st = HV_OK;
    if (!import_fits(im)) {
        return hv_err_set(err, HV_ENO,
                          "the result is not part of a workspace; `hetviz import auto FILE --out "
                          "F` writes it to a file");
    }
    for (int d = 0; st == HV_OK && d < HV_DOC_N; d++) {
        size_t before = hv_session_n_undo(s);
        json_t *tree = part_tree(s, im, (enum hv_doc)d, way, &changed);
        if (tree != NULL && changed == 0) {
            st = hv_err_set(err, HV_ENO,
                            "no node of the cluster has the same devices as the import");
            json_decref(tree);
        } else if (tree != NULL) {
            st = hv_session_replace(s, (enum hv_doc)d, tree, label, err);
        }
        if (st == HV_OK && hv_session_n_undo(s) > before && before > start) {
            hv_session_join_last(s);
        }
    }
    /* a part failed: revert the parts before it */
    while (st != HV_OK && hv_session_n_undo(s) > start) {
        (void)hv_session_undo(s);
    }
    return st;
}
