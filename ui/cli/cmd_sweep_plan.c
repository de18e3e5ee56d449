/** `hetviz sweep plan`: the cells of a specification, checked, and kept for the shards. */
#include "ui/cli/cmd_sweep.h"
#include "ui/cli/sweep/kept.h"

#include "solver/base/units.h"
#include "ui/cli/print.h"

static json_t *cell_tree(const struct hv_sweep *s, size_t i, size_t n_shards)
{
    char id[HV_SWEEP_ID_CAP];
    const struct hv_sweep_cell *cell = &s->cells[i];
    json_t *tree = json_object(), *axes = json_object();

    for (size_t k = 0; k < s->n_axes; k++) {
        const struct hv_sweep_value *v = hv_sweep_value(s, cell, k);
        json_object_set_new(axes, s->axes[k].name,
                            json_is_number(v->value) ? json_incref(v->value)
                                                     : json_string(v->label));
    }
    json_object_set_new(tree, "id", json_string(hv_sweep_id_text(cell->id, id)));
    json_object_set_new(tree, "shard", json_integer((json_int_t)(i % n_shards + 1)));
    json_object_set_new(tree, "strategy", json_string(s->strategies[cell->strategy]));
    json_object_set_new(tree, "axes", axes);
    return tree;
}

static enum hv_status print_cells(const struct hv_sweep *s, size_t n_shards, struct hv_err *err)
{
    char id[HV_SWEEP_ID_CAP];
    json_t *tree = json_object(), *cells = json_array();

    for (size_t i = 0; i < s->n_cells; i++) {
        json_array_append_new(cells, cell_tree(s, i, n_shards));
    }
    json_object_set_new(tree, "format", json_string("hetviz.sweep-cells/1"));
    json_object_set_new(tree, "id", json_string(hv_sweep_id_text(s->id, id)));
    json_object_set_new(tree, "shards", json_integer((json_int_t)n_shards));
    json_object_set_new(tree, "cells", cells);
    return hv_cli_print_json(tree, err);
}

static enum hv_status print_summary(const struct hv_sweep *s, const char *folder, size_t n_shards,
                                    struct hv_err *err)
{
    struct hv_str out = {0};
    char count[HV_FMT_CAP];

    for (size_t i = 0; i < s->n_axes; i++) {
        const struct hv_sweep_axis *a = &s->axes[i];
        hv_text_addf(&out, "%-16s %s: %zu value%s, %s to %s\n", a->name, a->at, a->n,
                     a->n == 1 ? "" : "s", a->values[0].label, a->values[a->n - 1].label);
    }
    hv_text_addf(&out, "%zu strateg%s, %zu condition%s: %s cells in %zu shard%s\n", s->n_strategies,
                 s->n_strategies == 1 ? "y" : "ies", s->n_where, s->n_where == 1 ? "" : "s",
                 hv_fmt_count(count, sizeof count, (double)s->n_cells), n_shards,
                 n_shards == 1 ? "" : "s");
    if (folder != NULL) {
        hv_text_addf(&out,
                     "run them: hetviz sweep run --out %s --shard K/%zu, for K from 1 to %zu\n",
                     folder, n_shards, n_shards);
    }
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_cli_sweep_plan(struct hv_args *args, struct hv_err *err)
{
    struct hv_sweep s = {0};
    const char *path = hv_cli_sweep_file(args), *folder = hv_args_text(args, "out", NULL);
    size_t n_shards = (size_t)hv_args_number(args, "shards", 1);

    if (path == NULL) {
        return hv_err_set(err, HV_EUSAGE, "sweep plan: expected the file of a specification");
    }
    enum hv_status st = hv_sweep_read(&s, path, err);
    st = st == HV_OK ? hv_cli_sweep_check(&s, err) : st;
    if (st == HV_OK && folder != NULL) {
        st = hv_cli_sweep_keep(&s, folder, err);
    }
    if (st == HV_OK) {
        st = hv_args_has(args, "json") ? print_cells(&s, n_shards, err)
                                       : print_summary(&s, folder, n_shards, err);
    }
    hv_sweep_free(&s);
    return st;
}
