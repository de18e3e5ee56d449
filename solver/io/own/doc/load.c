/* Documents by name: files, and files that hetviz ships. */
#include "solver/io/own/doc/load.h"

#include "solver/base/file.h"
#include "solver/base/save/save.h"
#include "solver/base/vec.h"
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void hv__doc_beside(struct hv_str *out, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    if (slash != NULL && name[0] != '/' && strcmp(name, "-") != 0) {
        hv_str_add(out, path, (size_t)(slash - path) + 1);
        hv_str_adds(out, name);
        if (stat(hv_str_cstr(out), &st) == 0 && S_ISREG(st.st_mode)) {
            return;
        }
        hv_str_clear(out);
    }
    hv_str_adds(out, name);
}

/* Names without ".json" of the folder's files; each and the list are on the heap. */
static size_t list_names(const char *folder, char ***out)
{
    struct hv_str path = {0};
    HV_VEC(char *) names = {0};
    DIR *d = hv_data_path(&path, folder, NULL) == HV_OK ? opendir(hv_str_cstr(&path)) : NULL;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        size_t n = strlen(e->d_name);
        if (n > 5 && strcmp(e->d_name + n - 5, ".json") == 0) {
            char *s = hv_xstrdup(e->d_name);
            s[n - 5] = '\0';
            hv_vec_push(&names, s);
        }
    }
    if (d) {
        closedir(d);
    }
    hv_str_free(&path);
    *out = names.items;
    return names.n;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum hv_status not_found(const char *name, const char *folder, struct hv_err *err)
{
    char **names = NULL;
    size_t n = list_names(folder, &names);
    if (n > 1) {
        qsort(names, n, sizeof *names, by_name); /* makes messages deterministic */
    }
    const char *near = hv_suggest(name, (const char *const *)names, n);
    enum hv_status st =
        hv_err_set(err, HV_EIO, "%.200s: neither a file nor a name in %s%s%s%s", name, folder,
                   near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    for (size_t i = 0; i < n; i++) {
        free(names[i]);
    }
    free(names);
    return st;
}

static enum hv_status find_shipped(struct hv_str *path, const char *name, const char *folder)
{
    struct hv_str shipped = {0};
    hv_str_addf(&shipped, "%s/%s.json", folder, name);
    enum hv_status st = hv_data_path(path, hv_str_cstr(&shipped), NULL);
    hv_str_free(&shipped);
    return st;
}

static enum hv_status find_file(struct hv_str *path, const char *name, const char *folder,
                                struct hv_err *err)
{
    if (strcmp(name, "-") == 0 || strchr(name, '/') || access(name, F_OK) == 0) {
        hv_str_adds(path, name);
        return HV_OK;
    }
    if (find_shipped(path, name, folder) == HV_OK) {
        return HV_OK;
    }
    /* the catalogue of models is listed first, then small samples of other kinds */
    if (strcmp(folder, "share/models") == 0 &&
        find_shipped(path, name, "samples/models") == HV_OK) {
        return HV_OK;
    }
    return not_found(name, folder, err);
}

enum hv_status hv__doc_find(struct hv_str *path, const char *path_or_name, const char *folder,
                            struct hv_err *err)
{
    enum hv_status st = find_file(path, path_or_name, folder, err);
    return st == HV_OK ? hv_save_recover_beside(hv_str_cstr(path), err) : st;
}

enum hv_status hv__doc_load(struct hv_json *out, const char *path_or_name, const char *folder,
                            struct hv_err *err)
{
    struct hv_str path = {0}, text = {0};
    *out = (struct hv_json){0};
    enum hv_status st = hv__doc_find(&path, path_or_name, folder, err);
    if (st == HV_OK) {
        st = hv_file_read(hv_str_cstr(&path), &text, err);
    }
    if (st == HV_OK) {
        st = hv_json_parse(out, hv_str_cstr(&text), text.n, hv_str_cstr(&path), err);
    }
    hv_str_free(&path);
    hv_str_free(&text);
    return st;
}
