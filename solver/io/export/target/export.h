/**
 * Exports: a plan as the files of a program that launches or shows it. What each target can say is
 * in the table of targets (solver/workload/target.h); a plan that a target cannot say is refused by
 * stage and property.
 *
 * Names from files (of plans, models, hosts) are data here: they reach JSON and YAML through
 * jansson and libyaml, shell scripts only after a check of their characters, comments as one clean
 * line. Nothing is run.
 */
#ifndef HV_SOLVER_IO_EXPORT_TARGET_EXPORT_H
#define HV_SOLVER_IO_EXPORT_TARGET_EXPORT_H

#include "solver/base/json/json.h"
#include "solver/base/vec.h"
#include "solver/eval/eval.h"
#include "solver/plan/says.h"

/** What is exported. Everything is borrowed. */
struct hv_export_source {
    const struct hv_plan *plan;
    const struct hv_model *model;
    const struct hv_job *job;
    const struct hv_verdict *verdict; /**< with its timeline */
    const json_t *cluster; /**< tree of the cluster document, for the host names in `x-nodes`; NULL:
                              none */
    const char *name;      /**< of the plan */
};

/** One file. */
struct hv_export_file {
    const char *name; /**< without a folder: "megatron.args" */
    struct hv_str text;
    bool is_program; /**< a script that is run */
};

/** The files of an export. Owner: hv_export_free. */
struct hv_export {
    struct hv_arena arena;
    HV_VEC(struct hv_export_file) files;
    HV_VEC(const char *) notes; /**< what the files do not say, or assume */
};

/**
 * Writes the files of target `t` into memory. Errors: HV_ENO naming the first stage and property
 * that the target cannot say, and how many more there are; HV_ENO for a plan that breaks rules, or
 * that has no timeline where the target needs one; HV_EINPUT for host names that are none.
 * O(devices + operations of the timeline).
 */
enum hv_status hv_export_plan(const struct hv_export_source *s, enum hv_target_id t,
                              struct hv_export *out, struct hv_err *err) HV_NODISCARD;
/** Writes them into a folder, which is made where there is none; each file whole or not at all. */
enum hv_status hv_export_write(const struct hv_export *x, const char *folder,
                               struct hv_err *err) HV_NODISCARD;
/** Appends all files one after the other, each under its name where there are several. */
void hv_export_text(const struct hv_export *x, struct hv_str *out);
/** Frees it; fine for {0}. */
void hv_export_free(struct hv_export *x);

#endif
