/*
 * The list of plugins: finds the files, reads their metadata through the cache. Not for running
 * strategies (run.c).
 */
#include "scripting/plugin/plugin.h"
#include "scripting/plugin/plugin_int.h"
#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/base/vec.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX    4
#define FILES_MAX    4096
#define CACHE_FORMAT "hetviz.plugin-cache/1"

/** A file on the way to becoming a plugin. */
struct found {
    char *path, *name;
    uint64_t hash;
    char key[32]; /**< in the cache */
    bool alone;   /**< it requires no other file */
    bool run;     /**< its chunk has to be run */
    json_t *meta; /**< or NULL: `error` says why */
    char *error;  /**< on the heap */
};
/** State of a scan. */
struct scan {
    HV_VEC(struct found) files;
    json_t *old_cache, *new_cache;
    bool changed;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/** Names in a folder, sorted: what is found does not depend on the file system. */
static char **folder_names(const char *folder, size_t *n)
{
    HV_VEC(char *) names = {0};
    DIR *d = opendir(folder);

    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d)) {
        if (e->d_name[0] != '.' && names.n < FILES_MAX) {
            hv_vec_push(&names, hv_xstrdup(e->d_name));
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    if (names.n > 0) {
        qsort(names.items, names.n, sizeof *names.items, compare_names);
    }
    *n = names.n;
    return names.items;
}

/* Recursion is bounded by DEPTH_MAX. */
static void scan_folder(struct scan *s, const char *folder, const char *label, int depth)
{
    size_t n = 0;
    char **names = folder_names(folder, &n);

    for (size_t i = 0; i < n; i++) {
        struct hv_str path = {0}, name = {0};
        struct stat st;
        hv_str_addf(&path, "%s/%s", folder, names[i]);
        hv_str_addf(&name, "%s/%s", label, names[i]);
        bool there = stat(hv_str_cstr(&path), &st) == 0;
        if (there && S_ISDIR(st.st_mode) && depth < DEPTH_MAX) {
            scan_folder(s, hv_str_cstr(&path), hv_str_cstr(&name), depth + 1);
        } else if (there && S_ISREG(st.st_mode) && hv_text_ends_with(names[i], ".lua") &&
                   s->files.n < FILES_MAX) {
            hv_vec_push(&s->files, (struct found){.path = hv_xstrdup(hv_str_cstr(&path)),
                                                  .name = hv_xstrdup(hv_str_cstr(&name))});
        }
        hv_str_free(&path);
        hv_str_free(&name);
        free(names[i]);
    }
    free(names);
}

static void scan_user_folders(struct scan *s)
{
    struct hv_str user = {0};
    const char *more = getenv("HETVIZ_PLUGINS");

    if (hv_user_dir(&user, HV_DIR_DATA, NULL) == HV_OK) {
        hv_str_adds(&user, "/plugins");
        scan_folder(s, hv_str_cstr(&user), "user/plugins", 0);
    }
    while (more != NULL && *more != '\0') {
        size_t n = strcspn(more, ":");
        hv_str_clear(&user);
        hv_str_add(&user, more, n);
        if (n > 0) {
            scan_folder(s, hv_str_cstr(&user), hv_str_cstr(&user), 0);
        }
        more += n + (more[n] == ':');
    }
    hv_str_free(&user);
}

static bool cache_path(struct hv_str *out)
{
    if (hv_user_dir(out, HV_DIR_CACHE, NULL) != HV_OK) {
        return false;
    }
    hv_str_adds(out, "/plugins.json");
    return true;
}

/** The cached metadata by hash; anything odd about the file means an empty cache. */
static json_t *read_cache(void)
{
    struct hv_str path = {0}, text = {0};
    struct hv_json j = {0};
    json_t *entries = NULL;

    if (cache_path(&path) && hv_file_read(hv_str_cstr(&path), &text, NULL) == HV_OK &&
        hv_json_parse(&j, hv_str_cstr(&text), text.n, "plugins.json", NULL) == HV_OK) {
        const char *format = json_string_value(json_object_get(j.root, "format"));
        const char *version = json_string_value(json_object_get(j.root, "version"));
        if (format != NULL && strcmp(format, CACHE_FORMAT) == 0 && version != NULL &&
            strcmp(version, HV_VERSION) == 0) {
            entries = json_incref(json_object_get(j.root, "plugins"));
        }
    }
    hv_json_free(&j);
    hv_str_free(&text);
    hv_str_free(&path);
    if (!json_is_object(entries)) {
        json_decref(entries);
        entries = json_object();
    }
    return entries;
}

/** A cache that cannot be written is no error: the next start is slower. */
static void write_cache(json_t *entries)
{
    struct hv_str path = {0}, text = {0};
    json_t *root = json_object();

    json_object_set_new(root, "format", json_string(CACHE_FORMAT));
    json_object_set_new(root, "version", json_string(HV_VERSION));
    json_object_set(root, "plugins", entries);
    hv_json_write(&text, root, true);
    bool ok = hv_user_dir(&path, HV_DIR_CACHE, NULL) == HV_OK &&
              hv_file_mkdirs(hv_str_cstr(&path), NULL) == HV_OK;
    hv_str_clear(&path);
    if (ok && cache_path(&path)) {
        ok = hv_file_write_soon(hv_str_cstr(&path), hv_str_cstr(&text), text.n, NULL) == HV_OK;
    }
    (void)ok;
    json_decref(root);
    hv_str_free(&path);
    hv_str_free(&text);
}

static char *error_text(const struct hv_err *err)
{
    char text[1400];
    return hv_xstrdup(hv_err_format(err, text, sizeof text));
}

/** Reads and hashes a file and looks for it in the cache. */
static void look_up(struct scan *scan, struct found *f)
{
    struct hv_str text = {0};
    struct hv_err err = {0};

    if (hv_file_read(f->path, &text, &err) != HV_OK) {
        f->error = error_text(&err);
        hv_str_free(&text);
        return;
    }
    f->hash = hv_hash(HV_HASH_START, hv_str_cstr(&text), text.n);
    f->alone = strstr(hv_str_cstr(&text), "require") == NULL;
    hv_str_free(&text);
    /* the name is part of what an error says */
    uint64_t both = hv_hash(f->hash, f->name, strlen(f->name));
    (void)snprintf(f->key, sizeof f->key, "%016llx", (unsigned long long)both);
    json_t *entry = json_object_get(scan->old_cache, f->key);
    f->run = entry == NULL;
    if (entry == NULL) {
        return;
    }
    json_object_set(scan->new_cache, f->key, entry);
    const char *why = json_string_value(json_object_get(entry, "broken"));
    if (why != NULL) {
        f->error = hv_xstrdup(why);
    } else {
        f->meta = json_incref(entry);
    }
}

/**
 * Keeps what running the file told. A file that cannot be used is kept with the reason only where
 * it stands alone: one that requires another may be right tomorrow without a change of its own.
 */
static void take_probe(struct scan *scan, struct found *f, const struct hv__probe *p)
{
    json_t *entry = NULL;

    f->meta = p->meta;
    if (p->status == HV_OK) {
        entry = json_incref(p->meta);
    } else {
        f->error = error_text(&p->err);
        if (p->status == HV_EPLUGIN && f->alone) {
            entry = json_pack("{s:s}", "broken", f->error); /* NULL where it is not UTF-8 */
        }
    }
    if (entry == NULL) {
        return;
    }
    json_object_set_new(scan->new_cache, f->key, entry);
    scan->changed = true;
}

/** Runs the chunks of all files that the cache does not know. */
static void run_unknown(struct scan *scan, struct hv_plugins *list)
{
    struct hv__probe *probes = hv_xcalloc(scan->files.n + 1, sizeof *probes);
    size_t n = 0;

    for (size_t i = 0; i < scan->files.n; i++) {
        if (scan->files.items[i].run) {
            probes[n++] = (struct hv__probe){.path = scan->files.items[i].path,
                                             .name = scan->files.items[i].name};
        }
    }
    hv__plugin_probe(probes, n);
    list->n_run += n;
    n = 0;
    for (size_t i = 0; i < scan->files.n; i++) {
        if (scan->files.items[i].run) {
            take_probe(scan, &scan->files.items[i], &probes[n++]);
        }
    }
    free(probes);
}

/** Id of a plugin that could not be read: its file's name. */
static const char *id_of_file(struct hv_arena *a, const char *path)
{
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    return hv_arena_strndup(a, base, strlen(base) - strlen(".lua"));
}

/** The list's row for a file. */
static struct hv_plugin row_of(struct hv_plugins *list, struct found *f)
{
    struct hv_plugin p = {.path = hv_arena_strdup(&list->arena, f->path),
                          .name = hv_arena_strdup(&list->arena, f->name),
                          .hash = f->hash};
    struct hv_err err = {0};

    if (f->meta != NULL) {
        json_array_append(list->meta, f->meta);
        if (hv__plugin_fill(&p, f->meta, &list->arena, &err) != HV_OK) {
            f->error = error_text(&err);
        }
    }
    if (f->error != NULL) {
        p.error = hv_arena_strdup(&list->arena, f->error);
        p.id = id_of_file(&list->arena, f->path);
        p.title = p.id;
        p.kind = p.system = p.reference = p.summary = "";
        p.n_options = 0;
        memset(p.has, 0, sizeof p.has);
    }
    return p;
}

static int compare_plugins(const void *pa, const void *pb)
{
    const struct hv_plugin *a = pa, *b = pb;
    return strcmp(a->id, b->id);
}

/** Reads all found files into the list; of equal ids the later file stays. */
static void read_all(struct scan *scan, struct hv_plugins *list)
{
    list->items = hv_arena_new(&list->arena, struct hv_plugin, scan->files.n + 1);
    for (size_t i = 0; i < scan->files.n; i++) {
        look_up(scan, &scan->files.items[i]);
    }
    run_unknown(scan, list);
    for (size_t i = 0; i < scan->files.n; i++) {
        struct hv_plugin p = row_of(list, &scan->files.items[i]);
        size_t at = 0;
        while (at < list->n && strcmp(list->items[at].id, p.id) != 0) {
            at++;
        }
        list->items[at] = p;
        list->n += at == list->n;
    }
    qsort(list->items, list->n, sizeof *list->items, compare_plugins);
}

static void free_scan(struct scan *s)
{
    for (size_t i = 0; i < s->files.n; i++) {
        free(s->files.items[i].path);
        free(s->files.items[i].name);
        free(s->files.items[i].error);
        json_decref(s->files.items[i].meta);
    }
    hv_vec_free(&s->files);
    json_decref(s->old_cache);
    json_decref(s->new_cache);
}

enum hv_status hv_plugins_read(struct hv_plugins *out, struct hv_err *err)
{
    struct scan scan = {0};
    struct hv_str shipped = {0};

    *out = (struct hv_plugins){.meta = json_array()};
    enum hv_status s = hv_data_path(&shipped, "plugins", err);
    if (s == HV_OK) {
        scan_folder(&scan, hv_str_cstr(&shipped), "plugins", 0);
        scan_user_folders(&scan);
        scan.old_cache = read_cache();
        scan.new_cache = json_object();
        read_all(&scan, out);
        if (scan.changed) {
            write_cache(scan.new_cache);
        }
    }
    hv_str_free(&shipped);
    free_scan(&scan);
    return s;
}

enum hv_status hv_plugins_read_file(struct hv_plugins *out, const char *path, struct hv_err *err)
{
    struct hv_plugin p = {0};

    *out = (struct hv_plugins){.meta = json_array(), .n_run = 1};
    p.path = p.name = hv_arena_strdup(&out->arena, path);
    struct hv__probe probe = {.path = p.path, .name = p.name};
    hv__plugin_probe(&probe, 1);
    enum hv_status s = probe.status;
    struct hv_str text = {0};
    if (s == HV_OK && hv_file_read(path, &text, NULL) == HV_OK) {
        p.hash = hv_hash(HV_HASH_START, hv_str_cstr(&text), text.n);
    }
    hv_str_free(&text);
    if (s == HV_OK) {
        json_array_append_new(out->meta, probe.meta);
        s = hv__plugin_fill(&p, probe.meta, &out->arena, err);
    } else if (err != NULL) {
        *err = probe.err;
    }
    if (s == HV_OK) {
        out->items = hv_arena_copy(&out->arena, &p, 1, sizeof p);
    }
    out->n = s == HV_OK;
    return s;
}

void hv_plugins_free(struct hv_plugins *p)
{
    json_decref(p->meta);
    hv_arena_free(&p->arena);
    *p = (struct hv_plugins){0};
}

const struct hv_plugin *hv_plugins_find(const struct hv_plugins *p, const char *id)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->items[i].id, id) == 0) {
            return &p->items[i];
        }
    }
    return NULL;
}

enum hv_status hv_plugins_get(const struct hv_plugins *p, const char *id,
                              const struct hv_plugin **out, struct hv_err *err)
{
    *out = hv_plugins_find(p, id);
    if (*out != NULL && (*out)->error == NULL) {
        return HV_OK;
    }
    if (*out != NULL) {
        return hv_err_set(err, HV_EPLUGIN, "%s", (*out)->error);
    }
    const char **names = hv_xcalloc(p->n + 1, sizeof *names);
    for (size_t i = 0; i < p->n; i++) {
        names[i] = p->items[i].id;
    }
    const char *near = hv_suggest(id, names, p->n);
    free(names);
    if (near != NULL) {
        return hv_err_set(err, HV_EUSAGE, "unknown strategy '%s', did you mean '%s'?", id, near);
    }
    return hv_err_set(err, HV_EUSAGE, "unknown strategy '%s' (see `hetviz strategies`)", id);
}
