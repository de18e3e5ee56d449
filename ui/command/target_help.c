/** Texts made from the table of targets: list, one in full, words for completion, manual page. */
#include "solver/base/units.h"
#include "solver/workload/target.h"
#include "ui/command/help.h"
#include "ui/command/limits_help.h"
#include "ui/command/paragraph.h"

void hv_target_list(struct hv_str *out)
{
    for (int i = HV_TARGET_ANY + 1; i < HV_TARGET_N; i++) {
        hv_str_addf(out, "%-15s %s\n", hv_target_name((enum hv_target_id)i),
                    hv_target_row((enum hv_target_id)i)->title);
    }
    hv_str_adds(out,
                "\n`hetviz export PLAN --to TARGET` writes a plan for one; `hetviz help targets "
                "NAME` says\nwhat it can say of a plan.\n");
}

/** What the row writes, what it cannot say, and its lists, in one sentence. */
static void add_facts(const struct hv_target_row *r, struct hv_str *out)
{
    hv_str_addf(out, "writes %s", r->writes);
    hv_limits_add(&r->can, "say", out);
}

bool hv_target_help(struct hv_str *out, const char *name)
{
    enum hv_target_id found;
    if (!hv_target_find(name, &found) || found == HV_TARGET_ANY) {
        return false;
    }
    const struct hv_target_row *r = hv_target_row(found);
    struct hv_str text = {0};
    hv_str_addf(out, "%s: %s\n\n", name, r->title);
    add_facts(r, &text);
    hv_str_adds(&text, ".");
    hv_paragraph_add(out, hv_str_cstr(&text));
    hv_str_clear(&text);
    hv_str_addf(&text, "Source: %s.", r->source);
    hv_str_addc(out, '\n');
    hv_paragraph_add(out, hv_str_cstr(&text));
    hv_str_free(&text);
    return true;
}

void hv_target_words(struct hv_str *out, const char *key)
{
    for (int i = HV_TARGET_ANY + 1; i < HV_TARGET_N; i++) {
        hv_str_addf(out, "%s%s\n", key, hv_target_name((enum hv_target_id)i));
    }
}

void hv_target_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text))
{
    for (int i = HV_TARGET_ANY + 1; i < HV_TARGET_N; i++) {
        const struct hv_target_row *r = hv_target_row((enum hv_target_id)i);
        struct hv_str text = {0};
        hv_str_adds(out, ".TP\n.B ");
        add_text(out, hv_target_name((enum hv_target_id)i));
        hv_str_addc(out, '\n');
        hv_str_addf(&text, "%s: ", r->title);
        add_facts(r, &text);
        hv_str_addf(&text, ". Source: %s.", r->source);
        add_text(out, hv_str_cstr(&text));
        hv_str_addc(out, '\n');
        hv_str_free(&text);
    }
}
