/**
 * Fields of a row on the Plans screen: one table used by columns, comparison and scatter, and the
 * Pareto front over two fields.
 */
#ifndef HV_UI_SCREENS_FACTS_PLAN_FACTS_H
#define HV_UI_SCREENS_FACTS_PLAN_FACTS_H

#include "ui/session/row/plan_trouble.h"
#include "ui/session/session.h"
#include "ui/view/widget/widgets.h"

/* clang-format off */
/**
 * Fields: constant, heading, alignment, width, share of spare room, sort key, better (-1 the lower,
 * 1 the higher, 0 neither), name in the comparison.
 */
#define HV_PLAN_FIELD_MAP(X)                                                                      \
    X(NAME,      "PLAN",     HV_LEFT,  12, 0, HV_SORT_NAME,   0,  "plan")                         \
    X(STRATEGY,  "STRATEGY", HV_LEFT,  13, 0, HV_SORT_N,      0,  "strategy")                     \
    X(ITERATION, "S/ITER",   HV_RIGHT, 8,  0, HV_SORT_TIME,   -1, "s/iter")                       \
    X(TOKENS,    "TOK/S",    HV_RIGHT, 9,  0, HV_SORT_TOKENS, 1,  "tokens/s")                     \
    X(MFU,       "MFU",      HV_RIGHT, 5,  0, HV_SORT_MFU,    1,  "MFU")                          \
    X(COST,      "$/MTOK",   HV_RIGHT, 7,  0, HV_SORT_COST,   -1, "$/Mtok")                       \
    X(MEMORY,    "PEAK",     HV_RIGHT, 5,  0, HV_SORT_MEMORY, -1, "peak memory")                  \
    X(BUBBLE,    "BUBBLE",   HV_RIGHT, 7,  0, HV_SORT_BUBBLE, -1, "bubble")                       \
    X(GAP,       "GAP",      HV_RIGHT, 6,  0, HV_SORT_N,      -1, "gap to the bound")             \
    X(GPUS,      "GPUS",     HV_RIGHT, 5,  0, HV_SORT_N,      -1, "GPUs")                         \
    X(ENERGY,    "ENERGY",   HV_RIGHT, 7,  0, HV_SORT_ENERGY, -1, "energy/iter")                  \
    X(DEGREES,   "TP/PP/DP", HV_LEFT,  9,  1, HV_SORT_N,      0,  "tp/pp/dp")                     \
    X(SCHEDULE,  "SCHEDULE", HV_LEFT,  9,  0, HV_SORT_N,      0,  "schedule")                     \
    X(LAYERS,    "LAYERS",   HV_LEFT,  9,  1, HV_SORT_N,      0,  "layers")                       \
    X(CLAIMED,   "CLAIMED",  HV_RIGHT, 8,  0, HV_SORT_N,      0,  "claimed s/iter")               \
    X(STATE,     "STATE",    HV_LEFT,  10, 9, HV_SORT_STATE,  0,  "state")
/* clang-format on */

/** Fields of a row. */
enum hv_plan_field {
#define X(c, title, align, width, flex, sort, better, name) HV_PLAN_##c,
    HV_PLAN_FIELD_MAP(X)
#undef X
        HV_PLAN_FIELD_N
};

/** A row with its results; verdict and plan are NULL where there is none. Borrowed. */
struct hv_plan_facts {
    const struct hv_row *row;
    const struct hv_verdict *verdict;
    const struct hv_plan *plan;
};

/** Column of the table for each field, in order. */
extern const struct hv_column hv_plan_columns[HV_PLAN_FIELD_N];

/** Facts of a row; evaluates it where that was not done yet. */
struct hv_plan_facts hv_plan_facts(struct hv_session *s, const struct hv_row *row);
/** Figure of a field, HV_UNKNOWN for words and where there is none. */
double hv_plan_value(const struct hv_plan_facts *f, enum hv_plan_field field);
/** Appends a field as it stands in the table. */
void hv_plan_text(const struct hv_plan_facts *f, enum hv_plan_field field, struct hv_str *out);
/** Name of a field in words. */
const char *hv_plan_field_name(enum hv_plan_field field);
/** -1 when lower is better, 1 when higher is, 0 when neither. */
int hv_plan_field_better(enum hv_plan_field field);
/** Field that a sort key sorts by, or HV_PLAN_FIELD_N. */
enum hv_plan_field hv_plan_sorted_field(enum hv_sort key);
/** True when the plan is judged and breaks no rule. */
bool hv_plan_fits(const struct hv_plan_facts *f);
/** True when one of the n others is at least as good in both fields and better in one; an exact
 * plan is only compared with exact ones. O(n). */
bool hv_plan_is_dominated(const struct hv_plan_facts *f, const struct hv_plan_facts *all, size_t n,
                          const enum hv_plan_field axes[2]);
/** Appends the devices of a stage: "4 x A100-SXM-80GB + 8 x V100-SXM2-32GB", in the order in which
 * the kinds first occur. O(devices × kinds). */
void hv_plan_stage_kinds(const struct hv_plan *p, const struct hv_stage *st, struct hv_str *out);
/** Appends how many layers a stage holds: "22", "7.5". */
void hv_plan_stage_layers(const struct hv_stage *st, struct hv_str *out);

#endif
