/** Figures and words of a row of the Plans screen; draws nothing. */
#include "ui/screens/facts/plan_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/plan/parts.h"

const struct hv_column hv_plan_columns[HV_PLAN_FIELD_N] = {
#define X(c, title, align, width, flex, sort, better, name) {title, align, width, flex},
    HV_PLAN_FIELD_MAP(X)
#undef X
};

static const struct {
    enum hv_sort sort;
    int better;
    const char *name;
} fields[HV_PLAN_FIELD_N] = {
#define X(c, title, align, width, flex, sort, better, name) {sort, better, name},
    HV_PLAN_FIELD_MAP(X)
#undef X
};

const char *hv_plan_field_name(enum hv_plan_field field)
{
    return fields[field].name;
}

int hv_plan_field_better(enum hv_plan_field field)
{
    return fields[field].better;
}

enum hv_plan_field hv_plan_sorted_field(enum hv_sort key)
{
    size_t i = 0;
    while (i < HV_PLAN_FIELD_N && (fields[i].sort != key || key == HV_SORT_N)) {
        i++;
    }
    return (enum hv_plan_field)i;
}

struct hv_plan_facts hv_plan_facts(struct hv_session *s, const struct hv_row *row)
{
    struct hv_plan_facts f = {.row = row};
    if (row->plan != NULL) {
        f.verdict = hv_session_verdict(s, row->id, false, NULL);
        f.plan = hv_session_plan(s, row->id, NULL);
    }
    return f;
}

/* Largest use of a device's memory limit over the stages, HV_UNKNOWN when not judged. */
static double peak_frac(const struct hv_verdict *v)
{
    double worst = HV_UNKNOWN;
    for (size_t i = 0; v != NULL && i < v->n_memory; i++) {
        double frac = v->memory[i].peak_bytes / v->memory[i].limit_bytes;
        worst = !hv_known(worst) || frac > worst ? frac : worst;
    }
    return worst;
}

double hv_plan_value(const struct hv_plan_facts *f, enum hv_plan_field field)
{
    const struct hv_metrics *m = f->verdict != NULL ? &f->verdict->metrics : NULL;
    if (field == HV_PLAN_CLAIMED) {
        return f->plan != NULL ? f->plan->claimed.iteration_s : HV_UNKNOWN;
    }
    if (m == NULL) {
        return HV_UNKNOWN;
    }
    switch ((int)field) {
    case HV_PLAN_ITERATION:
        return m->iteration_s;
    case HV_PLAN_TOKENS:
        return m->tokens_per_s;
    case HV_PLAN_MFU:
        return m->mfu;
    case HV_PLAN_COST:
        return m->usd_per_mtoken;
    case HV_PLAN_MEMORY:
        return peak_frac(f->verdict);
    case HV_PLAN_BUBBLE:
        return m->bubble_frac;
    case HV_PLAN_GAP:
        return m->gap_frac;
    case HV_PLAN_GPUS:
        return m->n_devices_used > 0 ? (double)m->n_devices_used : HV_UNKNOWN;
    case HV_PLAN_ENERGY:
        return m->energy_j;
    default:
        return HV_UNKNOWN;
    }
}

/** "4" or "2-8". */
static void add_range(struct hv_str *out, int lo, int hi)
{
    hv_str_addf(out, lo == hi ? "%d" : "%d-%d", lo, hi);
}

static void grow(int v, int *lo, int *hi)
{
    *lo = *lo == 0 || v < *lo ? v : *lo;
    *hi = v > *hi ? v : *hi;
}

