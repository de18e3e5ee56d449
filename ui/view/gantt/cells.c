/*
 * Shares of kinds of work as cells, by error diffusion: credits are carried from column to column,
 * and a cell shows the one or two kinds that leave the smallest sum of squared credits.
 */
#include "ui/view/gantt/cells.h"

#include <math.h>
#include <string.h>

enum { EIGHTHS = 8 };
/* Credit (cells) from which on a kind of the column before may take a cell, and which no kind may
 * be off where an operation takes a whole cell for its letter. */
#define OWED 0.25
/* Share of a cell from which on an operation may take it for its letter. */
#define LETTER_SHARE 0.75
/* Share of a column that rounding of times makes or loses. */
#define ROUNDING 1e-6

/* ---- choosing a cell ---- */

/* Kinds that a cell may show, in the order in which two of them would stand in it. */
struct choice {
    uint8_t kinds[HV__GANTT_SHARES];
    int n;
};

/* Seven kinds are not worth a search for the best of several sizes of the first of two: their
 * squared credits after a cell are (a − x)² + (b − 1 + x)², a parabola in x, so the eighth next to
 * its lowest point (a − b + 1) / 2 is best. */
static int best_cut(double first, double second)
{
    double x = (first - second + 1) / 2;
    x = x < 0 ? 0 : x > 1 ? 1 : x;
    return (int)(x * EIGHTHS + 0.5);
}

/* Changes of the sum of squared credits by a cell with so much of two kinds. */
static double change_by(double first, double second, double x)
{
    return x * (x - 2 * first) + (1 - x) * (1 - x - 2 * second);
}

/* The cell that leaves the least squared credit; where several do, the first. */
static struct hv__gantt_cell least(const double *credit, const struct choice *of)
{
    struct hv__gantt_cell best = {
        .kind = {of->kinds[0], of->kinds[0]}, .eighths = EIGHTHS, .i_span = {-1, -1}};
    double lowest = of->n == 1 ? 0 : HUGE_VAL;
    for (int i = 0; i < of->n; i++) {
        for (int k = i + 1; k < of->n; k++) {
            double a = credit[of->kinds[i]], b = credit[of->kinds[k]];
            int cut = best_cut(a, b);
            double change = change_by(a, b, (double)cut / EIGHTHS);
            if (change < lowest) {
                lowest = change;
                best.kind[0] = of->kinds[cut > 0 ? i : k];
                best.kind[1] = of->kinds[k];
                best.eighths = (uint8_t)(cut > 0 ? cut : EIGHTHS);
            }
        }
    }
    return best;
}

/* The whole cell of the kind that is owed most; of equals the first. */
static struct hv__gantt_cell most_owed(const double *credit, const struct choice *of)
{
    uint8_t best = of->kinds[0];
    for (int i = 1; i < of->n; i++) {
        best = credit[of->kinds[i]] > credit[best] ? of->kinds[i] : best;
    }
    return (struct hv__gantt_cell){.kind = {best, best}, .eighths = EIGHTHS, .i_span = {-1, -1}};
}

static void pay(double *credit, const struct hv__gantt_cell *c)
{
    double first = (double)c->eighths / EIGHTHS;
    credit[c->kind[0]] -= first;
    credit[c->kind[1]] -= 1 - first;
}

/* ---- shares ---- */

/* The kinds that a lane has, in the order of their numbers: that of stacks from below. */
static struct choice kinds_of(const struct hv__gantt_mix *mix, int n)
{
    struct choice c = {.n = 0};
    for (int kind = 0; kind < HV__GANTT_SHARES; kind++) {
        int i = 0;
        while (i < n && !(mix[i].share[kind] > 0)) {
            i++;
        }
        if (i < n) {
            c.kinds[c.n++] = (uint8_t)kind;
        }
    }
    return c;
}

/* Moves what row `row` from below holds of a stack that shows all credits of a column into
 * `target`: the credits above 0 one on the other, as high as the column. */
