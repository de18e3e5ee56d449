/** Internals of the exports, shared by the files of this folder only. */
#ifndef HV_SOLVER_IO_EXPORT_TARGET_INSIDE_H
#define HV_SOLVER_IO_EXPORT_TARGET_INSIDE_H

#include "solver/io/export/target/export.h"

/** A process of the job. */
struct hv__export_rank {
    size_t replica, stage;
    int copy, dp, cp, tp; /**< numbers inside the stage (rule B of plans) */
    int64_t data;         /**< data-parallel rank over all copies and entries */
    uint32_t device, node, slot;
    const char *host;
};

/** Plans whose stages are alike, as runtimes with one set of degrees see them. */
struct hv__export_grid {
    int tp, cp, pp, ep, chunks;
    int64_t dp;            /**< data-parallel ranks of all copies and entries */
    int64_t micro_batch;   /**< sequences of a micro-batch on a data-parallel rank */
    int64_t micro_batches; /**< of a pipeline in an iteration */
    int64_t shards;        /**< ranks that share ZeRO's shards: dp × cp, or the shard group */
    const struct hv_stage *stage; /**< the first: knobs that all share */
    int *layers; /**< [pp × chunks] blocks of each chunk, chunk by chunk over the stages */
};

/** An export under construction. */
struct hv__exporting {
    const struct hv_export_source *s;
    struct hv_export *out;
    struct hv__export_rank *ranks; /**< in rank order */
    size_t n_ranks;
    bool by_node; /**< rank order is node by node, equally many on each, as launchers number them */
    size_t n_hosts, per_host; /**< per_host: where by_node */
    bool hosts_assumed;       /**< the cluster does not name all hosts in use */
    struct hv_err *err;
};

/** One exporter per target. */
typedef enum hv_status hv__exporter(struct hv__exporting *x);
hv__exporter hv__export_megatron, hv__export_bridge, hv__export_flagscale, hv__export_torchtitan,
    hv__export_deepspeed, hv__export_accelerate, hv__export_order, hv__export_slurm,
    hv__export_hostfile, hv__export_report, hv__export_stages, hv__export_dot;

/* ---- files.c ---- */
/** A new file; valid until the next one is made. */
struct hv_str *hv__export_file(struct hv__exporting *x, const char *name);
/** A note for the user. */
void hv__export_note(struct hv__exporting *x, const char *fmt, ...) HV_PRINTF(2, 3);

/* ---- ranks.c ---- */
/** Fills ranks, hosts and by_node. Stages are slowest where all pipelines are alike; else the
 * pipelines are. Errors: HV_EINPUT for host names that are none. O(devices). */
enum hv_status hv__export_find_ranks(struct hv__exporting *x) HV_NODISCARD;
/** Adds ranks.csv: rank, host, GPU, address and place in the plan. */
void hv__export_ranks_file(struct hv__exporting *x);
/** Adds one line per host with its ranks to a script: `'host') ranks=(…) gpus=(…) ;;`. */
void hv__export_host_cases(const struct hv__exporting *x, struct hv_str *out);
/** First rank of each host in rank order: calls `each` once per host with its number of ranks. */
void hv__export_each_host(const struct hv__exporting *x,
                          void (*each)(void *ctx, const struct hv__export_rank *first, size_t n),
                          void *ctx);

/* ---- grid.c ---- */
/** The grid of a plan that the target can say. `layers` is NULL where blocks are cut inside.
 * O(stages · chunks). */
struct hv__export_grid hv__export_grid_of(struct hv__exporting *x);

/* ---- hostfile.c ---- */
/** Adds "HOST slots=N" in rank order, with a note where ranks do not go node by node. */
void hv__export_host_file(struct hv__exporting *x, const char *name);

/* ---- launch.c ---- */
/** Adds launch.sh, which is run once on every host and starts one process per rank; `program` is
 * what it runs where it is given nothing, `args_file` holds its arguments (NULL: none). */
void hv__export_launch(struct hv__exporting *x, const char *program, const char *args_file);

/* ---- text.c ---- */
/** Adds "# …" lines: target, program, plan. */
void hv__export_heading(const struct hv__exporting *x, const char *mark, struct hv_str *out);
/** One field of a CSV record (RFC 4180); a text that a spreadsheet would take for a formula gets an
 * apostrophe in front. */
void hv__export_csv_field(struct hv_str *out, const char *text);
/** Text for HTML and SVG, on one line. */
void hv__export_html(struct hv_str *out, const char *text);
/** True for a host name: letters, digits, dots, hyphens and underscores, not beginning with one of
 * the marks. */
bool hv__export_is_host(const char *name);
/** Adds a tree as YAML, with a heading in comments before it. Takes over the tree. */
void hv__export_yaml(struct hv__exporting *x, const char *file, json_t *tree);
/** Adds a tree as JSON. Takes over the tree. */
void hv__export_json(struct hv__exporting *x, const char *file, json_t *tree);
/** "none", "selective" or "full" of the first stage. */
const char *hv__export_recompute(const struct hv_stage *s);

/* ---- megatron.c ---- */
/** Megatron-Core's layout string of a grid: "Et*3|t*5|t*4L". */
void hv__megatron_layout(const struct hv__export_grid *g, struct hv_str *out);
/** Communication of context parallelism in its words: "p2p", "a2a", "all_gather". */
const char *hv__megatron_cp_word(const struct hv_cp *cp);

/* ---- order.c ---- */
/** Adds the order of a replica entry as CSV of torch.distributed.pipelining. Errors: HV_ENO without
 * a timeline or for operations that it has no words for. */
enum hv_status hv__export_order_of(struct hv__exporting *x, size_t replica,
                                   struct hv_str *out) HV_NODISCARD;

#endif
