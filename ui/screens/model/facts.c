/* Memory of the model per GPU under a simple parallel layout, and consistency checks of model, job
 * and cluster. */
#include <stdio.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include "ui/screens/model/model_int.h"

enum { MAX_TP = 8, MAX_PP = 4096, BARS = 5 };

static const struct hv_model *model_of(const struct hv_model_screen *v)
{
    return hv_session_model(v->session)->model;
}

static const struct hv_job *job_of(const struct hv_model_screen *v)
{
    return &hv_session_job(v->session)->job;
}

static bool has_experts(const struct hv_model *m)
{
    for (size_t i = 0; m->kind == HV_MODEL_TRANSFORMER && i < m->n_blocks; i++) {
        if (m->blocks[i].experts > 0) {
            return true;
        }
    }
    return false;
}

/* True where tensor parallelism by tp divides every block. */
static bool divides(const struct hv_model *m, int tp)
{
    if (m->kind != HV_MODEL_TRANSFORMER) {
        return tp == 1;
    }
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct hv_block *b = &m->blocks[i];
        if (b->heads % tp != 0 || b->ffn % tp != 0 || (b->kv_heads > 0 && b->kv_heads % tp != 0)) {
            return false;
        }
    }
    return true;
}

static int largest_tp(const struct hv_model *m)
{
    int tp = MAX_TP;
    while (tp > 1 && !divides(m, tp)) {
        tp /= 2;
    }
    return tp;
}

void hv_model_step_tp(struct hv_model_screen *v, int step)
{
    int tp = v->fit.tp;
    tp = step > 0 ? tp * 2 : tp / 2;
    tp = tp < 1 ? 1 : tp > MAX_TP ? MAX_TP : tp;
    v->tp = divides(model_of(v), tp) ? tp : v->tp;
    hv_model_refit(v);
}

/* Activations of the first of pp stages for one micro-batch of one sequence. */
static double stage_activations(const struct hv_model_screen *v, int tp, int pp)
{
    double sum = 0, blocks = 0;
    for (size_t i = 0; i < v->rows.n; i++) {
        const struct hv_layer_row *row = &v->rows.items[i];
        if (row->kind == HV_LAYER_BLOCKS) {
            struct hv_layer_price p = hv_model_price(v, row, v->kinds[0], tp);
            sum += p.saved_bytes * (double)row->n;
            blocks += (double)row->n;
        }
    }
    return blocks > 0 ? sum / pp : 0;
}

static struct hv_model_fit find_fit(const struct hv_model_screen *v)
{
    const struct hv_model *m = model_of(v);
    const struct hv_job *j = job_of(v);
    struct hv_model_fit fit = {.tp = v->tp > 0 && divides(m, v->tp) ? v->tp : largest_tp(m),
                               .pp = 1,
                               .limit_bytes = HV_UNKNOWN};
    double parameters = hv_model_parameters(m);
    if (v->n_kinds == 0) {
        return fit;
    }
    fit.limit_bytes = v->kinds[0]->memory_bytes;
    size_t most = m->n_blocks > 0 ? m->n_blocks : 1;
    for (;; fit.pp *= 2) {
        double each = parameters / ((double)fit.tp * fit.pp);
        fit.weights_bytes = each * hv_job_weight_bytes(j);
        fit.gradients_bytes = each * hv_job_grad_bytes(j);
        fit.optimizer_bytes = each * (hv_job_master_bytes(j) + hv_job_optimizer_bytes(j));
        /* with 1F1B the first stage keeps as many micro-batches as there are stages */
        fit.activation_bytes = stage_activations(v, fit.tp, fit.pp) * fit.pp;
        double sum = fit.weights_bytes + fit.gradients_bytes + fit.optimizer_bytes +
                     hv_or(fit.activation_bytes, 0);
        fit.fits = sum <= fit.limit_bytes;
        if (fit.fits || (size_t)fit.pp * 2 > most || fit.pp >= MAX_PP) {
            return fit;
        }
    }
}

void hv_model_refit(struct hv_model_screen *v)
{
    v->fit = find_fit(v);
}