static void add_row(const double *credit, const struct choice *of, int rows, int row,
                    double *target)
{
    double sum = 0, at = 0;
    for (int i = 0; i < of->n; i++) {
        sum += fmax(0, credit[of->kinds[i]]);
    }
    for (int i = 0; i < of->n; i++) {
        double height = fmax(0, credit[of->kinds[i]]) / sum * rows;
        double part = fmin(at + height, row + 1) - fmax(at, row);
        target[of->kinds[i]] += fmax(0, part);
        at += height;
    }
}

/* A column of several cells: each shows its part of the stack, with what the ones below left. */
static void stack_column(double *credit, const struct choice *of, int rows, int n,
                         struct hv__gantt_cell *out)
{
    double target[HV__GANTT_SHARES], all[HV__GANTT_SHARES];
    memcpy(all, credit, sizeof all);
    memcpy(target, credit, sizeof target);
    for (int row = 0; row < rows; row++) { /* what is not in the stack comes first */
        double part[HV__GANTT_SHARES] = {0};
        add_row(all, of, rows, row, part);
        for (int k = 0; k < HV__GANTT_SHARES; k++) {
            target[k] -= part[k];
        }
    }
    for (int row = 0; row < rows; row++) {
        add_row(all, of, rows, row, target);
        struct hv__gantt_cell *c = &out[(rows - 1 - row) * n];
        *c = least(target, of);
        pay(target, c);
    }
    memcpy(credit, target, sizeof target);
}

void hv__gantt_stack(const struct hv__gantt_mix *mix, int n, int rows, struct hv__gantt_cell *out)
{
    struct choice of = kinds_of(mix, n);
    double credit[HV__GANTT_SHARES] = {0};
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < of.n; k++) {
            credit[of.kinds[k]] += mix[i].share[of.kinds[k]] * rows;
        }
        if (rows > 1) {
            stack_column(credit, &of, rows, n, &out[i]);
        } else {
            out[i] = least(credit, &of);
            pay(credit, &out[i]);
        }
    }
}

void hv__gantt_letters(const struct hv__gantt_mix *mix, int n, int rows, struct hv__gantt_cell *out)
{
    struct choice of = kinds_of(mix, n);
    double credit[HV__GANTT_SHARES] = {0};
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < of.n; k++) {
            credit[of.kinds[k]] += mix[i].share[of.kinds[k]] * rows;
        }
        for (int row = 0; row < rows; row++) {
            struct hv__gantt_cell *c = &out[row * n + i];
            *c = most_owed(credit, &of);
            pay(credit, c);
        }
    }
}

/* ---- operations ---- */

/* What a column holds: kinds in the order of time, and of each its share and its longest span. */
struct held {
    struct choice kinds;
    double share[HV__GANTT_SHARES], longest[HV__GANTT_SHARES];
    int32_t i_span[HV__GANTT_SHARES];
};

static void hold(struct held *h, int kind, double share, int32_t i_span)
{
    if (!(share > 0)) {
        return;
    }
    if (!(h->share[kind] > 0)) {
        h->kinds.kinds[h->kinds.n++] = (uint8_t)kind;
    }
    h->share[kind] += share;
    if (share > h->longest[kind]) {
        h->longest[kind] = share;
        h->i_span[kind] = i_span;
    }
}

/* Spans in the order of time, read column after column. */
struct reader {
    const struct hv_gantt_span *spans;
    size_t n, next;
};

