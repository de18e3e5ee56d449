/*
 * Finds plugins on disk and hashes their files. Metadata is in meta.c, the list of plugins in
 * plugin.c.
 */
#include "scripting/plugin/find.h"
#include "solver/base/file.h"
#include "solver/base/rng.h"
#include "solver/base/str.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 4
/* Most entries of one folder, plugins, and folders that are searched; beyond that is said. */
#define ENTRIES_MAX 1000000
#define FILES_MAX   65536
#define FOLDERS_MAX FILES_MAX

/** Sorted names of a folder, without hidden ones. */
struct names {
    HV_VEC(char *) list;
    int why;  /**< errno where the folder could not be read, else 0 */
    bool cut; /**< it has more than ENTRIES_MAX */
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/** Sorts the names, so that the result does not depend on the order of the file system. */
static struct names folder_names(const char *folder)
{
    struct names names = {0};
    DIR *d = opendir(folder);

    names.why = d == NULL ? errno : 0;
    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        if (e->d_name[0] == '.') {
            continue;
        }
        if (names.list.n == ENTRIES_MAX) {
            names.cut = true;
            break;
        }
        hv_vec_push(&names.list, hv_xstrdup(e->d_name));
    }
    if (d != NULL) {
        closedir(d);
    }
    if (names.list.n > 0) {
        qsort(names.list.items, names.list.n, sizeof *names.list.items, compare_names);
    }
    return names;
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->list.n; i++) {
        free(names->list.items[i]);
    }
    hv_vec_free(&names->list);
}

static char *joined(const char *folder, const char *name)
{
    struct hv_str path = {0};
    hv_str_addf(&path, "%s/%s", folder, name);
    char *out = hv_xstrdup(hv_str_cstr(&path));
    hv_str_free(&path);
    return out;
}

/** Adds a plugin; takes ownership of the texts. */
static void add_found(struct hv__found_list *out, struct hv__found f)
{
    hv_vec_push(&out->files, f);
}

/** Adds a plugin that cannot be read; takes ownership of path and name. */
static void add_unreadable(struct hv__found_list *out, char *path, char *name, const char *why)
{
    struct hv_str text = {0};
    hv_str_addf(&text, "%s:1: %s", name, why);
    add_found(out, (struct hv__found){
                       .path = path, .name = name, .error = hv_xstrdup(hv_str_cstr(&text))});
    hv_str_free(&text);
}

/** The same for something that is no regular file. */
static void add_no_file(struct hv__found_list *out, char *path, char *name, mode_t mode)
{
    char why[64];
    (void)snprintf(why, sizeof why, "this is %s, expected a file", hv_file_kind(mode));
    add_unreadable(out, path, name, why);
}

/** Adds the plugin of a folder that has something named plugin.lua; false when it has not. */
static bool add_folder_plugin(struct hv__found_list *out, const char *folder, const char *label)
{
    char *path = joined(folder, HV__PLUGIN_FILE);
    struct stat st;

    if (lstat(path, &st) != 0) {
        free(path);
        return false;
    }
    char *name = joined(label, HV__PLUGIN_FILE);
    if (stat(path, &st) != 0) {
        add_unreadable(out, path, name, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        add_no_file(out, path, name, st.st_mode);
    } else {
        add_found(out, (struct hv__found){.path = path, .name = name, .in_folder = true});
    }
    return true;
}

/** A folder that is searched, inside those that lead to it. */
struct level {
    const struct level *up;
    const char *folder, *label;
    dev_t device;
    ino_t inode;
    int depth;
};

/** True where the folder is one of those that lead to it: a link that makes a circle. */
static bool is_circle(const struct level *up, const struct stat *st)
{
    for (; up != NULL; up = up->up) {
        if (up->device == st->st_dev && up->inode == st->st_ino) {
            return true;
        }
    }
    return false;
}

static void find_below(struct hv__found_list *out, const struct level *at);

/** Takes one entry of a folder; ownership of path and name. */
static void take_entry(struct hv__found_list *out, const struct level *at, char *path, char *name)
{
    struct stat st;
    bool there = stat(path, &st) == 0, named = hv_text_ends_with(name, ".lua");

    if (there && S_ISDIR(st.st_mode)) {
        const struct level below = {at, path, name, st.st_dev, st.st_ino, at->depth + 1};
        if (at->depth < DEPTH_MAX && !is_circle(at, &st)) {
            find_below(out, &below);
        }
    } else if (named && there && S_ISREG(st.st_mode)) {
        add_found(out, (struct hv__found){.path = path, .name = name, .below_root = at->depth > 0});
        return;
    } else if (named && there) {
        add_no_file(out, path, name, st.st_mode);
        return;
    }
    free(path);
    free(name);
}

/** Says once per root that not everything is read. */
static void add_full(struct hv__found_list *out, const struct level *at)
{
    const struct level *root = at;

    while (root->up != NULL) {
        root = root->up;
    }
    char why[128];
    (void)snprintf(why, sizeof why,
                   "there are more plugins or folders below than the %d that are read", FILES_MAX);
    add_unreadable(out, hv_xstrdup(root->folder), hv_xstrdup(root->label), why);
    out->full = true;
}

/* Recursion is bounded by DEPTH_MAX. */
static void find_below(struct hv__found_list *out, const struct level *at)
{
    if (at->depth > 0 && add_folder_plugin(out, at->folder, at->label)) {
        return;
    }
    struct names names = folder_names(at->folder);
    out->n_folders++;
    if (names.why != 0 && names.why != ENOENT) {
        add_unreadable(out, hv_xstrdup(at->folder), hv_xstrdup(at->label), strerror(names.why));
    }
    for (size_t i = 0; i < names.list.n && !out->full; i++) {
        if (out->files.n >= FILES_MAX || out->n_folders > FOLDERS_MAX) {
            add_full(out, at);
            break;
        }
        take_entry(out, at, joined(at->folder, names.list.items[i]),
                   joined(at->label, names.list.items[i]));
    }
    if (names.cut && !out->full) {
        add_full(out, at);
    }
    free_names(&names);
}

void hv__plugins_find(struct hv__found_list *out, const char *root, const char *label)
{
    struct stat st = {0};
    bool there = stat(root, &st) == 0;
    const struct level at = {.folder = root,
                             .label = label,
                             .device = there ? st.st_dev : 0,
                             .inode = there ? st.st_ino : 0};

    out->full = false;
    out->n_folders = 0;
    find_below(out, &at);
}

void hv__found_free(struct hv__found_list *list)
{
    for (size_t i = 0; i < list->files.n; i++) {
        free(list->files.items[i].path);
        free(list->files.items[i].name);
        free(list->files.items[i].error);
    }
    hv_vec_free(&list->files);
}

bool hv__is_plugin_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(slash != NULL ? slash + 1 : path, HV__PLUGIN_FILE) == 0;
}

