/** A stage as rows: the terms behind its seconds and bytes, and its memory at the peak. */
#include <string.h>

#include "solver/base/units.h"
#include "solver/eval/explain.h"
#include "ui/screens/explain/explain_int.h"

/** Ids of a stage, of a chapter. */
#define STAGE_IDS   100000
#define CHAPTER_IDS 1000

static const char *term_value(struct hv_explain_data *d, double value, const char *unit)
{
    char buf[HV_FMT_CAP];
    return hv_arena_strdup(&d->arena,
                           strcmp(unit, "s") == 0       ? hv_fmt_seconds(buf, sizeof buf, value)
                           : strcmp(unit, "bytes") == 0 ? hv_fmt_bytes(buf, sizeof buf, value)
                                                        : hv_fmt_count(buf, sizeof buf, value));
}

static void add_term(struct hv_explain_data *d, uint64_t id, const struct hv_why_term *t)
{
    if (strcmp(t->unit, "x") == 0) {
        hv_explain_add(d, id, 2, hv_arena_printf(&d->arena, "%g x %s", t->value, t->text))->style =
            HV_STYLE_HEADER;
        return;
    }
    struct hv_explain_row *r = hv_explain_add(d, id, 3, hv_arena_strdup(&d->arena, t->text));
    r->name = t->name;
    r->value = term_value(d, t->value, t->unit);
}

/** What is in the memory of the worst device at its peak. */
static void add_peak(struct hv_explain_data *d, uint64_t id, const struct hv_stage_memory *m)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP];
    const struct {
        const char *name;
        double bytes;
    } parts[] = {{"weights", m->weights_bytes},         {"gradients", m->gradients_bytes},
                 {"master copy", m->master_bytes},      {"optimizer", m->optimizer_bytes},
                 {"activations", m->activations_bytes}, {"transient", m->transient_bytes},
                 {"overhead", m->overhead_bytes},       {"kept for others", m->kept_bytes}};
    size_t n = HV_COUNT(parts) - (m->kept_bytes > 0 ? 0 : 1);
    const char *title = hv_arena_printf(
        &d->arena, "memory at its peak: %s of %s, %d in flight, at %s",
        hv_fmt_bytes(a, sizeof a, m->peak_bytes), hv_fmt_bytes(b, sizeof b, m->limit_bytes),
        m->in_flight, hv_fmt_seconds(c, sizeof c, m->peak_at_s));
    bool open = hv_explain_heading(d, id, 1, title);
    d->rows.items[d->rows.n - 1].evidence = hv_explain_on_lane(m->replica, m->stage, m->peak_at_s);
    for (size_t i = 0; open && i < n; i++) {
        struct hv_explain_row *r = hv_explain_add(
            d, id + 1 + i, 2,
            hv_arena_printf(&d->arena, "%s of the limit",
                            hv_fmt_percent(a, sizeof a, parts[i].bytes / m->limit_bytes)));
        r->name = parts[i].name;
        r->value = term_value(d, parts[i].bytes, "bytes");
        r->frac = parts[i].bytes / m->limit_bytes;
    }
}

static void add_chapters(struct hv_explain_data *d, struct hv_session *s, uint64_t id,
                         const struct hv_stage_metrics *m)
{
    struct hv_explained *chapters = NULL;
    size_t n = 0;
    struct hv_err err = {0};
    if (hv_eval_explain(hv_session_cost(s), d->facts.plan, m->replica, m->stage, &d->arena,
                        &chapters, &n, &err) != HV_OK) {
        hv_explain_add(d, id + 1, 1, hv_arena_strdup(&d->arena, err.text))->style =
            HV_STYLE_WARNING;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t at = id + (i + 1) * CHAPTER_IDS;
        if (!hv_explain_heading(d, at, 1, chapters[i].title)) {
            continue;
        }
        for (size_t t = 0; t < chapters[i].n_terms; t++) {
            add_term(d, at + 1 + t, &chapters[i].terms[t]);
        }
    }
}

static const struct hv_stage_memory *memory_of(const struct hv_verdict *v,
                                               const struct hv_stage_metrics *m)
{
    for (size_t i = 0; i < v->n_memory; i++) {
        if (v->memory[i].replica == m->replica && v->memory[i].stage == m->stage) {
            return &v->memory[i];
        }
    }
    return NULL;
}

void hv_explain_stages(struct hv_explain_data *d, struct hv_session *s)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP], c[HV_FMT_CAP], e[HV_FMT_CAP];
    const struct hv_verdict *v = d->facts.verdict;
    const struct hv_plan *p = d->facts.plan;
    for (size_t i = 0; i < v->n_stages; i++) {
        const struct hv_stage_metrics *m = &v->stages[i];
        const struct hv_stage *stage = &p->replicas[m->replica].stages[m->stage];
        const struct hv_stage_memory *mem = memory_of(v, m);
        uint64_t id = HV_ID_STAGE + (uint64_t)i * STAGE_IDS;
        struct hv_str layers = {0}, kinds = {0};
        hv_plan_stage_layers(stage, &layers);
        hv_plan_stage_kinds(p, stage, &kinds);
        const char *title = hv_arena_printf(
            &d->arena, "%s %s L on %s: busy %s, forward %s, backward %s%s%s",
            hv_explain_stage_name(d, m->replica, m->stage), hv_str_cstr(&layers),
            hv_str_cstr(&kinds), hv_fmt_percent(a, sizeof a, m->busy_frac),
            hv_fmt_seconds(b, sizeof b, m->forward_s), hv_fmt_seconds(c, sizeof c, m->backward_s),
            mem != NULL ? ", peak " : "",
            mem != NULL ? hv_fmt_bytes(e, sizeof e, mem->peak_bytes) : "");
        hv_str_free(&layers);
        hv_str_free(&kinds);
        bool open = hv_explain_heading(d, id, 0, title);
        d->rows.items[d->rows.n - 1].evidence =
            hv_explain_on_lane(m->replica, m->stage, v->metrics.pipeline_s / 2);
        d->rows.items[d->rows.n - 1].detail =
            "The work of the first data-parallel rank of the first replica. Right unfolds the "
            "terms of its time and memory, each with formula and source.";
        if (open) {
            add_chapters(d, s, id, m);
            if (mem != NULL) {
                add_peak(d, id + STAGE_IDS - CHAPTER_IDS, mem);
            }
        }
    }
}
