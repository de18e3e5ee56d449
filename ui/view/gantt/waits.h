/** What an operation of a timeline waited for, and what waits for it: reads spans, draws nothing.
 */
#ifndef HV_UI_VIEW_GANTT_WAITS_H
#define HV_UI_VIEW_GANTT_WAITS_H

#include "solver/eval/eval.h"

/** The other end of a wait. */
struct hv_gantt_end {
    size_t row;
    const struct hv_span *span; /**< NULL = there is none */
    double hop_s;               /**< transfer between the two, 0 = on one row */
    double spare_s;             /**< how much later it could have been without delay of the wait */
};

/** The neighbours of an operation: on its own row, and over a transfer. */
struct hv_gantt_waits {
    struct hv_gantt_end here, other;
};

/** What a compute operation of a row waited for: the operation before it, and the one whose result
 * came last over a link. O(links · log spans). */
struct hv_gantt_waits hv_gantt_waits_for(const struct hv_timeline *t, size_t row,
                                         const struct hv_span *s);
/** What waits for it: the operation behind it, and the one that needs its result elsewhere. O(links
 * · log spans + operations until that). */
struct hv_gantt_waits hv_gantt_lets_start(const struct hv_timeline *t, size_t row,
                                          const struct hv_span *s);
/** The end that came last: what determined the start (waits) or begins first (lets start); NULL =
 * neither is there. */
const struct hv_gantt_end *hv_gantt_first_end(const struct hv_gantt_waits *w);

#endif