static void add_degrees(const struct hv_plan *p, struct hv_str *out)
{
    int tp[2] = {0, 0}, pp[2] = {0, 0}, dp[2] = {0, 0}, copies = 0;
    int cp[2] = {0, 0}, ep[2] = {0, 0};
    for (size_t i = 0; i < p->n_replicas; i++) {
        copies += p->replicas[i].count;
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        grow((int)r->n_stages, &pp[0], &pp[1]);
        for (size_t k = 0; k < r->n_stages; k++) {
            const struct hv_stage *s = &r->stages[k];
            for (size_t e = 0; e <= s->n_degrees; e++) { /* of layers with their own, too */
                const struct hv_stage own =
                    hv_stage_with_degrees(s, e == 0 ? NULL : &s->degrees[e - 1]);
                grow(own.tp.degree, &tp[0], &tp[1]);
                grow(own.dp * copies, &dp[0], &dp[1]);
                grow(own.cp.degree, &cp[0], &cp[1]);
                grow(own.ep, &ep[0], &ep[1]);
            }
        }
    }
    add_range(out, tp[0], tp[1]);
    hv_str_addc(out, '/');
    add_range(out, pp[0], pp[1]);
    hv_str_addc(out, '/');
    add_range(out, dp[0], dp[1]);
    if (cp[1] > 1) {
        hv_str_adds(out, " cp");
        add_range(out, cp[0], cp[1]);
    }
    if (ep[1] > 1) {
        hv_str_adds(out, " ep");
        add_range(out, ep[0], ep[1]);
    }
}

void hv_plan_stage_layers(const struct hv_stage *st, struct hv_str *out)
{
    int halves = 0;
    for (size_t i = 0; i < st->n_ranges; i++) {
        halves += st->ranges[i].to2 - st->ranges[i].from2;
    }
    if (st->n_ranges == 0) {
        hv_str_addf(out, "%zu ops", st->n_ops);
    } else {
        hv_str_addf(out, halves % 2 != 0 ? "%d.5" : "%d", halves / 2);
    }
}

void hv_plan_stage_kinds(const struct hv_plan *p, const struct hv_stage *st, struct hv_str *out)
{
    const struct hv_cluster *c = p->cluster;
    size_t *n = hv_xcalloc(c->n_kinds + 1, sizeof *n),
           *order = hv_xcalloc(c->n_kinds + 1, sizeof *n);
    size_t n_kinds = 0;
    for (size_t d = 0; d < st->n_devices; d++) {
        const struct hv_device_kind *kind = hv_cluster_device(c, st->devices[d]).kind;
        size_t k = 0;
        while (k < c->n_kinds && c->kinds[k] != kind) {
            k++;
        }
        if (n[k]++ == 0) {
            order[n_kinds++] = k;
        }
    }
    for (size_t i = 0; i < n_kinds; i++) {
        hv_str_addf(out, "%s%zu x %s", i > 0 ? " + " : "", n[order[i]],
                    order[i] < c->n_kinds ? c->kinds[order[i]]->name : "?");
    }
    free(n);
    free(order);
}

static void add_layers(const struct hv_plan *p, struct hv_str *out)
{
    for (size_t i = 0; i < p->n_replicas; i++) {
        hv_str_adds(out, i > 0 ? " + " : "");
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            hv_str_adds(out, k > 0 ? "|" : "");
            hv_plan_stage_layers(&p->replicas[i].stages[k], out);
        }
    }
}

bool hv_plan_fits(const struct hv_plan_facts *f)
{
    const struct hv_verdict *v = f->verdict;
    return v != NULL && v->findings.n == 0 &&
           (hv_known(v->metrics.iteration_s) || v->serving != NULL || v->jobs != NULL);
}

static void add_state(const struct hv_plan_facts *f, struct hv_str *out)
{
    hv_str_adds(out, hv_row_state_name(f->row->state));
    hv_str_adds(out, f->row->outdated ? ", outdated" : "");
    hv_str_adds(out, f->verdict != NULL && !f->verdict->metrics.exact ? ", not exact" : "");
    hv_str_adds(out, f->verdict != NULL && f->verdict->serving != NULL ? ", serves" : "");
    struct hv_str why = {0};
    hv_plan_trouble(f->row, f->verdict, &why);
    if (why.n > 0) {
        hv_str_addf(out, ": %s", hv_str_cstr(&why));
    }
    hv_str_free(&why);
    if (f->row->note[0] != '\0') {
        hv_str_addf(out, " \"%s\"", f->row->note);
    }
}

