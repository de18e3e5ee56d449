/*
 * The lp_solve certificate for chains: every run of layers within a limit becomes an arc of a
 * network, and lp_solve computes the maximum flow from the first layer to the last. Not here: the
 * wrapper around lp_solve (solver/optim/lp/lp.c), the exact program (partition.c), the integer
 * program (certify_lp.c).
 */
#include "solver/optim/chain/certify.h"
#include "solver/base/units.h"
#include "solver/optim/chain/partition_int.h"
#include "solver/optim/lp/lp.h"
#include <math.h>
#include <stdlib.h>

/* Above this a network is not built: lp_solve would need minutes. */
#define MAX_ARCS ((size_t)1 << 18)

bool hv_certify_applies(const struct hv_partition *p)
{
    bool plain = !p->free_order && !p->any_stages && p->sum_weight <= 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        plain = plain && !p->stages[s].table;
    }
    return plain && p->n_layers * p->n_stages <= (size_t)1 << 16;
}

/* A run of layers [from, to) as stage `stage`. */
struct arc {
    size_t stage, from, to;
};

/* The network for one limit: a unit of flow exists where a partition into runs within the limit
 * does. */
struct network {
    const struct hv_partition *p;
    double limit;
    struct hv__row *window; /* end positions of each stage */
    size_t *node;           /* first row of each stage's end positions */
    struct arc *arcs;
    size_t n_arcs, n_nodes;
    struct hv_lp *lp;
};

/* First and last layer boundary at which stage s may begin. */
static void starts_of(const struct network *q, size_t s, size_t *lo, size_t *hi)
{
    *lo = s ? q->window[s - 1].lo : 0;
    *hi = s ? q->window[s - 1].hi : 0;
}

/* Counts the arcs, and keeps them where there is room for them. */
static size_t list_arcs(const struct network *q, struct arc *out)
{
    const struct hv_partition *p = q->p;
    size_t n = 0, lo, hi;
    for (size_t s = 0; s < p->n_stages; s++) {
        starts_of(q, s, &lo, &hi);
        for (size_t i = lo; i <= hi; i++) {
            size_t j = i + p->min_layers > q->window[s].lo ? i + p->min_layers : q->window[s].lo;
            size_t last = hv__furthest(p, s, s, i, q->limit);
            last = last < q->window[s].hi ? last : q->window[s].hi;
            for (; j <= last; j++) {
                if (hv_partition_value(p, s, s, i, j) > q->limit) {
                    continue;
                }
                if (out) {
                    out[n] = (struct arc){s, i, j};
                }
                if (++n > MAX_ARCS) {
                    return n;
                }
            }
        }
    }
    return n;
}

/* The row of the boundary where an arc begins or ends: row 0 is the source, the sink has none. */
static size_t row_of(const struct network *q, size_t stage, size_t at)
{
    return q->node[stage] + at - q->window[stage].lo;
}

/* Flow conservation at every boundary; at most one unit leaves the source. */
static enum hv_status add_rows(struct network *q)
{
    size_t n_rows = q->n_nodes, n_terms = 0;
    size_t *at = hv_xcalloc(n_rows + 2, sizeof *at);
    struct hv_lp_term *terms = hv_xcalloc(2 * q->n_arcs + 1, sizeof *terms);
    enum hv_status st = HV_OK;
    for (int fill = 0; fill < 2; fill++) {
        for (size_t k = 0; k < q->n_arcs; k++) {
            const struct arc *a = &q->arcs[k];
            size_t out = a->stage ? row_of(q, a->stage - 1, a->from) : 0;
            bool ends = a->stage + 1 == q->p->n_stages;
            size_t in = ends ? n_rows : row_of(q, a->stage, a->to);
            if (fill) {
                terms[at[out]++] = (struct hv_lp_term){k, out ? -1 : 1};
                if (!ends) {
                    terms[at[in]++] = (struct hv_lp_term){k, 1};
                }
            } else {
                at[out + 1]++;
                at[in + 1] += !ends;
            }
        }
        for (size_t r = 0; !fill && r < n_rows; r++) {
            at[r + 1] += at[r];
        }
    }
    for (size_t r = 0; r < n_rows && st == HV_OK; n_terms = at[r++]) {
        size_t n = at[r] - n_terms;
        if (n) {
            st = hv_lp_add_row(q->lp, terms + n_terms, n, r ? HV_LP_EQ : HV_LP_LE, r ? 0 : 1, NULL);
        }
    }
    free(at);
    free(terms);
    return st;
}

/* The program: maximum flow out of the source. All coefficients are 0 or ±1, and the matrix is that
 * of a network, so its optimum is 0 or 1 without any integer variable. */
static enum hv_status build(struct network *q)
{
    size_t n_out = 0;
    enum hv_status st = HV_OK;
    q->lp = hv_lp_new(HV_LP_MAX);
    for (size_t k = 0; k < q->n_arcs && st == HV_OK; k++) {
        st = hv_lp_add_var(q->lp, 0, HUGE_VAL, false, NULL, NULL);
        n_out += q->arcs[k].stage == 0;
    }
    struct hv_lp_term *out = hv_xcalloc(n_out + 1, sizeof *out);
    for (size_t k = 0; k < n_out; k++) { /* the arcs of stage 0 come first */
        out[k] = (struct hv_lp_term){k, 1};
    }
    if (st == HV_OK) {
        st = hv_lp_set_objective(q->lp, out, n_out, NULL);
    }
    free(out);
    return st == HV_OK ? add_rows(q) : st;
}

