/* Result files: lines appended whole, a torn end cut off, one writer at a time. */
#include "solver/sweep/shard_file.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/sweep/figures.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "shard-"
#define SUFFIX ".jsonl"

struct hv_shard_file {
    int fd;
    char *path;
};

const char *hv_sweep_state_word(enum hv_sweep_state s)
{
    static const char *const words[] = {
#define X(c, word, again) word,
        HV_SWEEP_STATE_MAP(X)
#undef X
    };
    return (unsigned)s < HV_SWEEP_STATE_N ? words[s] : "?";
}

enum hv_sweep_state hv_sweep_state_of(const char *word)
{
    int s = 0;
    while (s < HV_SWEEP_STATE_N &&
           (word == NULL || strcmp(word, hv_sweep_state_word((enum hv_sweep_state)s)) != 0)) {
        s++;
    }
    return (enum hv_sweep_state)s;
}

bool hv_sweep_state_is_retried(enum hv_sweep_state s)
{
    static const bool again[] = {
#define X(c, word, retried) retried,
        HV_SWEEP_STATE_MAP(X)
#undef X
    };
    return (unsigned)s < HV_SWEEP_STATE_N && again[s];
}

/** A number where the value is one, else the label. */
static json_t *shown_value(const struct hv_sweep_value *v)
{
    return json_is_number(v->value) ? json_incref(v->value) : json_string(v->label);
}

void hv_sweep_line(const struct hv_sweep *s, const struct hv_sweep_cell *cell,
                   const struct hv_sweep_result *r, struct hv_str *out)
{
    char id[HV_SWEEP_ID_CAP];
    const json_t *simulated = json_object_get(r->plan, "simulated");
    json_t *line = json_object(), *axes = json_object();

    for (size_t i = 0; i < s->n_axes; i++) {
        json_object_set_new(axes, s->axes[i].name, shown_value(hv_sweep_value(s, cell, i)));
    }
    json_object_set_new(line, "id", json_string(hv_sweep_id_text(cell->id, id)));
    json_object_set_new(line, "strategy", json_string(s->strategies[cell->strategy]));
    json_object_set_new(line, "axes", axes);
    json_object_set_new(line, "state", json_string(hv_sweep_state_word(r->state)));
    if (r->reason != NULL && r->reason[0] != '\0') {
        json_object_set_new(line, "reason", json_string(r->reason));
    }
    if (r->plan != NULL) {
        json_object_set_new(line, "exact",
                            json_boolean(!json_is_false(json_object_get(simulated, "exact"))));
        json_object_set_new(
            line, "fits",
            json_boolean(json_array_size(json_object_get(r->plan, "violations")) == 0));
        json_object_set_new(line, "figures", hv_sweep_figures_of(simulated));
    }
    if (r->plan != NULL && s->keep == HV_SWEEP_PLANS) {
        json_object_set_new(line, "plan", json_deep_copy(r->plan));
    }
    hv_json_write(out, line, false);
    hv_str_addc(out, '\n');
    json_decref(line);
}

static enum hv_status fail(struct hv_err *err, const char *what, const char *path)
{
    return hv_err_set(err, HV_EIO, "%s: %s: %s", path, what, strerror(errno));
}

/** Calls `each` for every whole line of a file. */
static enum hv_status each_line(const char *path, hv_shard_line_fn *each, void *ctx,
                                struct hv_err *err)
{
    FILE *file = fopen(path, "re");
    struct stat info;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = 0;
    enum hv_status st = HV_OK;

    if (file == NULL || fstat(fileno(file), &info) != 0) {
        st = fail(err, "cannot be read", path);
    } else if (!S_ISREG(info.st_mode)) {
        st = hv_err_set(err, HV_EIO, "%s: expected a file of results, found %s", path,
                        hv_file_kind((unsigned)info.st_mode));
    }
    for (unsigned number = 1; st == HV_OK && (n = getline(&line, &cap, file)) > 0; number++) {
        struct hv_json json = {0};
        if (line[n - 1] != '\n') {
            break; /* its program was killed, or is writing it now */
        }
        st = hv_json_parse(&json, line, (size_t)n - 1, path, err);
        if (st != HV_OK && err != NULL) {
            err->line = number; /* every line is a text of its own */
        }
        st = st == HV_OK ? each(ctx, &json, err) : st;
        hv_json_free(&json);
    }
    if (st == HV_OK && ferror(file) != 0) {
        st = fail(err, "cannot be read", path);
    }
    free(line);
    if (file != NULL) {
        (void)fclose(file);
    }
    return st;
}

/** Which cells have a result already. */
struct resumed {
    const struct hv_sweep *s;
    bool again;
    bool *has;
    uint64_t *ids; /**< sorted, with the index of the cell behind each */
};

