/* Tables for spreadsheets (RFC 4180): stages with their figures, and ranks. */
#include "solver/base/units.h"
#include "solver/io/export/target/inside.h"
#include "solver/io/own/plan/write.h"

static void add_cells(struct hv_str *out, const double *values, size_t n)
{
    char buf[HV_FMT_CAP];
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(out, ",%s",
                    hv_known(values[i]) ? hv_fmt_double(buf, sizeof buf, values[i]) : "");
    }
}

static void add_layers(const struct hv_stage *s, struct hv_str *out)
{
    for (size_t i = 0; i < s->n_ranges; i++) {
        hv_str_addf(out, "%s%g to %g", i > 0 ? ", " : "", s->ranges[i].from2 / 2.0,
                    s->ranges[i].to2 / 2.0);
    }
}

/** The place of a stage in lists that hold one entry per stage, entries one after the other. */
static size_t place_of(const struct hv_plan *p, size_t replica, size_t stage)
{
    for (size_t i = 0; i < replica; i++) {
        stage += p->replicas[i].n_stages;
    }
    return stage;
}

static void add_stage(struct hv__exporting *x, size_t i, size_t k, struct hv_str *out)
{
    const struct hv_plan *p = x->s->plan;
    const struct hv_verdict *v = x->s->verdict;
    const struct hv_replica *r = &p->replicas[i];
    const struct hv_stage *s = &r->stages[k];
    struct hv_str text = {0};
    size_t at = place_of(p, i, k);
    hv_str_addf(out, "%zu,%d,%zu,", i, r->count, k);
    hv_address_format(p->cluster, s->devices, s->n_devices, " ", &text);
    hv__export_csv_field(out, hv_str_cstr(&text));
    hv_str_clear(&text);
    add_layers(s, &text);
    hv_str_addc(out, ',');
    hv__export_csv_field(out, hv_str_cstr(&text));
    hv_str_clear(&text);
    const double degrees[] = {s->tp.degree,
                              s->cp.degree,
                              s->dp,
                              hv_stage_experts_over(s),
                              s->zero.stage,
                              hv_stage_micro_batch(p, r, s),
                              (double)r->micro_batches};
    add_cells(out, degrees, HV_COUNT(degrees));
    hv_recompute_format(s->n_recompute_per > 0 ? s->recompute_per[0] : s->recompute, &text);
    hv_str_addc(out, ',');
    hv__export_csv_field(out, hv_str_cstr(&text));
    const double u = HV_UNKNOWN;
    const double figures[] = {at < v->n_stages ? v->stages[at].forward_s : u,
                              at < v->n_stages ? v->stages[at].backward_s : u,
                              at < v->n_stages ? v->stages[at].busy_frac : u,
                              at < v->n_memory ? v->memory[at].peak_bytes / HV_GIB : u,
                              at < v->n_memory ? v->memory[at].limit_bytes / HV_GIB : u};
    add_cells(out, figures, HV_COUNT(figures));
    hv_str_adds(out, "\r\n");
    hv_str_free(&text);
}

enum hv_status hv__export_stages(struct hv__exporting *x)
{
    const struct hv_plan *p = x->s->plan;
    struct hv_str *out = hv__export_file(x, "stages.csv");
    hv_str_adds(out,
                "replica,count,stage,devices,layers,tp,cp,dp,ep,zero,micro_batch,micro_batches,"
                "recompute,forward_s,backward_s,busy_frac,peak_GiB,limit_GiB\r\n");
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            add_stage(x, i, k, out);
        }
    }
    hv__export_ranks_file(x);
    return HV_OK;
}
