/**
 * Formulas of the table of families: arithmetic on the members of a config, such as
 * "2 * hidden * (q_lora_rank ?? hidden)".
 *
 * Values are numbers (true is 1, false is 0), texts, lists or objects, or missing (a member that is
 * absent or null; anything calculated with a missing value is missing). From the weakest to the
 * strongest: `a ?? b` (b where a is missing), `|`, `&`, `= != < > <= >=`, `+ -`, `* / %`, `! -`,
 * `list[n]`. A name may be a path: `rope_parameters.rope_type`. Functions: if(c, a, b), has(x),
 * max, min, floor, ceil, round, up(x, m) (x rounded up to a multiple of m), in(list, x), len(list
 * or text), part(text, word) (true where the word occurs), at(text, n) (a text of one character),
 * repeat(list, n) (element n of the list repeated for ever), nth(list, x, n) (the place of the n-th
 * element that is x, from 0; the length where there are fewer), row(object, n) (the member named by
 * the number n, also as "05"), get(object, name).
 */
#ifndef HV_SOLVER_IO_OWN_MODEL_HF_FORMULA_H
#define HV_SOLVER_IO_OWN_MODEL_HF_FORMULA_H

#include <jansson.h>
#include <stdbool.h>

/** Kind of a value. */
enum hv__value_kind { HV__MISSING, HV__NUMBER, HV__TEXT, HV__TREE };

/** A value; texts and trees are borrowed from the config or the formula. */
struct hv__value {
    enum hv__value_kind kind;
    double x;
    const char *text; /**< n bytes, not always NUL-terminated */
    size_t n;
    json_t *tree;
};

/** Looks a name up; the name has n bytes. Missing: of no such name. */
typedef struct hv__value hv__name_fn(void *ctx, const char *name, size_t n);

/** Evaluates a formula that ends at `end`. *valid is false where its syntax is broken; the value is
 * then missing. O(length), without the look-ups. */
struct hv__value hv__formula(const char *text, const char *end, hv__name_fn *names, void *ctx,
                             bool *valid);
/** A JSON value as a value of a formula. */
struct hv__value hv__value_of(json_t *v);
/** A number as a value. */
struct hv__value hv__value_number(double x);
/** True for a number that is not 0, and for a text, list or object that is not empty. */
bool hv__value_true(struct hv__value v);
/** True for this text. */
bool hv__value_is(struct hv__value v, const char *text);

#endif
