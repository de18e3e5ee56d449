/** Reads numbers with units as people write them. The unit of the field says what is measured, and
 * with it which words may stand behind the number. */
#include "ui/command/typed.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "solver/base/attr.h"
#include "solver/base/units.h"

#define GBIT (1e9 / 8) /* bytes */

/** What a unit measures. */
enum dimension { RATE, BYTES, TIME, MONEY, PER_HOUR, FLOPS, TOKENS, NOTHING };

/** A unit: its word and what one of it is in base units. */
struct unit {
    enum dimension of;
    const char *word;
    double base;
};

/* Of rates capital letters count: Gb are bits, GB are bytes. A bare G, M or T is how ports are
 * called. */
static const struct unit units[] = {
    {RATE, "GbE", GBIT},
    {RATE, "gbe", GBIT},
    {RATE, "Gb/s", GBIT},
    {RATE, "Gbps", GBIT},
    {RATE, "Gbit/s", GBIT},
    {RATE, "Gbit", GBIT},
    {RATE, "G", GBIT},
    {RATE, "MbE", GBIT / 1e3},
    {RATE, "Mb/s", GBIT / 1e3},
    {RATE, "Mbps", GBIT / 1e3},
    {RATE, "Mbit/s", GBIT / 1e3},
    {RATE, "TbE", GBIT * 1e3},
    {RATE, "Tb/s", GBIT * 1e3},
    {RATE, "Tbps", GBIT * 1e3},
    {RATE, "Tbit/s", GBIT * 1e3},
    {RATE, "GB/s", HV_GBPS},
    {RATE, "GBps", HV_GBPS},
    {RATE, "MB/s", HV_GBPS / 1e3},
    {RATE, "MBps", HV_GBPS / 1e3},
    {RATE, "TB/s", HV_GBPS * 1e3},
    {RATE, "TBps", HV_GBPS * 1e3},
    {RATE, "GiB/s", HV_GIB},
    {RATE, "MiB/s", HV_MIB},
    {RATE, "TiB/s", HV_GIB * 1024},
    /* is_port knows these too */
    {RATE, "EDR", 100 * GBIT},
    {RATE, "HDR", 200 * GBIT},
    {RATE, "NDR", 400 * GBIT},
    {RATE, "XDR", 800 * GBIT},
    {BYTES, "GiB", HV_GIB},
    {BYTES, "GB", HV_GIB},
    {BYTES, "G", HV_GIB},
    {BYTES, "MiB", HV_MIB},
    {BYTES, "MB", HV_MIB},
    {BYTES, "M", HV_MIB},
    {BYTES, "TiB", HV_GIB * 1024},
    {BYTES, "TB", HV_GIB * 1024},
    {BYTES, "T", HV_GIB * 1024},
    {TIME, "ns", 1e-9},
    {TIME, "us", HV_US},
    {TIME, "\xc2\xb5s", HV_US}, /* micro sign */
    {TIME, "\xce\xbcs", HV_US}, /* mu */
    {TIME, "ms", HV_MS},
    {TIME, "s", 1},
    {TIME, "sec", 1},
    {TIME, "min", 60},
    {TIME, "h", 3600},
    {MONEY, "$/h", 1},
    {MONEY, "USD/h", 1},
    {MONEY, "/h", 1},
    {MONEY, "$", 1},
    {MONEY, "USD", 1},
    {PER_HOUR, "1/h", 1},
    {PER_HOUR, "/h", 1},
    {PER_HOUR, "/d", 1.0 / 24},
    {FLOPS, "TFLOP/s", HV_TFLOPS},
    {FLOPS, "TFLOPS", HV_TFLOPS},
    {FLOPS, "TF/s", HV_TFLOPS},
    {FLOPS, "GFLOP/s", HV_TFLOPS / 1e3},
    {FLOPS, "GFLOPS", HV_TFLOPS / 1e3},
    {FLOPS, "PFLOP/s", HV_TFLOPS * 1e3},
    {FLOPS, "PFLOPS", HV_TFLOPS * 1e3},
    {FLOPS, "PF/s", HV_TFLOPS * 1e3},
    {TOKENS, "tokens", 1},
    {TOKENS, "k", HV_KIB},
    {TOKENS, "M", HV_MIB},
};

/** Ports of InfiniBand, four lanes: a word that is a number too. */
static bool is_port(const char *word)
{
    return strcmp(word, "EDR") == 0 || strcmp(word, "HDR") == 0 || strcmp(word, "NDR") == 0 ||
           strcmp(word, "XDR") == 0;
}

/** The units that fields have. */
static const struct unit fields[] = {
    {RATE, "GB/s", HV_GBPS}, {BYTES, "GiB", HV_GIB}, {TIME, "us", HV_US},
    {TIME, "s", 1},          {MONEY, "$/h", 1},      {MONEY, "USD/h", 1},
    {PER_HOUR, "1/h", 1},    {PER_HOUR, "/h", 1},    {FLOPS, "TFLOP/s", HV_TFLOPS},
    {TOKENS, "tokens", 1},
};

static const struct unit *field_of(const char *unit)
{
    for (size_t i = 0; unit != NULL && i < HV_COUNT(fields); i++) {
        if (strcmp(fields[i].word, unit) == 0) {
            return &fields[i];
        }
    }
    return NULL;
}

