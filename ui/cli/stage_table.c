/** The stages of a judged plan: what is equal is said once, so that a hundred stages fit a screen.
 * The figures come from the verdict; nothing is computed here. */
#include "ui/cli/stage_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"

/* Tensor shards that a row names. */
#define SHARDS 8

/* Stages first … last of one replica that read the same. */
struct run {
    size_t replica, first, last;
    char text[160];
};

/* "tp8 dp2": the degrees above one. */
static void put_degrees(const struct hv_stage *s, struct hv_str *out)
{
    const struct {
        const char *name;
        int degree;
    } all[] = {{"tp", s->tp.degree},
               {"cp", s->cp.degree},
               {"dp", s->dp},
               {"ep", hv_stage_experts_over(s)}};
    size_t before = out->n;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].degree > 1) {
            hv_str_addf(out, "%s%s%d", out->n > before ? " " : "", all[i].name, all[i].degree);
        }
    }
    if (out->n == before) {
        hv_str_addc(out, '-');
    }
}

/* ", shards 5:4:7" where tensor parallelism cuts unevenly; of many the first. */
static void put_shards(const struct hv_tp *tp, struct hv_str *out)
{
    for (int t = 0; tp->shares != NULL && t < tp->degree && t < SHARDS; t++) {
        hv_str_addf(out, "%s%d", t == 0 ? ", shards " : ":", tp->shares[t]);
    }
    if (tp->shares != NULL && tp->degree > SHARDS) {
        hv_str_adds(out, ":...");
    }
}

/* "8 A100-SXM-80GB", or "8 of 2 kinds" where they differ. */
static void put_devices(const struct hv_plan *plan, const struct hv_replica *r,
                        const struct hv_stage *s, struct hv_str *out)
{
    size_t n_kinds = 0;
    const struct hv_device_kind *kinds[8];
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct hv_device_kind *kind = hv_cluster_device(plan->cluster, s->devices[i]).kind;
        size_t k = 0;
        while (k < n_kinds && kinds[k] != kind) {
            k++;
        }
        if (k == n_kinds && n_kinds < sizeof kinds / sizeof *kinds) {
            kinds[n_kinds++] = kind;
        }
    }
    size_t each = s->n_devices / (size_t)(r->count > 0 ? r->count : 1);
    if (n_kinds == 1) {
        hv_str_addf(out, "%zu %s", each, kinds[0]->name);
    } else {
        hv_str_addf(out, "%zu of %zu kinds", each, n_kinds);
    }
}

/* Number of blocks; a stage without any holds an end of the model. */
static void put_blocks(const struct hv_stage *s, size_t stage, struct hv_str *out)
{
    int halves = 0;
    for (size_t i = 0; i < s->n_ranges; i++) {
        halves += s->ranges[i].to2 - s->ranges[i].from2;
    }
    if (halves > 0) {
        hv_str_addf(out, "%g", halves / 2.0);
    } else {
        hv_str_adds(out, stage == 0 ? "embed" : "head");
    }
}

static void put_row(const struct hv_plan *plan, const struct hv_verdict *v, size_t i,
                    struct run *row)
{
    const struct hv_stage_memory *mem = &v->memory[i];
    const struct hv_stage_metrics *m = &v->stages[i];
    const struct hv_replica *r = &plan->replicas[mem->replica];
    const struct hv_stage *s = &r->stages[mem->stage];
    char f[HV_FMT_CAP], b[HV_FMT_CAP], busy[HV_FMT_CAP], peak[HV_FMT_CAP], limit[HV_FMT_CAP];
    struct hv_str devices = {0}, blocks = {0}, degrees = {0}, shards = {0};
    put_shards(&s->tp, &shards);
    put_devices(plan, r, s, &devices);
    put_degrees(s, &degrees);
    put_blocks(s, mem->stage, &blocks);
    (void)snprintf(row->text, sizeof row->text, "%-18.18s %6s %-11.11s %8s %8s %6s  %s of %s%s%s",
                   hv_str_cstr(&devices), hv_str_cstr(&blocks), hv_str_cstr(&degrees),
                   hv_fmt_seconds(f, sizeof f, m->forward_s),
                   hv_fmt_seconds(b, sizeof b, m->backward_s),
                   hv_fmt_percent(busy, sizeof busy, m->busy_frac),
                   hv_fmt_bytes(peak, sizeof peak, mem->peak_bytes),
                   hv_fmt_bytes(limit, sizeof limit, mem->limit_bytes),
                   mem->peak_bytes > mem->limit_bytes ? " !" : "", hv_str_cstr(&shards));
    row->replica = mem->replica;
    row->first = row->last = mem->stage;
    hv_str_free(&devices);
    hv_str_free(&blocks);
    hv_str_free(&degrees);
    hv_str_free(&shards);
}

/* The runs of every replica, in order; returns their number. */
static size_t collect(const struct hv_plan *plan, const struct hv_verdict *v, struct run *runs)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n_stages; i++) {
        struct run *row = &runs[n];
        put_row(plan, v, i, row);
        if (n > 0 && row[-1].replica == row->replica && row[-1].last + 1 == row->first &&
            strcmp(row[-1].text, row->text) == 0) {
            row[-1].last = row->first;
        } else {
            n++;
        }
    }
    return n;
}

static size_t end_of_replica(const struct run *runs, size_t n, size_t from)
{
    size_t end = from;
    while (end < n && runs[end].replica == runs[from].replica) {
        end++;
    }
    return end;
}

static bool same_stages(const struct run *a, const struct run *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a[i].first != b[i].first || a[i].last != b[i].last ||
            strcmp(a[i].text, b[i].text) != 0) {
            return false;
        }
    }
    return true;
}

static void put_span(size_t first, size_t last, struct hv_str *out)
{
    hv_str_addf(out, "%zu", first);
    if (last > first) {
        hv_str_addf(out, "-%zu", last);
    }
}

void hv_cli_stage_table(const struct hv_plan *plan, const struct hv_verdict *v, struct hv_str *out)
{
    hv_str_adds(out, "\nreplica/stage, devices     blocks degrees      forward backward   busy"
                     "  worst memory\n");
    struct run *runs = hv_xcalloc(v->n_stages, sizeof *runs);
    size_t n = collect(plan, v, runs);
    for (size_t from = 0; from < n;) {
        size_t end = end_of_replica(runs, n, from), next = end, last = runs[from].replica;
        while (next < n) {
            size_t stop = end_of_replica(runs, n, next);
            if (stop - next != end - from || !same_stages(&runs[from], &runs[next], end - from)) {
                break;
            }
            last = runs[next].replica;
            next = stop;
        }
        for (size_t i = from; i < end; i++) {
            struct hv_str id = {0};
            put_span(runs[i].replica, last, &id);
            hv_str_addc(&id, '/');
            put_span(runs[i].first, runs[i].last, &id);
            hv_str_addf(out, "  %-10s %s\n", hv_str_cstr(&id), runs[i].text);
            hv_str_free(&id);
        }
        from = next;
    }
    free(runs);
}
