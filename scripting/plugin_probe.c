/*
 * Reads a plugin's metadata by running its chunk in a child process, so that a chunk that hangs
 * inside one call of C or crashes costs an error, not the program. Not for strategy runs (those
 * have a worker of their own).
 */
#include "scripting/plugin_int.h"
#include "solver/base/json.h"
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

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Runs the chunk for its metadata, in this process. */
static enum hv_status run_for_meta(const char *path, const char *name, json_t **out,
                                   struct hv_err *err)
{
    const struct hv_host_limits limits = {
        .memory_bytes = META_MEMORY, .instructions = META_BUDGET, .deadline_s = META_DEADLINE_S};
    struct hv_host *h = NULL;
    enum hv_status s = hv_host_new(&h, &limits, err);

    *out = NULL;
    if (s == HV_OK)
        s = hv__plugin_push(h, path, name, err);
    if (s == HV_OK)
        s = hv__plugin_meta(h, out, err);
    hv_host_free(h);
    return s;
}

/** The child: one JSON value to the pipe, {"meta": …} or {"status", "file", "line", "text"}. */
static void answer(int fd, const char *path, const char *name)
{
    struct hv_err err = {0};
    struct hv_str text = {0};
    json_t *meta = NULL, *root = json_object();

    enum hv_status s = run_for_meta(path, name, &meta, &err);
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
    for (size_t at = 0; at < text.n;) {
        ssize_t n = write(fd, text.p + at, text.n - at);
        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
}

/** Takes what the child writes until it closes the pipe; false when the time is up first. */
static bool listen_to(int fd, struct hv_str *text)
{
    double end_s = now_s() + PROBE_LIMIT_S;
    char buf[1 << 14];

    while (text->n < ANSWER_LIMIT) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        double left_s = end_s - now_s();
        int ready = left_s > 0 ? poll(&p, 1, (int)(left_s * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t n = read(fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return true;
        hv_str_add(text, buf, (size_t)n);
    }
    return false;
}

/** From the child's answer to metadata or an error. */
static enum hv_status understand(const struct hv_str *text, const char *name, json_t **out,
                                 struct hv_err *err)
{
    struct hv_json j = {0};

    if (text->n == 0 || hv_json_parse(&j, hv_str_cstr(text), text->n, name, NULL) != HV_OK)
        return hv_err_at(err, HV_EPLUGIN, name, 0, 0, "reading the plugin crashes");
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

enum hv_status hv__plugin_probe(const char *path, const char *name, json_t **out,
                                struct hv_err *err)
{
    struct hv_str text = {0};
    int fd[2];

    *out = NULL;
    if (pipe(fd) != 0)
        return hv_err_set(err, HV_EIO, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fd[0]);
        answer(fd[1], path, name);
        _exit(0);
    }
    (void)close(fd[1]);
    enum hv_status s = HV_OK;
    if (pid < 0)
        s = hv_err_set(err, HV_EIO, "cannot start a process: %s", strerror(errno));
    else if (!listen_to(fd[0], &text))
        s = hv_err_at(err, HV_EPLUGIN, name, 1, 0, "the plugin cannot be read in %g s",
                      PROBE_LIMIT_S);
    (void)close(fd[0]);
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (s == HV_OK)
        s = understand(&text, name, out, err);
    hv_str_free(&text);
    return s;
}
