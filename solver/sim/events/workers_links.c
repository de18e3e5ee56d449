/*
 * Exchanges of workers that share links: each goes at the share of its speed that the fullest of
 * its links leaves it, where those on a link that is asked for more than it has are slowed alike
 * (processor sharing). Speeds change when one begins or ends.
 */
#include "solver/sim/events/workers_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Shares of time that are left by rounding. */
#define ROUNDING 1e-12

static void advance(struct hv__exchanges *x, double now_s)
{
    for (size_t i = 0; i < x->n; i++) {
        struct hv__exchange *e = &x->items[i];
        e->left_s = fmax(0, e->left_s - e->rate * (now_s - x->at_s));
    }
    x->at_s = now_s;
}

static void set_rates(struct hv__exchanges *x)
{
    memset(x->load, 0, x->n_links * sizeof *x->load);
    for (size_t i = 0; i < x->n; i++) {
        const struct hv__exchange *e = &x->items[i];
        for (size_t k = 0; k < e->links.n; k++) {
            x->load[e->links.items[k].link] += e->links.items[k].share;
        }
    }
    for (size_t i = 0; i < x->n; i++) {
        struct hv__exchange *e = &x->items[i];
        double most = 1;
        for (size_t k = 0; k < e->links.n; k++) {
            most = fmax(most, e->links.items[k].share > 0 ? x->load[e->links.items[k].link] : 0);
        }
        e->rate = 1 / most;
    }
}

/* Copies the lists of an exchange into memory of its own. */
static void keep_lists(struct hv__exchange *e)
{
    size_t links = e->links.n * sizeof *e->links.items, waits = e->n * sizeof *e->waited_s;
    unsigned char *room = hv_xmalloc(links + waits + e->n * sizeof *e->members + 1);
    e->room = room;
    if (links > 0) {
        e->links.items = memcpy(room, e->links.items, links);
    }
    e->waited_s = memcpy(room + links, e->waited_s, waits);
    e->members = memcpy(room + links + waits, e->members, e->n * sizeof *e->members);
}

void hv__exchanges_add(struct hv__exchanges *x, double now_s, const struct hv__exchange *e)
{
    advance(x, now_s);
    if (x->n == x->cap) {
        x->cap = 2 * x->cap + 8;
        x->items = hv_xrealloc(x->items, x->cap, sizeof *x->items);
    }
    struct hv__exchange *own = &x->items[x->n++];
    *own = *e;
    own->start_s = now_s;
    keep_lists(own);
    set_rates(x);
}

double hv__exchanges_next(const struct hv__exchanges *x)
{
    double next_s = HUGE_VAL;
    for (size_t i = 0; i < x->n; i++) {
        next_s = fmin(next_s, x->at_s + x->items[i].left_s / x->items[i].rate);
    }
    return next_s;
}

bool hv__exchanges_take(struct hv__exchanges *x, double now_s, struct hv__exchange *out)
{
    advance(x, now_s);
    for (size_t i = 0; i < x->n; i++) {
        if (x->items[i].left_s <= ROUNDING * (1 + now_s)) {
            *out = x->items[i];
            x->n--;
            memmove(&x->items[i], &x->items[i + 1], (x->n - i) * sizeof *x->items);
            set_rates(x);
            return true;
        }
    }
    return false;
}

void hv__exchanges_free(struct hv__exchanges *x)
{
    for (size_t i = 0; i < x->n; i++) {
        free(x->items[i].room);
    }
    free(x->items);
}
