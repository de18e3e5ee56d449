/*
 * Collectives as start + steps + bytes over the group's shape (Thakur, Rabenseifner, Gropp 2005 for
 * ring and tree; hierarchical: reduce-scatter inside, ring across on one rail per member,
 * all-gather inside; all-to-all in two hops as DeepEP does it). The rate is the link's times its
 * curve's share. Not here: overlap with compute, and which groups run together (the caller sets
 * `together`).
 */
#include "solver/cost/network/collective.h"

#include <math.h>

#include "solver/cost/device/efficiency.h"
#include "solver/cost/network/collective_int.h"
#include "solver/cost/network/matrix.h"

static const char *const names[HV_COLLECTIVE_N] = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "p2p"};

const char *hv_collective_name(enum hv_collective c)
{
    return names[c];
}

/* One algorithm: seconds that do not depend on bytes, seconds of bytes, and the network elements in
 * use. */
struct form {
    enum hv_sync_algorithm algorithm;
    double alpha_s, bytes_s, messages;
    double house_bytes, network_bytes; /* sent per member inside, per house between them */
    const struct hv_link_curve *house, *net;
    double house_rate, net_rate; /* bytes/s after curve and calibration */
};

/* A query and the shape of its group. */
struct job {
    const struct hv_collective_query *q;
    struct hv__shape s;
};

static double step_bytes(double bytes, double members)
{
    return bytes * HV__CURVE_MEMBERS / fmax(members, HV__CURVE_MEMBERS);
}

/* Rate inside a house for a message of `bytes`; notes the curve and its start. */
static double house_rate(const struct job *j, enum hv_link_use use, double bytes, struct form *f)
{
    f->house = hv_link_curve(j->s.link, use);
    f->house_rate = j->s.house_bytes_per_s * hv_link_share(f->house, bytes) * j->s.house_factor;
    f->alpha_s = fmax(f->alpha_s, f->house->start_s);
    return f->house_rate;
}

/* The same between houses: the rate of all members of one house together. */
static double net_rate(const struct job *j, enum hv_link_use use, double bytes, struct form *f)
{
    f->net = hv_link_curve(j->s.net, use);
    f->net_rate = j->s.net_bytes_per_s * hv_link_share(f->net, bytes) * j->s.net_factor;
    f->alpha_s = fmax(f->alpha_s, f->net->start_s);
    return f->net_rate;
}

/* The lowest rate on the path of a ring or tree through all members. */
static double through_rate(const struct job *j, double members, struct form *f)
{
    double bytes = step_bytes(j->q->bytes, members), rate = HUGE_VAL;
    if (j->s.per_house > 1) {
        rate = house_rate(j, HV_USE_RING, bytes, f);
    }
    if (j->s.houses > 1) {
        rate = fmin(rate, net_rate(j, HV_USE_RING, bytes, f));
    }
    return rate;
}

/* Ring passes of (n-1)/n of the bytes: two for all-reduce, one for its halves. */
static double ring_passes(enum hv_collective op)
{
    return op == HV_ALL_REDUCE ? 2 : 1;
}

/* Seconds of so many steps inside and between houses. */
static double steps_s(const struct job *j, double inside, double between)
{
    return hv__step_share(j->s.link) * inside * j->s.house_alpha_s + between * j->s.net_alpha_s;
}

static struct form ring(const struct job *j)
{
    struct form f = {.algorithm = HV_ALGO_RING};
    double n = j->s.n, passes = ring_passes(j->q->op), bytes = j->q->bytes;
    double far = j->s.houses > 1 ? fmin(passes * j->s.houses, passes * (n - 1)) : 0;
    double rate = through_rate(j, n, &f);
    f.bytes_s = passes * (n - 1) / n * bytes / rate;
    f.messages = passes * (n - 1);
    f.alpha_s += steps_s(j, f.messages - far, far);
    f.house_bytes = (j->s.per_house - (j->s.houses > 1)) / j->s.per_house;
    f.house_bytes *= passes * (n - 1) / n * bytes;
    f.network_bytes = j->s.houses > 1 ? passes * (n - 1) / n * bytes : 0;
    return f;
}

