/* Rates of transfers that share links: max-min fair among flows. Their start times are simulated in
 * play.c. */
#include "solver/sim/links/links_int.h"

#include <math.h>

/* limits that differ by less than this share are one */
#define TOGETHER (1 + 1e-12)

static inline double lesser(double a, double b)
{
    return a < b ? a : b;
}

/* a flight by itself: its own rate, and that of the tightest of its links. Fills per_flow */
static void price_alone(struct hv__flight *f, double *per_flow)
{
    const struct hv_link_hop *h = f->hop;
    f->per_flow = per_flow;
    f->flow_per_s = h->flow_bytes / h->bytes_s;
    double most = f->flow_per_s;
    for (size_t k = 0; k < h->n_loads; k++) {
        per_flow[k] = h->loads[k].busy_s / h->flow_bytes;
        most = per_flow[k] > 0 ? lesser(most, 1 / per_flow[k]) : most;
    }
    f->alone_per_s = most / h->flow_bytes;
}

/* flights of ranks that use links, behind those of hops */
static void list_exchanges(struct hv__sky *s, struct hv_arena *a, const struct hv_links *share)
{
    for (size_t i = 0; i < share->n_pipes; i++) {
        const struct hv_link_pipe *p = &share->pipes[i];
        for (int32_t r = 0; p->ranks && r < p->g->s.n_ranks; r++) {
            size_t n = p->ranks[r].n_loads;
            if (n == 0) {
                continue;
            }
            struct hv__exchange *x = &s->exchanges[s->n_exchanges];
            *x = (struct hv__exchange){
                .pipe = i,
                .rank = r,
                .asks = &p->ranks[r],
                .loads = hv_arena_copy(a, p->ranks[r].loads, n, sizeof *p->ranks[r].loads),
                .per_flow = hv_arena_new(a, double, n)};
            x->hop = (struct hv_link_hop){.loads = x->loads, .n_loads = n};
            s->flights[s->n_hops + s->n_exchanges].hop = &x->hop;
            s->n_exchanges++;
        }
    }
}

/* marks the hops whose links no other hop uses */
static void find_alone(struct hv__sky *s)
{
    for (size_t i = 0; i < s->n_hops; i++) {
        struct hv__flight *f = &s->flights[i];
        f->alone = true;
        for (size_t k = 0; k < f->hop->n_loads; k++) {
            f->alone = f->alone && s->links[f->hop->loads[k].link].n == 1;
        }
    }
}

/* lists the flights of each link */
static void list_by_link(struct hv__sky *s, struct hv_arena *a, size_t n_links)
{
    size_t n = s->n_hops + s->n_exchanges, *at = hv_arena_new(a, size_t, n_links + 2);
    for (size_t f = 0; f < n; f++) {
        for (size_t k = 0; k < s->flights[f].hop->n_loads; k++) {
            at[s->flights[f].hop->loads[k].link + 2]++;
        }
    }
    for (size_t l = 2; l < n_links + 2; l++) {
        at[l] += at[l - 1];
    }
    int32_t *of = hv_arena_new(a, int32_t, at[n_links + 1] + 1);
    for (size_t f = 0; f < n; f++) {
        for (size_t k = 0; k < s->flights[f].hop->n_loads; k++) {
            of[at[s->flights[f].hop->loads[k].link + 1]++] = (int32_t)f;
        }
    }
    for (size_t l = 0; l < n_links; l++) {
        s->links[l] = (struct hv__on_link){.hops = of + at[l], .n = at[l + 1] - at[l]};
    }
}

void hv__sky_open(struct hv__sky *s, struct hv_arena *a, const struct hv_links *share)
{
    size_t n = 0, n_loads = 0, n_ranks = 0;
    for (size_t i = 0; i < share->n_pipes; i++) {
        const struct hv_link_pipe *p = &share->pipes[i];
        for (int32_t h = 0; h < hv_link_n_hops(p); h++) {
            n_loads += p->hops[h].n_loads;
        }
        n += (size_t)hv_link_n_hops(p);
        n_ranks += p->ranks ? (size_t)p->g->s.n_ranks : 0;
    }
    *s = (struct hv__sky){.flights = hv_arena_new(a, struct hv__flight, n + n_ranks + 1),
                          .n_hops = n,
                          .exchanges = hv_arena_new(a, struct hv__exchange, n_ranks + 1),
                          .links = hv_arena_new(a, struct hv__on_link, share->n_links + 1),
                          .found_links = hv_arena_new(a, int32_t, share->n_links + 1),
                          .found = hv_arena_new(a, int32_t, n + n_ranks + 1)};
    double *per_flow = hv_arena_new(a, double, n_loads + 1);
    n = 0;
    for (size_t i = 0; i < share->n_pipes; i++) {
        for (int32_t h = 0; h < hv_link_n_hops(&share->pipes[i]); h++, n++) {
            s->flights[n].hop = &share->pipes[i].hops[h];
            price_alone(&s->flights[n], per_flow);
            per_flow += s->flights[n].hop->n_loads;
        }
    }
    list_exchanges(s, a, share);
    list_by_link(s, a, share->n_links);
    find_alone(s);
}

void hv__sky_price(struct hv__sky *s, size_t exchange, double seconds, double frac)
{
    struct hv__exchange *x = &s->exchanges[exchange];
    x->hop.bytes_s = seconds;
    x->hop.flow_bytes = frac * seconds * x->asks->flow_bytes_per_s;
    for (size_t k = 0; k < x->hop.n_loads; k++) {
        x->loads[k].busy_s = x->asks->loads[k].busy_s * frac * seconds;
    }
    price_alone(&s->flights[s->n_hops + exchange], x->per_flow);
}

