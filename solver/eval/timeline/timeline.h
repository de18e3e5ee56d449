/** A drawn iteration: lanes of spans, memory over time, links. Types for those who draw it. */
#ifndef HV_SOLVER_EVAL_TIMELINE_TIMELINE_H
#define HV_SOLVER_EVAL_TIMELINE_TIMELINE_H

#include "solver/base/why.h"
#include "solver/sim/lanes/lanes.h"

/* clang-format off */
/** Kinds of drawn spans: constant, letter in cells and files, text. */
#define HV_SPAN_MAP(X)                                  \
    X(HV_SPAN_F,    "f",  "forward")                    \
    X(HV_SPAN_B,    "b",  "backward, input gradient")   \
    X(HV_SPAN_W,    "w",  "backward, weight gradient")  \
    X(HV_SPAN_BW,   "b",  "backward")                   \
    X(HV_SPAN_R,    "r",  "recompute")                  \
    X(HV_SPAN_PAIR, "x",  "forward and backward overlapped") \
    X(HV_SPAN_HOP,  "~",  "transfer to the next stage") \
    X(HV_SPAN_LEAVE, "e", "activations leave")          \
    X(HV_SPAN_RETURN, "l", "activations come back")     \
    X(HV_SPAN_SYNC, "g",  "gradient reduction")         \
    X(HV_SPAN_OPT,  "o",  "optimizer step")             \
    X(HV_SPAN_GATHER, "a", "gather of updated weights") \
    X(HV_SPAN_STEP, "h",  "host work and waiting for the slowest device") \
    X(HV_SPAN_WHOLE, "u", "gather of a chunk of sharded weights") \
    X(HV_SPAN_SCATTER, "s", "scatter of the gradients of a chunk")
/* clang-format on */
enum hv_span_kind {
#define X(c, letter, text) c,
    HV_SPAN_MAP(X)
#undef X
        HV_SPAN_KIND_N
};
const char *hv_span_kind_letter(enum hv_span_kind k);
const char *hv_span_kind_text(enum hv_span_kind k);
/** True for spans on links: their operation's `paired` is a number in hv_timeline.hops. */
static inline bool hv_span_is_transfer(unsigned kind)
{
    return kind == HV_SPAN_HOP || kind == HV_SPAN_LEAVE || kind == HV_SPAN_RETURN;
}

/** An operation behind a span: `hv_span.id` of sim/lanes.h is its index in hv_timeline.ops. */
struct hv_timeline_op {
    int32_t stage, micro_batch, slice; /**< −1 where it has none */
    int32_t paired; /**< micro-batch of the other half of an overlapped pair (HV_SPAN_PAIR); number
                       in hv_timeline.hops (transfers) */
    uint8_t kind;   /**< enum hv_span_kind */
    bool critical;  /**< on the critical path (hv_timeline_path) */
    double
        slack_s; /**< slack: how much later it could end without delaying the end of the pipeline */
};

/** Flag of a span whose operation is critical; its item is the micro-batch, its group the stage. */
#define HV_SPAN_CRITICAL 1u

/** Equal dp ranks of a row, where not all its ranks are equal. */
struct hv_timeline_part {
    const char *name;     /**< "  v[0].0-3 x2": devices of the first, how many there are */
    size_t dp_rank, rank; /**< the first of them, in its pipeline rank */
    size_t n_alike;
    struct hv_steps memory; /**< bytes over time on one of its devices */
    double memory_limit_bytes;
    const struct hv__pipeline *pipeline; /**< what hv_timeline_part_end_s reads */
};

/** A link between two rows, in one direction; or of one row to a place that is none: both rows are
 * then that row. */
struct hv_timeline_link {
    size_t from_row, to_row;
    const char *place; /**< "host", "a[7].0"; "shards": of its weights, on its data-parallel
                          ranks; NULL: both ends are rows */
    bool from_place;   /**< it leads from the place to the row */
    bool beside;       /**< no transfer of the pipeline: what leaves a row and comes back, or its
                          sharded weights; every picture has a line for it */
    const char *name;  /**< "  s0>s1", "  s0 shards" */
    size_t lane;       /**< number in `lanes` */
};

