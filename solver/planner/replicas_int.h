/** Internals of the planner: candidate replicas and sets of them, by their estimates. */
#ifndef HV_SOLVER_PLANNER_REPLICAS_INT_H
#define HV_SOLVER_PLANNER_REPLICAS_INT_H

#include "solver/base/vec.h"
#include "solver/planner/planner_int.h"

#define HV__CANDIDATES_KEPT 96 /**< per subset of pools */

/** A replica with its estimate. */
struct hv__candidate {
    struct hv__replica_sketch replica;
    double each_s, fill_s; /**< of a micro-batch in the slowest stage; to fill the pipeline */
    double score;          /**< seconds per sequence at its share of the batch */
    double speed;          /**< while runs are chosen: blocks per second so far */
    int depth;             /**< while runs are chosen: stages so far */
};

/** The candidates of one subset of pools that are kept, best score first. */
struct hv__pool_subset {
    struct hv__candidate *kept;
    int n;
    double share; /**< of the batch, by peak speed */
};

/** A set of disjoint replicas. */
struct hv__replica_set {
    const struct hv__replica_sketch *replicas;
    int n;
    double estimate;
    int number;   /**< position in the list; breaks ties */
    int grouping; /**< of the pools into replicas, numbered as listed */
};

/** A listing in progress. */
struct hv__lister {
    struct hv__search *s;
    struct hv__pool_subset subsets[1 << HV__POOLS];
    double shrink; /**< fraction of every pool that is used */
    bool quick;    /**< only the sizes and settings that most often win */
    struct hv_arena arena;
    HV_VEC(struct hv__replica_set) sets;
    int n_groupings;
};

#define HV__STARTS 32 /**< of one listing, at most */

/** Good plans that differ, best first. */
struct hv__diverse_starts {
    struct hv__sketch *items;
    double value[HV__STARTS];
    int n, cap;
    int alike; /**< at most so many with the same grouping of pools */
};

/* ---- diverse.c ---- */
/** Keeps a plan of this value where it is among the best of its shape. O(starts). */
void hv__keep_start(struct hv__diverse_starts *st, const struct hv__sketch *k, double value);
/** True where no start before number n groups the pools as that one does. O(starts). */
bool hv__is_new_shape(const struct hv__diverse_starts *st, int n);

/* ---- replicas.c: candidates of a subset of pools ---- */
/** Fills the subset of the pools in `mask` anew: every product of stages, tensor degrees,
 * micro-batch, recompute and sharding that fits by estimate, or a few of each (`quick`). Ends early
 * when the search is over. */
void hv__list_candidates(struct hv__lister *l, unsigned mask);
/** Estimates a candidate whose degrees are set, and keeps it among those of its subset where it is
 * good enough. */
void hv__rate_candidate(struct hv__lister *l, struct hv__pool_subset *sub,
                        struct hv__candidate *cand);
/** Seconds of the gradient all-reduce between the replicas of a set that are not overlapped, over
 * the slowest network of their nodes. */
double hv__shared_sync_s(struct hv__search *s, const struct hv__sketch *k);
/** Devices of the pool that plans may use: whole nodes. */
int hv__pool_devices(const struct hv__lister *l, int pool);
/** True for the sizes of micro-batches that are tried: close together where they are small, and all
 * that divide the whole batch. */
bool hv__is_batch(int64_t b, int64_t total);
/** True where tensor groups of tp ranks can share the attention heads of every block. */
bool hv__heads_allow(const struct hv__search *s, int tp);

/* ---- replica_sets.c: sets of candidates ---- */
/** Adds the sets of one replica: every candidate of the subset. */
void hv__add_singles(struct hv__lister *l, const struct hv__pool_subset *sub);
/** Adds sets of n >= 2 replicas: each subset with its best candidate for its share of the batch,
 * then each with its second best, and so on. */
void hv__add_sets(struct hv__lister *l, const struct hv__pool_subset *const *subs, int n);
/** Adds the sets of every grouping of the pools: pool number `i` and those after it join one of the
 * n existing groups (`masks`, zero at first), form a new group, or stay unused. */
void hv__group_pools(struct hv__lister *l, unsigned *masks, int n, int i);

/* ---- exhaustive_small.c: clusters of few devices ---- */
/** True where there are so few devices that every way to group them can be listed. */
bool hv__is_small(const struct hv__search *s);
/** Lists sets of replicas over single devices: stages and replicas may share a pool. */
void hv__list_exhaustively(struct hv__lister *l);

#endif
