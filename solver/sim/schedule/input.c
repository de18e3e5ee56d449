/*
 * The input of schedules: options, costs, hops and limits as generators read them, and checks that
 * several of them share.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int find_option(const struct hv_schedule_row *row, const char *key)
{
    for (size_t i = 0; i < row->n_options; i++) {
        if (strcmp(row->options[i].key, key) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool hv__has_option(const struct hv_schedule_row *row, const char *key)
{
    return find_option(row, key) >= 0;
}

int64_t hv__option(const struct hv_schedule_input *in, const char *key)
{
    int i = find_option(in->row, key);
    if (i < 0) {
        HV_BUG("schedule %s has no option %s", in->row->name, key);
    }
    // cppcheck-suppress negativeIndex ; HV_BUG does not return
    return in->options[i];
}

struct hv_stage_cost hv__cost(const struct hv_schedule_input *in, int32_t stage)
{
    return in->costs ? in->costs[stage] : in->cost;
}

double hv__hop(const struct hv_schedule_input *in, int32_t stage, bool back)
{
    int32_t n_edges = in->ranks * in->chunks - 1;
    return in->hops_s ? in->hops_s[back ? n_edges + stage : stage] : in->hop_s;
}

double hv__limit(const struct hv_schedule_input *in, int32_t rank, double own)
{
    return in->limits && in->limits[rank] < own ? in->limits[rank] : own;
}

int32_t hv__round(const struct hv_schedule_input *in)
{
    double least = in->micro_batches;
    for (int32_t r = 0; r < in->ranks; r++) {
        least = hv__limit(in, r, least);
    }
    return (int32_t)least;
}

enum hv_status hv__check_work(const struct hv_schedule_input *in, double steps, struct hv_err *err)
{
    if (steps <= HV_SCHEDULE_STEPS_MAX) {
        return HV_OK;
    }
    return hv_err_set(err, HV_ELIMIT,
                      "schedule %s: p = %d, m = %d would take about %.0g steps to lay out, the "
                      "limit is %.0g; use fewer ranks or micro-batches",
                      in->row->name, in->ranks, in->micro_batches, steps, HV_SCHEDULE_STEPS_MAX);
}

enum hv_status hv__check_even_ranks(const struct hv_schedule_input *in, const char *why,
                                    struct hv_err *err)
{
    int32_t p = in->ranks;
    if (p % 2 == 0) {
        return HV_OK;
    }
    char below[32] = "";
    if (p > 1) {
        snprintf(below, sizeof below, "p = %d or ", p - 1);
    }
    return hv_err_set(err, HV_EUSAGE,
                      "schedule %s %s, so their number must be even, found p = %d; use %sp = %d",
                      in->row->name, why, p, below, p + 1);
}

void hv_schedule_input_init(struct hv_schedule_input *in, const struct hv_schedule_row *row,
                            int32_t ranks, int32_t micro_batches)
{
    *in = (struct hv_schedule_input){.row = row,
                                     .ranks = ranks,
                                     .micro_batches = micro_batches,
                                     .chunks = row->chunks,
                                     .cost = {1, 1, 1}};
    for (size_t i = 0; i < row->n_options; i++) {
        in->options[i] = row->options[i].def;
    }
}

static enum hv_status unknown_option(const struct hv_schedule_row *row, const char *key,
                                     struct hv_err *err)
{
    const char *keys[HV_SCHEDULE_OPTIONS_MAX];
    struct hv_str list = {0};
    for (size_t i = 0; i < row->n_options; i++) {
        keys[i] = row->options[i].key;
        hv_str_addf(&list, "%s%s", i ? ", " : "", keys[i]);
    }
    const char *near = hv_suggest(key, keys, row->n_options);
    if (near) {
        hv_err_set(err, HV_EUSAGE, "schedule %s has no option \"%s\"; did you mean \"%s\"?",
                   row->name, key, near);
    } else if (row->n_options == 0) {
        hv_err_set(err, HV_EUSAGE, "schedule %s takes no options, found \"%s\"", row->name, key);
    } else {
        hv_err_set(err, HV_EUSAGE, "schedule %s has no option \"%s\"; it takes: %s", row->name, key,
                   hv_str_cstr(&list));
    }
    hv_str_free(&list);
    return HV_EUSAGE;
}

static enum hv_status bad_choice(const struct hv_schedule_row *row,
                                 const struct hv_schedule_option *o, const char *value,
                                 struct hv_err *err)
{
    struct hv_str list = {0};
    size_t n = 0;
    for (; o->choices[n]; n++) {
        hv_str_addf(&list, "%s%s", n ? ", " : "", o->choices[n]);
    }
    const char *near = hv_suggest(value, o->choices, n);
    hv_err_set(err, HV_EUSAGE, "schedule %s, option %s: expected one of %s, found \"%s\"%s%s%s",
               row->name, o->key, hv_str_cstr(&list), value, near ? "; did you mean \"" : "",
               near ? near : "", near ? "\"?" : "");
    hv_str_free(&list);
    return HV_EUSAGE;
}

enum hv_status hv_schedule_set_int(struct hv_schedule_input *in, const char *key, int64_t value,
                                   struct hv_err *err)
{
    int i = find_option(in->row, key);
    if (i < 0) {
        return unknown_option(in->row, key, err);
    }
    const struct hv_schedule_option *o = &in->row->options[i];
    if (value < o->min || value > o->max) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule %s, option %s: expected a number from %lld to %lld, found %lld",
                          in->row->name, key, (long long)o->min, (long long)o->max,
                          (long long)value);
    }
    in->options[i] = value;
    return HV_OK;
}

enum hv_status hv_schedule_set_option(struct hv_schedule_input *in, const char *key,
                                      const char *value, struct hv_err *err)
{
    int i = find_option(in->row, key);
    if (i < 0) {
        return unknown_option(in->row, key, err);
    }
    const struct hv_schedule_option *o = &in->row->options[i];
    if (o->type == HV_SCHEDULE_CHOICE) {
        for (int c = 0; o->choices[c]; c++) {
            if (strcmp(o->choices[c], value) == 0) {
                in->options[i] = c;
                return HV_OK;
            }
        }
        return bad_choice(in->row, o, value, err);
    }
    char *end = NULL;
    errno = 0;
    long long x = strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule %s, option %s: expected a whole number, found \"%s\"",
                          in->row->name, key, value);
    }
    return hv_schedule_set_int(in, key, x, err);
}

int32_t hv_schedule_usual_chunks(const struct hv_schedule_input *in)
{
    int i = find_option(in->row, "waves");
    return i >= 0 && in->options[i] > 0 ? 2 * (int32_t)in->options[i] : in->row->chunks;
}
