/*
 * Reads the metadata of plugins by running their chunks in a child process behind walls, so that a
 * chunk that hangs inside one call of C or crashes costs an error, not the program. One child reads
 * plugin after plugin; after a crash or a time-out another child continues behind the plugin that
 * caused it.
 */
#include "scripting/host/message.h"
#include "scripting/plugin/plugin_host.h"
#include "scripting/plugin/plugin_int.h"
#include "solver/base/json/json.h"
#include "solver/base/str.h"

#include <string.h>
#include <unistd.h>

#define META_MEMORY     ((size_t)64 << 20)
#define META_BUDGET     INT64_C(50000000)
#define META_DEADLINE_S 2.0
#define PROBE_LIMIT_S   3.0
#define ANSWER_LIMIT    ((size_t)8 << 20)
#define FILES_PER_CHILD 8
#define CHILDREN_MAX    8

/** Runs a chunk in the host for its metadata. */
static enum hv_status run_chunk(struct hv_host *h, const struct hv__probe *p, json_t **out,
                                struct hv_err *err)
{
    enum hv_status s = hv__plugin_push(h->L, p->path, p->name, err);

    *out = NULL;
    if (s == HV_OK) {
        s = hv__plugin_meta(h, out, err);
    }
    lua_settop(h->L, 0);
    return s;
}

/**
 * Runs the chunk for its metadata, in this process. The host in *h is reused from one plugin to the
 * next: each plugin has an environment of its own, and libraries are compiled once. A host with an
 * error, or with much garbage, is thrown away; a chunk that fails in a used host is tried again in
 * a fresh one.
 */
static enum hv_status run_for_meta(struct hv_host **h, const struct hv__probe *p, json_t **out,
                                   struct hv_err *err)
{
    const struct hv_host_limits limits = {
        .memory_bytes = META_MEMORY, .instructions = META_BUDGET, .deadline_s = META_DEADLINE_S};
    bool used = *h != NULL, killed = false;
    enum hv_status s = HV_OK;

    if (used) {
        hv__host_rearm(*h);
    } else {
        s = hv_plugin_host_new(h, &limits, err);
    }
    if (s == HV_OK) {
        s = run_chunk(*h, p, out, err);
    }
    if (*h != NULL && (s != HV_OK || hv_host_used_bytes(*h) > META_MEMORY / 8)) {
        killed = (*h)->killed != NULL;
        hv_host_free(*h);
        *h = NULL;
    }
    return s != HV_OK && used && !killed ? run_for_meta(h, p, out, err) : s;
}

/** Probes of one child. */
struct batch {
    struct hv__probe *probes;
    size_t n;
};

/** The child: one line for each probe, {"meta": …} or {"error": …}. */
static void answer_all(void *ctx, struct hv__cell_inside *inside)
{
    const struct batch *b = ctx;
    struct hv_host *h = NULL;

    for (size_t i = 0; i < b->n; i++) {
        struct hv_err err = {0};
        json_t *meta = NULL;
        enum hv_status s = run_for_meta(&h, &b->probes[i], &meta, &err);
        json_t *line = s == HV_OK ? json_pack("{s:o}", "meta", meta)
                                  : json_pack("{s:o}", "error", hv__pack_err(s, &err));
        hv__message_send(inside, line);
    }
    hv_host_free(h);
}

/** Starts a child that answers for the probes in order; without one the first probe has the error.
 */
static void start_child(struct hv__cell *c, struct batch *b)
{
    const struct hv__cell_work work = {.run = answer_all, .ctx = b, .limit_s = PROBE_LIMIT_S};

    b->probes[0].status = hv__cell_start(c, &work, &b->probes[0].err);
}

/** From the child's answer to metadata or an error. */
static enum hv_status understand(const char *line, size_t n, const char *name, json_t **out,
                                 struct hv_err *err)
{
    struct hv_json message = {0};
    enum hv_status s = HV_OK;

    if (n > ANSWER_LIMIT) {
        return hv_err_at(err, HV_EPLUGIN, name, 1, 0, "its declaration is larger than %zu MiB",
                         ANSWER_LIMIT >> 20);
    }
    /* the cache's reader: what it refuses cannot be a declaration */
    if (hv_json_parse(&message, line, n, name, NULL) != HV_OK) {
        return hv_err_at(err, HV_EPLUGIN, name, 0, 0, "the plugin crashes while it is read");
    }
    *out = json_incref(json_object_get(message.root, "meta"));
    if (*out == NULL) {
        struct hv_err own = {0};
        struct hv_str clean = {0};
        s = hv__unpack_err(json_object_get(message.root, "error"), &own);
        s = s == HV_EIO ? HV_EIO : HV_EPLUGIN;
        bool placed = own.file[0] != '\0';
        hv_text_clean(&clean, own.text, strlen(own.text));
        hv_err_at(err, s, placed ? own.file : name, placed ? own.line : 1, 0, "%s",
                  hv_str_cstr(&clean));
        hv_str_free(&clean);
    }
    hv_json_free(&message);
    return s;
}

/** Takes the answer for one probe; false when the child can no longer be used. */
static bool take_answer(struct hv__cell *c, struct hv__probe *p)
{
    const char *line = NULL;
    size_t n = 0;

    hv__cell_rewind(c);
    enum hv__heard heard = hv__cell_next(c, &line, &n);
    if (heard == HV__CELL_LINE) {
        p->status = understand(line, n, p->name, &p->meta, &p->err);
        return true;
    }
    p->status =
        heard == HV__CELL_END
            ? hv_err_at(&p->err, HV_EPLUGIN, p->name, 1, 0, "the plugin crashes while it is read")
            : hv_err_at(&p->err, HV_EPLUGIN, p->name, 1, 0, "the plugin cannot be read in %g s",
                        PROBE_LIMIT_S);
    return false;
}

/** Reads the answers of a child for its probes; where the child is lost, another continues. */
static void take_answers(struct hv__cell *c, const struct batch *all)
{
    for (size_t i = 0; i < all->n; i++) {
        if (c->fd < 0) {
            struct batch rest = {all->probes + i, all->n - i};
            start_child(c, &rest);
        }
        if (c->fd >= 0 && !take_answer(c, &all->probes[i])) {
            (void)hv__cell_end(c);
        }
    }
    (void)hv__cell_end(c);
}

/** How many children share so many files. */
static size_t children_for(size_t n)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = cores > 1 ? (size_t)cores : 1, wanted = n / FILES_PER_CHILD + 1;

    most = most < CHILDREN_MAX ? most : CHILDREN_MAX;
    return wanted < most ? wanted : most;
}

void hv__plugin_probe(struct hv__probe *probes, size_t n)
{
    struct hv__cell children[CHILDREN_MAX];
    struct batch batches[CHILDREN_MAX];
    size_t n_children = n > 0 ? children_for(n) : 0;

    for (size_t k = 0; k < n; k++) {
        probes[k].meta = NULL;
    }
    for (size_t c = 0; c < n_children; c++) {
        size_t from = n * c / n_children, to = n * (c + 1) / n_children;
        batches[c] = (struct batch){probes + from, to - from};
        start_child(&children[c], &batches[c]);
    }
    for (size_t c = 0; c < n_children; c++) {
        take_answers(&children[c], &batches[c]);
    }
}
