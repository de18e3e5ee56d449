/*
 * Reads the metadata of plugins by running their chunks in a child process, so that a chunk that
 * hangs inside one call of C or crashes costs an error, not the program. One child reads plugin
 * after plugin, each in a host of its own; after a crash or a time-out another child continues
 * behind the plugin that caused it. Strategy runs have a worker of their own.
 */
#include "scripting/plugin/plugin_host.h"
#include "scripting/plugin/plugin_int.h"
#include "solver/base/json/json.h"
#include "solver/base/str.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define META_MEMORY     ((size_t)64 << 20)
#define META_BUDGET     INT64_C(50000000)
#define META_DEADLINE_S 2.0
#define PROBE_LIMIT_S   3.0
#define ANSWER_LIMIT    ((size_t)8 << 20)
#define FILES_PER_CHILD 8
#define CHILDREN_MAX    8

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

static void write_all(int fd, const struct hv_str *text)
{
    for (size_t at = 0; at < text->n;) {
        ssize_t n = write(fd, text->p + at, text->n - at);
        if (n < 0 && errno != EINTR) {
            break;
        }
        at += n > 0 ? (size_t)n : 0;
    }
}

/** The child: one line of JSON to the pipe, {"meta": …} or {"status", "file", "line", "text"}. */
static void answer(int fd, struct hv_host **h, const struct hv__probe *p)
{
    struct hv_err err = {0};
    struct hv_str text = {0};
    json_t *meta = NULL, *root = json_object();

    enum hv_status s = run_for_meta(h, p, &meta, &err);
    if (s == HV_OK) {
        json_object_set_new(root, "meta", meta);
    } else {
        struct hv_str clean = {0};
        hv_text_clean(&clean, err.text, strlen(err.text));
        json_object_set_new(root, "status", json_integer(s));
        json_object_set_new(root, "file", json_string(err.file));
        json_object_set_new(root, "line", json_integer((json_int_t)err.line));
        json_object_set_new(root, "text", json_string(hv_str_cstr(&clean)));
        hv_str_free(&clean);
    }
    hv_json_write(&text, root, false);
    hv_str_addc(&text, '\n');
    write_all(fd, &text);
    hv_str_free(&text);
    json_decref(root);
}

/** A child and its output that is not used yet. */
struct child {
    pid_t pid;
    int fd;
    struct hv_str text;
};

/** Starts a child that answers for the probes in order. */
static enum hv_status start_child(struct child *c, const struct hv__probe *probes, size_t n,
                                  struct hv_err *err)
{
    int fd[2];

    *c = (struct child){.fd = -1};
    if (pipe(fd) != 0) {
        return hv_err_set(err, HV_EIO, "cannot make a pipe: %s", strerror(errno));
    }
    c->pid = fork();
    if (c->pid == 0) {
        struct hv_host *h = NULL;
        (void)close(fd[0]);
        for (size_t i = 0; i < n; i++) {
            answer(fd[1], &h, &probes[i]);
        }
        _exit(0);
    }
    (void)close(fd[1]);
    c->fd = fd[0];
    if (c->pid < 0) {
        (void)close(c->fd);
        c->fd = -1;
        return hv_err_set(err, HV_EIO, "cannot start a process: %s", strerror(errno));
    }
    return HV_OK;
}

static void end_child(struct child *c)
{
    (void)close(c->fd);
    (void)kill(c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) {
        continue;
    }
    hv_str_free(&c->text);
    c->fd = -1;
}

enum heard { HEARD_LINE, HEARD_END, HEARD_NOTHING };

/** Waits until a whole line is there, the child closes the pipe, or the time is up. */
static enum heard listen_to(struct child *c)
{
    double end_s = now_s() + PROBE_LIMIT_S;
    char buf[1 << 14];

    while (c->text.n == 0 || memchr(c->text.p, '\n', c->text.n) == NULL) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        double left_s = end_s - now_s();
        int ready = left_s > 0 ? poll(&p, 1, (int)(left_s * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0 || c->text.n > ANSWER_LIMIT) {
            return HEARD_NOTHING;
        }
        ssize_t n = read(c->fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return HEARD_END;
        }
        hv_str_add(&c->text, buf, (size_t)n);
    }
    return HEARD_LINE;
}

/** From the child's answer to metadata or an error. */
static enum hv_status understand(const char *answer_text, size_t n, const char *name, json_t **out,
                                 struct hv_err *err)
{
    struct hv_json j = {0};

    if (hv_json_parse(&j, answer_text, n, name, NULL) != HV_OK) {
        return hv_err_at(err, HV_EPLUGIN, name, 0, 0, "the plugin crashes while it is read");
    }
    *out = json_incref(json_object_get(j.root, "meta"));
    enum hv_status s = HV_OK;
    if (*out == NULL) {
        const char *file = json_string_value(json_object_get(j.root, "file"));
        const char *what = json_string_value(json_object_get(j.root, "text"));
        json_int_t line = json_integer_value(json_object_get(j.root, "line"));
        json_int_t status = json_integer_value(json_object_get(j.root, "status"));
        bool placed = file != NULL && file[0] != '\0';
        s = status == HV_EIO ? HV_EIO : HV_EPLUGIN;
        hv_err_at(err, s, placed ? file : name, placed ? (unsigned)line : 1, 0, "%s",
                  what != NULL ? what : "the plugin cannot be read");
    }
    hv_json_free(&j);
    return s;
}

/** Takes the answer for one probe; false when the child can no longer be used. */
static bool take_answer(struct child *c, struct hv__probe *p)
{
    enum heard heard = listen_to(c);

    if (heard == HEARD_LINE) {
        size_t n = (size_t)((const char *)memchr(c->text.p, '\n', c->text.n) - c->text.p);
        p->status = understand(c->text.p, n, p->name, &p->meta, &p->err);
        memmove(c->text.p, c->text.p + n + 1, c->text.n - n - 1);
        c->text.n -= n + 1;
        return true;
    }
    p->status = heard == HEARD_END ? hv_err_at(&p->err, HV_EPLUGIN, p->name, 1, 0,
                                               "the plugin crashes while it is read")
                                   : hv_err_at(&p->err, HV_EPLUGIN, p->name, 1, 0,
                                               "the plugin cannot be read in %g s", PROBE_LIMIT_S);
    return false;
}

/** Reads the answers of a child for its probes; where the child is lost, another continues. */
static void take_answers(struct child *c, struct hv__probe *probes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (c->fd < 0) {
            probes[i].status = start_child(c, probes + i, n - i, &probes[i].err);
        }
        if (c->fd >= 0 && !take_answer(c, &probes[i])) {
            end_child(c);
        }
    }
    if (c->fd >= 0) {
        end_child(c);
    }
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
    struct child children[CHILDREN_MAX];
    size_t n_children = children_for(n);

    for (size_t k = 0; k < n; k++) {
        probes[k].meta = NULL;
    }
    for (size_t c = 0; c < n_children && n > 0; c++) {
        size_t from = n * c / n_children, to = n * (c + 1) / n_children;
        probes[from].status =
            start_child(&children[c], probes + from, to - from, &probes[from].err);
    }
    for (size_t c = 0; c < n_children && n > 0; c++) {
        size_t from = n * c / n_children, to = n * (c + 1) / n_children;
        take_answers(&children[c], probes + from, to - from);
    }
}
