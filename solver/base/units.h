/**
 * Units: base units inside (s, bytes, FLOP, USD), others only here and in files. `HV_UNKNOWN` (NaN)
 * marks an unknown figure; it propagates through arithmetic and prints as "–".
 */
#ifndef HV_SOLVER_BASE_UNITS_H
#define HV_SOLVER_BASE_UNITS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#define HV_UNKNOWN ((double)NAN)
#define HV_KIB     1024.0
#define HV_MIB     (1024.0 * 1024.0)
#define HV_GIB     (1024.0 * 1024.0 * 1024.0)
#define HV_GBPS    1e9  /**< bytes per second in one GB/s of the files */
#define HV_TFLOPS  1e12 /**< FLOP/s in one TFLOPS of the files */
#define HV_US      1e-6
#define HV_MS      1e-3

/** Buffer size (bytes) that suffices for every formatter below. */
#define HV_FMT_CAP 48

/** True when x is a number (not HV_UNKNOWN). Infinity counts as known. */
static inline bool hv_known(double x)
{
    return !isnan(x);
}

/** x where known, else `otherwise`. */
static inline double hv_or(double x, double otherwise)
{
    return isnan(x) ? otherwise : x;
}

/** Order of two numbers: < 0, 0 or > 0. Unknown ones are equal, and after all others. */
static inline int hv_compare_numbers(double a, double b)
{
    return isnan(a) || isnan(b) ? (isnan(a) != 0) - (isnan(b) != 0) : (a > b) - (a < b);
}

/** "61.2 GiB", "512 B"; three significant digits; "–" when unknown. Returns buf. */
const char *hv_fmt_bytes(char *buf, size_t cap, double bytes);
/** "11.2 s", "348 ms", "3.1 us"; "–" when unknown. Returns buf. */
const char *hv_fmt_seconds(char *buf, size_t cap, double s);
/** SI prefix and unit: hv_fmt_si(b, n, 3.12e14, "FLOP/s") = "312 TFLOP/s". Returns buf. */
const char *hv_fmt_si(char *buf, size_t cap, double x, const char *unit);
/** "41.2%" from 0.412; "–" when unknown. Returns buf. */
const char *hv_fmt_percent(char *buf, size_t cap, double frac);
/** Fixed number of decimals, "–" when unknown. Returns buf. */
const char *hv_fmt_fixed(char *buf, size_t cap, double x, int decimals);
/** Same output as printf for "%.*g" (1 to 9 digits), several times faster for usual sizes; "–" when
 * unknown. Returns buf. */
const char *hv_fmt_general(char *buf, size_t cap, double x, int digits);
/** Whole number with thousands separators: "93,600"; "–" when unknown. Returns buf. */
const char *hv_fmt_count(char *buf, size_t cap, double x);
/** Shortest decimal digits that read back as the same double, independent of the locale. Returns
 * buf. */
const char *hv_fmt_double(char *buf, size_t cap, double x);

#endif
