/*
 * Values set in the documents of a trial, at the same key paths as by an edit. Not for the values
 * that a lever sets (turn.c, turn_plan.c).
 */
#include "ui/lever/lever_int.h"

#include "solver/io/own/doc/key_path.h"

enum hv_status hv__trial_set(struct hv__trial *t, const char *path, json_t *value)
{
    struct hv_arena a = {0};
    struct hv_key_path p;
    json_t *next = NULL;
    enum hv_status st = hv_key_path_parse(&a, path, &p, t->err);
    bool same = st == HV_OK && json_equal(hv_key_path_find(t->tree[p.doc], &p), value);
    if (st == HV_OK && !same) {
        st = hv_key_path_change(t->tree[p.doc], &p, HV_KEY_PATH_SET, value, &next, t->err);
    }
    if (st == HV_OK && !same) {
        json_decref(t->tree[p.doc]);
        t->tree[p.doc] = next;
    }
    json_decref(value);
    hv_arena_free(&a);
    return st;
}
