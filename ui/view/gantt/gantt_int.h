/** Shared by the files of the Gantt painter. */
#ifndef HV_UI_VIEW_GANTT_GANTT_INT_H
#define HV_UI_VIEW_GANTT_GANTT_INT_H

#include "ui/view/gantt/view.h"

/** Time at the left edge of column i of the chart. */
static inline double hv__gantt_edge(const struct hv_gantt_state *st, const struct hv_rect *chart,
                                    int i)
{
    return st->t0_s + (st->t1_s - st->t0_s) * (double)i / (double)chart->w;
}

/** Draws the memory lane (memory.c) into p->memory: per column the largest memory in use of `lane`,
 * and its limit. The source must have memory. O(columns) queries. */
void hv__gantt_memory_draw(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                           struct hv_grid *g, const struct hv_gantt_places *p, size_t lane);
/** Per lane its name, memory and the order of its operations as lines of words, for a grid that has
 * a `plain` (grid/plain.h). O(lanes · operations named). */
void hv_plain_gantt(struct hv_grid *g, const struct hv_gantt_state *st,
                    const struct hv_gantt_source *src);

#endif
