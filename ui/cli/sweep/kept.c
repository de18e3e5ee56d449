/* The specification of a folder: where it lies, that it can be run, and keeping it. */
#include "ui/cli/sweep/kept.h"

#include <stdlib.h>

#include "scripting/worker/run.h"
#include "solver/base/file.h"

const char *hv_cli_sweep_file(const struct hv_args *args)
{
    return args->n_positional > 1 ? args->positional[1] : NULL;
}

void hv_cli_sweep_path(const char *folder, const char *name, struct hv_str *out)
{
    hv_str_addf(out, "%s/%s", folder, name);
}

enum hv_status hv_cli_sweep_keep(const struct hv_sweep *s, const char *folder, struct hv_err *err)
{
    struct hv_str path = {0}, text = {0};
    json_t *whole = hv_sweep_whole(s);

    hv_cli_sweep_path(folder, HV_SWEEP_SPEC, &path);
    hv_json_write(&text, whole, true);
    enum hv_status st = hv_file_mkdirs(folder, err);
    st = st == HV_OK ? hv_file_write(hv_str_cstr(&path), text.p, text.n, err) : st;
    json_decref(whole);
    hv_str_free(&text);
    hv_str_free(&path);
    return st;
}

/** The options of the first cell of every strategy. */
static enum hv_status check_options(const struct hv_sweep *s, struct hv_err *err)
{
    struct hv_plugins plugins = {0};
    enum hv_status st = hv_plugins_read(&plugins, err);
    for (size_t i = 0; i < s->n_strategies && st == HV_OK; i++) {
        size_t k = 0;
        while (k < s->n_cells && s->cells[k].strategy != i) {
            k++;
        }
        if (k < s->n_cells) {
            json_t *options = hv_sweep_options(s, &s->cells[k]);
            st = hv_run_check(&plugins, s->strategies[i], options, err);
            json_decref(options);
        }
    }
    hv_plugins_free(&plugins);
    return st;
}

enum hv_status hv_cli_sweep_check(const struct hv_sweep *s, struct hv_err *err)
{
    struct hv_sweep_inputs inputs = {0};
    enum hv_status st = check_options(s, err);

    st = st == HV_OK ? hv_sweep_inputs_begin(&inputs, err) : st;
    st = st == HV_OK ? hv_sweep_inputs_of(&inputs, s, &s->cells[0], err) : st;
    for (size_t axis = 0; axis < s->n_axes && st == HV_OK; axis++) {
        size_t seen = 0;
        bool *known = hv_xcalloc(s->axes[axis].n, sizeof *known);
        for (size_t i = 0; i < s->n_cells && seen < s->axes[axis].n && st == HV_OK; i++) {
            size_t value = hv_sweep_index(s, &s->cells[i], axis);
            if (!known[value]) {
                known[value] = true;
                seen++;
                st = hv_sweep_inputs_of(&inputs, s, &s->cells[i], err);
            }
        }
        free(known);
    }
    hv_sweep_inputs_free(&inputs);
    return st;
}
