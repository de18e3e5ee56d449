/*
 * The LP model as text: LP format and free MPS. Not here: building and solving it.
 */
#include "solver/base/units.h"
#include "solver/optim/lp/lp_int.h"
#include <math.h>
#include <stdlib.h>

static void write_terms(const struct hv_lp_term *t, size_t n, struct hv_str *out)
{
    char num[HV_FMT_CAP];
    if (n == 0) {
        hv_str_adds(out, " 0");
    }
    for (size_t k = 0; k < n; k++) {
        hv_str_adds(out, t[k].coef < 0 ? " -" : " +");
        hv_str_addf(out, "%s x%zu", hv_fmt_double(num, sizeof num, fabs(t[k].coef)), t[k].var + 1);
    }
}

static void write_bounds(const struct hv_lp *lp, struct hv_str *out)
{
    char num[HV_FMT_CAP];
    for (size_t j = 0; j < lp->vars.n; j++) {
        const struct hv__lp_var *v = &lp->vars.items[j];
        if (isinf(v->lower) && isinf(v->upper)) {
            hv_str_addf(out, "x%zu >= -1e30;\n", j + 1);
            continue;
        }
        if (isinf(v->lower)) {
            hv_str_addf(out, "x%zu >= -1e30;\n", j + 1);
        } else if (v->lower != 0) {
            hv_str_addf(out, "x%zu >= %s;\n", j + 1, hv_fmt_double(num, sizeof num, v->lower));
        }
        if (!isinf(v->upper)) {
            hv_str_addf(out, "x%zu <= %s;\n", j + 1, hv_fmt_double(num, sizeof num, v->upper));
        }
    }
}

void hv_lp_write(const struct hv_lp *lp, struct hv_str *out)
{
    static const char *const ops[] = {"<=", ">=", "="};
    char num[HV_FMT_CAP];
    hv_str_adds(out, lp->sense == HV_LP_MIN ? "min:" : "max:");
    for (size_t j = 0; j < lp->vars.n; j++) {
        if (lp->vars.items[j].cost != 0) {
            write_terms(&(struct hv_lp_term){j, lp->vars.items[j].cost}, 1, out);
        }
    }
    hv_str_adds(out, ";\n");
    for (size_t i = 0; i < lp->rows.n; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        /* the label keeps a row of one term a row; without it the reader would see a bound */
        hv_str_addf(out, "r%zu:", i + 1);
        write_terms(r->n ? lp->terms.items + r->first : NULL, r->n, out);
        hv_str_addf(out, " %s %s;\n", ops[r->op], hv_fmt_double(num, sizeof num, r->rhs));
    }
    write_bounds(lp, out);
    bool any = false;
    for (size_t j = 0; j < lp->vars.n; j++) {
        if (!lp->vars.items[j].integer) {
            continue;
        }
        hv_str_addf(out, any ? ",x%zu" : "int x%zu", j + 1);
        any = true;
    }
    if (any) {
        hv_str_adds(out, ";\n");
    }
}

struct hv__lp_entry *hv__lp_columns(const struct hv_lp *lp, size_t *at)
{
    struct hv__lp_entry *out = hv_xcalloc(lp->terms.n + 1, sizeof *out);
    for (size_t k = 0; k < lp->terms.n; k++) {
        at[lp->terms.items[k].var + 2]++;
    }
    for (size_t j = 0; j < lp->vars.n; j++) {
        at[j + 2] += at[j + 1];
    }
    for (size_t i = 0; i < lp->rows.n; i++) {
        const struct hv__lp_row *r = &lp->rows.items[i];
        for (size_t k = r->first; k < r->first + r->n; k++) {
            out[at[lp->terms.items[k].var + 1]++] =
                (struct hv__lp_entry){i, lp->terms.items[k].coef};
        }
    }
    return out;
}

static void write_mps_columns(const struct hv_lp *lp, const struct hv__lp_entry *e,
                              const size_t *at, struct hv_str *out)
{
    char num[HV_FMT_CAP];
    double sign = lp->sense == HV_LP_MIN ? 1 : -1;
    bool open = false;
    for (size_t j = 0; j < lp->vars.n; j++) {
        const struct hv__lp_var *v = &lp->vars.items[j];
        if (v->integer != open) {
            hv_str_addf(out, " M%zu 'MARKER' '%s'\n", j, open ? "INTEND" : "INTORG");
        }
        open = v->integer;
        hv_str_addf(out, " x%zu cost %s\n", j + 1, hv_fmt_double(num, sizeof num, sign * v->cost));
        for (size_t k = at[j]; k < at[j + 1]; k++) {
            hv_str_addf(out, " x%zu r%zu %s\n", j + 1, e[k].row + 1,
                        hv_fmt_double(num, sizeof num, e[k].coef));
        }
    }
    if (open) {
        hv_str_adds(out, " MEND 'MARKER' 'INTEND'\n");
    }
}

static void write_mps_bounds(const struct hv_lp *lp, struct hv_str *out)
{
    char num[HV_FMT_CAP];
    for (size_t j = 0; j < lp->vars.n; j++) {
        const struct hv__lp_var *v = &lp->vars.items[j];
        if (isinf(v->lower)) {
            hv_str_addf(out, " MI b x%zu\n", j + 1);
        } else {
            hv_str_addf(out, " LO b x%zu %s\n", j + 1, hv_fmt_double(num, sizeof num, v->lower));
        }
        if (isinf(v->upper)) {
            hv_str_addf(out, " PL b x%zu\n", j + 1);
        } else {
            hv_str_addf(out, " UP b x%zu %s\n", j + 1, hv_fmt_double(num, sizeof num, v->upper));
        }
    }
}

void hv_lp_write_mps(const struct hv_lp *lp, struct hv_str *out)
{
    static const char ops[] = {'L', 'G', 'E'};
    char num[HV_FMT_CAP];
    size_t *at = hv_xcalloc(lp->vars.n + 3, sizeof *at);
    struct hv__lp_entry *e = hv__lp_columns(lp, at);
    hv_str_adds(out, "NAME hetviz FREE\nROWS\n N cost\n");
    for (size_t i = 0; i < lp->rows.n; i++) {
        hv_str_addf(out, " %c r%zu\n", ops[lp->rows.items[i].op], i + 1);
    }
    hv_str_adds(out, "COLUMNS\n");
    write_mps_columns(lp, e, at, out);
    hv_str_adds(out, "RHS\n");
    for (size_t i = 0; i < lp->rows.n; i++) {
        hv_str_addf(out, " rhs r%zu %s\n", i + 1,
                    hv_fmt_double(num, sizeof num, lp->rows.items[i].rhs));
    }
    hv_str_adds(out, "BOUNDS\n");
    write_mps_bounds(lp, out);
    hv_str_adds(out, "ENDATA\n");
    free(at);
    free(e);
}
