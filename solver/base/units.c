/*
 * Formats numbers: three significant digits and a unit for display, shortest digits for files. Does
 * not parse.
 */
#include "solver/base/units.h"

#include "solver/base/attr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN_TEXT "\u2013"

static const char *put(char *buf, size_t cap, const char *text)
{
    size_t n = strlen(text);
    if (cap == 0) {
        return buf;
    }
    n = n < cap ? n : cap - 1;
    memcpy(buf, text, n);
    buf[n] = '\0';
    return buf;
}

static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

/* Same output as "%.*f", several times faster where the rounding of the last digit is certain.
 * Screens format many numbers. */
static void put_decimals(char *buf, size_t cap, double x, int decimals)
{
    char digits[24], *at = digits + sizeof digits;
    double scaled = decimals < (int)HV_COUNT(powers) ? fabs(x) * powers[decimals] : HUGE_VAL;
    double whole = floor(scaled), rest = scaled - whole;
    if (!(scaled < 1e9) || fabs(rest - 0.5) < 1e-4) {
        snprintf(buf, cap, "%.*f", decimals, x);
        return;
    }
    unsigned long n = (unsigned long)whole + (rest > 0.5);
    *--at = '\0';
    for (int i = 0; i <= decimals || n > 0; i++, n /= 10) {
        if (decimals > 0 && i == decimals) {
            *--at = '.';
        }
        *--at = (char)('0' + n % 10);
    }
    if (signbit(x)) {
        *--at = '-';
    }
    put(buf, cap, at);
}

/* Removes trailing zeros after the point, and the point when no digit follows it. */
static void trim_zeros(char *buf)
{
    size_t n = strlen(buf);
    while (n > 0 && buf[n - 1] == '0') {
        buf[--n] = '\0';
    }
    if (n > 0 && buf[n - 1] == '.') {
        buf[n - 1] = '\0';
    }
}

/* Three significant digits of x ≥ 0 without trailing zeros; whole numbers keep all their digits. */
static void digits3(char *buf, size_t cap, double x)
{
    if (x >= 1e6 || (x < 0.001 && x > 0)) {
        snprintf(buf, cap, "%.3g", x);
        return;
    }
    int decimals = x >= 99.95 ? 0 : x >= 9.995 ? 1 : x >= 0.9995 ? 2 : 3;
    put_decimals(buf, cap, x, decimals);
    if (decimals) {
        trim_zeros(buf);
    }
}

struct step {
    double size;  /* size of the unit in base units */
    double up_to; /* first value, in this unit, that uses the next step */
    const char *name;
};

/* Writes x in the unit of the first step whose range contains it, else of the last step. */
static const char *fmt_steps(char *buf, size_t cap, double x, const struct step *steps,
                             const char *unit)
{
    char d[HV_FMT_CAP];
    if (isnan(x)) {
        return put(buf, cap, UNKNOWN_TEXT);
    }
    double size = fabs(x);
    if (isinf(x)) {
        snprintf(buf, cap, "%sinf %s", x < 0 ? "-" : "", unit[0] ? unit : steps[0].name);
        return buf;
    }
    while (steps[1].name && size / steps->size >= steps->up_to) {
        steps++;
    }
    digits3(d, sizeof d, size / steps->size);
    const char *all[] = {x < 0 ? "-" : "", d, " ", steps->name, unit};
    size_t n = 0;
    for (size_t i = 0; i < HV_COUNT(all) && n < cap; i++) {
        put(buf + n, cap - n, all[i]);
        n += strlen(buf + n);
    }
    return buf;
}

const char *hv_fmt_bytes(char *buf, size_t cap, double bytes)
{
    /* 1023.5 would round to 1024 of its unit */
    static const struct step steps[] = {
        {1, 1023.5, "B"},
        {HV_KIB, 1023.5, "KiB"},
        {HV_MIB, 1023.5, "MiB"},
        {HV_GIB, 1023.5, "GiB"},
        {HV_GIB * 1024, 1023.5, "TiB"},
        {HV_GIB * 1024 * 1024, 1023.5, "PiB"},
        {HV_GIB * 1024 * 1024 * 1024, 0, "EiB"},
        {0, 0, NULL},
    };
    return fmt_steps(buf, cap, bytes, steps, "");
}

const char *hv_fmt_seconds(char *buf, size_t cap, double s)
{
    static const struct step steps[] = {
        {1e-9, 999.5, "ns"}, {HV_US, 999.5, "us"}, {HV_MS, 999.5, "ms"}, {1, 119.5, "s"},
        {60, 119.5, "min"},  {3600, 47.95, "h"},   {86400, 0, "d"},      {0, 0, NULL},
    };
    if (fabs(s) < 1e-15) { /* rounding error of sums of doubles */
        return put(buf, cap, "0 s");
    }
    if (isinf(s)) {
        return put(buf, cap, s < 0 ? "-inf s" : "inf s");
    }
    return fmt_steps(buf, cap, s, steps, "");
}