/* Two binary trees, each with half of the bytes: every member is a leaf of one, so that every link
 * carries each byte once up and once down (Sanders, Speck, Traeff 2009). */
static struct form tree(const struct job *j)
{
    struct form f = {.algorithm = HV_ALGO_TREE};
    double n = j->s.n, k = j->s.houses, passes = ring_passes(j->q->op), bytes = j->q->bytes;
    double inside = ceil(log2(j->s.per_house)), between = ceil(log2(k));
    f.bytes_s = passes * bytes / through_rate(j, 0, &f);
    f.messages = passes * (inside + between);
    f.alpha_s += steps_s(j, passes * inside, passes * between);
    f.house_bytes = passes * (n - k) / n * bytes;
    f.network_bytes = passes * (k - 1) / k * bytes;
    return f;
}

static struct form hierarchical(const struct job *j)
{
    struct form f = {.algorithm = HV_ALGO_HIERARCHICAL};
    double q = j->s.per_house, k = j->s.houses, passes = ring_passes(j->q->op), bytes = j->q->bytes;
    if (q > 1) {
        f.bytes_s += (q - 1) / q * bytes / house_rate(j, HV_USE_RING, step_bytes(bytes, q), &f);
    }
    f.bytes_s += (k - 1) / k * bytes / net_rate(j, HV_USE_RING, step_bytes(bytes, k), &f);
    f.bytes_s *= passes;
    f.messages = passes * (q - 1 + k - 1);
    f.alpha_s += steps_s(j, passes * (q - 1), passes * (k - 1));
    f.house_bytes = passes * (q - 1) / q * bytes;
    f.network_bytes = passes * (k - 1) / k * bytes;
    return f;
}

/* Reduction in the switches of one house: every member sends its bytes once and its share of the
 * sum once more. */
static struct form in_switch(const struct job *j)
{
    struct form f = {.algorithm = HV_ALGO_NVLS, .messages = 2};
    f.house_bytes = (1 + 1 / j->s.n) * j->q->bytes;
    f.bytes_s = f.house_bytes / house_rate(j, HV_USE_SWITCH, j->q->bytes / j->s.n, &f);
    f.alpha_s += steps_s(j, 2, 0);
    return f;
}

/* Number of accesses of host memory per byte of every device: written by the copy, read and written
 * by the sum, and so on: 24 times the gradients of eight (An et al., SC'24, section IV). */
#define HOST_PASSES 3.0

/* Reduction in host memory: down and up the host links, the sum of a node by its processors, whole
 * nodes in two binary trees, in which one may have to pass everything up and down. Chunks keep all
 * of them busy at once, so the slowest sets the pace (HFReduce; An et al., SC'24, section IV). */
static struct form in_host(const struct job *j)
{
    struct form f = {.algorithm = HV_ALGO_HFREDUCE};
    double k = j->s.houses, bytes = j->q->bytes, between = ceil(log2(k));
    double sharing = j->s.per_house * fmax(j->q->together, 1);
    double host = bytes / (j->s.host_bytes_per_s * HV_EFF_HOST);
    double memory = HOST_PASSES * sharing * bytes / (j->s.memory_bytes_per_s * HV_EFF_HOST);
    f.network_bytes = k > 2 ? 2 * bytes : k > 1 ? bytes : 0;
    if (k > 1) {
        f.bytes_s = f.network_bytes / net_rate(j, HV_USE_RING, step_bytes(bytes, k), &f);
    }
    f.bytes_s = fmax(fmax(host, memory), f.bytes_s);
    f.alpha_s += 2 * HV_HOST_STAGE_S + steps_s(j, 0, 2 * between);
    f.messages = 2 + 2 * between;
    return f;
}

