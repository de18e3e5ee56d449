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
