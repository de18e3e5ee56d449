/* Terms of an explanation: a list that grows in its owner's arena. Layout is left to the user
 * interface. */
#include "solver/base/why.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hv_why_add(struct hv_why *w, const char *name, double value, const char *unit, const char *fmt,
                ...)
{
    if (!w) {
        return;
    }
    if (w->n == w->cap) {
        size_t cap = w->cap ? w->cap * 2 : 16;
        struct hv_why_term *grown = hv_arena_new(w->arena, struct hv_why_term, cap);
        if (w->n) {
            memcpy(grown, w->terms, w->n * sizeof *grown);
        }
        w->terms = grown;
        w->cap = cap;
    }
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    w->terms[w->n++] = (struct hv_why_term){
        .name = name, .value = value, .unit = unit, .text = hv_arena_strdup(w->arena, text)};
}

void hv_why_attach(struct hv_why *w, const struct hv_why_work *work)
{
    if (w && w->n > 0) {
        w->terms[w->n - 1].work = *work;
    }
}

void hv_why_attach_ring(struct hv_why *w, const struct hv_why_ring *ring)
{
    if (!w || w->n == 0) {
        return;
    }
    struct hv_why_term *t = &w->terms[w->n - 1];
    struct hv_why_ring *grown = hv_arena_new(w->arena, struct hv_why_ring, t->n_rings + 1);
    if (t->n_rings > 0) {
        memcpy(grown, t->rings, t->n_rings * sizeof *grown);
    }
    grown[t->n_rings] = *ring;
    grown[t->n_rings++].steps = hv_arena_copy(w->arena, ring->steps, ring->n, sizeof *ring->steps);
    t->rings = grown;
}

void hv_why_attach_rows(struct hv_why *w, const struct hv_why_rows *rows)
{
    if (!w || w->n == 0) {
        return;
    }
    struct hv_why_rows *copy = hv_arena_copy(w->arena, rows, 1, sizeof *rows);
    if (rows->ranks > 0) {
        copy->rank_rows =
            hv_arena_copy(w->arena, rows->rank_rows, rows->ranks, sizeof *rows->rank_rows);
    }
    w->terms[w->n - 1].rows = copy;
}

void hv_why_attach_blocks(struct hv_why *w, int from, int to)
{
    if (w && w->n > 0) {
        w->terms[w->n - 1].from = from;
        w->terms[w->n - 1].to = to;
    }
}