/* What lies in [t0, t1). */
static struct held read_column(struct reader *r, double t0_s, double t1_s)
{
    struct held h = {.kinds = {.n = 0}};
    double per_s = 1 / (t1_s - t0_s), at_s = t0_s;
    while (r->next < r->n && r->spans[r->next].end_s <= t0_s) {
        r->next++;
    }
    for (size_t i = r->next; i < r->n && r->spans[i].start_s < t1_s; i++) {
        double from = fmax(r->spans[i].start_s, t0_s), to = fmin(r->spans[i].end_s, t1_s);
        if ((from - at_s) * per_s > ROUNDING) {
            hold(&h, HV__GANTT_IDLE, (from - at_s) * per_s, -1);
        }
        hold(&h, (int)r->spans[i].kind, (to - from) * per_s, (int32_t)i);
        at_s = to;
    }
    if (h.kinds.n == 0 || (t1_s - at_s) * per_s > ROUNDING) {
        hold(&h, HV__GANTT_IDLE, (t1_s - at_s) * per_s, -1);
    }
    return h;
}

/* Kinds for the cell of a column: those of the column before that are owed, then its own. */
static struct choice choices(const struct held *before, struct held *here, const double *credit)
{
    struct choice c = {.n = 0};
    for (int i = 0; i < before->kinds.n; i++) {
        uint8_t kind = before->kinds.kinds[i];
        if (!(here->share[kind] > 0) && credit[kind] > OWED) {
            c.kinds[c.n++] = kind;
            here->i_span[kind] = before->i_span[kind];
        }
    }
    for (int i = 0; i < here->kinds.n; i++) {
        c.kinds[c.n++] = here->kinds.kinds[i];
    }
    return c;
}

/* True where a span has a column for itself, where its letter can stand. */
static bool has_column(const struct hv_gantt_span *s, const double *at_s, int n)
{
    double per_s = 1 / (at_s[1] - at_s[0]);
    double from = fmax(0, (s->start_s - at_s[0]) * per_s);
    double to = fmin(n, (s->end_s - at_s[0]) * per_s);
    return floor(to + ROUNDING) - ceil(from - ROUNDING) >= 1;
}

/* The operation that takes a whole cell because its letter has no other; false where there is none,
 * or too much would be owed. */
static bool letter_cell(const struct reader *r, const struct held *h, const double *credit,
                        const double *at_s, int n, struct hv__gantt_cell *out)
{
    for (int i = 0; i < h->kinds.n; i++) {
        uint8_t kind = h->kinds.kinds[i];
        if (h->longest[kind] < LETTER_SHARE || kind == HV__GANTT_IDLE ||
            has_column(&r->spans[h->i_span[kind]], at_s, n)) {
            continue;
        }
        bool owed = credit[kind] < 1 - OWED;
        for (int k = 0; k < HV__GANTT_SHARES; k++) {
            owed |= k != kind && credit[k] > OWED;
        }
        *out = (struct hv__gantt_cell){.kind = {kind, kind}, .eighths = EIGHTHS};
        return !owed;
    }
    return false;
}

void hv__gantt_operations(const struct hv_gantt_span *spans, size_t n_spans, const double *at_s,
                          int n, int rows, bool whole, struct hv__gantt_cell *out)
{
    struct reader r = {.spans = spans, .n = n_spans};
    struct held before = {.kinds = {.n = 0}};
    double credit[HV__GANTT_SHARES] = {0};
    int chosen = whole ? rows : 1;
    for (int i = 0; i < n; i++) {
        struct held here = read_column(&r, at_s[i], at_s[i + 1]);
        for (int k = 0; k < HV__GANTT_SHARES; k++) {
            credit[k] += here.share[k] * chosen;
        }
        for (int row = 0; row < chosen; row++) {
            struct hv__gantt_cell *c = &out[row * n + i];
            struct choice of = choices(&before, &here, credit);
            if (whole) {
                *c = most_owed(credit, &of);
            } else if (!letter_cell(&r, &here, credit, at_s, n, c)) {
                *c = least(credit, &of);
            }
            c->i_span[0] = c->kind[0] == HV__GANTT_IDLE ? -1 : here.i_span[c->kind[0]];
            c->i_span[1] = c->kind[1] == HV__GANTT_IDLE ? -1 : here.i_span[c->kind[1]];
            pay(credit, c);
        }
        before = here;
    }
}
