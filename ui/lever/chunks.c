/*
 * Chunks: pipelines of a trial are split again so that every rank holds v pieces of the model, in
 * the assignment of the schedule. A rank keeps its number of blocks. Not for other levers of the
 * plan.
 */
#include "ui/lever/lever_int.h"

#include "solver/sim/schedule/schedule.h"
#include <stdlib.h>

/* The assignment of chunks to ranks needs the schedule to be built once; pipelines with more ranks
 * than this use round-robin. */
#define MOST_ASKED 64

static json_t *stage_of(struct hv__trial *t, size_t i, size_t k)
{
    const json_t *replica = json_array_get(json_object_get(t->plan, "replicas"), i);
    return json_array_get(json_object_get(replica, "stages"), k);
}

int hv__plan_chunks(const struct hv_plan *p, int *most)
{
    int chunks = 0;
    *most = HV_SCHEDULE_CHUNKS_MAX;
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            const struct hv_stage *s = &r->stages[k];
            int blocks2 = 0;
            if (s->n_ranges == 0 || s->n_ops > 0 || s->module != NULL || s->n_recompute_per > 0 ||
                (chunks != 0 && chunks != (int)s->n_ranges)) {
                return 0;
            }
            for (size_t c = 0; c < s->n_ranges; c++) {
                if (s->ranges[c].from2 % 2 != 0 || s->ranges[c].to2 % 2 != 0) {
                    return 0;
                }
                blocks2 += s->ranges[c].to2 - s->ranges[c].from2;
            }
            chunks = (int)s->n_ranges;
            *most = blocks2 / 2 < *most ? blocks2 / 2 : *most;
        }
    }
    return chunks;
}

/* Rank of each of p·v stages by the schedule itself; round-robin where it cannot be built, and for
 * more than MOST_ASKED ranks. */
static int32_t *deal(const struct hv_schedule_row *row, int p, int v)
{
    struct hv_arena a = {0};
    struct hv_schedule_input in;
    struct hv_schedule made = {0};
    int32_t *rank = hv_xcalloc((size_t)p * (size_t)v, sizeof *rank);
    hv_schedule_input_init(&in, row, p, 2 * p);
    in.chunks = v;
    bool asked = p <= MOST_ASKED && v > 1 && hv_schedule_make(&a, &in, &made, NULL) == HV_OK &&
                 made.n_stages == p * v;
    for (int g = 0; g < p * v; g++) {
        rank[g] = asked ? made.stage_to_rank[g] : g % p;
    }
    hv_arena_free(&a);
    return rank;
}

/* Blocks of chunk number c of a stage. */
static int chunk_blocks(const struct hv_stage *s, int v, int c)
{
    int n = 0;
    for (size_t i = 0; i < s->n_ranges; i++) {
        n += (s->ranges[i].to2 - s->ranges[i].from2) / 2;
    }
    return n / v + (c < n % v);
}

static void cut_replica(struct hv__trial *t, size_t i, const struct hv_schedule_row *row, int v)
{
    const struct hv_replica *r = &t->base->replicas[i];
    int p = (int)r->n_stages, at = 0;
    int32_t *rank = deal(row, p, v);
    json_t **layers = hv_xcalloc(r->n_stages, sizeof *layers);
    for (int k = 0; k < p; k++) {
        layers[k] = json_array();
    }
    for (int g = 0; g < p * v; g++) {
        json_t *mine = layers[rank[g]];
        int n = chunk_blocks(&r->stages[rank[g]], v, (int)json_array_size(mine));
        json_array_append_new(mine, json_pack("[i,i]", at, at + n));
        at += n;
    }
    for (int k = 0; k < p; k++) {
        json_t *one = v == 1 ? json_incref(json_array_get(layers[k], 0)) : json_incref(layers[k]);
        json_object_set_new(stage_of(t, i, (size_t)k), "layers", one);
        json_decref(layers[k]);
    }
    free(layers);
    free(rank);
}

static enum hv_status cut(struct hv__trial *t, const struct hv_schedule_row *row, int v)
{
    int most = 0, now = hv__plan_chunks(t->base, &most);
    if (v == 1 && now == 1) {
        return HV_OK;
    }
    if (now == 0) {
        return hv_err_set(t->err, HV_ENO,
                          "%s needs %d virtual chunks per rank, but the stages of this plan cannot "
                          "be split (half blocks, operators or recompute per stage)",
                          row->name, v);
    }
    if (v > most) {
        return hv_err_set(t->err, HV_ENO,
                          "%s needs %d virtual chunks per rank, but a rank holds only %d blocks",
                          row->name, v, most);
    }
    for (size_t i = 0; i < t->base->n_replicas; i++) {
        cut_replica(t, i, row, v);
    }
    return HV_OK;
}

static void set_name(struct hv__trial *t, const char *name)
{
    json_object_set_new(t->plan, "schedule", json_pack("{s:s}", "name", name));
}

enum hv_status hv__trial_set_schedule(struct hv__trial *t, const char *name)
{
    const struct hv_schedule_row *row = NULL;
    int most = 0, v = hv__plan_chunks(t->base, &most);
    enum hv_status st = hv_schedule_find(name, &row, t->err);
    if (st != HV_OK) {
        return st;
    }
    set_name(t, name);
    if ((row->flags & (HV_SCHEDULE_CHUNKS | HV_SCHEDULE_NEEDS_CHUNKS)) == 0) {
        v = v == 0 ? 0 : 1;
    } else if (row->chunks > 1 || ((row->flags & HV_SCHEDULE_NEEDS_CHUNKS) != 0 && v < 2)) {
        v = row->chunks > 1 ? row->chunks : 2;
    }
    return v == 0 ? HV_OK : cut(t, row, v);
}

enum hv_status hv__trial_set_chunks(struct hv__trial *t, int v)
{
    const struct hv_schedule_row *row = NULL;
    const char *name =
        json_string_value(json_object_get(json_object_get(t->plan, "schedule"), "name"));
    enum hv_status st =
        hv_schedule_find(name != NULL ? name : t->base->schedule.name, &row, t->err);
    if (st != HV_OK) {
        return st;
    }
    bool takes = (row->flags & (HV_SCHEDULE_CHUNKS | HV_SCHEDULE_NEEDS_CHUNKS)) != 0;
    bool needs = (row->flags & HV_SCHEDULE_NEEDS_CHUNKS) != 0;
    if ((v > 1 && !takes) || (v == 1 && needs)) { /* the nearest schedule that can */
        name = v > 1 ? "interleaved" : "1f1b";
        set_name(t, name);
        st = hv_schedule_find(name, &row, t->err);
    }
    return st == HV_OK ? cut(t, row, v) : st;
}
