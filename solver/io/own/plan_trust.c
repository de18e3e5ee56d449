/* Plans as texts that can be compared, and the word for how far one is approximated. */
#include "solver/io/own/plan_trust.h"

#include "solver/base/json/json.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/plan/write.h"

#include <string.h>

/** A group of all holders is the same as none. */
static void drop_whole_groups(struct hv_plan *p)
{
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        for (size_t k = 0; k < r->n_stages; k++) {
            struct hv_stage *s = &r->stages[k];
            if (s->zero.shard_group == s->dp * s->cp.degree * r->count) {
                s->zero.shard_group = 0;
                bool two_hop = s->zero.reduce == HV_REDUCE_TWO_HOP; /* nothing to sum over groups */
                s->zero.reduce = two_hop ? HV_REDUCE_EACH : s->zero.reduce;
            }
        }
    }
}

char *hv_plan_same_text(struct hv_cluster *cluster, const json_t *plan)
{
    struct hv_plan_doc doc = {0};
    struct hv_json json = {0};
    char *text = NULL;

    if (!json_is_object(plan) || json_object_get(plan, "jobs") != NULL) {
        return NULL;
    }
    hv_json_wrap(&json, json_deep_copy(plan), "plan");
    if (hv_plan_doc_build(&doc, json, cluster, NULL) != HV_OK) {
        return NULL;
    }
    drop_whole_groups(doc.plan);
    json_t *tree = hv_plan_to_json(doc.plan, NULL, NULL, NULL);
    static const char *const says[] = {"strategy", "claimed", "name", "recovery"};
    for (size_t i = 0; i < HV_COUNT(says); i++) {
        json_object_del(tree, says[i]);
    }
    text = json_dumps(tree, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(tree);
    hv_plan_doc_free(&doc);
    return text;
}

void hv_plan_trust(size_t n_approximated, struct hv_str *out)
{
    if (n_approximated == 0) {
        hv_str_adds(out, "whole");
    } else {
        hv_str_addf(out, "~%zu", n_approximated);
    }
}