const char *hv_fmt_si(char *buf, size_t cap, double x, const char *unit)
{
    static const struct step steps[] = {
        {1, 999.5, ""},     {1e3, 999.5, "k"},  {1e6, 999.5, "M"}, {1e9, 999.5, "G"},
        {1e12, 999.5, "T"}, {1e15, 999.5, "P"}, {1e18, 0, "E"},    {0, 0, NULL},
    };
    return fmt_steps(buf, cap, x, steps, unit);
}

const char *hv_fmt_percent(char *buf, size_t cap, double frac)
{
    char d[HV_FMT_CAP];
    hv_fmt_fixed(d, sizeof d, frac * 100, 1);
    snprintf(buf, cap, "%s%s", d, isnan(frac) ? "" : "%");
    return buf;
}

const char *hv_fmt_fixed(char *buf, size_t cap, double x, int decimals)
{
    if (isnan(x)) {
        return put(buf, cap, UNKNOWN_TEXT);
    }
    if (isinf(x)) {
        return put(buf, cap, x < 0 ? "-inf" : "inf");
    }
    char d[HV_FMT_CAP];
    decimals = decimals < 0 ? 0 : decimals > 17 ? 17 : decimals;
    if (fabs(x) >= 1e18) {
        snprintf(d, sizeof d, "%.3g", x);
    } else {
        put_decimals(d, sizeof d, x, decimals);
    }
    /* no "-0.0" for a value that rounds to zero */
    bool zero = d[0] == '-' && strspn(d + 1, "0.") == strlen(d + 1);
    return put(buf, cap, zero ? d + 1 : d);
}

const char *hv_fmt_general(char *buf, size_t cap, double x, int digits)
{
    double size = fabs(x);
    int decimals = digits - 1;
    if (isnan(x)) {
        return put(buf, cap, UNKNOWN_TEXT);
    }
    for (; decimals > 0 && size >= powers[digits - decimals]; decimals--) {
        continue;
    }
    /* small numbers need more decimals; very large and very small ones an exponent */
    if (digits > 9 || size < 0.1 || size >= powers[digits] - 0.5) {
        if (x == 0) {
            return put(buf, cap, signbit(x) ? "-0" : "0");
        }
        snprintf(buf, cap, "%.*g", digits, x);
        return buf;
    }
    char d[HV_FMT_CAP];
    decimals += size < 1;
    put_decimals(d, sizeof d, x, decimals);
    if (decimals > 0) {
        trim_zeros(d);
    }
    return put(buf, cap, d);
}

const char *hv_fmt_count(char *buf, size_t cap, double x)
{
    char d[HV_FMT_CAP], out[HV_FMT_CAP];
    hv_fmt_fixed(d, sizeof d, x, 0);
    if (isnan(x) || isinf(x) || fabs(x) >= 1e18) {
        return put(buf, cap, d);
    }
    size_t n = strlen(d), k = 0, sign = d[0] == '-';
    for (size_t i = 0; i < n; i++) {
        if (i > sign && (n - i) % 3 == 0) {
            out[k++] = ',';
        }
        out[k++] = d[i];
    }
    out[k] = '\0';
    return put(buf, cap, out);
}

/* printf writes "1e+22" and "1e-07"; the plus sign and the leading zero of the exponent are
 * redundant. Also replaces the decimal comma of a locale. */
static void tidy_exponent(char *d)
{
    char *comma = strchr(d, ',');
    if (comma) {
        *comma = '.';
    }
    char *e = strchr(d, 'e');
    if (!e) {
        return;
    }
    char *to = e + 1, *from = e + 1;
    if (*from == '-') {
        to++, from++;
    } else if (*from == '+') {
        from++;
    }
    while (*from == '0' && from[1]) {
        from++;
    }
    memmove(to, from, strlen(from) + 1);
}

const char *hv_fmt_double(char *buf, size_t cap, double x)
{
    char d[HV_FMT_CAP];
    if (isnan(x)) {
        return put(buf, cap, "nan");
    }
    if (isinf(x)) {
        return put(buf, cap, x < 0 ? "-inf" : "inf");
    }
    if (x == floor(x) && fabs(x) < 9007199254740992.0) {
        snprintf(d, sizeof d, "%.0f", x);
        return put(buf, cap, d);
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(d, sizeof d, "%.*g", digits, x);
        if (strtod(d, NULL) == x) {
            break;
        }
    }
    tidy_exponent(d);
    return put(buf, cap, d);
}
