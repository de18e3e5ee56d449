/*
 * Device kinds: names of precisions and classes, look-ups in a kind. The catalogue is read in
 * solver/io/own.
 */
#include "solver/inventory/device.h"

#include "solver/base/units.h"
#include <string.h>

#define X(c, name, bytes) name,
static const char *const precision_names[HV_PRECISION_N] = {HV_PRECISION_MAP(X)};
#undef X
#define X(c, name, bytes) bytes,
static const double precision_bytes[HV_PRECISION_N] = {HV_PRECISION_MAP(X)};
#undef X
static const char *const class_names[HV_CLASS_N] = {"gpu", "tpu", "npu", "cpu"};

const char *hv_precision_name(enum hv_precision p)
{
    return precision_names[p];
}

double hv_precision_bytes(enum hv_precision p)
{
    return precision_bytes[p];
}

const char *hv_device_class_name(enum hv_device_class c)
{
    return class_names[c];
}

const struct hv_device_kind *hv_device_find(const struct hv_device_catalogue *c, const char *name)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        if (strcmp(c->kinds[i].name, name) == 0) {
            return &c->kinds[i];
        }
    }
    return NULL;
}

double hv_device_peak_flops_per_s(const struct hv_device_kind *k, enum hv_precision p)
{
    return k->flops_per_s[p];
}

bool hv_device_has(const struct hv_device_kind *k, enum hv_precision p)
{
    return hv_known(k->flops_per_s[p]);
}

/* Providers without a name are one. */
static bool same_provider(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

double hv_device_price_of(const struct hv_device_kind *k, const char *provider, bool spot)
{
    double best = HV_UNKNOWN;
    for (size_t i = 0; i < k->n_prices; i++) {
        double x = spot ? k->prices[i].spot_usd_per_h : k->prices[i].usd_per_h;
        if (same_provider(k->prices[i].provider, provider) && hv_known(x) && !(best <= x)) {
            best = x;
        }
    }
    return best;
}

const struct hv_calibration *hv_device_calibration(const struct hv_device_kind *k)
{
    if (k->plain_rates) {
        return hv_calibration_plain();
    }
    return k->calibration ? k->calibration : hv_calibration_generic();
}

const struct hv_profile *hv_device_profile(const struct hv_device_kind *k)
{
    return k->plain_rates ? NULL : k->profile;
}

void hv_device_catalogue_free(struct hv_device_catalogue *c)
{
    hv_arena_free(&c->arena);
    c->kinds = NULL;
    c->n_kinds = 0;
    c->classes = NULL;
    c->n_classes = 0;
}
