/*
 * Assignment: shortest augmenting paths with prices for sums, thresholds for maxima.
 * Not here: the meaning of rows and columns.
 */
#include "solver/optim/choice/assign.h"
#include "solver/base/units.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FREE SIZE_MAX

struct problem {
    const double *cost;
    size_t rows, columns;
    size_t *row_of, *came; /* column → its row; column → column before it on the path */
    double *row_price, *column_price, *distance;
    bool *done;
};

static double cost_at(const struct problem *q, size_t r, size_t c)
{
    return q->cost[r * q->columns + c];
}

static void set_up(struct problem *q, struct hv_arena *a)
{
    q->row_of = hv_arena_new(a, size_t, q->columns);
    q->came = hv_arena_new(a, size_t, q->columns);
    q->row_price = hv_arena_new(a, double, q->rows);
    q->column_price = hv_arena_new(a, double, q->columns);
    q->distance = hv_arena_new(a, double, q->columns);
    q->done = hv_arena_new(a, bool, q->columns);
    for (size_t c = 0; c < q->columns; c++) {
        q->row_of[c] = FREE;
    }
}

/* Flips the path that ends in column c. */
static void flip(struct problem *q, size_t c, size_t row)
{
    while (q->came[c] != FREE) {
        q->row_of[c] = q->row_of[q->came[c]];
        c = q->came[c];
    }
    q->row_of[c] = row;
}

/* Relaxes the columns from a row that was reached at distance `at`; returns the nearest open one.
 */
static size_t scan_row(struct problem *q, size_t r, size_t via, double at)
{
    size_t best = FREE;
    for (size_t c = 0; c < q->columns; c++) {
        if (q->done[c]) {
            continue;
        }
        double d = at + cost_at(q, r, c) - q->row_price[r] - q->column_price[c];
        if (d < q->distance[c]) {
            q->distance[c] = d;
            q->came[c] = via;
        }
        if (!isinf(q->distance[c]) && (best == FREE || q->distance[c] < q->distance[best])) {
            best = c;
        }
    }
    return best;
}

/* Shortest path from a row to a free column; false when there is none. */
static bool augment_sum(struct problem *q, size_t row)
{
    for (size_t c = 0; c < q->columns; c++) {
        q->distance[c] = HUGE_VAL;
        q->done[c] = false;
    }
    size_t r = row, via = FREE;
    double at = 0;
    for (;;) {
        size_t c = scan_row(q, r, via, at);
        if (c == FREE) {
            return false;
        }
        at = q->distance[c];
        if (q->row_of[c] == FREE) {
            via = c;
            break;
        }
        q->done[c] = true;
        via = c;
        r = q->row_of[c];
    }
    q->row_price[row] += at;
    for (size_t c = 0; c < q->columns; c++) {
        if (q->done[c]) {
            q->column_price[c] -= at - q->distance[c];
            q->row_price[q->row_of[c]] += at - q->distance[c];
        }
    }
    flip(q, via, row);
    return true;
}

/* Breadth first over columns with cost ≤ limit. */
static bool augment_below(struct problem *q, size_t row, double limit, size_t *queue)
{
    size_t head = 0, tail = 0, r = row, via = FREE;
    for (size_t c = 0; c < q->columns; c++) {
        q->done[c] = false;
    }
    for (;;) {
        for (size_t c = 0; c < q->columns; c++) {
            if (q->done[c] || isinf(cost_at(q, r, c)) || cost_at(q, r, c) > limit) {
                continue;
            }
            q->done[c] = true;
            q->came[c] = via;
            if (q->row_of[c] == FREE) {
                flip(q, c, row);
                return true;
            }
            queue[tail++] = c;
        }
        if (head == tail) {
            return false;
        }
        via = queue[head++];
        r = q->row_of[via];
    }
}

