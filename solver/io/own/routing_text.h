/** Counts of a trace (hetviz.routing/1) as they stand in its file, read without a tree. */
#ifndef HV_SOLVER_IO_OWN_ROUTING_TEXT_H
#define HV_SOLVER_IO_OWN_ROUTING_TEXT_H

#include "solver/base/arena.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One entry of a list of [iteration, layer, source, expert, tokens]. */
struct hv__count_entry {
    uint16_t at[4];
    float tokens;
};

/** Counts of a trace: nested lists, or a list of entries. In an arena. */
struct hv__counts {
    bool entries; /**< a list of entries, in the order of the file; then only `entry` is filled */
    const struct hv__count_entry *entry;
    /** Nested: sizes as the lists have them; experts 0 where sources are objects. */
    size_t iterations, layers, sources, experts;
    size_t most_expert; /**< the highest number that occurs in an object */
    /** As in struct hv_router: `at` and `expert` NULL where every source lists all experts; numbers
     * in `counts`, or in `tokens` where some are not whole or not below 65536. */
    const size_t *at;
    const uint16_t *expert, *counts;
    const float *tokens;
    size_t n; /**< entries, or counts */
};

/**
 * Reads a file with counts. Fills *out in `arena` and appends to `rest` the text of the file with
 * an empty list in the place of the counts. False where the file is none that this reader takes,
 * which says nothing of what is wrong with it: then it has to be read as a tree. O(bytes).
 */
bool hv__counts_read(const char *path, struct hv_arena *arena, struct hv_str *rest,
                     struct hv__counts *out);

#endif