/** Transfers over an edge of the stage graph in one direction, or the moves of a lane. */
struct hv_timeline_hop {
    size_t i_link;
    double bytes, seconds; /**< all devices of the stage together */
    bool backward;         /**< gradients */
};

/** Content of a line of a picture: compute with reductions where compute is idle; compute alone; a
 * part of the dp ranks; reductions and gathers; transfers over a link. */
enum hv_track_kind { HV_TRACK_ALL, HV_TRACK_COMPUTE, HV_TRACK_PART, HV_TRACK_SYNC, HV_TRACK_HOPS };
/** One line. `index`: of the row's parts (PART) or of the timeline's links (HOPS). */
struct hv_timeline_track {
    enum hv_track_kind kind;
    size_t row, index;
};
/** Lines from top to bottom. */
struct hv_timeline_tracks {
    const struct hv_timeline *timeline;
    struct hv_timeline_track *items;
    size_t n;
};
/** Further lines of pictures besides rows; `tracks` of a timeline is indexed by sums of these
 * flags. */
#define HV_TRACKS_PARTS 1u
#define HV_TRACKS_LINKS 2u
#define HV_TRACKS_N     4

/** A ring of context parallelism in the passes of a row: the same one in `times` equal blocks. */
struct hv_timeline_ring {
    size_t chunk; /**< of the stage */
    int from, to; /**< blocks [from, to) */
    double times; /**< how many of them have it */
    const struct hv_why_ring *ring;
};

/** One drawn row: a pipeline rank of one replica entry, with its compute lane and its link lane. */
struct hv_timeline_row {
    size_t replica, stage; /**< entry and stage number in the plan */
    int multiplicity;      /**< equal pipelines drawn once */
    const char *name;      /**< "s1 a[0].0-7" */
    const char *layers;    /**< "22 L" */
    double busy_frac;
    size_t compute_lane, link_lane; /**< numbers in `lanes` */
    struct hv_steps memory;         /**< bytes over time on the worst device */
    double memory_limit_bytes;
    struct hv_timeline_part *parts; /**< different dp ranks; none where all are equal */
    size_t n_parts;
    /** Of the passes of the first micro-batch on the first dp rank; none without rings. */
    struct hv_timeline_ring *rings;
    size_t n_rings;
};

/**
 * The critical path of an iteration: what determined its length, walked back from its end. Its
 * pieces follow one another without gaps from 0 to the end.
 */
struct hv_timeline_path {
    /** The pieces as one lane (none where there is no path): group = row whose work it is, −1 for a
     * transfer between rows; id = operation, −1 for a wait or a transfer; kind as in spans. An
     * operation is there until what it produced was needed, so a piece may end before it. */
    struct hv_lanes lanes;
    double *row_s;  /**< [n_rows] time that each holds of it */
    double links_s; /**< and transfers between rows */
};

/** A drawn iteration. */
struct hv_timeline {
    struct hv_lanes lanes;
    struct hv_timeline_row *rows;
    size_t n_rows;
    struct hv_timeline_op *ops;
    size_t n_ops;
    struct hv_timeline_link *links;
    size_t n_links;
    struct hv_timeline_hop *hops;
    size_t n_hops;
    struct hv_timeline_tracks tracks[HV_TRACKS_N];
    struct hv_timeline_path path;
    double end_s;
};

/** What the hops of a ring leave exposed in one pass of its stage. O(steps). */
double hv_timeline_ring_exposed_s(const struct hv_timeline_ring *ring);

/** Name of the end of a link that it leads to, or from: of its row or its place. O(1). */
static inline const char *hv_timeline_end(const struct hv_timeline *t,
                                          const struct hv_timeline_link *k, bool to)
{
    return k->place && k->from_place != to ? k->place : t->rows[to ? k->to_row : k->from_row].name;
}

/** End of an operation of a row on the devices of a part; a faster part then waits for the slowest.
 * Both halves of an overlapped pair are taken as of one stage. O(dp). */
double hv_timeline_part_end_s(const struct hv_timeline *t, const struct hv_timeline_part *part,
                              const struct hv_span *s);

#endif