/* Result of the network program. */
enum verdict {
    VERDICT_OPEN,
    VERDICT_NONE, /* no partition, and the duals of the program prove it */
    VERDICT_SOME  /* a partition, followed along the flow and evaluated */
};

/* Follows the flow from the first layer to the last; every arc on the way is within the limit. */
static bool walk(const struct network *q, const double *flow)
{
    size_t at = 0, k = 0;
    for (size_t s = 0; s < q->p->n_stages; s++) {
        while (k < q->n_arcs && (q->arcs[k].stage < s || q->arcs[k].from != at || flow[k] < 0.1)) {
            k++;
        }
        if (k == q->n_arcs || q->arcs[k].stage != s) {
            return false;
        }
        at = q->arcs[k].to;
    }
    return at == q->p->n_layers;
}

static enum verdict solve(const struct network *q, double seconds)
{
    const struct hv_lp_limits limits = {.deadline_s = seconds};
    struct hv_lp_result r = {.bound = HV_UNKNOWN};
    enum verdict v = VERDICT_OPEN;
    if (hv_lp_solve(q->lp, &limits, &r, NULL) != HV_OK) {
        return v;
    }
    if (r.proven && r.bound < 0.5) { /* the bound comes from checked duals */
        v = VERDICT_NONE;
    } else if (r.x && walk(q, r.x)) {
        v = VERDICT_SOME;
    }
    hv_lp_result_free(&r);
    return v;
}

/* Decides whether a partition with every value ≤ limit exists. *by_windows = the windows alone
 * exclude one. */
static enum verdict ask(const struct hv_partition *p, double limit, double seconds,
                        bool *by_windows)
{
    struct hv_arena arena = {0};
    struct network q = {.p = p, .limit = limit, .n_nodes = 1};
    enum verdict v = VERDICT_OPEN;
    q.window = hv_arena_new(&arena, struct hv__row, p->n_stages);
    q.node = hv_arena_new(&arena, size_t, p->n_stages);
    *by_windows = !hv__windows(p, limit, q.window);
    if (!*by_windows) {
        for (size_t s = 0; s + 1 < p->n_stages; s++) {
            q.node[s] = q.n_nodes;
            q.n_nodes += q.window[s].hi - q.window[s].lo + 1;
        }
        q.n_arcs = list_arcs(&q, NULL);
        *by_windows = q.n_arcs == 0;
    }
    if (*by_windows) {
        v = VERDICT_NONE;
    } else if (q.n_arcs <= MAX_ARCS) {
        q.arcs = hv_arena_new(&arena, struct arc, q.n_arcs);
        (void)list_arcs(&q, q.arcs);
        v = build(&q) == HV_OK ? solve(&q, seconds) : VERDICT_OPEN;
        hv_lp_free(q.lp);
    }
    hv_arena_free(&arena);
    return v;
}

/* True when the cuts of the result give every stage a value within the limit. */
static bool holds(const struct hv_partition *p, const struct hv_partition_result *r, double limit)
{
    size_t from = 0;
    if (r->n_stages != p->n_stages || r->cut[r->n_stages - 1] != p->n_layers) {
        return false;
    }
    for (size_t s = 0; s < r->n_stages; from = r->cut[s++]) {
        if (r->cut[s] < from + p->min_layers || r->cut[s] > p->n_layers ||
            !(hv_partition_value(p, s, s, from, r->cut[s]) <= limit)) {
            return false;
        }
    }
    return true;
}

enum hv_certify_outcome hv_certify_chain(const struct hv_partition *p,
                                         const struct hv_partition_result *r, double limit_s,
                                         struct hv_str *text)
{
    double seconds = limit_s > 0 ? limit_s : 1, top = r->max * (1 + 1e-9);
    bool by_windows = false, at_windows = false;
    enum verdict below = VERDICT_NONE; /* times are not negative: nothing lies below 0 */
    if (r->max > 0) {
        below = ask(p, r->max * (1 - 1e-6), seconds, &by_windows);
    }
    if (below == VERDICT_SOME) {
        hv_str_adds(text, "lp_solve CONTRADICTS: it found a partition below the optimum");
        return HV_CERTIFY_CONTRADICTS;
    }
    if (below == VERDICT_OPEN) {
        hv_str_addf(text, "lp_solve did not finish the question below the optimum in %g s",
                    seconds);
        return HV_CERTIFY_OPEN;
    }
    enum verdict at = ask(p, top, seconds, &at_windows);
    if (at == VERDICT_NONE || !holds(p, r, top)) {
        hv_str_adds(text, "lp_solve CONTRADICTS: it finds no partition at the optimum");
        return HV_CERTIFY_CONTRADICTS;
    }
    hv_str_addf(text, "%s exclude every value below the optimum less 1e-6, and %s at it",
                by_windows ? "cut windows alone" : "cut windows and the duals of lp_solve",
                at == VERDICT_SOME ? "lp_solve has a partition"
                                   : "the partition was evaluated again");
    return HV_CERTIFY_AGREES;
}
