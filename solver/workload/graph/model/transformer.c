/** Transformers as graphs: embedding, blocks, head. */
#include "solver/workload/graph/model/transformer.h"

#include "solver/workload/graph/model/transformer_int.h"

/* ---- ends ------------------------------------------------------------------------------------ */

/* Rows of a table by number; of images, a product with the values of their patches. */
static uint32_t embedding(struct hv__transformer *t, uint32_t *table)
{
    struct hv_graph_builder *b = &t->b;
    uint32_t vocab = hv_build_dim(b, t->m->patch_tokens > 0 ? "patch" : "vocab", t->m->vocab);
    struct hv_dim_list out = HV_DIMS(t->batch, t->token, t->hidden);
    uint32_t x;
    if (t->m->patch_tokens > 0) {
        uint32_t in = hv_build_input(b, "patches", b->dtype, HV_DIMS(t->batch, t->token, vocab));
        *table = hv_build_weight(b, "embedding.weight", HV_DIMS(vocab, t->hidden));
        x = hv_build_op2(b, "embedding", HV_OP_EINSUM, in, *table, out);
    } else {
        uint32_t in = hv_build_input(b, "tokens", HV_DTYPE_S32, HV_DIMS(t->batch, t->token));
        *table = hv_build_weight(b, "embedding.weight", HV_DIMS(vocab, t->hidden));
        x = hv_build_op2(b, "embedding", HV_OP_EMBEDDING, *table, in, out);
        hv_build_over(b, vocab);
    }
    if (t->m->position != HV_POSITION_LEARNED) {
        return x;
    }
    uint32_t most = hv_build_dim(b, "positions", t->m->max_sequence);
    uint32_t p = hv_build_weight(b, "position.weight", HV_DIMS(most, t->hidden));
    if (t->tokens < t->m->max_sequence) {
        p = hv_build_op1(b, "position.rows", HV_OP_SLICE, p, HV_DIMS(t->token, t->hidden));
        struct hv_tensor_op *op = hv_build_last(b);
        op->range[op->n_ranges++] = (struct hv_tensor_range){most, 0, t->tokens, 1};
    }
    x = hv_build_op2(b, "position", HV_OP_ADD, x, p, out);
    if (t->tokens == t->m->max_sequence) {
        hv_build_as(b, 1, HV_DIMS(t->token, t->hidden));
    }
    return x;
}

static void head(struct hv__transformer *t, uint32_t x, uint32_t table, bool loss)
{
    struct hv_graph_builder *b = &t->b;
    uint32_t vocab = hv_build_dims_of(b, table).dim[0];
    x = hv__norm(t, "final_norm", x);
    struct hv_dim_list out = HV_DIMS(t->batch, t->token, vocab);
    uint32_t logits = t->m->tied_embeddings
                          ? hv_build_op2(b, "head", HV_OP_EINSUM, x, table, out)
                          : hv__linear(t, "head", x, HV_DIMS(t->hidden, vocab), out, false);
    if (!loss) {
        return;
    }
    uint32_t labels = hv_build_input(b, "labels", HV_DTYPE_S32, HV_DIMS(t->batch, t->token));
    hv_build_op2(b, "loss", HV_OP_CROSS_ENTROPY, logits, labels, HV_DIMS(t->batch, t->token));
    hv_build_over(b, vocab);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint32_t residual(struct hv__transformer *t, const char *name, uint32_t x, uint32_t y)
{
    return hv_build_op2(&t->b, name, HV_OP_ADD, x, y, HV_DIMS(t->batch, t->token, t->hidden));
}

static uint32_t block(struct hv__transformer *t, size_t i, uint32_t x)
{
    const struct hv_block *b = &t->m->blocks[i];
    t->b.prefix = hv_arena_printf(t->b.arena, "layer%zu.", i);
    if (b->heads > 0) {
        x = residual(t, "attention", x, hv__attention(t, b, hv__norm(t, "attention_norm", x)));
    }
    if (b->ffn > 0 || b->experts > 0) {
        x = residual(t, "feed_forward", x, hv__feed_forward(t, b, hv__norm(t, "ffn_norm", x)));
    }
    t->b.prefix = "";
    return x;
}

/* What the shape of the model says, and what it gives beside it. */
static enum hv_status check_model(const struct hv_model *m, int64_t tokens, struct hv_err *err)
{
    if (m->kind != HV_MODEL_TRANSFORMER) {
        return hv_err_set(err, HV_EINPUT,
                          "expected a transformer to make a graph of, found a model of kind %s",
                          hv_model_kind_name(m->kind));
    }
    bool extra = m->embedding_extra != 0 || m->head_extra != 0, spread = m->n_token_dims > 0;
    for (size_t i = 0; i < m->n_blocks; i++) {
        const struct hv_block *b = &m->blocks[i];
        extra = extra || b->attention_extra != 0 || b->ffn_extra != 0;
        spread = spread || b->attends > 0;
        if (b->heads > 0 && b->mla.kv_rank == 0 && b->heads % b->kv_heads != 0) {
            return hv_err_set(err, HV_EINPUT, "layer %zu: %d heads are no multiple of %d kv_heads",
                              i, b->heads, b->kv_heads);
        }
    }
    if (extra) {
        return hv_err_set(err, HV_EINPUT,
                          "the model has weights beside its shape (attention_extra, ffn_extra, "
                          "embedding_extra or head_extra), whose operators are not known: describe "
                          "it as a graph with \"tensors\"");
    }
    if (spread) {
        return hv_err_set(err, HV_EINPUT,
                          "tokens in several dimensions (\"attends\") have no graph here: describe "
                          "the model as a graph with \"tensors\"");
    }
    if (m->position == HV_POSITION_LEARNED && tokens > m->max_sequence) {
        return hv_err_set(err, HV_EINPUT, "%lld tokens, but the model has positions for %d",
                          (long long)tokens, m->max_sequence);
    }
    return HV_OK;
}

enum hv_status hv_transformer_graph(const struct hv_model *m, const struct hv_graph_of_model *q,
                                    struct hv_arena *arena, struct hv_tensor_graph *out,
                                    struct hv_err *err)
{
    struct hv__transformer t = {.b = {.arena = arena, .prefix = "", .dtype = q->dtype}, .m = m};
    t.sequences = q->sequences;
    t.tokens = m->patch_tokens > 0 ? m->patch_tokens : q->tokens;
    enum hv_status st = check_model(m, t.tokens, err);
    if (st) {
        return st;
    }
    t.batch = hv_build_dim(&t.b, "batch", t.sequences);
    t.token = hv_build_dim(&t.b, "tokens", t.tokens);
    t.key = hv_build_dim(&t.b, "keys", t.tokens);
    t.hidden = hv_build_dim(&t.b, "hidden", m->hidden);
    uint32_t table = 0, x = embedding(&t, &table);
    if (m->causal) {
        t.mask = hv_build_input(&t.b, "mask", q->dtype, HV_DIMS(t.token, t.key));
    }
    for (size_t i = 0; i < m->n_blocks; i++) {
        x = block(&t, i, x);
    }
    head(&t, x, table, q->loss);
    return hv_build_finish(&t.b, out, err);
}
