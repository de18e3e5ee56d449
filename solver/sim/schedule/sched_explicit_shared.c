/*
 * The schedule `explicit` where ranks share resources: one order per resource, in which the
 * operations of all its ranks stand. A rank on several resources runs each operation on all of them
 * at once, so the orders of all of them name it, and must agree on its order. An operation begins
 * when the one before it in each of these orders has ended.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <stdio.h>

struct lists {
    const struct hv_rank_resources *resources;
    struct hv_schedule_builder text; /* the lists as written: its ranks are resources */
    size_t *at;                      /* [ops of text] position of each in the order of its rank */
    struct hv_err *err;
};

static size_t list_begin(const struct lists *x, int32_t list)
{
    return list > 0 ? x->text.rank_end.items[list - 1] : 0;
}

/* the list that op i of the text stands in, and its position there */
static int32_t list_of(const struct lists *x, size_t i, size_t *token)
{
    int32_t list = 0;
    while (x->text.rank_end.items[list] <= i) {
        list++;
    }
    *token = 0;
    for (size_t k = list_begin(x, list); k < i; k++) { /* a pair is one token */
        const struct hv_op *op = &x->text.ops.items[k];
        *token += op->group < 0 || op[1].group != op->group;
    }
    return list;
}

static enum hv_status fault(const struct lists *x, size_t i, const char *why)
{
    char name[HV_OP_TOKEN_CAP];
    size_t token;
    int32_t list = list_of(x, i, &token);
    return hv_err_set(x->err, HV_EINPUT, "order[%d][%zu], %s: %s", list, token,
                      hv_op_format(&x->text.ops.items[i], name, sizeof name), why);
}

static bool runs_on(const struct lists *x, int32_t rank, int32_t resource)
{
    const struct hv_rank_resources *r = x->resources;
    for (int32_t k = r->at[rank]; k < r->at[rank + 1]; k++) {
        if (r->resource[k] == resource) {
            return true;
        }
    }
    return false;
}

/* refuses what stands in the order of a resource that its rank does not run on, and pairs that
 * belong to two ranks */
static enum hv_status check_list(const struct lists *x, int32_t list)
{
    for (size_t i = list_begin(x, list); i < x->text.rank_end.items[list]; i++) {
        const struct hv_op *op = &x->text.ops.items[i];
        if (!runs_on(x, op->stage, list)) {
            return fault(x, i,
                         "its stage does not run there; one list per resource, in the order in "
                         "which stages name them first");
        }
        if (op->group >= 0 && i > list_begin(x, list) && op[-1].group == op->group &&
            op[-1].stage != op->stage) {
            return fault(x, i,
                         "operations of two stages that share resources run one after the "
                         "other; write them without braces");
        }
    }
    return HV_OK;
}

static bool equal(const struct hv_op *a, const struct hv_op *b)
{
    return a->kind == b->kind && a->mb == b->mb && a->slice == b->slice &&
           (a->group >= 0) == (b->group >= 0);
}

/* the next op of a rank in a list from *i on; false: there is no other */
static bool next_of(const struct lists *x, int32_t rank, int32_t list, size_t *i)
{
    while (*i < x->text.rank_end.items[list] && x->text.ops.items[*i].stage != rank) {
        ++*i;
    }
    return *i < x->text.rank_end.items[list];
}

/* refuses another order of a rank in `list` than in the list of its first resource, and notes where
 * its operations stand, from position `at` of the order on */
static enum hv_status agree(struct lists *x, int32_t rank, int32_t list, size_t at)
{
    int32_t first = x->resources->resource[x->resources->at[rank]];
    size_t i = list_begin(x, first), k = list_begin(x, list);
    for (;; i++, k++) {
        bool has = next_of(x, rank, first, &i), other = next_of(x, rank, list, &k);
        if (!has && !other) {
            return HV_OK;
        }
        if (has != other || !equal(&x->text.ops.items[i], &x->text.ops.items[k])) {
            char why[160];
            (void)snprintf(why, sizeof why,
                           "lists %d and %d do not agree from here on; a stage runs each operation "
                           "on all of its resources at once",
                           first, list);
            return fault(x, other ? k : i, why);
        }
        x->at[k] = at++;
    }
}

