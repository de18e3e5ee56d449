/* Places of names in a plan file that its model does not have. Which names these are is found in
 * solver/plan/names.c. */
#include "solver/io/own/plan/read.h"
#include "solver/plan/names.h"

/* A place with the places above it, which live as long as it. */
struct path {
    struct hv_jp at[9];
    size_t n;
};

static void down_to(struct path *p, const char *key)
{
    p->at[p->n] = hv_jp_get(&p->at[p->n - 1], key);
    p->n++;
}

static void down_at(struct path *p, size_t i)
{
    p->at[p->n] = hv_jp_at(&p->at[p->n - 1], i);
    p->n++;
}

static enum hv_status fail_at(const struct hv_jp *plan, const struct hv_unknown_name *x,
                              struct hv_err *err)
{
    struct path p = {.at = {*plan}, .n = 1};
    down_to(&p, "replicas");
    down_at(&p, x->replica);
    down_to(&p, "stages");
    down_at(&p, x->stage);
    down_to(&p, x->key);
    if (x->entry != NULL) {
        down_to(&p, x->entry);
    } else {
        down_at(&p, x->at);
    }
    if (x->axis != NULL) {
        down_to(&p, x->axis);
    } else if (x->entry == NULL && json_is_array(p.at[p.n - 1].v)) {
        down_at(&p, x->side);
    }
    return hv_jp_fail(&p.at[p.n - 1], err, "%s", x->text);
}

enum hv_status hv_plan_check_names(const struct hv_jp *plan, const struct hv_plan *p,
                                   const struct hv_model *m, struct hv_err *err)
{
    struct hv_arena scratch = {0};
    struct hv_unknown_name *names = NULL;
    size_t n = hv_plan_unknown_names(p, m, &scratch, &names);
    enum hv_status s = n > 0 ? fail_at(plan, &names[0], err) : HV_OK;
    hv_arena_free(&scratch);
    return s;
}
