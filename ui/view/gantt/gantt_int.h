/** Shared by the files of the Gantt painter. */
#ifndef HV_UI_VIEW_GANTT_GANTT_INT_H
#define HV_UI_VIEW_GANTT_GANTT_INT_H

#include "ui/view/gantt/cells.h"

/** Time at the left edge of column i of the chart. */
static inline double hv__gantt_edge(const struct hv_gantt_state *st, const struct hv_rect *chart,
                                    int i)
{
    return st->t0_s + (st->t1_s - st->t0_s) * (double)i / (double)chart->w;
}

/** What lanes of one chart are drawn with: edges of its columns, and room for one lane. */
struct hv__gantt_pen {
    const struct hv_gantt_state *st;
    int n;                        /**< columns */
    int32_t followed;             /**< micro-batch at the cursor, -1 = none */
    double *at_s;                 /**< [n + 1] */
    size_t most;                  /**< spans that a lane shows one by one, at most */
    struct hv_gantt_span *spans;  /**< [2 · most] */
    double *shares;               /**< [n][HV_GANTT_KIND_N] */
    struct hv__gantt_mix *mix;    /**< [n] */
    struct hv__gantt_cell *cells; /**< [rows][n] */
    bool *critical;               /**< [n] columns with a critical operation, of lanes drawn */
    struct hv_gantt_holder *path; /**< [n] who holds the critical path; NULL = not shown or known */
    double ops_per_column;        /**< of the last lane drawn that shows shares, else 0 */
};
/** Room for lanes of at most `rows` rows in a chart. Owner: hv__gantt_pen_close. */
void hv__gantt_pen_open(struct hv__gantt_pen *p, const struct hv_gantt_state *st,
                        const struct hv_gantt_source *src, const struct hv_rect *chart, int rows);
void hv__gantt_pen_close(struct hv__gantt_pen *p);
/** Draws a lane into rows of the chart (lane.c): operations where they are about a column wide,
 * else shares. O(columns · rows). */
void hv__gantt_lane_draw(struct hv__gantt_pen *p, const struct hv_gantt_source *src, size_t lane,
                         struct hv_grid *g, struct hv_rect row);
/** Bytes of a lane's name that tell it apart, from *at on: "s1", "r0 s1". */
size_t hv__gantt_short_name(const char *name, const char **at);
/** Draws the rows that tell of the lanes hidden above and below (hidden.c): how many, which, how
 * busy, and whether the critical path runs there. O(lanes hidden). */
void hv__gantt_hidden_draw(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                           struct hv_grid *g, const struct hv_gantt_places *p);
/** Draws the memory lane (memory.c) into p->memory: per column the largest memory in use of `lane`,
 * and its limit. The source must have memory. O(columns) queries. */
void hv__gantt_memory_draw(const struct hv_gantt_state *st, const struct hv_gantt_source *src,
                           struct hv_grid *g, const struct hv_gantt_places *p, size_t lane);
/** Per lane its name, memory and the order of its operations as lines of words, for a grid that has
 * a `plain` (grid/plain.h). O(lanes · operations named). */
void hv_plain_gantt(struct hv_grid *g, const struct hv_gantt_state *st,
                    const struct hv_gantt_source *src);

#endif
