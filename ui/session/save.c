/*
 * Saving and exporting. Not for the assignment of content to files (store/save.c) nor for unsaved
 * edits (recover.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"
#include "ui/session/store/export.h"

static struct hv__save save_of(const struct hv_session *s)
{
    return (struct hv__save){
        .place = s->place, .docs = s->docs, .rows = s->rows, .cache = s->cache};
}

enum hv_status hv_session_save(struct hv_session *s, const char *path, struct hv_err *err)
{
    const struct hv__save save = save_of(s);
    struct hv_str to = {0};
    if (path == NULL) {
        path = hv__place_path(s->place);
    }
    if (path == NULL || path[0] == '\0') {
        return hv_err_set(err, HV_EUSAGE,
                          "this workspace has no folder yet: name one (write FOLDER)");
    }
    hv_str_adds(&to, path);
    while (to.n > 1 && to.p[to.n - 1] == '/') {
        to.p[--to.n] = '\0';
    }
    enum hv_status st = hv__save_to(&save, to.p, err);
    if (st == HV_OK) {
        hv__recovery_saved(s->recovery);
        hv__session_rows_sweep(s);
        hv__session_rows_sort(s);
        hv__session_moved(s);
        hv__session_did_words(s, "write", to.p, NULL);
    }
    hv_str_free(&to);
    return st;
}

/** The row with a plan, or NULL and the reason. */
static const struct hv_row *row_with_plan(struct hv_session *s, uint32_t id, struct hv_err *err)
{
    const struct hv_row *r = hv__rows_get(s->rows, id);
    if (r == NULL) {
        (void)hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    } else if (r->plan == NULL) {
        (void)hv_err_set(err, HV_EUSAGE, "%s has no plan to export", r->name);
    }
    return r != NULL && r->plan != NULL ? r : NULL;
}

enum hv_status hv_session_export(struct hv_session *s, uint32_t id, const char *path,
                                 struct hv_err *err)
{
    const struct hv__save save = save_of(s);
    const struct hv_row *r = row_with_plan(s, id, err);
    if (r == NULL) {
        return HV_EUSAGE;
    }
    json_t *tree = hv__save_plan_tree(&save, r, false);
    hv__docs_add_inputs(s->docs, tree);
    struct hv_str text = {0};
    hv_json_write(&text, tree, true);
    enum hv_status st = hv_file_write(path, hv_str_cstr(&text), text.n, err);
    hv_str_free(&text);
    json_decref(tree);
    if (st == HV_OK) {
        hv__session_did_words(s, "export", r->name, path);
    }
    return st;
}

enum hv_status hv_session_export_to(struct hv_session *s, uint32_t id, const char *target,
                                    const char *folder, struct hv_err *err)
{
    const struct hv__save save = save_of(s);
    const struct hv_row *r = row_with_plan(s, id, err);
    enum hv_target_id t = HV_TARGET_ANY;
    if (r == NULL) {
        return HV_EUSAGE;
    }
    if (!hv_target_find(target, &t)) {
        return hv_err_set(err, HV_EUSAGE, "no target \"%s\"; `hetviz help targets` lists them",
                          target);
    }
    json_t *tree = hv__save_plan_tree(&save, r, false);
    enum hv_status st = hv__export_row(hv__docs_nouns(s->docs), tree, r->name, t, folder, err);
    json_decref(tree);
    return st;
}
