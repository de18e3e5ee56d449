/* What a cell is: values of its axes, options, the text of its identity. */
#include "solver/sweep/sweep.h"

#include <stdio.h>

const char *hv_sweep_id_text(uint64_t id, char out[HV_SWEEP_ID_CAP])
{
    (void)snprintf(out, HV_SWEEP_ID_CAP, "%016llx", (unsigned long long)id);
    return out;
}

size_t hv_sweep_index(const struct hv_sweep *s, const struct hv_sweep_cell *cell, size_t axis)
{
    uint64_t rest = cell->point;
    for (size_t i = s->n_axes; i-- > axis + 1;) {
        rest /= s->axes[i].n;
    }
    return (size_t)(rest % s->axes[axis].n);
}

const struct hv_sweep_value *hv_sweep_value(const struct hv_sweep *s,
                                            const struct hv_sweep_cell *cell, size_t axis)
{
    return &s->axes[axis].values[hv_sweep_index(s, cell, axis)];
}

json_t *hv_sweep_options(const struct hv_sweep *s, const struct hv_sweep_cell *cell)
{
    json_t *options = json_object();
    for (size_t i = 0; i < s->n_axes; i++) {
        if (s->axes[i].option != NULL) {
            json_object_set(options, s->axes[i].option, hv_sweep_value(s, cell, i)->value);
        }
    }
    return options;
}