/* Number of rows that find a column with all costs ≤ limit. */
static size_t match_below(struct problem *q, double limit, size_t *queue)
{
    size_t n = 0;
    for (size_t c = 0; c < q->columns; c++) {
        q->row_of[c] = FREE;
    }
    for (size_t r = 0; r < q->rows; r++) {
        n += augment_below(q, r, limit, queue);
    }
    return n;
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

static void solve_bottleneck(struct problem *q, struct hv_arena *arena, size_t *queue)
{
    size_t n = 0, low = 0;
    double *all = hv_arena_new(arena, double, q->rows * q->columns + 1);
    for (size_t k = 0; k < q->rows * q->columns; k++) {
        if (!isinf(q->cost[k])) {
            all[n++] = q->cost[k];
        }
    }
    qsort(all, n, sizeof *all, by_value);
    for (size_t high = n - 1; low < high;) {
        size_t mid = low + (high - low) / 2;
        if (match_below(q, all[mid], queue) == q->rows) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    (void)match_below(q, all[low], queue);
}

static enum hv_status check(const double *cost, size_t rows, size_t columns, struct hv_err *err)
{
    if (rows > HV_ASSIGN_MAX || columns > HV_ASSIGN_MAX) {
        return hv_err_set(err, HV_ELIMIT, "an assignment may have at most %zu rows and columns",
                          HV_ASSIGN_MAX);
    }
    if (rows > columns) {
        return hv_err_set(err, HV_EINPUT,
                          "expected at least as many columns as rows, found %zu "
                          "rows and %zu columns",
                          rows, columns);
    }
    for (size_t k = 0; k < rows * columns; k++) {
        if (isnan(cost[k]) || cost[k] == -HUGE_VAL) {
            return hv_err_set(err, HV_EINPUT, "row %zu, column %zu: expected a cost, found %g",
                              k / columns + 1, k % columns + 1, cost[k]);
        }
    }
    return HV_OK;
}

static void take(const struct problem *q, enum hv_assign_goal goal, struct hv_assign_result *out)
{
    double dual = 0;
    out->value = goal == HV_ASSIGN_SUM || q->rows == 0 ? 0 : -HUGE_VAL;
    for (size_t c = 0; c < q->columns; c++) {
        dual += q->column_price[c];
        if (q->row_of[c] == FREE) {
            continue;
        }
        double v = cost_at(q, q->row_of[c], c);
        out->column[q->row_of[c]] = c;
        out->value = goal == HV_ASSIGN_SUM ? out->value + v : fmax(out->value, v);
    }
    for (size_t r = 0; r < q->rows; r++) {
        dual += q->row_price[r];
    }
    out->feasible = true;
    out->bound = goal == HV_ASSIGN_SUM ? dual : out->value;
    out->proven = fabs(out->value - out->bound) <= 1e-9 * fmax(1e-300, fabs(out->value) + 1);
}

enum hv_status hv_assign_solve(const double *cost, size_t n_rows, size_t n_columns,
                               enum hv_assign_goal goal, struct hv_arena *arena,
                               struct hv_assign_result *out, struct hv_err *err)
{
    struct problem q = {.cost = cost, .rows = n_rows, .columns = n_columns};
    memset(out, 0, sizeof *out);
    out->value = out->bound = HV_UNKNOWN;
    enum hv_status st = check(cost, n_rows, n_columns, err);
    if (st != HV_OK) {
        return st;
    }
    set_up(&q, arena);
    out->column = hv_arena_new(arena, size_t, n_rows);
    size_t *queue = hv_arena_new(arena, size_t, n_columns);
    size_t matched = match_below(&q, HUGE_VAL, queue);
    out->proven = true;
    out->unmatched = n_rows - matched;
    if (out->unmatched) {
        return HV_OK;
    }
    if (goal == HV_ASSIGN_BOTTLENECK && n_rows) {
        solve_bottleneck(&q, arena, queue);
    } else {
        for (size_t c = 0; c < n_columns; c++) {
            q.row_of[c] = FREE;
        }
        for (size_t r = 0; r < n_rows; r++) {
            if (!augment_sum(&q, r)) {
                return hv_err_set(err, HV_EINTERNAL, "row %zu lost its column", r + 1);
            }
        }
    }
    take(&q, goal, out);
    return HV_OK;
}
