/* The table of calibrated parameters and the generic class. Files are read in solver/io/own. */
#include "solver/inventory/calibration.h"

#include <string.h>

const struct hv_calibrated_row hv_calibrated_rows[HV_CALIBRATED_N] = {
#define X(c, name, plain, typical, spread, least, most, doc)                                       \
    {name, doc, plain, typical, spread, least, most},
    HV_CALIBRATION_MAP(X)
#undef X
};

const char *hv_error_name(enum hv_error_of e)
{
    static const char *const names[HV_ERROR_N] = {
#define X(c, name, plain, doc) name,
        HV_ERROR_MAP(X)
#undef X
    };
    return names[e];
}

const char *hv_error_doc(enum hv_error_of e)
{
    static const char *const docs[HV_ERROR_N] = {
#define X(c, name, plain, doc) doc,
        HV_ERROR_MAP(X)
#undef X
    };
    return docs[e];
}

/* Half bands of devices without a class. */
bool hv_calibrated_by_experts(enum hv_calibrated k)
{
    return k == HV_CAL_EXPERT_US || k == HV_CAL_EXPERT_TRAFFIC || k == HV_CAL_GROUPED_16 ||
           k == HV_CAL_GROUPED_8;
}

static const struct hv_calibration generic_class = {
    "generic",
    "",
    "estimated: no measurement of this class of devices",
    NULL,
    {
#define X(c, name, plain, typical, spread, least, most, doc) plain,
        HV_CALIBRATION_MAP(X)
#undef X
    },
    {
#define X(c, name, plain, doc) plain,
        HV_ERROR_MAP(X)
#undef X
    }};

static const struct hv_calibration typical_class = {
    "typical",
    "",
    "estimated: typical values, no measurement of this class of devices",
    NULL,
    {
#define X(c, name, plain, typical, spread, least, most, doc) typical,
        HV_CALIBRATION_MAP(X)
#undef X
    },
    {
#define X(c, name, plain, doc) plain,
        HV_ERROR_MAP(X)
#undef X
    }};

/* What is not named is time that is added: none. */
static const struct hv_calibration plain_class = {
    .name = "plain",
    .devices = "",
    .source = "plain rates: the peaks of the device's file",
    .v = {[HV_CAL_GEMM_16] = 1,
          [HV_CAL_GEMM_8] = 1,
          [HV_CAL_GEMM_4] = 1,
          [HV_CAL_STREAM] = 1,
          [HV_CAL_CORE_FORWARD] = 1,
          [HV_CAL_CORE_BACKWARD] = 1,
          [HV_CAL_NODE_LINKS] = 1,
          [HV_CAL_NETWORK] = 1,
          [HV_CAL_EAGER] = 1,
          [HV_CAL_EAGER_CORE] = 1,
          [HV_CAL_EXPERT_TRAFFIC] = 1,
          [HV_CAL_GROUPED_16] = 1,
          [HV_CAL_GROUPED_8] = 1},
};

const struct hv_calibration *hv_calibration_plain(void)
{
    return &plain_class;
}

const struct hv_calibration *hv_calibration_typical(void)
{
    return &typical_class;
}

const struct hv_calibration *hv_calibration_generic(void)
{
    return &generic_class;
}

bool hv_calibration_matches(const struct hv_calibration *c, const char *device)
{
    for (const char *p = c->devices; *p;) {
        size_t n = strcspn(p, ",");
        if (n > 0 && strncmp(device, p, n) == 0 && (device[n] == '-' || device[n] == '\0')) {
            return true;
        }
        p += n;
        p += *p == ',';
    }
    return false;
}
