/** Inside of the planner: teams and sets of teams by their estimates. */
#ifndef HV_SOLVER_PLANNER_REPLICAS_INT_H
#define HV_SOLVER_PLANNER_REPLICAS_INT_H

#include "solver/base/vec.h"
#include "solver/planner/planner_int.h"

#define HV__TEAMS_KEPT 96 /**< per subset of pools */

/** A team by its estimate. */
struct hv__rough {
    struct hv__team team;
    double each_s, fill_s, score;
    double speed; /* while legs are chosen: blocks per second, and stages, so far */
    int depth;
};

/** All teams of one subset of pools that were worth keeping, best score first. */
struct hv__subset {
    struct hv__rough *kept;
    int n;
    double share; /* of the batch, by peak speed */
};

/** A set of disjoint teams. */
struct hv__set {
    const struct hv__team *teams;
    int n;
    double estimate;
    int number, cut; /* cut: which way to cut the pools */
};

/** A listing in progress. */
struct hv__lister {
    struct hv__search *s;
    struct hv__subset subsets[1 << HV__POOLS];
    double shrink; /* share of every pool that is used */
    bool quick;    /* only the sizes and ways that most often win */
    struct hv_arena arena;
    HV_VEC(struct hv__set) sets;
    int n_cuts;
};

#define HV__STARTS 32 /**< of one listing, at most */

/** Good plans of different sorts, best first. */
struct hv__starts {
    struct hv__sketch *items;
    double value[HV__STARTS];
    int n, cap;
    int alike; /**< with the pools cut in the same way */
};

/** Keeps a plan of this value where it is among the best of its sort. O(starts). */
void hv__keep_start(struct hv__starts *st, const struct hv__sketch *k, double value);
/** Are the pools of start n cut otherwise than those of all starts before it? O(starts). */
bool hv__is_new_sort(const struct hv__starts *st, int n);
/** Devices of the pool that plans may use: whole nodes. */
int hv__pool_devices(const struct hv__lister *l, int pool);
/** Seconds that the teams of a set show of reducing their gradients with each other, over the
 * slowest network of their nodes. */
double hv__shared_sync_s(struct hv__search *s, const struct hv__sketch *k);
/** Sets of one team of the subset; n >= 2 teams: each with its best for its share of the batch, its
 * next best, … */
void hv__add_alone(struct hv__lister *l, const struct hv__subset *sub);
void hv__add_teams(struct hv__lister *l, const struct hv__subset *const *subs, int n);
/** Rates a team whose degrees are set, and keeps it among those of its subset when it belongs
 * there.
 */
void hv__rate_team(struct hv__lister *l, struct hv__subset *sub, struct hv__rough *r);
/** Sizes of micro-batches that are tried. */
bool hv__is_batch(int64_t b, int64_t total);
/** Can a tensor group of tp ranks share the attention heads of every block? */
bool hv__heads_allow(const struct hv__search *s, int tp);
/** Are there so few devices that every way to group them can be listed? */
bool hv__are_few(const struct hv__search *s);
/** Lists sets of teams over single devices: pools may be shared by stages and by teams. */
void hv__list_few(struct hv__lister *l);
/** Fills the subset of the pools in `mask` anew: every product of stages, tensor degrees,
 * micro-batch, recompute and sharding that an estimate lets fit, or a few of each (`quick`). Ends
 * early when the search is over. */
void hv__list_teams(struct hv__lister *l, unsigned mask);

#endif
