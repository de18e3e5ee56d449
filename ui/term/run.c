/* The event loop: drain input, draw once, wait. There are no wake-ups while nothing is due. */
#include <time.h>

#include "ui/term/term.h"

/* 30 frames a second at most while events keep coming. */
#define FRAME_MS 33
#define MAX_FDS  32

static int64_t now_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Handles one event; false when the program ends. */
static bool handle(struct hv_app *app, const struct hv_term_watch *watch, const struct hv_event *ev,
                   int *signo)
{
    if (ev->type == HV_EV_QUIT) {
        *signo = ev->signo;
    }
    if (ev->type == HV_EV_FD && watch && watch->ready) {
        watch->ready(watch->ctx, app, ev->fd);
    }
    return hv_app_feed(app, ev) && !hv_app_is_done(app);
}

/* Takes what is pending until nothing is left or a frame is due. */
static bool drain(const struct hv_term_ops *ops, struct hv_term *t, struct hv_app *app,
                  const struct hv_term_watch *watch, int *signo)
{
    int fds[MAX_FDS];
    int64_t start = now_ms();
    while (now_ms() - start < FRAME_MS) {
        size_t n = watch && watch->list ? watch->list(watch->ctx, fds, MAX_FDS) : 0;
        struct hv_event ev = ops->wait_event(t, 0, fds, n);
        if (ev.type == HV_EV_NONE) {
            return true;
        }
        if (!handle(app, watch, &ev, signo)) {
            return false;
        }
    }
    return true;
}

/* Context of the functions by which the app uses the terminal (struct hv_app_terminal). */
struct lent {
    const struct hv_term_ops *ops;
    struct hv_term *t;
};

static void give(void *ctx)
{
    const struct lent *l = ctx;
    l->ops->suspend(l->t);
}

static bool mouse(void *ctx, bool on)
{
    const struct lent *l = ctx;
    return l->ops->mouse(l->t, on);
}

static enum hv_status theme(void *ctx, const char *name, struct hv_err *err)
{
    const struct lent *l = ctx;
    struct hv_theme t;
    enum hv_status st = hv_theme_named(&t, name, err);
    if (st == HV_OK && !l->ops->theme(l->t, &t)) {
        st = hv_err_set(err, HV_ENO, "there is no terminal whose colours could change");
    }
    return st;
}

static void take(void *ctx, struct hv_app *app)
{
    const struct lent *l = ctx;
    int w, h;
    l->ops->resume(l->t);
    l->ops->size(l->t, &w, &h);
    struct hv_event ev = hv_event_resize(w, h);
    (void)hv_app_feed(app, &ev);
}

int hv_term_run(const struct hv_term_ops *ops, struct hv_term *t, struct hv_app *app,
                const struct hv_term_watch *watch)
{
    struct hv_grid grid = {0};
    int fds[MAX_FDS], signo = 0, w, h;
    struct lent lent = {ops, t};
    ops->size(t, &w, &h);
    struct hv_event ev = hv_event_resize(w, h);
    hv_app_set_terminal(app, (struct hv_app_terminal){give, take, mouse, theme, &lent});
    if (ops->is_ascii(t)) { /* else the user's setting applies */
        hv_app_set_ascii(app, true);
    }
    bool go = hv_app_feed(app, &ev);
    while (go) {
        hv_app_tick(app, now_ms());
        if (hv_app_is_done(app)) {
            break;
        }
        if (hv_app_is_dirty(app)) {
            hv_app_set_mono(app, ops->is_mono(t));
            hv_app_draw(app, &grid);
            ops->present(t, &grid);
        }
        size_t n = watch && watch->list ? watch->list(watch->ctx, fds, MAX_FDS) : 0;
        ev = ops->wait_event(t, hv_app_timeout_ms(app), fds, n);
        go = ev.type == HV_EV_NONE ||
             (handle(app, watch, &ev, &signo) && drain(ops, t, app, watch, &signo));
    }
    hv_app_set_terminal(app, (struct hv_app_terminal){0});
    hv_grid_free(&grid);
    return signo;
}