/** The unit of that dimension with that word, or NULL. */
static const struct unit *unit_of(enum dimension of, const char *word)
{
    for (size_t i = 0; i < HV_COUNT(units); i++) {
        bool same =
            of == RATE ? strcmp(units[i].word, word) == 0 : strcasecmp(units[i].word, word) == 0;
        if (units[i].of == of && same) {
            return &units[i];
        }
    }
    return NULL;
}

static const char *after_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

/** The length of a sign that multiplies: x, * or the times sign; 0: there is none. */
static size_t times_sign(const char *s)
{
    static const char times[] = "\xc3\x97";
    return *s == 'x' || *s == 'X' || *s == '*' ? 1 : strncmp(s, times, 2) == 0 ? 2 : 0;
}

/** A number without hexadecimal, "inf" or "nan"; *end is behind it, or at s. */
static double number(const char *s, char **end)
{
    size_t digit = strspn(s, "+-.");
    if (!isdigit((unsigned char)s[digit]) ||
        (s[digit] == '0' && (s[digit + 1] == 'x' || s[digit + 1] == 'X'))) {
        *end = (char *)(uintptr_t)s;
        return 0;
    }
    return strtod(s, end);
}

bool hv_typed_shape(const char *text, double *first, double *second)
{
    char *end = NULL;
    text = after_blanks(text);
    size_t digits = strspn(text, "0123456789");
    if (digits == 0) {
        return false;
    }
    double a = (double)strtoul(text, &end, 10);
    const char *s = after_blanks(text + digits);
    size_t sign = times_sign(s);
    s = after_blanks(s + sign);
    digits = strspn(s, "0123456789");
    if (sign == 0 || digits == 0 || *after_blanks(s + digits) != '\0') {
        return false;
    }
    double b = (double)strtoul(s, &end, 10);
    *first = a;
    *second = b;
    return a >= 1 && b >= 1;
}

/** Why a word is no unit of the field. */
static enum hv_status unknown_unit(const char *text, const struct unit *field, const char *unit,
                                   const char *word, struct hv_err *err)
{
    if (field != NULL && field->of == RATE) {
        for (size_t i = 0; i < HV_COUNT(units); i++) {
            if (units[i].of == RATE && strcasecmp(units[i].word, word) == 0) {
                return hv_err_set(err, HV_EUSAGE, "'%.40s': write Gb/s for bits or GB/s for bytes",
                                  text);
            }
        }
    }
    return hv_err_set(err, HV_EUSAGE, "'%.20s' is no unit here%s%s%s", word,
                      unit != NULL ? "; expected " : "", unit != NULL ? unit : "",
                      field != NULL && field->of == RATE ? ", Gb/s or 25GbE" : "");
}

enum hv_status hv_typed_number(const char *text, const char *unit, double *out, struct hv_err *err)
{
    const struct unit *field = field_of(unit);
    char word[24] = "", *end = NULL;
    const char *s = after_blanks(text);
    bool money = field != NULL && field->of == MONEY;
    s = money && *s == '$' ? after_blanks(s + 1) : s;
    double x = number(s, &end), factor = 1;
    size_t sign =
        field != NULL && field->of == RATE && end != s ? times_sign(after_blanks(end)) : 0;
    if (sign > 0) { /* ports: "4x100GbE", "8xHDR" */
        factor = x;
        s = after_blanks(after_blanks(end) + sign);
        x = number(s, &end);
    }
    size_t n = strcspn(after_blanks(end), " \t");
    if (n < sizeof word && *after_blanks(after_blanks(end) + n) == '\0') {
        (void)memcpy(word, after_blanks(end), n);
    }
    const struct unit *u = field != NULL ? unit_of(field->of, word) : NULL;
    if (end == s && u != NULL && is_port(word)) {
        x = 1;
    } else if (end == s) {
        return hv_err_set(err, HV_EUSAGE, "expected a number%s%s, found '%.40s'",
                          unit != NULL ? " of " : "", unit != NULL ? unit : "", text);
    }
    bool bare = *after_blanks(end) == '\0';
    bool same = unit != NULL && strcmp(word, unit) == 0;
    if (!bare && u == NULL && !same) {
        return unknown_unit(text, field, unit, after_blanks(end), err);
    }
    x *= factor * (u != NULL ? u->base / field->base : 1);
    if (!isfinite(x)) {
        return hv_err_set(err, HV_EUSAGE, "expected a number, found '%.40s'", text);
    }
    *out = x;
    return HV_OK;
}

bool hv_typed_words_in(const char *text, const char *words)
{
    char word[64];
    for (const char *s = after_blanks(words); *s != '\0';) {
        size_t n = strcspn(s, " \t"), kept = n < sizeof word ? n : sizeof word - 1;
        bool found = false;
        (void)memcpy(word, s, kept);
        word[kept] = '\0';
        for (const char *t = text; *t != '\0' && !found; t++) {
            found = strncasecmp(t, word, kept) == 0;
        }
        if (!found) {
            return false;
        }
        s = after_blanks(s + n);
    }
    return true;
}
