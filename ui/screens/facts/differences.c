/** Sentences about the difference of two plans, from their trees and verdicts. Draws nothing. */
#include "ui/screens/facts/differences.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/eval/verdict/band.h"

/* Differences below this share are not reported. */
#define WORTH_TELLING 0.005
/* Most causes named. */
#define CAUSES 2

static const char *name_of(const struct hv_plan_facts *f)
{
    return f->row->name;
}

static double share_of(double from, double to)
{
    return hv_known(from) && hv_known(to) && from > 0 ? to / from - 1 : HV_UNKNOWN;
}

/** "77.8% more" or "12.0% less". */
static void add_share(double share, struct hv_str *out)
{
    char text[HV_FMT_CAP];
    hv_str_addf(out, "%s %s", hv_fmt_percent(text, sizeof text, fabs(share)),
                share > 0 ? "more" : "less");
}

static void add_trouble(const struct hv_plan_facts *f, struct hv_str *out)
{
    struct hv_str why = {0};
    hv_plan_trouble(f->row, f->verdict, &why);
    if (why.n > 0) {
        hv_str_addf(out, "%s: %s.\n", name_of(f), hv_str_cstr(&why));
    }
    hv_str_free(&why);
}

/** The causes with the largest change in the direction of the total, largest first. */
static void add_causes(const struct hv_metrics *a, const struct hv_metrics *b, struct hv_str *out)
{
    double sign = b->iteration_s > a->iteration_s ? 1 : -1, before = HUGE_VAL;
    char text[HV_FMT_CAP];
    for (int n = 0; n < CAUSES; n++) {
        int best = -1;
        double most = WORTH_TELLING * a->iteration_s;
        for (int c = 0; c < HV_BREAKDOWN_N; c++) {
            double d = sign * (b->breakdown_s[c] - a->breakdown_s[c]);
            if (d > most && d < before) {
                most = d;
                best = c;
            }
        }
        if (best < 0) {
            return;
        }
        hv_str_addf(out, "%s%s %s%s", n == 0 ? ": " : ", ",
                    hv_breakdown_name((enum hv_breakdown)best), sign > 0 ? "+" : "-",
                    hv_fmt_seconds(text, sizeof text, most));
        before = most;
    }
}

static void add_time(const struct hv_plan_facts pair[2], struct hv_str *out)
{
    const struct hv_metrics *a = &pair[0].verdict->metrics, *b = &pair[1].verdict->metrics;
    double share = share_of(a->iteration_s, b->iteration_s);
    char x[HV_FMT_CAP], y[HV_FMT_CAP];
    if (!hv_known(share)) {
        return;
    }
    (void)hv_fmt_seconds(x, sizeof x, a->iteration_s);
    (void)hv_fmt_seconds(y, sizeof y, b->iteration_s);
    if (fabs(share) < WORTH_TELLING) {
        hv_str_addf(out, "Both have an iteration time of about %s.\n", y);
        return;
    }
    hv_str_addf(out, "The iteration time of %s is %s, against %s: ", name_of(&pair[1]), y, x);
    add_share(share, out);
    add_causes(a, b, out);
    hv_str_adds(out, ".\n");
    if (hv_band_within(a, b)) {
        hv_str_adds(out, "They are within each other's bands: their order is not certain.\n");
    }
}

/** "24 devices (8 A100, 16 V100)"; each device counts once. */
static void describe_devices(const struct hv_plan *p, struct hv_str *out)
{
    const struct hv_cluster *c = p->cluster;
    bool *used = hv_xcalloc(c->n_devices + 1, sizeof *used);
    size_t *of_kind = hv_xcalloc(c->n_kinds + 1, sizeof *of_kind), n = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            const struct hv_stage *st = &p->replicas[i].stages[k];
            for (size_t d = 0; d < st->n_devices; d++) {
                used[st->devices[d]] = true;
            }
        }
    }
    for (uint32_t d = 0; d < c->n_devices; d++) {
        const struct hv_device_kind *kind = used[d] ? hv_cluster_device(c, d).kind : NULL;
        n += kind != NULL;
        for (size_t k = 0; k < c->n_kinds; k++) {
            of_kind[k] += kind != NULL && c->kinds[k] == kind;
        }
    }
    hv_str_addf(out, "%zu device%s", n, n == 1 ? "" : "s");
    const char *before = " (";
    for (size_t k = 0; k < c->n_kinds; k++) {
        if (of_kind[k] > 0) {
            hv_str_addf(out, "%s%zu %s", before, of_kind[k], c->kinds[k]->name);
            before = ", ";
        }
    }
    hv_str_adds(out, n > 0 ? ")" : "");
    free(used);
    free(of_kind);
}

