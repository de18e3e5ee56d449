/**
 * Loads of ranks with experts as strips: a row per rank, a column per iteration of the routing (the
 * largest of several, where there are more iterations than columns), the hottest expert, the
 * busiest rank, and experts that move between iterations. The same painter serves the Gantt screen
 * and `hetviz gantt`.
 */
#ifndef HV_UI_VIEW_GANTT_STRIPS_H
#define HV_UI_VIEW_GANTT_STRIPS_H

#include "solver/eval/experts/loads.h"
#include "ui/view/gantt/view.h"

/** What is shown. Borrowed. */
struct hv_gantt_strips {
    const struct hv_expert_loads *loads;
    const struct hv_routing_step *steps; /**< [loads->iterations], or NULL */
    size_t iteration, rank;              /**< at the cursor */
    size_t top;                          /**< first rank shown */
    bool cursor;                         /**< the cursor is shown */
};

/** Rows of all of it: axis, ranks, hottest, busiest, and moves where there are any. O(iterations).
 */
int hv_gantt_strips_height(const struct hv_gantt_strips *s);
/** Iterations that a column stands for in a rectangle that is w wide, at least 1. */
size_t hv_gantt_strips_each(const struct hv_gantt_strips *s, int w);
/** Ranks that fit into a rectangle that is h high. */
size_t hv_gantt_strips_ranks(const struct hv_gantt_strips *s, int h);
/** Draws the strips; ranks that do not fit are told in a row. O(ranks shown · iterations). */
void hv_gantt_strips_draw(const struct hv_gantt_strips *s, struct hv_grid *g, struct hv_rect r);
/** Rank and iteration at a cell; false where there is none. */
bool hv_gantt_strips_hit(const struct hv_gantt_strips *s, struct hv_rect r, int x, int y,
                         size_t *rank, size_t *iteration);
/** Appends the strips as lines of text, with a line of what they mean. */
void hv_gantt_strips_print(const struct hv_gantt_strips *s, const struct hv_gantt_print *o,
                           struct hv_str *out);

#endif
