/* What keeps a target from launching a plan: the checks that come before an export. */
#include "ui/cli/compare/launch.h"

#include "solver/base/json/json.h"
#include "solver/io/own/docs.h"
#include "solver/plan/check.h"
#include "solver/plan/says.h"

#include <string.h>

/** Appends the first thing that the target cannot say; false: it can say the plan. */
static bool add_unsaid(const struct hv_plan *plan, enum hv_target_id target, struct hv_str *why)
{
    struct hv_arena arena = {0};
    struct hv_unsaid *found = NULL;
    size_t n = hv_plan_unsaid(plan, target, &arena, &found);
    if (n > 0) {
        hv_unsaid_text(plan, &found[0], why);
    }
    hv_arena_free(&arena);
    return n > 0;
}

static bool is_limit(const json_t *violation)
{
    const char *code = json_string_value(json_object_get(violation, "code"));
    for (int c = 0; code != NULL && c < HV_VIOLATION_N; c++) {
        if (strcmp(hv_violation_name((enum hv_violation_code)c), code) == 0) {
            return hv_violation_is_limit((enum hv_violation_code)c);
        }
    }
    return false;
}

/** Appends the first rule that the plan breaks; false: it breaks none. */
static bool add_broken(const json_t *plan, struct hv_str *why)
{
    const json_t *violations = json_object_get(plan, "violations");
    for (size_t i = 0; i < json_array_size(violations); i++) {
        const json_t *v = json_array_get(violations, i);
        const char *text = json_string_value(json_object_get(v, "text"));
        if (!is_limit(v)) {
            hv_str_addf(why, "it breaks a rule: %s", text != NULL ? text : "no text");
            return true;
        }
    }
    return false;
}

bool hv_cli_compare_launch(struct hv_cluster *cluster, const json_t *plan, enum hv_target_id target,
                           struct hv_str *why)
{
    struct hv_plan_doc doc = {0};
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_str text = {0};

    hv_json_wrap(&json, json_deep_copy(plan), "plan");
    if (hv_plan_doc_build(&doc, json, cluster, &err) != HV_OK) {
        hv_str_adds(&text, err.text);
    } else if (!add_unsaid(doc.plan, target, &text) && target != HV_TARGET_REPORT) {
        (void)add_broken(plan, &text);
    }
    bool can = text.n == 0;
    hv_text_clean(why, hv_str_cstr(&text), text.n);
    hv_str_free(&text);
    hv_plan_doc_free(&doc);
    return can;
}
