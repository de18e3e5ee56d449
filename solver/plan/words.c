/*
 * The word tables of the plan format, generated from the X-macros of plan.h. No reading or writing.
 */
#include "solver/plan/plan.h"

/* clang-format off */
#define ROW_WORD(c, word) word,
#define DEFINE_WORDS(name, map) const char *const name##_words[name##_N] = {map(ROW_WORD)};
HV_WORD_TABLES(DEFINE_WORDS)
const char *const hv_recompute_words[hv_recompute_N] = {HV_RECOMPUTE_MAP(ROW_WORD)};
/* clang-format on */
