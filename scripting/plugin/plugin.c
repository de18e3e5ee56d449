/*
 * The list of plugins: reads the metadata of the plugins that find.c has found, through the cache.
 * Strategies are run in worker/run.c.
 */
#include "scripting/plugin/plugin.h"
#include "scripting/plugin/find.h"
#include "scripting/plugin/plugin_int.h"
#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CACHE_FORMAT "hetviz.plugin-cache/3"

/** A plugin on its way into the list. */
struct row {
    const struct hv__found *file;
    uint64_t hash;
    char key[32]; /**< in the cache */
    bool alone;   /**< it requires no other file */
    bool run;     /**< its chunk has to be run */
    json_t *meta; /**< or NULL: `error` holds the reason */
    char *error;  /**< on the heap */
};
/** State of a scan. */
struct scan {
    struct hv__found_list found;
    size_t n_shipped; /**< the first files found lie in the shipped folder */
    struct row *rows; /**< [found.files.n] */
    json_t *old_cache, *new_cache;
    bool changed;
};

static void find_all(struct scan *s, const char *shipped)
{
    struct hv_str user = {0};
    const char *more = getenv("HETVIZ_PLUGINS");

    hv__plugins_find(&s->found, shipped, "plugins");
    s->n_shipped = s->found.files.n;
    if (hv_user_dir(&user, HV_DIR_DATA, NULL) == HV_OK) {
        hv_str_adds(&user, "/plugins");
        hv__plugins_find(&s->found, hv_str_cstr(&user), hv_str_cstr(&user));
    }
    while (more != NULL && *more != '\0') {
        size_t n = strcspn(more, ":");
        hv_str_clear(&user);
        hv_str_add(&user, more, n);
        if (n > 0) {
            hv__plugins_find(&s->found, hv_str_cstr(&user), hv_str_cstr(&user));
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

/** A cache that cannot be written is not an error; the next start is slower. */
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

/** Hashes a plugin's files and looks for it in the cache. */
static void look_up(struct scan *scan, struct row *f)
{
    struct hv_err err = {0};

    if (f->file->error != NULL) {
        f->error = hv_xstrdup(f->file->error);
        return;
    }
    if (hv__plugin_hash(f->file->path, f->file->in_folder, &f->hash, &f->alone, &err) != HV_OK) {
        f->error = error_text(&err);
        return;
    }
    /* the name is part of the error text */
    uint64_t both = hv_hash(f->hash, f->file->name, strlen(f->file->name));
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
 * Stores the result of running the file. An unusable file is stored with the reason only where it
 * requires no other file: otherwise a change of the other file may make it usable.
 */
static void take_probe(struct scan *scan, struct row *f, const struct hv__probe *p)
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
    size_t n_rows = scan->found.files.n, n = 0;
    struct hv__probe *probes = hv_xcalloc(n_rows + 1, sizeof *probes);

    for (size_t i = 0; i < n_rows; i++) {
        if (scan->rows[i].run) {
            const struct hv__found *file = scan->rows[i].file;
            probes[n++] = (struct hv__probe){.path = file->path, .name = file->name};
        }
    }
    hv__plugin_probe(probes, n);
    list->n_run += n;
    n = 0;
    for (size_t i = 0; i < n_rows; i++) {
        if (scan->rows[i].run) {
            take_probe(scan, &scan->rows[i], &probes[n++]);
        }
    }
    free(probes);
}

/** Id of a plugin that could not be read: the name of its folder or file. */
static const char *id_of_file(struct hv_arena *a, const char *path)
{
    size_t n = strlen(path);

    if (hv__is_plugin_file(path)) {
        n -= strlen("/" HV__PLUGIN_FILE) <= n ? strlen("/" HV__PLUGIN_FILE) : 0;
    } else if (hv_text_ends_with(path, ".lua")) {
        n -= strlen(".lua");
    }
    size_t from = n;
    while (from > 0 && path[from - 1] != '/') {
        from--;
    }
    return hv_arena_strndup(a, path + from, n - from);
}

/** Fills a row of the list that holds only an error. */
static void fill_broken(struct hv_plugin *p, struct hv_plugins *list, const char *error)
{
    p->error = hv_arena_strdup(&list->arena, error);
    p->id = id_of_file(&list->arena, p->path);
    p->title = p->id;
    p->kind = p->system = p->reference = p->summary = "";
    p->n_options = 0;
    memset(p->has, 0, sizeof p->has);
}

/** Strategies with their places in the order in which they were found. */
struct placed {
    struct hv_plugin plugin;
    size_t at;
};
struct placed_list {
    HV_VEC(struct placed) rows;
};

static void add_placed(struct placed_list *out, struct hv_plugin p)
{
    hv_vec_push(&out->rows, ((struct placed){p, out->rows.n}));
}

/** Adds what cannot be used, with the reason. */
static void add_broken(struct placed_list *out, struct hv_plugins *list, struct hv_plugin p,
                       const struct hv__found *file, const char *error)
{
    struct hv_str text = {0};

    hv_str_adds(&text, error);
    if (file->below_root) {
        hv_str_adds(&text, "; its folder has no " HV__PLUGIN_FILE ", so each file is a plugin");
    }
    fill_broken(&p, list, hv_str_cstr(&text));
    hv_str_free(&text);
    add_placed(out, p);
}

/** Fills the strategy of one row's tree; prefixes an error with the row. */
static enum hv_status fill_row(struct hv_plugin *p, struct hv_plugins *list, json_t *meta,
                               json_t *tree, struct hv_err *err)
{
    struct hv_err own = {0};

    json_array_append(list->meta, tree);
    p->family = tree != meta ? id_of_file(&list->arena, p->path) : NULL;
    enum hv_status s = hv__plugin_fill(p, tree, &list->arena, &own);
    if (s != HV_OK && err != NULL) {
        const char *id = json_string_value(json_object_get(tree, "id"));
        *err = own;
        if (p->family != NULL) {
            (void)snprintf(err->text, sizeof err->text, "row '%s': %.900s", id != NULL ? id : "",
                           (const char *)own.text);
        }
    }
    return s;
}

/** Adds the strategies of a file: one, or the rows of a family. A family with a row that cannot be
 * used is one broken row. */
static enum hv_status add_rows(struct placed_list *out, struct hv_plugins *list,
                               struct hv_plugin file, json_t *meta, struct hv_err *err)
{
    json_t *trees = NULL;
    size_t before = out->rows.n;
    enum hv_status s = hv__plugin_rows(meta, file.name, &trees, err);

    for (size_t i = 0; s == HV_OK && i < json_array_size(trees); i++) {
        struct hv_plugin p = file;
        s = fill_row(&p, list, meta, json_array_get(trees, i), err);
        add_placed(out, p);
    }
    if (s != HV_OK) {
        out->rows.n = before;
    }
    json_decref(trees);
    return s;
}

/** Adds the strategies of a file that was found, or why it has none. */
static void add_found(struct placed_list *out, struct hv_plugins *list, struct row *f, bool shipped)
{
    struct hv_plugin p = {.path = hv_arena_strdup(&list->arena, f->file->path),
                          .name = hv_arena_strdup(&list->arena, f->file->name),
                          .in_folder = f->file->in_folder,
                          .shipped = shipped,
                          .hash = f->hash};
    struct hv_err err = {0};

    if (f->meta != NULL && add_rows(out, list, p, f->meta, &err) != HV_OK) {
        f->error = error_text(&err);
    }
    if (f->error != NULL) {
        add_broken(out, list, p, f->file, f->error);
    }
}

static int compare_placed(const void *pa, const void *pb)
{
    const struct placed *a = pa, *b = pb;
    int order = strcmp(a->plugin.id, b->plugin.id);
    return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

/** Fills the list, sorted by id; of equal ids the one found last stays. O(n log n). */
static void fill_list(struct hv_plugins *list, struct placed *rows, size_t n)
{
    if (n > 0) {
        qsort(rows, n, sizeof *rows, compare_placed);
    }
    list->items = hv_arena_new(&list->arena, struct hv_plugin, n + 1);
    for (size_t i = 0; i < n; i++) {
        bool same = i > 0 && strcmp(rows[i].plugin.id, rows[i - 1].plugin.id) == 0;
        rows[i].plugin.hides = same ? rows[i - 1].plugin.name : NULL;
        list->n -= same;
        list->items[list->n++] = rows[i].plugin;
    }
}

/** Reads all plugins that were found into the list. */
static void read_all(struct scan *scan, struct hv_plugins *list)
{
    size_t n_rows = scan->found.files.n;

    scan->rows = hv_xcalloc(n_rows + 1, sizeof *scan->rows);
    for (size_t i = 0; i < n_rows; i++) {
        scan->rows[i].file = &scan->found.files.items[i];
        look_up(scan, &scan->rows[i]);
    }
    run_unknown(scan, list);
    struct placed_list placed = {0};
    for (size_t i = 0; i < n_rows; i++) {
        add_found(&placed, list, &scan->rows[i], i < scan->n_shipped);
    }
    fill_list(list, placed.rows.items, placed.rows.n);
    hv_vec_free(&placed.rows);
}

static void free_scan(struct scan *s)
{
    for (size_t i = 0; s->rows != NULL && i < s->found.files.n; i++) {
        free(s->rows[i].error);
        json_decref(s->rows[i].meta);
    }
    free(s->rows);
    hv__found_free(&s->found);
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
        find_all(&scan, hv_str_cstr(&shipped));
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

bool hv_plugin_is_path(const char *name)
{
    return strchr(name, '/') != NULL || (strlen(name) > 4 && hv_text_ends_with(name, ".lua"));
}

/** The file of a plugin that is named by its file or folder, in the list's arena. */
static const char *file_of(struct hv_plugins *list, const char *path)
{
    struct hv_str file = {0};
    struct stat st;
    size_t n = strlen(path);

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        while (n > 1 && path[n - 1] == '/') {
            n--;
        }
        hv_str_addf(&file, "%.*s/" HV__PLUGIN_FILE, (int)n, path);
    } else {
        hv_str_adds(&file, path);
    }
    const char *out = hv_arena_strdup(&list->arena, hv_str_cstr(&file));
    hv_str_free(&file);
    return out;
}

/** True where the path lies in the shipped folder. */
static bool is_shipped(const char *path)
{
    struct hv_str folder = {0};
    bool found = hv_data_path(&folder, "plugins", NULL) == HV_OK;

    found = found && strncmp(path, hv_str_cstr(&folder), folder.n) == 0 && path[folder.n] == '/';
    hv_str_free(&folder);
    return found;
}

/** The strategies of a probe's tree, in the order of the file. */
static enum hv_status take_rows(struct hv_plugins *out, struct hv_plugin file, json_t *meta,
                                struct hv_err *err)
{
    struct placed_list placed = {0};
    enum hv_status s = add_rows(&placed, out, file, meta, err);

    out->items = hv_arena_new(&out->arena, struct hv_plugin, placed.rows.n + 1);
    for (size_t i = 0; i < placed.rows.n; i++) {
        out->items[out->n++] = placed.rows.items[i].plugin;
    }
    hv_vec_free(&placed.rows);
    return s;
}

enum hv_status hv_plugins_read_file(struct hv_plugins *out, const char *path, struct hv_err *err)
{
    struct hv_plugin p = {0};
    bool alone = false;

    *out = (struct hv_plugins){.meta = json_array(), .n_run = 1};
    p.path = p.name = file_of(out, path);
    p.in_folder = hv__is_plugin_file(p.path);
    p.shipped = is_shipped(p.path);
    struct hv__probe probe = {.path = p.path, .name = p.name};
    hv__plugin_probe(&probe, 1);
    enum hv_status s = probe.status;
    if (s == HV_OK && hv__plugin_hash(p.path, p.in_folder, &p.hash, &alone, NULL) != HV_OK) {
        p.hash = 0; /* the file was removed meanwhile: the next check finds the plugin changed */
    }
    if (s == HV_OK) {
        s = take_rows(out, p, probe.meta, err);
        json_decref(probe.meta);
    } else if (err != NULL) {
        *err = probe.err;
    }
    return s;
}

bool hv_plugin_is_current(const struct hv_plugin *p)
{
    uint64_t hash = 0;
    bool alone = false;
    return p->error == NULL &&
           hv__plugin_hash(p->path, p->in_folder, &hash, &alone, NULL) == HV_OK && hash == p->hash;
}

void hv_plugins_free(struct hv_plugins *p)
{
    json_decref(p->meta);
    hv_arena_free(&p->arena);
    *p = (struct hv_plugins){0};
}
