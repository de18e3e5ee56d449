/**
 * Resharding: the cheapest way from one layout of a tensor to another, as a path of exchanges.
 */
#ifndef HV_SOLVER_SHARD_RESHARD_H
#define HV_SOLVER_SHARD_RESHARD_H

#include "solver/base/arena.h"
#include "solver/shard/layout.h"

/* clang-format off */
/** Exchanges: constant, name. V = bytes of a device's part before, n = devices of a group. */
#define HV_EXCHANGE_MAP(X)                       \
    X(HV_EXCHANGE_SLICE,          "slice")          /* drop what others keep: 0 bytes */           \
    X(HV_EXCHANGE_MASK,           "mask")           /* replicas become summands: all but one 0 */  \
    X(HV_EXCHANGE_GATHER,         "all_gather")     /* (n - 1) V */                                \
    X(HV_EXCHANGE_ALL_TO_ALL,     "all_to_all")     /* (n - 1) / n V */                            \
    X(HV_EXCHANGE_REDUCE,         "all_reduce")     /* 2 (n - 1) / n V */                          \
    X(HV_EXCHANGE_REDUCE_SCATTER, "reduce_scatter") /* (n - 1) / n V */                            \
    X(HV_EXCHANGE_PERMUTE,        "permute")        /* V: parts change places between devices */   \
    X(HV_EXCHANGE_HALO,           "halo")           /* rows of the neighbours */
/* clang-format on */
enum hv_exchange_kind {
#define X(c, name) c,
    HV_EXCHANGE_MAP(X)
#undef X
        HV_EXCHANGE_N
};
/** "all_gather", … */
const char *hv_exchange_name(enum hv_exchange_kind k);

/** One exchange. */
struct hv_exchange {
    enum hv_exchange_kind kind;
    uint32_t atoms;     /**< atoms of the mesh that a group lies along; PERMUTE: all that move */
    int64_t group;      /**< devices of a group */
    double local_bytes; /**< V */
    double sent_bytes;  /**< per device, by rings (formulas above) */
};
/** Price of an exchange: any unit, at least 0. NULL in calls below: sent_bytes. */
typedef double hv_price_fn(void *ctx, const struct hv_exchange *x);
struct hv_pricing {
    hv_price_fn *price;
    void *ctx;
    struct hv_paths *paths; /**< paths.h: remembered from call to call; NULL: in each by itself */
};
/** Applies a pricing (NULL, or one without function: bytes). */
double hv_price(const struct hv_pricing *p, const struct hv_exchange *x);
/** An exchange with its bytes by the formulas above. */
struct hv_exchange hv_exchange_make(enum hv_exchange_kind kind, uint32_t atoms, int64_t group,
                                    double local_bytes);

/** A step of a path: the exchange and the layout after it. */
struct hv_reshard_step {
    struct hv_exchange exchange;
    struct hv_layout after;
};
/** A path. price and bytes are sums over the steps; steps live in the arena of the call. */
struct hv_reshard {
    size_t n;
    struct hv_reshard_step *step;
    double price, sent_bytes;
    bool cut; /**< the search met its limit: the path is right, but a cheaper one may exist */
};

/** States that one search looks at before it takes the best path known. */
#define HV_RESHARD_STATES 20000

/**
 * The cheapest path from one layout to another (Dijkstra over layouts). Steps move whole atoms: all
 * of them where the mesh has at most four, else axes, cut where one of the two layouts cuts them.
 * Ties: fewer steps. Errors: HV_EINPUT where `to` asks for the largest of values that are not
 * candidates (sum), or wants summands from candidates.
 */
enum hv_status hv_reshard_path(const struct hv_mesh *m, const struct hv_shape *shape,
                               const struct hv_layout *from, const struct hv_layout *to,
                               const struct hv_pricing *pricing, struct hv_arena *arena,
                               struct hv_reshard *out, struct hv_err *err) HV_NODISCARD;

#endif