static void describe_stages(const struct hv_plan *p, struct hv_str *out)
{
    struct hv_plan_facts f = {.plan = p};
    size_t n = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        n += p->replicas[i].n_stages;
    }
    hv_str_addf(out, "%zu stage%s (", n, n == 1 ? "" : "s");
    hv_plan_text(&f, HV_PLAN_LAYERS, out);
    hv_str_adds(out, " layers, tp/pp/dp ");
    hv_plan_text(&f, HV_PLAN_DEGREES, out);
    hv_str_addc(out, ')');
}

static void describe_schedule(const struct hv_plan *p, struct hv_str *out)
{
    const struct hv_plan_schedule *s = &p->schedule;
    hv_str_addf(out, "schedule %s", s->name);
    for (size_t i = 0; i < s->n_options; i++) {
        hv_str_addf(out, " %s=%s", s->options[i].key, s->options[i].value);
    }
}

/** "micro-batches 32 x 4", those of every replica entry that differs from the one before. */
static void describe_batch(const struct hv_plan *p, struct hv_str *out)
{
    hv_str_adds(out, "micro-batches ");
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        hv_str_addf(out, "%s%lld x %d", i > 0 ? " + " : "", (long long)r->micro_batches,
                    r->micro_batch > 0 ? r->micro_batch : p->micro_batch);
    }
}

/** One line when the texts that `describe` appends for the two plans differ. */
static void add_structure(const struct hv_plan_facts pair[2],
                          void (*describe)(const struct hv_plan *p, struct hv_str *out),
                          struct hv_str *out)
{
    struct hv_str a = {0}, b = {0};
    describe(pair[0].plan, &a);
    describe(pair[1].plan, &b);
    if (strcmp(hv_str_cstr(&a), hv_str_cstr(&b)) != 0) {
        hv_str_addf(out, "%s has %s, %s %s.\n", name_of(&pair[1]), hv_str_cstr(&b),
                    name_of(&pair[0]), hv_str_cstr(&a));
    }
    hv_str_free(&a);
    hv_str_free(&b);
}

static void add_memory(const struct hv_plan_facts pair[2], struct hv_str *out)
{
    double a = hv_plan_value(&pair[0], HV_PLAN_MEMORY), b = hv_plan_value(&pair[1], HV_PLAN_MEMORY);
    char x[HV_FMT_CAP], y[HV_FMT_CAP];
    if (hv_known(a) && hv_known(b) && fabs(b - a) >= WORTH_TELLING) {
        hv_str_addf(out, "Its fullest device uses %s of its memory against %s.\n",
                    hv_fmt_percent(y, sizeof y, b), hv_fmt_percent(x, sizeof x, a));
    }
}

static void add_cost(const struct hv_plan_facts pair[2], struct hv_str *out)
{
    double a = hv_plan_value(&pair[0], HV_PLAN_COST), b = hv_plan_value(&pair[1], HV_PLAN_COST);
    double share = share_of(a, b);
    if (hv_known(share) && fabs(share) >= WORTH_TELLING) {
        hv_str_adds(out, "A million tokens cost ");
        hv_plan_text(&pair[1], HV_PLAN_COST, out);
        hv_str_adds(out, " $ against ");
        hv_plan_text(&pair[0], HV_PLAN_COST, out);
        hv_str_adds(out, ", ");
        add_share(share, out);
        hv_str_adds(out, ".\n");
    }
}

void hv_plan_differences(const struct hv_plan_facts pair[2], struct hv_str *out)
{
    static void (*const structure[])(const struct hv_plan *, struct hv_str *) = {
        describe_devices, describe_stages, describe_schedule, describe_batch};
    size_t before = out->n;
    for (int i = 0; i < 2; i++) {
        add_trouble(&pair[i], out);
    }
    if (pair[0].verdict != NULL && pair[1].verdict != NULL) {
        add_time(pair, out);
    }
    size_t told = out->n;
    for (size_t i = 0; pair[0].plan != NULL && pair[1].plan != NULL && i < HV_COUNT(structure);
         i++) {
        add_structure(pair, structure[i], out);
    }
    add_memory(pair, out);
    add_cost(pair, out);
    if (out->n == told && pair[0].plan != NULL && pair[1].plan != NULL) {
        hv_str_addf(out, "%sevices, stages, schedule and micro-batches are the same.\n",
                    told > before ? "D" : "Time, d");
    }
}
