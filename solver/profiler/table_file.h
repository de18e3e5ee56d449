/** A measured device as a profile file (hetviz.profile/1). */
#ifndef HV_SOLVER_PROFILER_TABLE_FILE_H
#define HV_SOLVER_PROFILER_TABLE_FILE_H

#include "solver/profiler/measure.h"
#include <jansson.h>

/** Device of the profile. */
struct hv_table_file {
    const struct hv_device_kind *kind; /**< kind whose peaks and bandwidth the file quotes */
    struct hv_bench_card card;
    const char *date; /**< "2026-11-21" */
    bool quick;
};

/**
 * The file as a tree, from a filled measurement: the tables, the machine, every sample and layer
 * check, and a note with what is missing and why. Owner: json_decref. NULL when there is no table
 * at all.
 */
json_t *hv_table_tree(const struct hv_measured *m, const struct hv_table_file *about);

#endif
