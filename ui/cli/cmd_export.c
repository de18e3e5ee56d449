/** `hetviz export`: the files of a program that runs a plan, or shows it. */
#include <stdio.h>
#include <string.h>

#include "solver/io/export/target/export.h"
#include "ui/cli/cli.h"
#include "ui/cli/judged.h"
#include "ui/cli/print.h"

/** The plan's own name, else that of its file. */
static const char *name_of(const struct hv_judged *j, const struct hv_args *args)
{
    const char *name = json_string_value(json_object_get(j->plan.json.root, "name"));
    const char *slash = strrchr(args->positional[0], '/');
    return name != NULL ? name : slash != NULL ? slash + 1 : args->positional[0];
}

static void print_notes(const struct hv_args *args, const struct hv_export *x)
{
    struct hv_str text = {0};
    for (size_t i = 0; i < x->notes.n && !hv_args_has(args, "quiet"); i++) {
        hv_text_addf(&text, "note: %s\n", x->notes.items[i]);
    }
    (void)fputs(hv_str_cstr(&text), stderr);
    hv_str_free(&text);
}

static enum hv_status put_files(const struct hv_args *args, const struct hv_export *x,
                                struct hv_err *err)
{
    struct hv_str text = {0};
    const char *folder = hv_args_text(args, "out", NULL);
    enum hv_status st = HV_OK;
    if (folder != NULL) {
        st = hv_export_write(x, folder, err);
        for (size_t i = 0; st == HV_OK && i < x->files.n; i++) {
            hv_text_addf(&text, "%s/%s\n", folder, x->files.items[i].name);
        }
    } else {
        hv_export_text(x, &text);
    }
    st = st == HV_OK ? hv_cli_print(&text, err) : st;
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_export(struct hv_args *args, struct hv_err *err)
{
    struct hv_judged j;
    struct hv_export files = {0};
    enum hv_target_id target = HV_TARGET_ANY;
    (void)hv_target_find(hv_args_text(args, "to", ""), &target);
    enum hv_status st = hv_cli_judge(args, true, &j, err);
    if (st == HV_OK) {
        struct hv_export_source source = {.plan = j.plan.plan,
                                          .model = j.inputs.model.model,
                                          .job = &j.inputs.job.job,
                                          .verdict = &j.verdict,
                                          .cluster = j.inputs.cluster.json.root,
                                          .name = name_of(&j, args)};
        st = hv_export_plan(&source, target, &files, err);
    }
    st = st == HV_OK ? put_files(args, &files, err) : st;
    if (st == HV_OK) {
        print_notes(args, &files);
    }
    hv_export_free(&files);
    hv_judged_free(&j);
    return st;
}
