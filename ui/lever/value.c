/*
 * Positions of one lever: nearest, next, formatting and parsing. Not for the list of levers
 * (lever.c).
 */
#include "ui/lever/lever_int.h"

#include "solver/base/units.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t hv_lever_at(const struct hv_lever *l, double value)
{
    size_t best = 0;
    for (size_t i = 1; i < l->n_values; i++) {
        if (fabs(l->values[i] - value) < fabs(l->values[best] - value)) {
            best = i;
        }
    }
    return best;
}

double hv_lever_step(const struct hv_lever *l, double value, int steps)
{
    size_t at = hv_lever_at(l, value);
    if (steps < 0) {
        return l->values[at > (size_t)-steps ? at - (size_t)-steps : 0];
    }
    size_t to = at + (size_t)steps;
    return l->values[to < l->n_values ? to : l->n_values - 1];
}

bool hv_lever_is_base(const struct hv_lever *l, double value)
{
    return !hv_known(value) || fabs(value - l->base) <= 1e-9 * fabs(l->base);
}

void hv_lever_text(const struct hv_lever *l, double value, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    if (l->words != NULL) {
        hv_str_adds(out, l->words[hv_lever_at(l, value)]);
    } else if (fabs(value) >= 1000) {
        hv_str_adds(out, hv_fmt_count(buf, sizeof buf, round(value)));
    } else {
        hv_str_addf(out, "%.4g", value);
    }
}

enum hv_status hv_lever_parse(const struct hv_lever *l, const char *text, double *out,
                              struct hv_err *err)
{
    if (l->words != NULL) {
        for (size_t i = 0; i < l->n_values; i++) {
            if (strcmp(l->words[i], text) == 0) {
                *out = (double)i;
                return HV_OK;
            }
        }
        const char *near = hv_suggest(text, l->words, l->n_values);
        return hv_err_set(err, HV_EUSAGE, "%s cannot be \"%.60s\"%s%s%s", l->name, text,
                          near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
                          near != NULL ? "\"?" : "");
    }
    char *end = NULL, lo[HV_FMT_CAP], hi[HV_FMT_CAP];
    double x = strtod(text, &end), least = l->values[0], most = l->values[l->n_values - 1];
    while (*end == ' ') {
        end++;
    }
    bool whole = l->kind == HV_LEVER_BATCH || l->kind == HV_LEVER_MICRO ||
                 l->kind == HV_LEVER_SEQUENCE || l->kind == HV_LEVER_LAYERS ||
                 l->kind == HV_LEVER_TP || l->kind == HV_LEVER_NODES;
    if (end == text || *end != '\0' || !(x >= least && x <= most) || (whole && x != floor(x))) {
        return hv_err_set(err, HV_EUSAGE, "%s: expected a %snumber from %s to %s, found \"%.60s\"",
                          l->name, whole ? "whole " : "", hv_fmt_double(lo, sizeof lo, least),
                          hv_fmt_double(hi, sizeof hi, most), text);
    }
    *out = x;
    return HV_OK;
}
