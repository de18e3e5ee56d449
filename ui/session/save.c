/*
 * Saving and exporting. Not for the assignment of content to files (store/save.c) nor for unsaved
 * edits (recover.c).
 */
#include "ui/session/session_int.h"

#include "solver/base/file.h"

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

enum hv_status hv_session_export(struct hv_session *s, uint32_t id, const char *path,
                                 struct hv_err *err)
{
    const struct hv__save save = save_of(s);
    const struct hv_row *r = hv__rows_get(s->rows, id);
    if (r == NULL) {
        return hv_err_set(err, HV_EUSAGE, "there is no row %u", id);
    }
    if (r->plan == NULL) {
        return hv_err_set(err, HV_EUSAGE, "%s has no plan to export", r->name);
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