static void check_division(const struct hv_model *m, struct hv_str *out)
{
    if (m->kind != HV_MODEL_TRANSFORMER || m->n_blocks == 0) {
        return;
    }
    const struct hv_block *b = &m->blocks[0];
    if (b->heads > 0) {
        hv_str_addf(out, "  %d heads, %d kv heads: tp up to %d\n", b->heads, b->kv_heads,
                    largest_tp(m));
    }
    if (b->heads > 0 && b->kv_heads > 0 && b->heads % b->kv_heads != 0) {
        hv_str_addf(out, "! %d heads are not a multiple of %d kv heads\n", b->heads, b->kv_heads);
    }
    for (int tp = 2; tp <= MAX_TP; tp *= 2) {
        if (m->vocab > 0 && m->vocab % tp != 0) {
            hv_str_addf(out, "! vocabulary %d is not divisible by tp %d\n", m->vocab, tp);
            break;
        }
    }
    hv_str_addf(out, "  %zu blocks:", m->n_blocks);
    const char *before = " even stages for pp ";
    for (size_t pp = 2; pp <= 64; pp++) {
        if (m->n_blocks % pp == 0) {
            hv_str_addf(out, "%s%zu", before, pp);
            before = ", ";
        }
    }
    hv_str_adds(out, before[0] == ',' ? "\n" : " no even stages\n");
}

static void check_job(const struct hv_model *m, const struct hv_job *j, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    if (m->max_sequence > 0 && j->sequence > m->max_sequence) {
        hv_str_addf(out, "! sequence %lld is longer than the model's %d tokens\n",
                    (long long)j->sequence, m->max_sequence);
    } else if (m->max_sequence > 0) {
        hv_str_addf(out, "  sequence %lld of at most %d tokens\n", (long long)j->sequence,
                    m->max_sequence);
    }
    hv_str_addf(out, "  %s tokens per iteration\n",
                hv_fmt_count(buf, sizeof buf, (double)j->global_batch * (double)j->sequence));
}

static void check_devices(const struct hv_model_screen *v, struct hv_str *out)
{
    const struct hv_cluster *c = hv_session_cluster(v->session)->cluster;
    const struct hv_job *j = job_of(v);
    char need_text[HV_FMT_CAP], have_text[HV_FMT_CAP];
    double have = 0, gpus = 0;
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct hv_device_kind *k = c->kinds[i];
        double n = 0;
        for (size_t g = 0; g < c->n_groups; g++) {
            for (size_t s = 0; s < c->groups[g].n_slots; s++) {
                bool used = c->groups[g].state == HV_NODE_OK && c->groups[g].slots[s].kind == k;
                n += used ? (double)c->groups[g].count * c->groups[g].slots[s].count : 0;
            }
        }
        if (k->cls == HV_CLASS_CPU) {
            continue;
        }
        if (!hv_device_has(k, j->precision)) {
            hv_str_addf(out, "! %s has no %s: %.0f device%s stay%s idle\n", k->name,
                        hv_precision_name(j->precision), n, n > 1 ? "s" : "", n > 1 ? "" : "s");
        } else {
            have += n * hv_or(k->memory_bytes, 0);
            gpus += n;
        }
    }
    struct hv_model_fit fit = v->fit;
    if ((double)fit.tp * fit.pp > gpus) {
        hv_str_addf(out, "! tp %d and pp %d need %d GPUs, %.0f can be used\n", fit.tp, fit.pp,
                    fit.tp * fit.pp, gpus);
    }
    double per = hv_job_weight_bytes(j) + hv_job_grad_bytes(j) + hv_job_master_bytes(j) +
                 hv_job_optimizer_bytes(j);
    double need = hv_model_parameters(model_of(v)) * per;
    if (hv_known(need)) {
        hv_str_addf(out, "%s one copy with optimizer %s of %s in the cluster\n",
                    need > have ? "!" : " ", hv_fmt_bytes(need_text, sizeof need_text, need),
                    hv_fmt_bytes(have_text, sizeof have_text, have));
    }
}

void hv_model_checks(const struct hv_model_screen *v, struct hv_str *out)
{
    check_division(model_of(v), out);
    check_job(model_of(v), job_of(v), out);
    check_devices(v, out);
}

void hv_model_status(const struct hv_model_screen *v, struct hv_str *out)
{
    const struct hv_model *m = hv_session_model(v->session)->model;
    double sequence = (double)hv_session_job(v->session)->job.sequence;
    double flops = hv_model_forward_flops(m, sequence, true);
    char buf[HV_FMT_CAP];
    struct hv_str checks = {0};
    hv_str_addf(out, "%s: ", m->name != NULL ? m->name : "model");
    hv_model_count(out, hv_model_parameters(m));
    hv_str_addf(out, " parameters, %zu %s", m->n_blocks,
                m->kind == HV_MODEL_TRANSFORMER ? "blocks" : "layers");
    if (hv_known(flops)) {
        hv_str_addf(out, ", %s/token fwd+bwd",
                    hv_fmt_si(buf, sizeof buf, 3 * flops / sequence, "FLOP"));
    }
    size_t own = 0;
    for (size_t i = 0; i < v->own.n; i++) {
        own += v->own.items[i];
    }
    if (own > 0) {
        hv_str_addf(out, ", * %zu with individual values", own);
    }
    hv_model_checks(v, &checks);
    size_t n = 0;
    for (const char *p = hv_str_cstr(&checks); *p != '\0'; p++) {
        n += *p == '!' && (p == checks.p || p[-1] == '\n');
    }
    if (n > 0) {
        hv_str_addf(out, " | ! %zu check%s, see c", n, n > 1 ? "s" : "");
    } else {
        hv_str_adds(out, " | all checks passed");
    }
    hv_str_free(&checks);
}

