/** `hetviz sweep merge`: the result files of a folder as one SQLite file. */
#include "ui/cli/cmd_sweep.h"
#include "ui/cli/sweep/kept.h"

#include "solver/base/units.h"
#include "solver/sweep/store.h"
#include "ui/cli/print.h"

static enum hv_status report(const struct hv_args *args, const char *path,
                             const struct hv_store_counts *n, struct hv_err *err)
{
    if (hv_args_has(args, "json")) {
        json_t *tree = json_object();
        json_object_set_new(tree, "store", json_string(path));
        json_object_set_new(tree, "cells", json_integer((json_int_t)n->cells));
        json_object_set_new(tree, "done", json_integer((json_int_t)n->done));
        json_object_set_new(tree, "failed", json_integer((json_int_t)n->failed));
        json_object_set_new(tree, "missing", json_integer((json_int_t)n->missing));
        return hv_cli_print_json(tree, err);
    }
    struct hv_str out = {0};
    hv_text_addf(&out, "%s: %zu cells, %zu done, %zu failed, %zu missing\n", path, n->cells,
                 n->done, n->failed, n->missing);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_cli_sweep_merge(struct hv_args *args, struct hv_err *err)
{
    const char *folder = hv_cli_sweep_file(args);
    struct hv_sweep s = {0};
    struct hv_store_counts counts = {0};
    struct hv_str spec = {0}, store = {0};

    if (folder == NULL) {
        return hv_err_set(err, HV_EUSAGE, "sweep merge: expected the folder of the results");
    }
    hv_cli_sweep_path(folder, HV_SWEEP_SPEC, &spec);
    hv_cli_sweep_path(folder, HV_SWEEP_STORE, &store);
    const char *path = hv_args_text(args, "out", hv_str_cstr(&store));
    enum hv_status st = hv_sweep_read(&s, hv_str_cstr(&spec), err);
    st = st == HV_OK ? hv_store_write(path, &s, folder, &counts, err) : st;
    st = st == HV_OK ? report(args, path, &counts, err) : st;
    if (st == HV_OK && counts.missing > 0) {
        st = hv_err_set(err, HV_ENO,
                        "sweep merge: %zu cells have no result yet: run the shards again",
                        counts.missing);
    }
    hv_sweep_free(&s);
    hv_str_free(&store);
    hv_str_free(&spec);
    return st;
}
