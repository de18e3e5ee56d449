/*
 * Reads chains of layers over stages: the instances of kind "chain", and the rows that pipelines of
 * other instances (joint_file.c) also have. The solvers are in solver/optim.
 */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/instance/partition_int.h"
#include <math.h>
#include <string.h>

#define MAX_NUMBERS ((int64_t)16 << 20)

enum hv_status hv__read_chain_sizes(const struct hv_jp *root, struct hv_partition *p,
                                    struct hv_err *err)
{
    int64_t layers = 0, stages = 0, least = 1;
    struct hv_jp at;
    enum hv_status st = hv_jp_need(root, "layers", "a whole number", &at, err);
    if (st == HV_OK) {
        st = hv_jp_int(&at, 1, (int64_t)HV_PARTITION_MAX_LAYERS, &layers, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(root, "stages", "a whole number", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_int(&at, 1, (int64_t)HV_PARTITION_MAX_STAGES, &stages, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(root, "min_layers", 0, (int64_t)HV_PARTITION_MAX_LAYERS, &least, err);
    }
    if (st == HV_OK && layers * stages > MAX_NUMBERS) {
        return hv_err_set(err, HV_ELIMIT, "%lld layers times %lld stages are too many",
                          (long long)layers, (long long)stages);
    }
    p->n_layers = (size_t)layers;
    p->n_stages = (size_t)stages;
    p->min_layers = (size_t)least;
    return st;
}

/* The same for every stage: prefix sums of one row of a matrix. */
static enum hv_status read_prefix(struct hv_arena *a, const struct hv_jp *matrix, size_t s,
                                  size_t n, double **out, struct hv_err *err)
{
    struct hv_jp row = hv_jp_at(matrix, s);
    size_t have = 0;
    enum hv_status st = hv_jp_array(&row, &have, err);
    if (st != HV_OK) {
        return st;
    }
    if (have != n) {
        return hv_jp_fail(&row, err, "expected %zu numbers, one per layer, found %zu", n, have);
    }
    double *sum = *out = hv_arena_new(a, double, n + 1);
    for (size_t l = 0; l < n && st == HV_OK; l++) {
        struct hv_jp x = hv_jp_at(&row, l);
        double v = 0;
        st = hv_jp_number(&x, 0, 1e15, &v, err);
        sum[l + 1] = sum[l] + v;
    }
    return st;
}

/* Prefix sums per stage; rows with equal numbers share memory, which marks equal devices. */
static enum hv_status read_rows(struct hv_arena *a, const struct hv_jp *matrix, size_t n_rows,
                                size_t n, const double **out, struct hv_err *err)
{
    size_t have = 0;
    enum hv_status st = hv_jp_array(matrix, &have, err);
    if (st != HV_OK) {
        return st;
    }
    if (have != n_rows) {
        return hv_jp_fail(matrix, err, "expected %zu rows, one per stage, found %zu", n_rows, have);
    }
    for (size_t s = 0; s < n_rows && st == HV_OK; s++) {
        double *row = NULL;
        if ((st = read_prefix(a, matrix, s, n, &row, err)) != HV_OK) {
            break;
        }
        out[s] = row;
        for (size_t k = 0; k < s; k++) {
            if (memcmp(out[k], row, (n + 1) * sizeof *row) == 0) {
                out[s] = out[k];
                break;
            }
        }
    }
    return st;
}

static enum hv_status read_capacities(const struct hv_jp *list, struct hv_part_stage *stages,
                                      size_t n, struct hv_err *err)
{
    size_t have = 0;
    enum hv_status st = hv_jp_array(list, &have, err);
    if (st == HV_OK && have != n) {
        return hv_jp_fail(list, err, "expected %zu numbers, one per stage, found %zu", n, have);
    }
    for (size_t s = 0; s < n && st == HV_OK; s++) {
        struct hv_jp x = hv_jp_at(list, s);
        st = hv_jp_number(&x, 0, 1e15, &stages[s].capacity, err);
    }
    return st;
}

static enum hv_status read_cuts(struct hv_arena *a, const struct hv_jp *matrix,
                                struct hv_partition *p, struct hv_err *err)
{
    size_t have = 0, n = p->n_layers;
    enum hv_status st = hv_jp_array(matrix, &have, err);
    if (st == HV_OK && have != p->n_stages - 1) {
        return hv_jp_fail(matrix, err, "expected %zu rows, one per cut, found %zu", p->n_stages - 1,
                          have);
    }
    const double **rows = hv_arena_new(a, const double *, p->n_stages);
    for (size_t s = 0; s + 1 < p->n_stages && st == HV_OK; s++) {
        double *row = hv_arena_new(a, double, n + 1);
        struct hv_jp list = hv_jp_at(matrix, s);
        rows[s] = row;
        st = hv_jp_array(&list, &have, err);
        if (st == HV_OK && have != n) {
            return hv_jp_fail(&list, err, "expected %zu numbers, one per layer, found %zu", n,
                              have);
        }
        for (size_t l = 0; l < n && st == HV_OK; l++) {
            struct hv_jp x = hv_jp_at(&list, l);
            st = hv_jp_number(&x, 0, 1e15, &row[l + 1], err);
        }
    }
    p->cuts = rows;
    return st;
}

enum hv_status hv__read_chain_rows(struct hv_arena *arena, const struct hv_jp *root,
                                   struct hv_partition *p, struct hv_err *err)
{
    struct hv_jp at;
    enum hv_status st = hv_jp_need(root, "time_ms", "a list of rows", &at, err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_part_stage *stages = hv_arena_new(arena, struct hv_part_stage, p->n_stages);
    const double **rows = hv_arena_new(arena, const double *, p->n_stages);
    p->stages = stages;
    if ((st = read_rows(arena, &at, p->n_stages, p->n_layers, rows, err)) != HV_OK) {
        return st;
    }
    for (size_t s = 0; s < p->n_stages; s++) {
        stages[s] = (struct hv_part_stage){.time = rows[s], .capacity = HUGE_VAL};
    }
    at = hv_jp_get(root, "memory_GiB");
    if (!hv_jp_none(&at)) {
        if ((st = read_rows(arena, &at, p->n_stages, p->n_layers, rows, err)) != HV_OK) {
            return st;
        }
        for (size_t s = 0; s < p->n_stages; s++) {
            stages[s].memory = rows[s];
        }
        if ((st = hv_jp_need(root, "capacity_GiB", "one number per stage", &at, err)) != HV_OK) {
            return st;
        }
        st = read_capacities(&at, stages, p->n_stages, err);
    }
    at = hv_jp_get(root, "comm_ms");
    return st == HV_OK && !hv_jp_none(&at) ? read_cuts(arena, &at, p, err) : st;
}

static enum hv_status read_objective(const struct hv_jp *root, struct hv_partition *p,
                                     struct hv_err *err)
{
    static const char *const words[] = {"minmax", "sum+(M-1)max"};
    static const char *const orders[] = {"fixed", "free"};
    int objective = 0, order = 0;
    int64_t micro_batches = 1;
    struct hv_jp given = hv_jp_get(root, "micro_batches");
    enum hv_status st = hv_jp_opt_word(root, "objective", words, HV_COUNT(words), &objective, err);
    if (st == HV_OK) {
        st = hv_jp_opt_word(root, "order", orders, HV_COUNT(orders), &order, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(root, "micro_batches", 1, 1000000000, &micro_batches, err);
    }
    if (st == HV_OK && objective == 1 && hv_jp_none(&given)) {
        st = hv_jp_need(root, "micro_batches", "a whole number (the objective needs it)", &given,
                        err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_bool(root, "any_stages", &p->any_stages, err);
    }
    p->free_order = order == 1;
    p->sum_weight = objective == 1 ? 1 : 0;
    p->max_weight = objective == 1 ? (double)(micro_batches - 1) : 1;
    return st;
}

/* The rank of each stage, as a list. */
static enum hv_status read_rank_list(const struct hv_jp *list, size_t n_stages, size_t n_ranks,
                                     size_t *rank, struct hv_err *err)
{
    size_t have = 0;
    enum hv_status st = hv_jp_array(list, &have, err);
    if (st == HV_OK && have != n_stages) {
        return hv_jp_fail(list, err, "expected %zu numbers, one per stage, found %zu", n_stages,
                          have);
    }
    for (size_t s = 0; s < n_stages && st == HV_OK; s++) {
        struct hv_jp x = hv_jp_at(list, s);
        int64_t r = 0;
        st = hv_jp_int(&x, 0, (int64_t)n_ranks - 1, &r, err);
        rank[s] = (size_t)r;
    }
    return st;
}

/* `ranks` with `placement` or `rank`: the stages are chunks, several on a rank. */
static enum hv_status read_ranks(struct hv_instance *in, const struct hv_jp *root,
                                 struct hv_err *err)
{
    static const char *const places[] = {"loop", "fold"};
    const struct hv_partition *p = &in->chain;
    struct hv_jp ranks = hv_jp_get(root, "ranks"), list = hv_jp_get(root, "rank");
    struct hv_jp place_at = hv_jp_get(root, "placement");
    int64_t n = 0;
    int place = 0;
    if (hv_jp_none(&ranks)) {
        if (hv_jp_none(&list) && hv_jp_none(&place_at)) {
            return HV_OK;
        }
        return hv_jp_need(root, "ranks", "a whole number (rank and placement need it)", &ranks,
                          err);
    }
    enum hv_status st = hv_jp_int(&ranks, 1, (int64_t)p->n_stages, &n, err);
    if (st == HV_OK) {
        st = hv_jp_opt_word(root, "placement", places, HV_COUNT(places), &place, err);
    }
    if (st != HV_OK) {
        return st;
    }
    if (p->free_order || p->any_stages || p->sum_weight > 0) {
        return hv_jp_fail(
            &ranks, err,
            "several stages per rank need the minmax objective, a fixed order and all "
            "stages");
    }
    size_t *rank = hv_arena_new(&in->arena, size_t, p->n_stages);
    in->rank = rank;
    in->n_ranks = (size_t)n;
    if (!hv_jp_none(&list)) {
        return read_rank_list(&list, p->n_stages, in->n_ranks, rank, err);
    }
    if (p->n_stages % in->n_ranks != 0) {
        return hv_jp_fail(&ranks, err,
                          "%zu stages are not the same number on each of %zu ranks; give the rank "
                          "of each stage as a list `rank`",
                          p->n_stages, in->n_ranks);
    }
    hv_partition_place((enum hv_part_placement)place, in->n_ranks, p->n_stages / in->n_ranks, rank);
    return HV_OK;
}

enum hv_status hv__instance_read_chain(struct hv_instance *in, const struct hv_jp *root,
                                       struct hv_err *err)
{
    struct hv_partition *p = &in->chain;
    enum hv_status st = hv_keys_check(root, HV_KEYS_INSTANCE_CHAIN, err);
    if (st == HV_OK) {
        st = hv__read_chain_sizes(root, p, err);
    }
    if (st == HV_OK) {
        st = read_objective(root, p, err);
    }
    if (st == HV_OK) {
        st = hv__read_chain_rows(&in->arena, root, p, err);
    }
    if (st == HV_OK) {
        st = read_ranks(in, root, err);
    }
    return st == HV_OK ? hv_partition_check(p, err) : st;
}