/* The four bars and the limit; returns rows used. */
static int draw_bars(const struct hv_model_screen *v, struct hv_grid *g, struct hv_rect r)
{
    struct hv_model_fit fit = v->fit;
    const char *const names[BARS] = {"weights", "gradients", "optimizer", "activations", "sum"};
    double bytes[BARS] = {fit.weights_bytes, fit.gradients_bytes, fit.optimizer_bytes,
                          fit.activation_bytes, 0};
    struct hv_bar_row rows[BARS];
    char texts[BARS][HV_FMT_CAP], limit[HV_FMT_CAP];
    if (v->n_kinds == 0) {
        (void)hv_grid_put(g, r.x, r.y, r.w, "no device of the cluster supports this precision",
                          HV_STYLE_WARNING);
        return 1;
    }
    (void)hv_grid_putf(g, r.x, r.y, HV_STYLE_TITLE, "Memory per GPU: tp %d, pp %d, no ZeRO%s",
                       fit.tp, fit.pp, has_experts(model_of(v)) ? " or ep" : "");
    for (int i = 0; i < BARS; i++) {
        bytes[BARS - 1] += i < BARS - 1 ? hv_or(bytes[i], 0) : 0;
        bool over = bytes[i] > fit.limit_bytes;
        if (hv_known(bytes[i])) {
            (void)hv_fmt_bytes(texts[i], sizeof texts[i], bytes[i]);
        } else {
            (void)snprintf(texts[i], sizeof texts[i], "-");
        }
        rows[i] = (struct hv_bar_row){names[i], texts[i], hv_or(bytes[i] / fit.limit_bytes, 0),
                                      over ? HV_STYLE_MEMORY_OVER : HV_STYLE_MEMORY};
    }
    hv_bars_draw(g, (struct hv_rect){r.x, r.y + 1, r.w, BARS}, rows, BARS);
    (void)hv_grid_putf(g, r.x, r.y + 1 + BARS, fit.fits ? HV_STYLE_GOOD : HV_STYLE_WARNING,
                       "%s %s of %s (h l: tp)", fit.fits ? "fits" : "! does not fit into memory",
                       hv_fmt_bytes(limit, sizeof limit, fit.limit_bytes), v->kinds[0]->name);
    return BARS + 2;
}

static void draw_fit(const struct hv_model_screen *v, struct hv_grid *g, struct hv_rect r)
{
    bool focused = v->panel == HV_MODEL_FIT_PANEL;
    struct hv_rect in = hv_rect_inner(r);
    struct hv_str text = {0}, line = {0};
    hv_grid_box(g, r, v->only_checks ? "Checks" : "Fit and checks", focused,
                focused ? HV_STYLE_FRAME_FOCUS : HV_STYLE_FRAME);
    struct hv_rect old = hv_grid_clip(g, in);
    int y = in.y + (v->only_checks ? 0 : draw_bars(v, g, in)), skip = v->fit_top;
    hv_model_checks(v, &text);
    for (const char *p = hv_str_cstr(&text); *p != '\0';) {
        size_t n = strcspn(p, "\n");
        hv_str_clear(&line);
        hv_str_add(&line, p, n);
        if (skip-- <= 0) {
            hv_grid_put_field(g, (struct hv_rect){in.x, y++, in.w, 1}, HV_LEFT, hv_str_cstr(&line),
                              *p == '!' ? HV_STYLE_WARNING : HV_STYLE_TEXT);
        }
        p += n + (p[n] == '\n');
    }
    if (focused) {
        hv_grid_cursor(g, in.x, in.y);
    }
    hv_grid_unclip(g, old);
    hv_str_free(&line);
    hv_str_free(&text);
}

void hv_model_draw_fit(const struct hv_model_screen *v, struct hv_grid *g, struct hv_rect r)
{
    const uint64_t of[] = {(uint64_t)v->fit_top, v->only_checks, v->panel == HV_MODEL_FIT_PANEL};
    if (!hv_grid_part(g, r, hv_hash(hv_model_version(v, "fit"), of, sizeof of))) {
        draw_fit(v, g, r);
        hv_grid_part_end(g);
    }
}
