/** A drawn iteration as a file: SVG and PNG pictures, Chrome/Perfetto trace. */
#ifndef HV_SOLVER_IO_EXPORT_GANTT_H
#define HV_SOLVER_IO_EXPORT_GANTT_H

#include "solver/base/str.h"
#include "solver/eval/eval.h"
#include "solver/io/export/strips.h"

/** Texts and window of the picture. */
struct hv_gantt_text {
    const char *title;       /**< "uniform on two-generations: llama-3-8b" */
    const char *subtitle;    /**< "iteration 11.2 s, bubble 9.8%, …" */
    bool bare;               /**< times are plain numbers of no unit */
    double from_s, to_s;     /**< window of pictures; both 0 = all of it */
    struct hv_strips strips; /**< below the rows of pictures; loads NULL: none */
};

/** Widths of pictures are held to this range (pixels). */
#define HV_GANTT_WIDTH_MIN 320
#define HV_GANTT_WIDTH_MAX 20000

/**
 * SVG picture with tooltips: one row per pipeline rank (compute, link, memory below it), time axis,
 * legend. The link strip shows reductions and the sends of the rank; sharded weights and what
 * leaves the row and comes back have strips of their own. Passes say which hop of a ring is not
 * hidden. Rows with more spans than pixels are drawn by column. O(width × rows).
 */
void hv_gantt_svg(const struct hv_timeline *t, const struct hv_gantt_text *text, int width_px,
                  struct hv_str *out);
/** The same picture as a PNG in `out`. Errors: HV_ELIMIT when the picture is too large for cairo.
 */
enum hv_status hv_gantt_png(const struct hv_timeline *t, const struct hv_gantt_text *text,
                            int width_px, struct hv_str *out, struct hv_err *err) HV_NODISCARD;
/** Chrome trace event format (JSON object with traceEvents): opens in Perfetto (ui.perfetto.dev)
 * and chrome://tracing. Times are whole nanoseconds, spans of a thread do not overlap, and arrows
 * lead from the operation that sends a transfer to the one that waits for it. O(spans · log spans).
 */
void hv_gantt_trace(const struct hv_timeline *t, const struct hv_gantt_text *text,
                    struct hv_str *out);

#endif