static void add_word(const struct hv_plan_facts *f, enum hv_plan_field field, struct hv_str *out)
{
    if (field == HV_PLAN_NAME) {
        hv_str_adds(out, f->row->name);
    } else if (field == HV_PLAN_STRATEGY) {
        hv_str_adds(out, f->row->strategy);
    } else if (field == HV_PLAN_STATE) {
        add_state(f, out);
    } else if (f->plan == NULL) {
        hv_str_adds(out, "-");
    } else if (field == HV_PLAN_DEGREES) {
        add_degrees(f->plan, out);
    } else if (field == HV_PLAN_SCHEDULE) {
        hv_str_adds(out, f->plan->schedule.name);
    } else {
        add_layers(f->plan, out);
    }
}

void hv_plan_text(const struct hv_plan_facts *f, enum hv_plan_field field, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    double x = hv_plan_value(f, field);
    switch ((int)field) {
    case HV_PLAN_ITERATION:
        hv_str_adds(out, f->verdict != NULL && !f->verdict->metrics.exact ? "~" : "");
        hv_str_adds(out, hv_fmt_seconds(buf, sizeof buf, x));
        break;
    case HV_PLAN_CLAIMED:
        hv_str_adds(out, hv_fmt_seconds(buf, sizeof buf, x));
        break;
    case HV_PLAN_TOKENS:
    case HV_PLAN_GPUS:
        hv_str_adds(out, hv_fmt_count(buf, sizeof buf, x));
        break;
    case HV_PLAN_ENERGY:
        hv_str_adds(out, hv_fmt_si(buf, sizeof buf, x, "J"));
        break;
    case HV_PLAN_GAP:
        if (x >= 10) {
            hv_str_addf(out, "%.0f%%", x * 100); /* one unit in the column */
            break;
        }
        hv_str_adds(out, hv_fmt_percent(buf, sizeof buf, x));
        break;
    case HV_PLAN_MFU:
    case HV_PLAN_BUBBLE:
        hv_str_adds(out, hv_fmt_percent(buf, sizeof buf, x));
        break;
    case HV_PLAN_MEMORY:
        if (hv_known(x)) {
            hv_str_addf(out, "%.0f%%", x * 100);
        } else {
            hv_str_adds(out, hv_fmt_percent(buf, sizeof buf, x));
        }
        break;
    case HV_PLAN_COST:
        hv_str_adds(out, hv_fmt_fixed(buf, sizeof buf, x, x < 0.1 ? 4 : x < 10 ? 3 : 2));
        break;
    default:
        add_word(f, field, out);
    }
}

bool hv_plan_is_dominated(const struct hv_plan_facts *f, const struct hv_plan_facts *all, size_t n,
                          const enum hv_plan_field axes[2])
{
    double own[2];
    for (int k = 0; k < 2; k++) {
        own[k] = hv_plan_value(f, axes[k]) * -fields[axes[k]].better;
        if (!hv_known(own[k])) {
            return true;
        }
    }
    for (size_t i = 0; i < n; i++) {
        double x = hv_plan_value(&all[i], axes[0]) * -fields[axes[0]].better;
        double y = hv_plan_value(&all[i], axes[1]) * -fields[axes[1]].better;
        bool equal_kind = all[i].verdict != NULL && f->verdict != NULL &&
                          (all[i].verdict->metrics.exact || !f->verdict->metrics.exact);
        if (equal_kind && hv_plan_fits(&all[i]) && x <= own[0] && y <= own[1] &&
            (x < own[0] || y < own[1])) {
            return true;
        }
    }
    return false;
}
