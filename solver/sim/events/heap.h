/** Binary heap of (key, id), smallest first, ties by id. Shared by the files of solver/sim. */
#ifndef HV_SOLVER_SIM_EVENTS_HEAP_H
#define HV_SOLVER_SIM_EVENTS_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One entry. */
struct hv__entry {
    double key;
    int64_t id;
};

/** The heap. `items` has room for all that can ever be in it at once. */
struct hv__heap {
    struct hv__entry *items;
    size_t n;
};

/** True where a comes before b. */
static inline bool hv__entry_before(struct hv__entry a, struct hv__entry b)
{
    return a.key < b.key || (a.key <= b.key && a.id < b.id);
}

/** Adds an entry. O(log n). */
static inline void hv__heap_push(struct hv__heap *h, double key, int64_t id)
{
    struct hv__entry x = {key, id};
    size_t i = h->n++;
    for (; i > 0 && hv__entry_before(x, h->items[(i - 1) / 2]); i = (i - 1) / 2) {
        h->items[i] = h->items[(i - 1) / 2];
    }
    h->items[i] = x;
}

/** Takes the first entry; there must be one. O(log n). */
static inline struct hv__entry hv__heap_pop(struct hv__heap *h)
{
    struct hv__entry top = h->items[0], x = h->items[--h->n];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child + 1 < h->n && hv__entry_before(h->items[child + 1], h->items[child])) {
            child++;
        }
        if (child >= h->n || !hv__entry_before(h->items[child], x)) {
            break;
        }
        h->items[i] = h->items[child];
        i = child;
    }
    h->items[i] = x;
    return top;
}

#endif
