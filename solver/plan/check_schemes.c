/*
 * What schemes of tensor and context parallelism need: sizes that grids and cubes of ranks divide,
 * and keys that belong to the scheme beside them.
 */
#include "solver/base/units.h"
#include "solver/plan/check_inside.h"
#include "solver/plan/parts.h"

int hv_check_grid_side(const struct hv_tp *tp)
{
    for (int64_t q = 1; q * q <= tp->degree; q++) {
        int64_t made = tp->scheme == HV_TP_3D ? q * q * q : q * q * tp->depth;
        if (made == tp->degree) {
            return (int)q;
        }
    }
    return 0;
}

/* ---- grids and cubes ------------------------------------------------------------------------- */

static void check_shape(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_tp *tp = &at->s->tp;
    if (tp->scheme == HV_TP_3D) {
        hv_check_stage_add(c, at, "tp", HV_V_DIVISIBLE, HV_UNKNOWN,
                           "tp scheme 3d needs a degree that is a cube, but %d is not a cube",
                           tp->degree);
    } else {
        hv_check_stage_add(
            c, at, "tp", HV_V_DIVISIBLE, HV_UNKNOWN,
            "tp scheme %s needs degree = depth x q x q, but no whole q gives %d with depth %d",
            hv_tp_scheme_words[tp->scheme], tp->degree, tp->depth);
    }
}

/* A micro-batch of `size` sequences: of a rank each row of a grid takes a part. */
static bool check_rows(const struct hv_check *c, const struct hv_check_stage *at, int64_t size,
                       int64_t rows)
{
    const struct hv_stage *s = at->s;
    bool split = s->deal == HV_DEAL_SPLIT && s->dp > 1;
    for (int i = 0; i < (split && s->shares != NULL ? s->dp : 1); i++) {
        int64_t own = !split ? size : s->shares != NULL ? s->shares[i] : size / s->dp;
        if (own % rows != 0) {
            hv_check_stage_add(c, at, "tp", HV_V_DIVISIBLE, (double)(own % rows),
                               "the %lld sequences of a rank are not divisible into %lld parts, "
                               "over which tp scheme %s of degree %d cuts them",
                               (long long)own, (long long)rows, hv_tp_scheme_words[s->tp.scheme],
                               s->tp.degree);
            return false;
        }
    }
    return true;
}

static void check_sequences(const struct hv_check *c, const struct hv_check_stage *at, int64_t rows)
{
    if (c->p->mode == HV_MODE_SERVE) {
        return;
    }
    if (at->r->list == NULL) {
        (void)check_rows(c, at, hv_stage_micro_batch(c->p, at->r, at->s), rows);
        return;
    }
    for (int64_t i = 0; i < at->r->micro_batches; i++) {
        if (!check_rows(c, at, at->r->list[i].sequences, rows)) {
            return;
        }
    }
}

/* Source of the sizes: Xu et al. 2021, section 3.2 (2d); Wang et al. 2021, section 3 (2.5d); Bian
 * et al. 2021, section 3 (3d). */
static void check_grid(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_stage *s = at->s;
    const struct hv_tp *tp = &s->tp;
    bool cube = tp->scheme == HV_TP_3D;
    int64_t side = hv_check_grid_side(tp), over = cube ? side * side : side;
    if (side == 0) {
        check_shape(c, at);
        return;
    }
    if (c->m->kind == HV_MODEL_LAYERS && tp->degree > 1) {
        hv_check_stage_add(c, at, "tp.scheme", HV_V_SCHEME, HV_UNKNOWN,
                           "tp scheme %s exchanges blocks of inputs and weights, whose sizes a "
                           "model of measured layers does not tell",
                           hv_tp_scheme_words[tp->scheme]);
        return;
    }
    if (c->m->kind == HV_MODEL_TRANSFORMER && c->m->hidden % over != 0) {
        hv_check_stage_add(c, at, "tp", HV_V_DIVISIBLE, (double)(c->m->hidden % over),
                           "a hidden width of %d is not divisible by %lld, into which tp scheme %s "
                           "of degree %d cuts it",
                           c->m->hidden, (long long)over, hv_tp_scheme_words[tp->scheme],
                           tp->degree);
    }
    check_sequences(c, at, cube ? over : side * tp->depth);
}

/* ---- keys that another scheme has ------------------------------------------------------------ */

/* A key that is given, and what to do where the scheme has none of it. */
struct key {
    bool wrong;
    const char *key, *text;
};

static void check_keys(const struct hv_check *c, const struct hv_check_stage *at,
                       const struct key *keys, size_t n, const char *scheme)
{
    for (size_t i = 0; i < n; i++) {
        if (keys[i].wrong) {
            hv_check_stage_add(c, at, keys[i].key, HV_V_SCHEME, HV_UNKNOWN, "%s, not of %s",
                               keys[i].text, scheme);
        }
    }
}

static void check_tp_keys(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_tp *tp = &at->s->tp;
    if (tp->degree < 2) {
        return;
    }
    const struct key keys[] = {
        {tp->regather && tp->scheme != HV_TP_3D, "tp.regather",
         "regather is a choice of tp scheme 3d"},
        {at->s->sequence_parallel && tp->scheme != HV_TP_1D, "sequence_parallel",
         "sequence parallelism is of tp scheme 1d (grids cut activations themselves)"},
    };
    check_keys(c, at, keys, HV_COUNT(keys), hv_tp_scheme_words[tp->scheme]);
}

static void check_cp_keys(const struct hv_check *c, const struct hv_check_stage *at)
{
    const struct hv_cp *cp = &at->s->cp;
    enum hv_cp_scheme s = cp->scheme;
    bool rings = s == HV_CP_RING || s == HV_CP_USP || s == HV_CP_LOONGTRAIN;
    bool own_order = s == HV_CP_DISTFLASH || s == HV_CP_RSA || s == HV_CP_DSP;
    if (cp->degree < 2) {
        return;
    }
    const struct key keys[] = {
        {cp->inner > 1 && !rings && s != HV_CP_WALLFACER, "cp.inner",
         "inner is of schemes with nested rings or teams: ring, usp, loongtrain, wallfacer"},
        {cp->layout != HV_CP_CONTIGUOUS && own_order, "cp.layout",
         "a layout other than contiguous is of schemes that leave the order of tokens free"},
        {cp->backward == HV_CP_Q_DO && !rings, "cp.backward",
         "q_do is what rings pass on backward: ring, usp, loongtrain"},
        {cp->n_dims > 0 && s != HV_CP_DSP, "cp.dims",
         "dimensions that blocks are cut along are of scheme dsp"},
    };
    check_keys(c, at, keys, HV_COUNT(keys), hv_cp_scheme_words[s]);
}

void hv_check_schemes(const struct hv_check *c, const struct hv_check_stage *at)
{
    if (at->s->tp.scheme != HV_TP_1D) {
        check_grid(c, at);
    }
    check_tp_keys(c, at);
    check_cp_keys(c, at);
}
