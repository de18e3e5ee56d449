/**
 * Workers that train at their own pace: each repeats a clock of work (a mini-batch, or a wave of a
 * pipeline) and exchanges its updates through a server or with other workers, waiting only as its
 * rule requires.
 */
#ifndef HV_SOLVER_SIM_EVENTS_WORKERS_H
#define HV_SOLVER_SIM_EVENTS_WORKERS_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Synchronization rules. */
enum hv_workers_kind {
    /** Parameter server: after every clock a worker pushes and pulls, and waits for both; it begins
     * clock c (from 0) when everybody's push of clock c − 1 − D has arrived and been pulled. */
    HV_WORKERS_PS,
    /** Wave-synchronous parallel (HetPipe, ATC'20, section 5): pushes overlap with the next clock;
     * clock c begins when everybody's push of clock c − 1 − D has arrived and been pulled. */
    HV_WORKERS_WSP,
    /** Partial reduce: as soon as `group` workers are ready, they average and continue. */
    HV_WORKERS_PARTIAL,
    /** Gossip (AD-PSGD): a worker that is ready averages with a randomly drawn one, which does not
     * wait. */
    HV_WORKERS_GOSSIP,
    HV_WORKERS_KIND_N
};

/** "ps", "wsp", "partial_reduce", "gossip". */
extern const char *const hv_workers_words[HV_WORKERS_KIND_N];

/** A link that an exchange alone keeps busy for a share of its time, 0 to 1. */
struct hv_workers_link {
    size_t link;
    double share;
};
/** Links of one exchange. */
struct hv_workers_links {
    const struct hv_workers_link *items;
    size_t n;
};

/** Input of a simulation. Arrays are borrowed. */
struct hv_workers {
    enum hv_workers_kind kind;
    size_t n;
    const double *period_s; /**< [n] work of a clock, > 0 */
    const double *hop_s;    /**< [n] one way to the server, or one exchange; NULL = 0 */
    /** ps, wsp: D; -1 = nobody waits. Partial reduce: a worker begins a step when it has ended no
     * more than so many above the slowest (stale synchronous parallel); 0 or less = nobody waits.
     */
    int64_t staleness;
    size_t group; /**< partial reduce: 1 … n */
    bool connect; /**< partial reduce: keep groups from freezing into cliques (Miao et al.,
                     SIGMOD'21, section 4): where the last ⌈(n − 1)/(group − 1)⌉ groups do not
                     connect all workers, the next one joins two components, and waits where it
                     cannot */
    /** Partial reduce: a group averages, full or not, this long after its first waiting member was
     * ready (Hetu's variant of it); 0 = it waits until it is full. The time is doubled, up to
     * wait_most_s, by every group of fewer than `least`, and is 0.9 of itself after every other. */
    double wait_s, wait_most_s;
    size_t least;
    /** Partial reduce: weight of a member of a group for every clock that it is behind the
     * furthest, in powers: a moving average (dynamic partial reduce, Miao et al., SIGMOD'21,
     * section 4.2). 0 or 1: members have equal weights. */
    double decay;
    /** Partial reduce and gossip: seconds of the exchange of these workers alone, and where links
     * are asked for (not NULL) those that it uses, which exchanges at the same time share fairly:
     * an array that lives until the next call. NULL = the longest of their hops; gossip: that of
     * the worker that is ready. */
    double (*exchange_s)(void *ctx, const size_t *members, size_t n,
                         struct hv_workers_links *links);
    void *ctx;
    size_t n_links;        /**< links are numbered below it; 0: exchanges share none */
    size_t keep;           /**< partial reduce: number of the first groups in the result */
    const double *weights; /**< gossip: [n × n] how often row draws column, NULL = all alike */
    double horizon_s;      /**< simulated time */
    double jitter; /**< standard deviation of the logarithm of a factor of mean 1 on every clock */
    uint64_t seed;
};

/** Distinct steps of staleness; the last one includes all above. */
#define HV_WORKERS_STALENESS 64
/** Largest number of simulated clocks. */
#define HV_WORKERS_CLOCKS_MAX 10000000

/** Workers that averaged among themselves. */
struct hv_workers_group {
    double start_s, end_s;
    const size_t *members; /**< in the order in which they were ready */
    size_t n;
};

/** Result of a simulation. Owner: the arena. */
struct hv_workers_run {
    double *rate_per_s; /**< [n] clocks ended in the second half of the horizon */
    double *wait_frac;  /**< [n] share of the horizon spent waiting for others, without hops */
    int64_t *clocks;    /**< [n] clocks ended */
    double *end_s;      /**< [n] end of the last of them */
    double sum_per_s;   /**< of all workers */
    /** How many clocks had which staleness. ps: updates of others that came to the server between
     * what a clock read and its own push; wsp: own clock less the oldest clock it is sure to see;
     * partial reduce, gossip: clocks between the worker and the furthest it averaged with. */
    int64_t staleness[HV_WORKERS_STALENESS];
    double mean_staleness;
    /** [n × n] mean of the averagings W, NULL for ps and wsp; with decay the mean of W'JW between
     * centred models plus 1/n, J = 1 − 11'/n: the part of the models' squared distance from their
     * mean that an averaging leaves, which W itself gives where weights are equal. */
    double *mixing;
    struct hv_workers_group *groups; /**< the first `keep` of partial reduce */
    size_t n_groups;
    double mean_exchange_s; /**< of the exchanges that ended, partial reduce and gossip */
    double mean_group;      /**< members of a group of partial reduce, in the mean; 0 without any */
};

/**
 * Second eigenvalue of a mean of averagings: 0 all agree at once, 1 they never do. `mixing` is
 * symmetric with rows that add up to 1. Householder's reflections and bisection, O(n³).
 */
double hv_workers_mixing_rho(const double *mixing, size_t n);

/**
 * Simulates the workers. Deterministic. Errors: HV_EUSAGE for numbers out of range; HV_ELIMIT for
 * more than HV_WORKERS_CLOCKS_MAX clocks. O(clocks · (log n + n)) at worst, O(clocks log n) where
 * nobody waits for the slowest.
 */
enum hv_status hv_workers_run(struct hv_arena *a, const struct hv_workers *w,
                              struct hv_workers_run *out, struct hv_err *err) HV_NODISCARD;

#endif
