/* The report of a config: what was assumed, with the matrices that were counted. */
#include "solver/base/str.h"
#include "solver/io/own/model/hf_int.h"
#include <stdarg.h>
#include <string.h>

#define MAX_KINDS 6 /* kinds of blocks whose matrices are named */

void hv__hf_report_free(struct hv__hf_report *r)
{
    json_decref(r->read);
    json_decref(r->counted);
    json_decref(r->guesses);
    *r = (struct hv__hf_report){0};
}

void hv__hf_guess(const struct hv__hf *c, const char *fmt, ...)
{
    struct hv_str text = {0};
    va_list ap;
    if (!c->report) {
        return;
    }
    va_start(ap, fmt);
    hv_str_addv(&text, fmt, ap);
    va_end(ap);
    json_array_append_new(c->report->guesses, json_string(hv_str_cstr(&text)));
    hv_str_free(&text);
}

static bool same_shape(const struct hv_block *a, const struct hv_block *b)
{
    return a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
           a->ffn == b->ffn && a->experts == b->experts && a->expert_ffn == b->expert_ffn;
}

static void add_attention(struct hv_str *s, const struct hv_model *m, const struct hv_block *b)
{
    long long h = m->hidden, q = (long long)b->heads * b->head_dim;
    const struct hv_mla *x = &b->mla;
    if (b->heads == 0) {
        return;
    }
    if (x->kv_rank > 0) {
        hv_str_addf(s, ", low-rank query %lld x %d, key/value %lld x %d, o %lld x %lld", h,
                    x->q_rank, h, x->kv_rank + x->rope_dim, (long long)b->heads * x->value_dim, h);
    } else {
        hv_str_addf(s, ", q %lld x %lld, k and v %lld x %lld, o %lld x %lld", h, q, h,
                    (long long)b->kv_heads * b->head_dim, q, h);
    }
    hv_str_adds(s, b->attention_bias ? " with biases" : "");
}

static void add_ffn(struct hv_str *s, const struct hv_model *m, const struct hv_block *b, int width)
{
    bool gated = hv_ffn_kind_matrices(b->ffn_kind) > 2;
    hv_str_addf(s, "%s %d x %d, down %d x %d%s", gated ? "gate and up" : "up", m->hidden, width,
                width, m->hidden, b->ffn_bias ? " with biases" : "");
}

static void add_block(struct hv_str *s, const struct hv_model *m, const struct hv_block *b)
{
    add_attention(s, m, b);
    if (b->ffn > 0) {
        hv_str_adds(s, ", ");
        add_ffn(s, m, b, b->ffn);
    }
    if (b->experts > 0) {
        hv_str_addf(s, ", router %d x %d, %d experts of ", m->hidden, b->experts, b->experts);
        add_ffn(s, m, b, b->expert_ffn);
    }
    if (b->experts > 0 && b->shared_experts > 0) {
        hv_str_addf(s, ", %d shared of ", b->shared_experts);
        add_ffn(s, m, b, b->shared_ffn);
    }
}

/* One text per kind of block. */
static void guess_blocks(const struct hv__hf *c, const struct hv_model *m)
{
    const struct hv_block *seen[MAX_KINDS];
    size_t kinds = 0;
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct hv_block *b = &m->blocks[i];
        size_t k = 0, times = 0;
        while (k < kinds && !same_shape(seen[k], b)) {
            k++;
        }
        if (k < kinds || kinds == MAX_KINDS) {
            continue;
        }
        seen[kinds++] = b;
        for (size_t j = i; j < m->n_blocks; j++) {
            times += same_shape(&m->blocks[j], b);
        }
        struct hv_str s = {0};
        hv_str_addf(&s, "%zu layers are assumed to have a norm before each half", times);
        add_block(&s, m, b);
        hv__hf_guess(c, "%s", hv_str_cstr(&s));
        hv_str_free(&s);
    }
    hv__hf_guess(c, "%s %d x %d%s%s", "the embedding is assumed to be", m->vocab, m->hidden,
                 m->tied_embeddings ? ", the head the same matrix" : ", the head another one",
                 m->position == HV_POSITION_LEARNED ? ", with a table of positions" : "");
}

static void guess_family(const struct hv__hf *c, const struct hv_model *m)
{
    if (!c->f) {
        hv__hf_guess(c,
                     "the family \"%s\" is not known: norms, positions and gating are taken from "
                     "the other members, and these matrices are counted",
                     c->type);
    } else if (!c->exact) {
        hv__hf_guess(c, "the family \"%s\" is not known: it is read as \"%.*s\"", c->type,
                     (int)strcspn(c->f->types, " "), c->f->types);
    }
    if ((!c->f || !c->exact) && m->kind == HV_MODEL_TRANSFORMER) {
        guess_blocks(c, m);
    }
    if (c->f && c->f->note) {
        hv__hf_guess(c, "%s", c->f->note);
    }
}

static void guess_if(const struct hv__hf *c, bool absent, const char *what, const char *value)
{
    if (absent) {
        hv__hf_guess(c, "%s is not given: %s", what, value);
    }
}

static void guess_figures(const struct hv__hf *c, const struct hv_model *m)
{
    const struct hv_block *b = &m->blocks[0];
    bool known = c->f && c->exact;
    if (b->heads == 0) {
        return;
    }
    bool grouped = !known || (hv__hf_rule_flag(c, "grouped", false) && b->mla.kv_rank == 0);
    guess_if(c, grouped && !hv__hf_given(c, HV__HF_KV_HEADS), "the number of key/value heads",
             hv_arena_printf(c->arena, "%d", b->kv_heads));
    guess_if(c, !known && !hv__hf_given(c, HV__HF_HEAD_DIM) && b->mla.kv_rank == 0,
             "the width of a head", hv_arena_printf(c->arena, "%d", b->head_dim));
    guess_if(c, !known && !hv__hf_given(c, HV__HF_FFN) && b->ffn > 0,
             "the width of the feed-forward", hv_arena_printf(c->arena, "%d", b->ffn));
    guess_if(c, !known && !hv__hf_given(c, HV__HF_ACTIVATION), "the activation",
             hv_ffn_kind_name(b->ffn_kind));
    guess_if(c,
             !hv__hf_has_anywhere(c, "tie_word_embeddings") &&
                 hv__hf_rule(c, "tied").kind == HV__MISSING && !m->patch_tokens,
             "whether embedding and head are tied",
             m->tied_embeddings ? "they are, as usual in the family"
                                : "they are not, as usual in the family");
    guess_if(c, !hv__hf_given(c, HV__HF_MAX_SEQUENCE) && !m->patch_tokens, "the longest sequence",
             hv_arena_printf(c->arena, "%d", m->max_sequence));
}

void hv__hf_tell(const struct hv__hf *c, const struct hv_model *m)
{
    if (!c->report) {
        return;
    }
    guess_family(c, m);
    if (m->kind == HV_MODEL_TRANSFORMER && m->n_blocks > 0) {
        guess_figures(c, m);
    }
    hv__hf_tell_extras(c);
}
