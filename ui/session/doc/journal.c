/*
 * The steps of undo. A step holds trees, not differences: trees share equal subtrees, and restoring
 * one runs the same checks as reading a file. Not for applying steps (ui/session/undo.c).
 */
#include "ui/session/doc/journal.h"

#include "solver/base/vec.h"
#include <stdlib.h>
#include <string.h>

struct hv__journal {
    HV_VEC(struct hv__step) steps;
    size_t at;   /* steps before it can be undone, from it on redone */
    size_t mark; /* number of steps when the recording began */
};

static void step_free(struct hv__step *t)
{
    json_decref(t->before);
    json_decref(t->after);
    free(t->name_before);
    free(t->name_after);
    free(t->label);
}

struct hv__journal *hv__journal_new(void)
{
    return hv_xcalloc(1, sizeof(struct hv__journal));
}

void hv__journal_free(struct hv__journal *j)
{
    for (size_t i = 0; i < j->steps.n; i++) {
        step_free(&j->steps.items[i]);
    }
    hv_vec_free(&j->steps);
    free(j);
}

bool hv__journal_push(struct hv__journal *j, struct hv__step step)
{
    bool dropped = j->at < j->steps.n || j->at == HV_SESSION_UNDO_LIMIT;
    while (j->steps.n > j->at) {
        step_free(&j->steps.items[--j->steps.n]);
    }
    if (j->steps.n == HV_SESSION_UNDO_LIMIT) {
        step_free(&j->steps.items[0]);
        memmove(&j->steps.items[0], &j->steps.items[1],
                (j->steps.n - 1) * sizeof j->steps.items[0]);
        j->steps.n--;
        j->mark -= j->mark > 0;
    }
    if (j->mark > j->steps.n) {
        j->mark = j->steps.n;
    }
    hv_vec_push(&j->steps, step);
    j->at = j->steps.n;
    return dropped;
}

const struct hv__step *hv__journal_back(struct hv__journal *j)
{
    return j->at > 0 ? &j->steps.items[--j->at] : NULL;
}

const struct hv__step *hv__journal_forward(struct hv__journal *j)
{
    return j->at < j->steps.n ? &j->steps.items[j->at++] : NULL;
}

const struct hv__step *hv__journal_last(const struct hv__journal *j)
{
    return j->at > 0 ? &j->steps.items[j->at - 1] : NULL;
}

const struct hv__step *hv__journal_next(const struct hv__journal *j)
{
    return j->at < j->steps.n ? &j->steps.items[j->at] : NULL;
}

void hv__journal_join_last(struct hv__journal *j)
{
    if (j->at > 0) {
        j->steps.items[j->at - 1].joined = true;
    }
}

size_t hv__journal_n_undo(const struct hv__journal *j)
{
    return j->at;
}

bool hv__journal_holds_row(const struct hv__journal *j, uint32_t row)
{
    for (size_t i = 0; i < j->steps.n; i++) {
        const struct hv__step *t = &j->steps.items[i];
        if ((t->kind == HV__STEP_DELETE || t->kind == HV__STEP_ADD) && t->row == row) {
            return true;
        }
    }
    return false;
}

void hv__journal_mark(struct hv__journal *j)
{
    j->mark = j->at;
}

bool hv__journal_is_before_mark(const struct hv__journal *j, const struct hv__step *step)
{
    return step < j->steps.items + j->mark;
}
