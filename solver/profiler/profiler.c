/*
 * Runs a profile on a bench and writes its file. Measurements are in measure.c, the file format in
 * table_file.c.
 */
#include "solver/profiler/profiler.h"

#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include "solver/profiler/journal.h"
#include "solver/profiler/table_file.h"
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 24

struct job {
    const struct hv_profiler_options *o;
    struct hv_journal journal;
    double budget_s;
    int tenth;      /* of the run that was reported last */
    bool was_asked; /* to stop */
};

static bool cancelled(void *ctx)
{
    struct job *j = ctx;
    j->was_asked = j->was_asked || (j->o->stop != NULL && *j->o->stop != 0);
    return j->was_asked;
}

static enum hv_status keep(void *ctx, const struct hv_probe_sample *s, struct hv_err *err)
{
    struct job *j = ctx;
    return hv_journal_add(&j->journal, s, err);
}

/* "[######----] 61%  84 of about 240, 21 s: gemm forward bf16 m 4096 …" */
static void progress(void *ctx, size_t done, size_t about, double elapsed_s,
                     const struct hv_probe *next)
{
    struct job *j = ctx;
    FILE *to = j->o->progress;
    double frac = fmin(fmax((double)done / fmax((double)about, 1), elapsed_s / j->budget_s), 1);
    struct hv_str text = {0};
    if (to == NULL || (!j->o->terminal && (int)(frac * 10) == j->tenth)) {
        return;
    }
    j->tenth = (int)(frac * 10);
    if (j->o->terminal) {
        hv_str_adds(&text, "\r\033[K[");
        for (int i = 0; i < BAR_WIDTH; i++) {
            hv_str_addc(&text, i < frac * BAR_WIDTH ? '#' : '-');
        }
        hv_str_adds(&text, "] ");
    }
    struct hv_str what = {0};
    hv_probe_text(next, &what);
    hv_text_addf(&text, "%3.0f%%  %zu of about %zu, %.0f s: %.*s", 100 * frac, done, about,
                 elapsed_s, j->o->terminal ? 60 : 350, hv_str_cstr(&what));
    hv_str_free(&what);
    (void)fprintf(to, "%s%s", hv_str_cstr(&text), j->o->terminal ? "" : "\n");
    (void)fflush(to);
    hv_str_free(&text);
}

static const struct hv_device_kind *kind_of(const struct hv_device_catalogue *devices,
                                            const struct hv_bench_card *card, const char *as,
                                            struct hv_err *err)
{
    const struct hv_device_kind *kind =
        as != NULL ? hv_device_find(devices, as)
                   : hv_device_match(devices, card->name, card->memory_bytes);
    if (kind == NULL && as != NULL) {
        (void)hv_err_set(err, HV_EINPUT, "the catalogue has no device \"%.80s\"", as);
    } else if (kind == NULL) {
        (void)hv_err_set(err, HV_EINPUT,
                         "the catalogue has no device like \"%.80s\": add it to share/devices, or "
                         "name the kind it counts as with --as",
                         card->name);
    }
    return kind;
}

static enum hv_status write_file(const struct hv_measured *m, const struct hv_table_file *about,
                                 const char *path, struct hv_err *err)
{
    json_t *tree = hv_table_tree(m, about);
    if (tree == NULL) {
        const char *why = m->n_sweeps > 0 && m->sweeps[0].dead ? m->sweeps[0].why : "no time";
        return hv_err_set(err, HV_ENO, "nothing could be measured (%s)", why);
    }
    struct hv_str text = {0};
    hv_json_write(&text, tree, true);
    json_decref(tree);
    enum hv_status st = hv_file_write(path, hv_str_cstr(&text), text.n, err);
    hv_str_free(&text);
    return st;
}

static enum hv_status measure(const struct hv_bench *b, struct job *j,
                              const struct hv_table_file *about, struct hv_err *err)
{
    struct hv_measured m = {0};
    struct hv_measuring how = {.quick = j->o->quick,
                               .budget_s = j->budget_s,
                               .before = j->journal.before.items,
                               .n_before = j->journal.before.n,
                               .ctx = j,
                               .cancelled = cancelled,
                               .keep = keep,
                               .progress = progress};
    enum hv_status st = hv_measure(b, &how, &m, err);
    if (j->o->progress != NULL && j->o->terminal) {
        (void)fputs("\r\033[K", j->o->progress);
    }
    if (st == HV_OK) {
        hv_measured_fill(&m);
        st = write_file(&m, about, j->o->out, err);
    }
    hv_measured_free(&m);
    return st;
}

enum hv_status hv_profiler_run(const struct hv_bench *b, const struct hv_device_catalogue *devices,
                               const struct hv_profiler_options *o, struct hv_err *err)
{
    struct job j = {.o = o, .budget_s = o->quick ? HV_QUICK_S : HV_FULL_S, .tenth = -1};
    struct hv_table_file about = {.date = o->date, .quick = o->quick};
    b->card(b->self, &about.card);
    about.kind = kind_of(devices, &about.card, o->as, err);
    if (about.kind == NULL) {
        return HV_EINPUT;
    }
    struct hv_str part = {0};
    hv_str_addf(&part, "%s.part", o->out);
    enum hv_status st =
        hv_journal_open(&j.journal, hv_str_cstr(&part), &about.card, o->quick, o->fresh, err);
    if (st == HV_OK) {
        st = measure(b, &j, &about, err);
        hv_journal_close(&j.journal);
    }
    if (st == HV_OK && j.was_asked) {
        st = hv_err_set(
            err, HV_ESTOPPED,
            "stopped: %s holds the measurements so far; the same command continues from there",
            o->out);
    } else if (st == HV_OK) {
        (void)unlink(hv_str_cstr(&part));
    }
    hv_str_free(&part);
    return st;
}