/** The folder of a file, as a new text. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct hv_str folder = {0};

    hv_str_add(&folder, slash != NULL ? path : ".", slash != NULL ? (size_t)(slash - path) : 1);
    char *out = hv_xstrdup(hv_str_cstr(&folder));
    hv_str_free(&folder);
    return out;
}

bool hv__has_selftest_file(const char *path)
{
    char *folder = folder_of(path), *file = joined(folder, HV__SELFTEST_FILE);
    struct stat st;
    bool there = stat(file, &st) == 0 && S_ISREG(st.st_mode);

    free(file);
    free(folder);
    return there;
}

/** A hash in progress. */
struct hashing {
    uint64_t hash;
    bool alone;
};

/** Adds a file's bytes. */
static enum hv_status hash_file(struct hashing *h, const char *path, struct hv_err *err)
{
    struct hv_str text = {0};
    enum hv_status s = hv_file_read_regular(path, &text, err);

    if (s == HV_OK) {
        h->hash = hv_hash(h->hash, hv_str_cstr(&text), text.n);
        h->alone = h->alone && strstr(hv_str_cstr(&text), "require") == NULL;
    }
    hv_str_free(&text);
    return s;
}

/** True where the bytes of a file of a plugin's folder, at that depth, are not hashed with the
 * folder: plugin.lua, which is hashed first, and the self-tests, which `hetviz selftest` reads each
 * time.
 */
static bool is_hashed_apart(const char *name, int depth)
{
    return depth == 0 &&
           (strcmp(name, HV__PLUGIN_FILE) == 0 || strcmp(name, HV__SELFTEST_FILE) == 0);
}

/* Recursion is bounded by DEPTH_MAX. An unreadable module is reported when it is required. */
static void hash_folder(struct hashing *h, const char *folder, int depth)
{
    struct names names = folder_names(folder);

    for (size_t i = 0; i < names.list.n; i++) {
        char *path = joined(folder, names.list.items[i]);
        struct stat st;
        bool there = stat(path, &st) == 0;
        if (there && S_ISREG(st.st_mode) && hv_text_ends_with(path, ".lua")) {
            h->hash = hv_hash(h->hash, names.list.items[i], strlen(names.list.items[i]) + 1);
            bool apart = is_hashed_apart(names.list.items[i], depth);
            if (!apart && hash_file(h, path, NULL) != HV_OK) {
                h->hash = hv_hash(h->hash, "?", 1);
            }
        } else if (there && S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
            h->hash = hv_hash(h->hash, names.list.items[i], strlen(names.list.items[i]) + 1);
            hash_folder(h, path, depth + 1);
        }
        free(path);
    }
    free_names(&names);
}

enum hv_status hv__plugin_hash(const char *path, bool in_folder, uint64_t *hash, bool *alone,
                               struct hv_err *err)
{
    struct hashing h = {HV_HASH_START, true};
    enum hv_status s = hash_file(&h, path, err);

    if (s == HV_OK && in_folder) {
        char *folder = folder_of(path);
        hash_folder(&h, folder, 0);
        free(folder);
    }
    *hash = h.hash;
    *alone = h.alone;
    return s;
}
