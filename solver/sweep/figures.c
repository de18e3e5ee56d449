/* The table of figures. */
#include "solver/sweep/figures.h"

#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include <string.h>
#include <strings.h>

static const struct hv_sweep_figure figures[] = {
    {"iteration_s", "seconds of an iteration", false},
    {"tokens_per_s", "tokens per second", true},
    {"mfu", "share of the arithmetic peak that is used", true},
    {"bubble", "share of the time in which devices wait in the pipeline", false},
    {"bound_s", "proven lower bound of the iteration time", false},
    {"gap", "distance of the plan from the bound", false},
    {"usd_per_hour", "price of the devices per hour", false},
    {"usd_per_Mtoken", "price of a million tokens", false},
    {"energy_J", "energy of an iteration", false},
    {"devices_used", "number of devices that the plan uses", false},
    {"peak_memory_GiB", "memory of the fullest device", false},
};

/** Columns that are no figures. */
static const char *const columns[] = {"id", "strategy", "state", "reason", "exact", "fits", "plan"};

const struct hv_sweep_figure *hv_sweep_figures(size_t *n)
{
    *n = HV_COUNT(figures);
    return figures;
}

const char *const *hv_sweep_columns(size_t *n)
{
    *n = HV_COUNT(columns);
    return columns;
}

const struct hv_sweep_figure *hv_sweep_figure(const char *key)
{
    for (size_t i = 0; i < HV_COUNT(figures); i++) {
        if (strcmp(figures[i].key, key) == 0) {
            return &figures[i];
        }
    }
    return NULL;
}

bool hv_sweep_is_column(const char *name)
{
    for (size_t i = 0; i < HV_COUNT(columns); i++) {
        if (strcasecmp(columns[i], name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < HV_COUNT(figures); i++) {
        if (strcasecmp(figures[i].key, name) == 0) {
            return true;
        }
    }
    return false;
}

/** A number, or the largest of a list of numbers; NaN where there is none. */
static double largest(const json_t *v)
{
    double most = HV_UNKNOWN;
    if (json_is_number(v)) {
        return json_number_value(v);
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        double x = largest(json_array_get(v, i));
        most = hv_known(x) && !(x <= most) ? x : most;
    }
    return most;
}

json_t *hv_sweep_figures_of(const json_t *simulated)
{
    json_t *out = json_object();
    for (size_t i = 0; i < HV_COUNT(figures); i++) {
        double x = largest(json_object_get(simulated, figures[i].key));
        if (hv_known(x)) {
            json_object_set_new(out, figures[i].key, hv_json_num(x));
        }
    }
    return out;
}