/* Takes the longer of two streams of messages as the whole. */
static void take_longer(struct form *f, double near_alpha_s, double near_s, double far_alpha_s,
                        double far_s)
{
    bool near = near_alpha_s + near_s > far_alpha_s + far_s;
    f->alpha_s = near ? near_alpha_s : far_alpha_s;
    f->bytes_s = near ? near_s : far_s;
}

/* Every member sends to every other directly. Both kinds of links work at once, but for plain ones,
 * over which one message follows the other. */
static struct form flat_exchange(const struct job *j)
{
    struct form f = {.algorithm = HV_ALGO_RING, .messages = j->s.n - 1};
    double q = j->s.per_house, n = j->s.n, bytes = step_bytes(j->q->bytes, n);
    double inside = 0, across = 0, near_start_s = 0;
    f.house_bytes = (q - 1) / n * j->q->bytes;
    if (q > 1) {
        inside = f.house_bytes / house_rate(j, HV_USE_ALL_TO_ALL, bytes, &f);
        near_start_s = f.alpha_s;
        f.alpha_s = 0;
    }
    if (j->s.houses > 1) {
        f.network_bytes = q * (n - q) / n * j->q->bytes;
        across = f.network_bytes / net_rate(j, HV_USE_ALL_TO_ALL, bytes, &f);
    }
    double near_s = steps_s(j, q - 1, 0), net_alpha_s = j->s.houses > 1 ? j->s.net_alpha_s : 0;
    double far_s = net_alpha_s + hv__step_share(j->s.net) * fmax(n - q - 1, 0) * net_alpha_s;
    if (j->q->pipe) {
        take_longer(&f, near_start_s + near_s, inside, f.alpha_s + far_s, across);
        return f;
    }
    bool plain = j->s.link == HV_CURVE_PLAIN && j->s.net == HV_CURVE_PLAIN;
    f.bytes_s = plain ? inside + across : fmax(inside, across);
    f.alpha_s = fmax(near_start_s, f.alpha_s) + near_s + far_s;
    return f;
}

/* Across to the same position in every other house, then on inside: fewer and larger messages
 * between houses, more bytes inside. The two hops are pipelined unless the query has them in turn.
 */
static struct form two_hop_exchange(const struct job *j)
{
    struct form f = {.algorithm = HV_ALGO_HIERARCHICAL};
    double q = j->s.per_house, k = j->s.houses, bytes = j->q->bytes;
    bool in_turn = j->q->algorithm == HV_ALGO_TREE;
    f.house_bytes = (q - 1) / q * bytes;
    f.network_bytes = q * (j->s.n - q) / j->s.n * bytes;
    f.network_bytes *= in_turn ? 1 : hv__first_copies(k, j->q->copies);
    double inside = f.house_bytes / house_rate(j, HV_USE_ALL_TO_ALL, step_bytes(bytes, q), &f);
    double across = f.network_bytes / net_rate(j, HV_USE_ALL_TO_ALL, step_bytes(bytes, k), &f);
    f.bytes_s = in_turn ? inside + across : fmax(inside, across);
    f.messages = q - 1 + k - 1;
    f.alpha_s += steps_s(j, q - 1, 1 + hv__step_share(j->s.net) * (k - 2));
    return f;
}

/* Calibration of a device class for a path of that level. */
static double factor(enum hv_path_level level, const struct hv_device_kind *d)
{
    if (level == HV_PATH_SELF) {
        return 1;
    }
    return hv_device_calibration(d)
        ->v[level < HV_PATH_NETWORK ? HV_CAL_NODE_LINKS : HV_CAL_NETWORK];
}