void hv__sky_set(struct hv__sky *s, size_t flight, bool under_way, double now_s)
{
    struct hv__flight *f = &s->flights[flight];
    for (size_t k = 0; k < f->hop->n_loads; k++) {
        size_t *up = &s->links[f->hop->loads[k].link].n_up;
        *up = under_way ? *up + 1 : *up - 1;
    }
    f->under_way = under_way;
    if (under_way) {
        f->left = 1;
        f->per_s = 0;
        f->since_s = now_s;
    } else {
        f->change++;
    }
}

/* ---- flights that share links ---- */

/* true where no other flight uses the links of a flight */
static bool is_alone(const struct hv__sky *s, const struct hv__flight *f)
{
    size_t own = f->under_way;
    for (size_t k = 0; k < f->hop->n_loads; k++) {
        if (s->links[f->hop->loads[k].link].n_up > own) {
            return false;
        }
    }
    return true;
}

static void find_links(struct hv__sky *s, const struct hv_link_hop *h)
{
    s->steps += (double)h->n_loads;
    for (size_t k = 0; k < h->n_loads; k++) {
        struct hv__on_link *l = &s->links[h->loads[k].link];
        if (l->mark != s->mark) {
            l->mark = s->mark;
            l->used = 0;
            s->found_links[s->n_found_links++] = h->loads[k].link;
        }
    }
}

static void find_flights(struct hv__sky *s, const struct hv_link_hop *around)
{
    s->mark++;
    s->n_found = s->n_found_links = 0;
    find_links(s, around);
    for (size_t i = 0; i < s->n_found_links; i++) {
        const struct hv__on_link *l = &s->links[s->found_links[i]];
        for (size_t k = 0; k < l->n; k++) {
            struct hv__flight *f = &s->flights[l->hops[k]];
            if (f->under_way && f->mark != s->mark) {
                f->mark = s->mark;
                s->found[s->n_found++] = l->hops[k];
                find_links(s, f->hop);
            }
        }
    }
}

/* ---- rates ---- */

/* the rate that a link leaves to each flow that is not fixed; its sum is above 0 */
static inline double limit(const struct hv__on_link *l)
{
    double rest = 1 - l->used;
    return (rest > 0 ? rest : 0) / l->sum;
}

/* the highest rate of a flow that no link forbids, while all that are not fixed have one rate:
 * flights found from n_fixed on */
static double common_rate(struct hv__sky *s, size_t n_fixed)
{
    double most = HUGE_VAL;
    for (size_t i = 0; i < s->n_found_links; i++) {
        s->links[s->found_links[i]].sum = 0;
    }
    s->steps += (double)s->n_found_links;
    for (size_t i = n_fixed; i < s->n_found; i++) {
        const struct hv__flight *f = &s->flights[s->found[i]];
        most = lesser(most, f->flow_per_s);
        s->steps += (double)f->hop->n_loads;
        for (size_t k = 0; k < f->hop->n_loads; k++) {
            s->links[f->hop->loads[k].link].sum += f->per_flow[k];
        }
    }
    for (size_t i = 0; i < s->n_found_links; i++) {
        const struct hv__on_link *l = &s->links[s->found_links[i]];
        most = l->sum > 0 ? lesser(most, limit(l)) : most;
    }
    return most;
}

static bool is_stopped(const struct hv__sky *s, const struct hv__flight *f, double most)
{
    if (f->flow_per_s <= most) {
        return true;
    }
    for (size_t k = 0; k < f->hop->n_loads; k++) {
        const struct hv__on_link *l = &s->links[f->hop->loads[k].link];
        if (l->sum > 0 && limit(l) <= most) {
            return true;
        }
    }
    return false;
}

static void set_rate(struct hv__flight *f, double per_s, double now_s)
{
    double left = f->left - f->per_s * (now_s - f->since_s);
    f->left = left > 0 ? left : 0;
    f->since_s = now_s;
    f->change += fabs(per_s - f->per_s) > 0;
    f->per_s = per_s;
}

void hv__sky_balance(struct hv__sky *s, size_t around, double now_s)
{
    struct hv__flight *of = &s->flights[around];
    if (is_alone(s, of)) {
        s->n_found = of->under_way;
        s->found[0] = (int32_t)around;
        if (of->under_way) {
            set_rate(of, of->alone_per_s, now_s);
        }
        return;
    }
    find_flights(s, of->hop);
    for (size_t n_fixed = 0; n_fixed < s->n_found;) {
        double rate = common_rate(s, n_fixed);
        size_t before = n_fixed;
        for (size_t i = before; i < s->n_found; i++) { /* flights at the limit, then links */
            struct hv__flight *f = &s->flights[s->found[i]];
            if (is_stopped(s, f, rate * TOGETHER)) {
                set_rate(f, rate / f->hop->flow_bytes, now_s);
                s->found[i] = s->found[n_fixed];
                s->found[n_fixed++] = (int32_t)(f - s->flights);
            }
        }
        for (size_t i = before; i < n_fixed; i++) {
            const struct hv__flight *f = &s->flights[s->found[i]];
            for (size_t k = 0; k < f->hop->n_loads; k++) {
                s->links[f->hop->loads[k].link].used += f->hop->loads[k].busy_s * f->per_s;
            }
        }
        if (n_fixed == before) {
            break; /* unreachable: the lowest limit fixes at least one flight */
        }
    }
}
