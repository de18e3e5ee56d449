/*
 * A schedule as lines of characters: one per rank, a column per unit of time. Where there are more
 * operations than columns, each column shows the kind with the largest share of it, or '#'.
 */
#include "ui/cli/schedule_show.h"

/* kinds of a column; idle comes after those of operations */
enum { IDLE = HV_OP_KIND_N, FILLS };
/* least share of a column for one kind (or idle) to be shown instead of '#' */
#define CLEARLY 0.75

struct chart {
    const struct hv_schedule_shown *r;
    double unit_s;
    int columns;
    bool dense; /* more operations than columns */
};

/* '0'…'9' for forwards, 'a'…'j' for backwards, both by the micro-batch's last digit */
static char op_char(const struct hv_op *op)
{
    switch ((enum hv_op_kind)op->kind) {
    case HV_OP_F:
        return (char)('0' + op->mb % 10);
    case HV_OP_B:
    case HV_OP_BW:
        return (char)('a' + op->mb % 10);
    case HV_OP_W:
        return 'w';
    case HV_OP_R:
        return 'r';
    case HV_OP_KIND_N:
        break;
    }
    return '?';
}

static double op_s(const struct hv_schedule_shown *r, const struct hv_op *op)
{
    return r->cost.stage_s[(size_t)op->stage * HV_OP_KIND_N + op->kind];
}

/* the op of a node at time t: of an overlapped pair first the one, then the other */
static const struct hv_op *op_at(const struct hv_schedule_shown *r, int32_t node, double t)
{
    const struct hv_op *op = &r->s.ops[hv_pipe_first_op(&r->g, node)];
    double start_s = r->run.node_start_s[node], all_s = r->run.node_end_s[node] - start_s;
    if (op->group < 0) {
        return op;
    }
    double first_s = op_s(r, op), both_s = first_s + op_s(r, op + 1);
    return both_s > 0 && t - start_s >= all_s * first_s / both_s ? op + 1 : op;
}

/* the shortest time an operation takes, the makespan where none takes any */
static double shortest_s(const struct hv_schedule_shown *r)
{
    double least = r->run.makespan_s;
    for (int32_t n = 0; n < r->g.n_nodes; n++) {
        double s = r->run.node_end_s[n] - r->run.node_start_s[n];
        least = s > 0 && s < least ? s : least;
    }
    return least;
}

static void add_sparse(const struct chart *c, int32_t rank, struct hv_str *out)
{
    const struct hv_schedule_shown *r = c->r;
    int32_t n = r->g.rank_node_at[rank], to = r->g.rank_node_at[rank + 1];
    for (int k = 0; k < c->columns; k++) {
        double t = (k + 0.5) * c->unit_s;
        while (n < to && r->run.node_end_s[n] <= t) {
            n++;
        }
        bool busy = n < to && r->run.node_start_s[n] <= t;
        hv_str_addc(out, busy ? op_char(op_at(r, n, t)) : '.');
    }
}

/* adds the part of a node that lies in [from, to) to the totals of the column */
static void fill(const struct hv_schedule_shown *r, int32_t node, double from, double to,
                 double by[FILLS])
{
    double a = r->run.node_start_s[node], b = r->run.node_end_s[node];
    double part = (b < to ? b : to) - (a > from ? a : from);
    if (part > 0) {
        const struct hv_op *op = op_at(r, node, (a > from ? a : from) + part / 2);
        enum hv_op_kind kind = (enum hv_op_kind)op->kind;
        by[kind == HV_OP_BW ? HV_OP_B : kind] += part;
        by[IDLE] -= part;
    }
}

static void add_dense(const struct chart *c, int32_t rank, struct hv_str *out)
{
    static const char letters[FILLS] = {[HV_OP_F] = 'F',  [HV_OP_B] = 'B', [HV_OP_W] = 'W',
                                        [HV_OP_BW] = 'B', [HV_OP_R] = 'R', [IDLE] = '.'};
    const struct hv_schedule_shown *r = c->r;
    int32_t n = r->g.rank_node_at[rank], to = r->g.rank_node_at[rank + 1];
    for (int k = 0; k < c->columns; k++) {
        double from = k * c->unit_s, till = from + c->unit_s, by[FILLS] = {0};
        by[IDLE] = c->unit_s;
        for (; n < to && r->run.node_start_s[n] < till; n++) {
            fill(r, n, from, till, by);
            if (r->run.node_end_s[n] > till) {
                break; /* the operation continues in the next column */
            }
        }
        int most = IDLE;
        for (int i = 0; i < FILLS; i++) {
            most = by[i] > by[most] ? i : most;
        }
        hv_str_addc(out, by[most] >= CLEARLY * c->unit_s ? letters[most] : '#');
    }
}

void hv_schedule_chart(const struct hv_schedule_shown *r, int columns, struct hv_str *out)
{
    double end_s = r->run.makespan_s, unit_s = shortest_s(r);
    struct chart c = {.r = r, .unit_s = unit_s};
    if (!(end_s > 0)) {
        hv_str_adds(out, "       nothing to draw: no operation takes any time\n");
        return;
    }
    c.unit_s = end_s / unit_s > columns ? end_s / columns : unit_s;
    c.columns = (int)(end_s / c.unit_s + 0.5);
    for (int32_t i = 0; i < r->s.n_ranks; i++) {
        c.dense = c.dense || r->g.rank_node_at[i + 1] - r->g.rank_node_at[i] > c.columns;
    }
    for (int32_t i = 0; i < r->s.n_ranks; i++) {
        hv_text_addf(out, "%5d  ", i);
        (c.dense ? add_dense : add_sparse)(&c, i, out);
        hv_str_addc(out, '\n');
    }
    hv_text_addf(out, "       one column = %.4g; ", c.unit_s);
    hv_str_adds(out, c.dense
                         ? "F forward, B backward, W weight gradient, R recompute, # several of "
                           "them, . idle\n"
                         : "0-9 forward, a-j backward (micro-batch mod 10), w weight gradient, "
                           "r recompute, . idle\n");
}