static struct form point_to_point(const struct hv_cluster *c, const struct hv_collective_query *q)
{
    struct form f = {.algorithm = HV_ALGO_RING, .messages = 1};
    struct hv_path p = hv_cluster_path(c, q->devices[0], q->devices[q->n - 1]);
    const struct hv_device_kind *a = hv_cluster_device(c, q->devices[0]).kind;
    const struct hv_device_kind *b = hv_cluster_device(c, q->devices[q->n - 1]).kind;
    bool far = p.level >= HV_PATH_NETWORK;
    double measured = p.plain ? 1 : fmin(factor(p.level, a), factor(p.level, b));
    double rate = p.bytes_per_s * measured;
    f.alpha_s = p.latency_s;
    const struct hv_link_curve *curve = hv_link_curve(hv_link_class_of_path(&p, a), HV_USE_P2P);
    if (p.level != HV_PATH_SELF) {
        rate *= hv_link_share(curve, q->bytes);
        f.alpha_s += curve->start_s;
    }
    if (far) {
        struct hv_path nodes = hv_cluster_node_path(c, hv_cluster_node_of(c, q->devices[0]),
                                                    hv_cluster_node_of(c, q->devices[q->n - 1]));
        double share = nodes.bytes_per_s / fmax(q->together, 1);
        rate *= fmin(1, share / p.bytes_per_s);
    }
    if (!hv__same_fabric(a, b)) {
        rate = fmin(rate, HV_EFF_HOST * fmin(hv_or(a->pcie_bytes_per_s, HUGE_VAL),
                                             hv_or(b->pcie_bytes_per_s, HUGE_VAL)));
        f.alpha_s += 2 * HV_HOST_STAGE_S;
    }
    f.bytes_s = q->bytes / rate;
    f.house_bytes = far ? 0 : q->bytes;
    f.network_bytes = far ? q->bytes : 0;
    *(far ? &f.net : &f.house) = curve;
    *(far ? &f.net_rate : &f.house_rate) = rate;
    return f;
}

/* The best form so far; `some` is true where there is one. */
struct best {
    bool some;
    struct form f;
};

static void consider(struct best *b, struct form f)
{
    if (!b->some || f.alpha_s + f.bytes_s < b->f.alpha_s + b->f.bytes_s) {
        *b = (struct best){true, f};
    }
}

static bool wants(const struct hv_collective_query *q, enum hv_sync_algorithm a)
{
    return q->algorithm == a || q->algorithm == HV_ALGO_AUTO;
}

/* All-reduce, reduce-scatter and all-gather: the algorithm of the query, or the fastest that
 * applies. Host reduction needs software of its own and is never chosen automatically. */
static struct form reduction(const struct job *j)
{
    const struct hv_collective_query *q = j->q;
    struct best b = {0};
    bool reduces = q->op == HV_ALL_REDUCE;
    if (wants(q, HV_ALGO_RING)) {
        consider(&b, ring(j));
    }
    if (wants(q, HV_ALGO_TREE) && reduces) {
        consider(&b, tree(j));
    }
    if (wants(q, HV_ALGO_HIERARCHICAL) && j->s.houses > 1) {
        consider(&b, hierarchical(j));
    }
    if (wants(q, HV_ALGO_NVLS) && reduces && j->s.reduces) {
        consider(&b, in_switch(j));
    }
    if (q->algorithm == HV_ALGO_HFREDUCE && reduces && isfinite(j->s.host_bytes_per_s)) {
        consider(&b, in_host(j));
    }
    return b.some ? b.f : ring(j);
}

static struct form exchange(const struct job *j)
{
    struct best b = {0};
    bool two_hops = j->s.houses > 1 && j->s.per_house > 1;
    if (two_hops && (wants(j->q, HV_ALGO_HIERARCHICAL) || j->q->algorithm == HV_ALGO_TREE)) {
        consider(&b, two_hop_exchange(j));
    }
    if (!b.some || j->q->algorithm == HV_ALGO_AUTO) {
        consider(&b, flat_exchange(j));
    }
    return b.f;
}

static void explain_hop(struct hv_str *out, const char *where, const struct hv_link_curve *c,
                        double rate, const char *link)
{
    if (c) {
        hv_str_addf(out, "; %s %.4g GB/s (%s%s%s, %s)", where, rate / HV_GBPS, link ? link : "",
                    link ? "; " : "", c->name, c->source);
    }
}

