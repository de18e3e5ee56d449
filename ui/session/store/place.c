/*
 * Reads a workspace and stores its location. Not for writing it (save.c).
 */
#include "ui/session/store/place_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct hv__place *hv__place_new(const char *name)
{
    struct hv__place *p = hv_xcalloc(1, sizeof *p);
    p->name = hv_xstrdup(name);
    return p;
}

void hv__place_free(struct hv__place *p)
{
    hv_workspace_free(&p->workspace);
    free(p->path);
    free(p->name);
    free(p);
}

const struct hv_workspace *hv__place_workspace(const struct hv__place *p)
{
    return &p->workspace;
}

const char *hv__place_path(const struct hv__place *p)
{
    return p->path;
}

const char *hv__place_name(const struct hv__place *p)
{
    return p->name;
}

const char *hv__place_base_name(const char *path, size_t *n)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    *n = strlen(base);
    if (*n > 5 && strcmp(base + *n - 5, ".json") == 0) {
        *n -= 5;
    }
    return base;
}

/* Destination of the next save: the folder, or the single file; none for a workspace read from a
 * pipe. */
static void take_path(struct hv__place *p, const char *path)
{
    struct stat st;
    size_t n = 0;
    if (strcmp(path, "-") == 0 || stat(path, &st) != 0) {
        return;
    }
    const char *base = hv__place_base_name(path, &n);
    bool as_given = S_ISDIR(st.st_mode) || strcmp(base, "workspace.json") != 0;
    p->path = hv_xstrdup(as_given ? path : p->workspace.folder);
}

enum hv_status hv__place_read(struct hv__place *p, const char *path, struct hv__docs *docs,
                              struct hv_err *err)
{
    enum hv_status st = hv_workspace_read(&p->workspace, path, err);
    if (st == HV_OK) {
        st = hv_workspace_inputs(&p->workspace, hv__docs_inputs(docs), err);
    }
    if (st != HV_OK) {
        return st;
    }
    take_path(p, path);
    hv__place_stamp(p);
    free(p->name);
    p->name = hv_xstrdup(p->workspace.name);
    const struct hv_workspace_ref *refs[HV_DOC_INPUTS] = {&p->workspace.cluster,
                                                          &p->workspace.model, &p->workspace.job};
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        hv__docs_set_ref(docs, (enum hv_doc)d, refs[d]->name);
    }
    hv__docs_begin(docs, json_object_get(p->workspace.json.root, "strategies"));
    return HV_OK;
}

/* ---- has another program written it? --------------------------------------------------------- */

static struct hv__stamp stamp_of(const char *path)
{
    struct stat st;
    if (path == NULL || stat(path, &st) != 0) {
        return (struct hv__stamp){0};
    }
    return (struct hv__stamp){.known = true,
                              .file = (uint64_t)st.st_ino,
                              .bytes = (uint64_t)st.st_size,
                              .changed_s = (int64_t)st.st_mtim.tv_sec,
                              .changed_ns = (int64_t)st.st_mtim.tv_nsec};
}

void hv__place_stamp(struct hv__place *p)
{
    p->stamp = stamp_of(p->workspace.path);
}

enum hv_status hv__place_check_unchanged(struct hv__place *p, struct hv_err *err)
{
    struct hv__stamp now = stamp_of(p->workspace.path), old = p->stamp;
    bool same = now.file == old.file && now.bytes == old.bytes && now.changed_s == old.changed_s &&
                now.changed_ns == old.changed_ns;
    if (!now.known || !old.known || same || p->overwrite) {
        return HV_OK;
    }
    p->overwrite = true;
    return hv_err_set(err, HV_EIO,
                      "the file changed on disk; save again to overwrite, or :write FOLDER");
}
