/*
 * The output of a worker: lines become events, its end becomes one last event. Not for reading from
 * descriptors (pool.c).
 */
#include "ui/process/pool_int.h"

#include "solver/base/units.h"
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

void hv__pool_tell(struct hv_pool *p, const struct hv__worker *w, struct hv_pool_event ev)
{
    ev.id = w->id;
    ev.text = ev.text != NULL ? ev.text : "";
    ev.tail = ev.tail != NULL ? ev.tail : "";
    ev.elapsed_s = hv__pool_now(p) - w->started_s;
    if (p->on_event != NULL) {
        p->on_event(p->ctx, &ev);
    }
}

/* Records why the worker's output is invalid and ends the worker. */
static void distrust(struct hv__worker *w, const char *what, const char *line, size_t n)
{
    if (w->broken.n > 0) {
        return;
    }
    hv_str_addf(&w->broken, "the worker wrote %s", what);
    if (line != NULL) {
        hv_str_adds(&w->broken, ": \"");
        hv_text_clean(&w->broken, line, n < 60 ? n : 60);
        hv_str_adds(&w->broken, n < 60 ? "\"" : "…\"");
    }
    w->killed = true;
    hv__pool_worker_signal(w, SIGKILL);
}

static double number_of(const json_t *event, const char *key)
{
    const json_t *v = json_object_get(event, key);
    return json_is_number(v) && isfinite(json_number_value(v)) ? json_number_value(v) : HV_UNKNOWN;
}

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text != NULL ? text : "";
}

static void keep(json_t **slot, json_t *event)
{
    json_decref(*slot);
    *slot = json_incref(event);
}

static void report(struct hv_pool *p, struct hv__worker *w, json_t *event, const char *name)
{
    static const struct {
        const char *name, *seconds;
        enum hv_pool_event_kind kind;
    } rows[] = {
        {"progress", "", HV_POOL_PROGRESS},      {"incumbent", "iteration_s", HV_POOL_INCUMBENT},
        {"bound", "iteration_s", HV_POOL_BOUND}, {"log", "", HV_POOL_LOG},
        {"answer", "", HV_POOL_ANSWER},
    };
    if (strcmp(name, "result") == 0) {
        keep(&w->result, event);
    }
    if (strcmp(name, "error") == 0) {
        keep(&w->error, event);
    }
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (strcmp(name, rows[i].name) != 0) {
            continue;
        }
        double frac = number_of(event, "frac");
        hv__pool_tell(p, w,
                      (struct hv_pool_event){.kind = rows[i].kind,
                                             .frac = frac < 0 ? 0 : (frac > 1 ? 1 : frac),
                                             .seconds = number_of(event, rows[i].seconds),
                                             .text = text_of(event, "text"),
                                             .line = event});
    }
}

static void take_line(struct hv_pool *p, struct hv__worker *w, const char *line, size_t n)
{
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' ')) {
        n--;
    }
    if (n == 0 || w->broken.n > 0) {
        return;
    }
    struct hv_json json = {0};
    if (hv_json_parse(&json, line, n, "worker", NULL) != HV_OK) {
        distrust(w, "a line that is not a JSON value", line, n);
        return;
    }
    const char *name = json_string_value(json_object_get(json.root, "event"));
    if (name == NULL) {
        distrust(w, "a line that is not an event", line, n);
    } else {
        report(p, w, json.root, name);
    }
    hv_json_free(&json);
}

void hv__pool_worker_take(struct hv_pool *p, struct hv__worker *w, const char *bytes, size_t n)
{
    while (n > 0 && w->broken.n == 0) {
        const char *end = memchr(bytes, '\n', n);
        size_t part = end != NULL ? (size_t)(end - bytes) : n;
        if (w->line.n + part > HV_POOL_LINE_LIMIT) {
            distrust(w, "a line of more than 16 MiB", NULL, 0);
            break;
        }
        if (end != NULL && w->line.n == 0) {
            take_line(p, w, bytes, part);
        } else {
            hv_str_add(&w->line, bytes, part);
            if (end != NULL) {
                take_line(p, w, hv_str_cstr(&w->line), w->line.n);
                hv_str_clear(&w->line);
            }
        }
        part += end != NULL;
        bytes += part;
        n -= part;
    }
}

void hv__pool_worker_take_rest(struct hv_pool *p, struct hv__worker *w)
{
    if (w->line.n > 0) {
        take_line(p, w, hv_str_cstr(&w->line), w->line.n);
    }
    hv_str_clear(&w->line);
}

void hv__pool_worker_take_stderr(struct hv__worker *w, const char *bytes, size_t n)
{
    if (n > HV_POOL_STDERR_KEPT) {
        bytes += n - HV_POOL_STDERR_KEPT;
        n = HV_POOL_STDERR_KEPT;
    }
    size_t keep_n = w->tail_n + n > HV_POOL_STDERR_KEPT ? HV_POOL_STDERR_KEPT - n : w->tail_n;
    memmove(w->tail, w->tail + w->tail_n - keep_n, keep_n);
    memcpy(w->tail + keep_n, bytes, n);
    w->tail_n = keep_n + n;
    w->tail[w->tail_n] = '\0';
}

/* "ended by signal 11 (Segmentation fault)" or "ended with status 3". */
static void describe_end(struct hv_str *out, int status)
{
    if (WIFSIGNALED(status)) {
        hv_str_addf(out, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        hv_str_addf(out, "ended with status %d%s", WEXITSTATUS(status),
                    WEXITSTATUS(status) == 127 ? " (its program could not be started)" : "");
    }
}

void hv__pool_worker_conclude(struct hv_pool *p, struct hv__worker *w, int status)
{
    struct hv_str text = {0};
    struct hv_pool_event ev = {.kind = HV_POOL_FAILED, .frac = HV_UNKNOWN, .seconds = HV_UNKNOWN};
    if (w->broken.n > 0) {
        hv_str_addf(&text, "%s", hv_str_cstr(&w->broken));
    } else if (w->result != NULL) {
        ev.kind = HV_POOL_RESULT;
        ev.line = w->result;
    } else if (w->cancelled) {
        ev.kind = HV_POOL_CANCELLED;
        ev.timed_out = w->timed_out;
        hv_str_addf(&text, "%s; the worker ",
                    w->timed_out ? "stopped by the time limit" : "cancelled");
        describe_end(&text, status);
    } else if (w->error != NULL) {
        const char *said = text_of(w->error, "text");
        hv_str_adds(&text, said[0] != '\0' ? said : "the worker reported an error without a text");
        ev.line = w->error;
    } else {
        hv_str_adds(&text, "the worker ");
        describe_end(&text, status);
        hv_str_adds(&text, " before it had a result");
    }
    ev.text = hv_str_cstr(&text);
    ev.tail = w->tail;
    hv__pool_tell(p, w, ev);
    hv_str_free(&text);
}