/* "in 16 nodes of 1 link domain", or the nodes alone where each is one. */
static void explain_where(struct hv_str *out, const struct hv__shape *s)
{
    hv_str_addf(out, "%.0f devices in %.0f node%s", s->n, s->nodes, s->nodes > 1 ? "s" : "");
    if (s->houses < s->nodes) {
        hv_str_addf(out, " of %.0f link domain%s", s->houses, s->houses > 1 ? "s" : "");
    }
}

static void explain(const struct hv_cluster *c, const struct job *j, const struct form *f,
                    struct hv_why *why)
{
    const struct hv_collective_query *q = j->q;
    const char *inside = j->s.house_why, *between = j->s.net_why;
    struct hv_str text = {0};
    if (q->op == HV_P2P) {
        inside = between = hv_cluster_path(c, q->devices[0], q->devices[q->n - 1]).why;
        hv_str_adds(&text, "one flow");
    } else {
        explain_where(&text, &j->s);
        hv_str_addf(&text, ", %s, %.0f together", hv_sync_algorithm_words[f->algorithm],
                    fmax(q->together, 1));
    }
    hv_str_addf(&text, ": %.4g us start and steps", f->alpha_s / HV_US);
    explain_hop(&text, "inside", f->house, f->house_rate, inside);
    explain_hop(&text, "between", f->net, f->net_rate, between);
    hv_why_add(why, names[q->op], f->alpha_s + f->bytes_s, "s", "%.4g bytes, %s", q->bytes,
               hv_str_cstr(&text));
    hv_str_free(&text);
}

static struct form form_of(const struct hv_cluster *c, const struct job *j)
{
    switch (j->q->op) {
    case HV_ALL_REDUCE:
    case HV_ALL_GATHER:
    case HV_REDUCE_SCATTER:
        return reduction(j);
    case HV_ALL_TO_ALL:
        return exchange(j);
    case HV_BROADCAST:
    case HV_REDUCE:
        return tree(j);
    case HV_P2P:
    case HV_COLLECTIVE_N:
        break;
    }
    return point_to_point(c, j->q);
}

/* An all-to-all of unequal parts. */
static struct hv_collective_cost unequal(const struct hv_cluster *c,
                                         const struct hv_collective_query *q, struct hv_why *why)
{
    struct hv_ways *ways = hv_ways_new(c, q->devices, q->n);
    const struct hv_matrix_query m = {.bytes = q->matrix,
                                      .scale = 1,
                                      .algorithm = q->algorithm,
                                      .pipe = q->pipe,
                                      .together = q->together,
                                      .copies = q->copies};
    struct hv_collective_cost out = hv_cost_matrix(ways, &m, why);
    hv_ways_free(ways);
    return out;
}

struct hv_collective_cost hv_cost_collective(const struct hv_cluster *c,
                                             const struct hv_collective_query *q,
                                             struct hv_why *why)
{
    struct hv_collective_cost out = {.algorithm = q->algorithm};
    if (q->op == HV_ALL_TO_ALL && q->matrix) {
        return unequal(c, q, why);
    }
    if (q->n < 2 || !(q->bytes > 0)) {
        return out;
    }
    struct job j = {q, {.n = 2, .nodes = 1, .houses = 1, .connected = true}};
    if (q->op != HV_P2P) {
        j.s = hv__shape_of(c, q);
    }
    struct form f = form_of(c, &j);
    double per_node = j.s.houses / j.s.nodes * fmax(q->together, 1);
    out = (struct hv_collective_cost){.time_s = f.alpha_s + f.bytes_s,
                                      .alpha_s = f.alpha_s,
                                      .messages = f.messages,
                                      .node_bytes = f.house_bytes,
                                      .network_bytes = f.network_bytes * per_node,
                                      .algorithm = f.algorithm};
    if (!j.s.connected) {
        out.time_s = HV_UNKNOWN;
    }
    if (why) {
        explain(c, &j, &f, why);
    }
    return out;
}
