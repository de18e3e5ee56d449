/*
 * The list of plugins: finds the files, reads their metadata through the cache. Not for running
 * strategies (run.c).
 */
#include "scripting/plugin.h"
#include "scripting/plugin_int.h"
#include "solver/base/file.h"
#include "solver/base/json.h"
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
};
/** State of a scan. */
struct scan {
    HV_VEC(struct found) files;
    struct hv_str text; /**< of the file in hand */
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

    for (struct dirent *e = d != NULL ? readdir(d) : NULL; e != NULL; e = readdir(d))
        if (e->d_name[0] != '.' && names.n < FILES_MAX)
            hv_vec_push(&names, hv_xstrdup(e->d_name));
    if (d != NULL)
        closedir(d);
    if (names.n > 0)
        qsort(names.items, names.n, sizeof *names.items, compare_names);
    *n = names.n;
    return names.items;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && strcmp(s + n - m, end) == 0;
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
        if (there && S_ISDIR(st.st_mode) && depth < DEPTH_MAX)
            scan_folder(s, hv_str_cstr(&path), hv_str_cstr(&name), depth + 1);
        else if (there && S_ISREG(st.st_mode) && ends_with(names[i], ".lua") &&
                 s->files.n < FILES_MAX)
            hv_vec_push(&s->files, (struct found){hv_xstrdup(hv_str_cstr(&path)),
                                                  hv_xstrdup(hv_str_cstr(&name))});
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
        if (n > 0)
            scan_folder(s, hv_str_cstr(&user), hv_str_cstr(&user), 0);
        more += n + (more[n] == ':');
    }
    hv_str_free(&user);
}

static bool cache_path(struct hv_str *out)
{
    if (hv_user_dir(out, HV_DIR_CACHE, NULL) != HV_OK)
        return false;
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
            strcmp(version, HV_VERSION) == 0)
            entries = json_incref(json_object_get(j.root, "plugins"));
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
    if (ok && cache_path(&path))
        ok = hv_file_write(hv_str_cstr(&path), hv_str_cstr(&text), text.n, NULL) == HV_OK;
    (void)ok;
    json_decref(root);
    hv_str_free(&path);
    hv_str_free(&text);
}

/**
 * What stands in the cache for a file that cannot be used: the reason. Only where the file stands
 * alone: one that requires another may be right tomorrow without a change of its own.
 */
static json_t *broken_entry(const struct scan *scan, enum hv_status s, const struct hv_err *err)
{
    char text[1400];
    bool alone = strstr(hv_str_cstr(&scan->text), "require") == NULL;

    if (s != HV_EPLUGIN || !alone)
        return NULL;
    json_t *why = json_string(hv_err_format(err, text, sizeof text));
    return why != NULL ? json_pack("{s:o}", "broken", why) : NULL;
}

/** Metadata of the file in hand, from the cache or by running it. */
static enum hv_status get_meta(struct scan *scan, struct hv_plugins *list,
                               const struct hv_plugin *p, json_t **out, struct hv_err *err)
{
    char key[32];

    /* the name is part of what an error says */
    uint64_t hash = hv_hash(p->hash, p->name, strlen(p->name));
    snprintf(key, sizeof key, "%016llx", (unsigned long long)hash);
    *out = json_incref(json_object_get(scan->old_cache, key));
    if (*out == NULL) {
        enum hv_status s = hv__plugin_probe(p->path, p->name, out, err);
        list->n_run++;
        if (s != HV_OK)
            *out = broken_entry(scan, s, err);
        if (*out == NULL)
            return s;
        scan->changed = true;
    }
    json_object_set(scan->new_cache, key, *out);
    const char *why = json_string_value(json_object_get(*out, "broken"));
    if (why == NULL)
        return HV_OK;
    hv_err_set(err, HV_EPLUGIN, "%s", why);
    json_decref(*out);
    *out = NULL;
    return HV_EPLUGIN;
}

static const char *error_text(struct hv_plugins *list, const struct hv_err *err)
{
    char text[1400];
    return hv_arena_strdup(&list->arena, hv_err_format(err, text, sizeof text));
}

/** Id of a plugin that could not be read: its file's name. */
static const char *id_of_file(struct hv_arena *a, const char *path)
{
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    return hv_arena_strndup(a, base, strlen(base) - strlen(".lua"));
}

static struct hv_plugin read_one(struct scan *scan, struct hv_plugins *list, const struct found *f)
{
    struct hv_plugin p = {.path = hv_arena_strdup(&list->arena, f->path),
                          .name = hv_arena_strdup(&list->arena, f->name)};
    struct hv_err err = {0};
    json_t *meta = NULL;

    hv_str_clear(&scan->text);
    enum hv_status s = hv_file_read(f->path, &scan->text, &err);
    p.hash = hv_hash(HV_HASH_START, hv_str_cstr(&scan->text), scan->text.n);
    if (s == HV_OK)
        s = get_meta(scan, list, &p, &meta, &err);
    if (s == HV_OK)
        s = hv__plugin_fill(&p, meta, &list->arena, &err);
    if (s != HV_OK) {
        p.error = error_text(list, &err);
        p.id = id_of_file(&list->arena, f->path);
        p.title = p.id;
        p.kind = p.system = p.reference = p.summary = "";
        p.n_options = 0;
        memset(p.has, 0, sizeof p.has);
    }
    if (meta != NULL)
        json_array_append_new(list->meta, meta);
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
        struct hv_plugin p = read_one(scan, list, &scan->files.items[i]);
        size_t at = 0;
        while (at < list->n && strcmp(list->items[at].id, p.id) != 0)
            at++;
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
    }
    hv_vec_free(&s->files);
    hv_str_free(&s->text);
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
        if (scan.changed)
            write_cache(scan.new_cache);
    }
    hv_str_free(&shipped);
    free_scan(&scan);
    return s;
}

enum hv_status hv_plugins_read_file(struct hv_plugins *out, const char *path, struct hv_err *err)
{
    struct hv_plugin p = {0};
    json_t *meta = NULL;

    *out = (struct hv_plugins){.meta = json_array(), .n_run = 1};
    p.path = p.name = hv_arena_strdup(&out->arena, path);
    enum hv_status s = hv__plugin_probe(path, path, &meta, err);
    if (s == HV_OK) {
        json_array_append_new(out->meta, meta);
        s = hv__plugin_fill(&p, meta, &out->arena, err);
    }
    if (s == HV_OK)
        out->items = hv_arena_copy(&out->arena, &p, 1, sizeof p);
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
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->items[i].id, id) == 0)
            return &p->items[i];
    return NULL;
}

enum hv_status hv_plugins_get(const struct hv_plugins *p, const char *id,
                              const struct hv_plugin **out, struct hv_err *err)
{
    *out = hv_plugins_find(p, id);
    if (*out != NULL && (*out)->error == NULL)
        return HV_OK;
    if (*out != NULL)
        return hv_err_set(err, HV_EPLUGIN, "%s", (*out)->error);
    const char **names = hv_xcalloc(p->n + 1, sizeof *names);
    for (size_t i = 0; i < p->n; i++)
        names[i] = p->items[i].id;
    const char *near = hv_suggest(id, names, p->n);
    free(names);
    if (near != NULL)
        return hv_err_set(err, HV_EUSAGE, "unknown strategy '%s', did you mean '%s'?", id, near);
    return hv_err_set(err, HV_EUSAGE, "unknown strategy '%s' (see `hetviz strategies`)", id);
}