/* the order of a rank, from the list of its first resource */
static enum hv_status take_rank(struct lists *x, int32_t rank, struct hv_schedule_builder *b)
{
    const struct hv_rank_resources *r = x->resources;
    size_t begin = b->ops.n;
    int32_t first = r->resource[r->at[rank]];
    for (size_t i = list_begin(x, first); next_of(x, rank, first, &i); i++) {
        struct hv_op op = x->text.ops.items[i];
        bool second = op.group >= 0 && i > list_begin(x, first) &&
                      op.group == (&x->text.ops.items[i])[-1].group;
        b->n_groups += op.group >= 0 && !second;
        op.group = op.group >= 0 ? b->n_groups - 1 : -1;
        hv_vec_push(&b->ops, op);
    }
    hv__rank_done(b);
    enum hv_status st = HV_OK;
    for (int32_t k = r->at[rank]; k < r->at[rank + 1] && st == HV_OK; k++) {
        st = agree(x, rank, r->resource[k], begin);
    }
    return st;
}

/* position in the orders of ranks of the op before op i in its list, where it is of another rank */
static bool before(const struct lists *x, size_t i, size_t begin, size_t *out)
{
    const struct hv_op *op = &x->text.ops.items[i];
    *out = i > begin ? x->at[i - 1] : 0;
    return i > begin && op[-1].stage != op->stage;
}

/* lists what each op waits for by the order of its resources, each once */
static void add_waits(const struct lists *x, struct hv_schedule_builder *b)
{
    size_t n = b->ops.n, other;
    size_t *room_at = hv_xcalloc(n + 2, sizeof *room_at), *waits;
    int32_t n_lists = x->resources->n_resources;
    for (int32_t q = 0; q < n_lists; q++) {
        for (size_t i = list_begin(x, q); i < x->text.rank_end.items[q]; i++) {
            room_at[x->at[i] + 2] += before(x, i, list_begin(x, q), &other);
        }
    }
    for (size_t i = 2; i < n + 2; i++) {
        room_at[i] += room_at[i - 1];
    }
    waits = hv_xcalloc(room_at[n + 1] + 1, sizeof *waits);
    for (int32_t q = 0; q < n_lists; q++) {
        for (size_t i = list_begin(x, q); i < x->text.rank_end.items[q]; i++) {
            if (before(x, i, list_begin(x, q), &other)) {
                waits[room_at[x->at[i] + 1]++] = other;
            }
        }
    }
    hv_vec_push(&b->wait_at, 0);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = room_at[i]; k < room_at[i + 1]; k++) {
            bool known = false;
            for (size_t j = b->wait_at.items[i]; j < b->waits.n; j++) {
                known = known || b->waits.items[j] == waits[k];
            }
            if (!known) {
                hv_vec_push(&b->waits, waits[k]);
            }
        }
        hv_vec_push(&b->wait_at, b->waits.n);
    }
    free(room_at);
    free(waits);
}

enum hv_status hv__explicit_shared(const struct hv_schedule_input *in,
                                   struct hv_schedule_builder *b, struct hv_err *err)
{
    struct lists x = {
        .resources = in->resources, .text = {.n_stages = b->n_stages, .n_slices = 1}, .err = err};
    enum hv_status st = HV_OK;
    if (in->chunks > 1) {
        return hv_err_set(err, HV_ENO,
                          "schedule explicit on shared resources needs one chunk per rank, found "
                          "%d; write every chunk as a stage of its own on the same resources",
                          in->chunks);
    }
    for (int32_t q = 0; q < in->resources->n_resources && st == HV_OK; q++) {
        st = hv__read_order(in, &x.text, q, err);
        st = st == HV_OK ? check_list(&x, q) : st;
    }
    x.at = hv_xcalloc(x.text.ops.n + 1, sizeof *x.at);
    b->n_slices = x.text.n_slices;
    for (int32_t r = 0; r < in->ranks && st == HV_OK; r++) {
        st = take_rank(&x, r, b);
    }
    if (st == HV_OK) {
        add_waits(&x, b);
    }
    free(x.at);
    hv_vec_free(&x.text.ops);
    hv_vec_free(&x.text.rank_end);
    return st;
}