static int by_first(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

static enum hv_status resume_line(void *ctx, const struct hv_json *line, struct hv_err *err)
{
    struct resumed *r = ctx;
    struct hv_jp root = hv_jp_root(line), at;
    const char *id = NULL, *word = NULL;
    enum hv_status st = hv_jp_need(&root, "id", "the identity of a cell", &at, err);
    st = st == HV_OK ? hv_jp_string(&at, &id, err) : st;
    st = st == HV_OK ? hv_jp_opt_string(&root, "state", &word, err) : st;
    if (st != HV_OK) {
        return st;
    }
    uint64_t key[2] = {strtoull(id, NULL, 16), 0};
    const uint64_t *found = bsearch(key, r->ids, r->s->n_cells, sizeof key, by_first);
    if (found != NULL && !(r->again && hv_sweep_state_is_retried(hv_sweep_state_of(word)))) {
        r->has[found[1]] = true;
    }
    return HV_OK;
}

/** Takes the results that the folder has. */
static enum hv_status resume(const char *folder, const struct hv_sweep *s, bool again, bool *has,
                             struct hv_err *err)
{
    struct resumed r = {.s = s, .again = again, .has = has};
    r.ids = hv_xcalloc(2 * s->n_cells, sizeof *r.ids);
    for (size_t i = 0; i < s->n_cells; i++) {
        r.ids[2 * i] = s->cells[i].id;
        r.ids[2 * i + 1] = i;
    }
    qsort(r.ids, s->n_cells, 2 * sizeof *r.ids, by_first);
    enum hv_status st = hv_shard_each(folder, resume_line, &r, err);
    free(r.ids);
    return st;
}

/** Cuts off what stands behind the last newline. */
static enum hv_status cut_torn_line(const struct hv_shard_file *f, struct hv_err *err)
{
    char block[4096];
    off_t end = lseek(f->fd, 0, SEEK_END);

    while (end > 0) {
        off_t from = end > (off_t)sizeof block ? end - (off_t)sizeof block : 0;
        ssize_t n = pread(f->fd, block, (size_t)(end - from), from);
        if (n <= 0) {
            return fail(err, "cannot be read", f->path);
        }
        while (n > 0 && block[n - 1] != '\n') {
            n--;
        }
        end = from + n;
        if (n > 0) {
            break;
        }
    }
    return ftruncate(f->fd, end) == 0
               ? HV_OK
               : fail(err, "cannot cut off a line that is not whole", f->path);
}

enum hv_status hv_shard_open(struct hv_shard_file **out, const struct hv_sweep *s,
                             const char *folder, size_t k, size_t n, bool again, bool *has,
                             struct hv_err *err)
{
    struct hv_str path = {0};
    enum hv_status st = hv_file_mkdirs(folder, err);

    *out = NULL;
    if (st != HV_OK) {
        return st;
    }
    hv_str_addf(&path, "%s/" PREFIX "%zu-of-%zu" SUFFIX, folder, k, n);
    struct hv_shard_file *f = hv_xcalloc(1, sizeof *f);
    f->path = hv_xstrdup(hv_str_cstr(&path));
    f->fd = open(f->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (f->fd < 0) {
        st = fail(err, "cannot be opened", f->path);
    } else if (flock(f->fd, LOCK_EX | LOCK_NB) != 0) {
        st = errno == EWOULDBLOCK
                 ? hv_err_set(err, HV_EIO, "%s: another program runs this shard", f->path)
                 : fail(err, "cannot be locked", f->path);
    }
    st = st == HV_OK ? cut_torn_line(f, err) : st;
    st = st == HV_OK ? resume(folder, s, again, has, err) : st;
    hv_str_free(&path);
    if (st != HV_OK) {
        (void)hv_shard_close(f, NULL);
        return st;
    }
    *out = f;
    return HV_OK;
}

enum hv_status hv_shard_append(struct hv_shard_file *f, const struct hv_str *line,
                               struct hv_err *err)
{
    off_t before = lseek(f->fd, 0, SEEK_END);
    size_t at = 0;
    while (at < line->n) {
        ssize_t n = write(f->fd, line->p + at, line->n - at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            enum hv_status st = fail(err, "cannot be written", f->path);
            /* where this fails too, the next program that opens the file does it */
            return before >= 0 && ftruncate(f->fd, before) != 0 ? HV_EIO : st;
        }
        at += (size_t)n;
    }
    return HV_OK;
}

enum hv_status hv_shard_close(struct hv_shard_file *f, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    if (f == NULL) {
        return st;
    }
    if (f->fd >= 0) {
        bool kept = fsync(f->fd) == 0;
        kept = close(f->fd) == 0 && kept;
        st = kept ? HV_OK : fail(err, "cannot be written", f->path);
    }
    free(f->path);
    free(f);
    return st;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/** Names of the result files of a folder, sorted. Owner: caller, each and all. */
static enum hv_status list_files(const char *folder, char ***out, size_t *n, struct hv_err *err)
{
    HV_VEC(char *) names = {0};
    DIR *dir = opendir(folder);
    if (dir == NULL) {
        return fail(err, "cannot be read", folder);
    }
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 &&
            hv_text_ends_with(e->d_name, SUFFIX)) {
            hv_vec_push(&names, hv_xstrdup(e->d_name));
        }
    }
    (void)closedir(dir);
    if (names.n > 0) {
        qsort(names.items, names.n, sizeof *names.items, by_text);
    }
    *out = names.items;
    *n = names.n;
    return HV_OK;
}

enum hv_status hv_shard_each(const char *folder, hv_shard_line_fn *each, void *ctx,
                             struct hv_err *err)
{
    char **names = NULL;
    size_t n = 0;
    enum hv_status st = list_files(folder, &names, &n, err);

    for (size_t i = 0; i < n; i++) {
        struct hv_str path = {0};
        hv_str_addf(&path, "%s/%s", folder, names[i]);
        st = st == HV_OK ? each_line(hv_str_cstr(&path), each, ctx, err) : st;
        hv_str_free(&path);
        free(names[i]);
    }
    free(names);
    return st;
}
