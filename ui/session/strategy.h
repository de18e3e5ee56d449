/**
 * What the session knows about a strategy without running it: identity, options, help. Filled from
 * the plugins' metadata by whoever opens the session (tests bring their own).
 */
#ifndef HV_UI_SESSION_STRATEGY_H
#define HV_UI_SESSION_STRATEGY_H

#include "solver/base/status.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
/** Types of options: constant, word in plugins. */
#define HV_STRATEGY_OPTION_MAP(X)           \
    X(HV_SOPT_INTEGER, "integer")           \
    X(HV_SOPT_NUMBER,  "number")            \
    X(HV_SOPT_BOOLEAN, "boolean")           \
    X(HV_SOPT_CHOICE,  "choice")            \
    X(HV_SOPT_TEXT,    "string")
/* clang-format on */
enum hv_strategy_option_type {
#define X(c, name) c,
    HV_STRATEGY_OPTION_MAP(X)
#undef X
        HV_SOPT_N
};
/** Word of a type. */
const char *hv_strategy_option_type_name(enum hv_strategy_option_type t);

/** One option: a row of the form. Texts are borrowed from whoever made the list. */
struct hv_strategy_option {
    const char *key;
    enum hv_strategy_option_type type;
    double min, max;            /**< INTEGER, NUMBER; HV_UNKNOWN = no limit */
    const char *const *choices; /**< CHOICE: NULL-terminated; NULL otherwise */
    const char *standard;       /**< default as text ("1", "true", "auto"); "" = none */
    const char *help;
};

/** One strategy. */
struct hv_strategy_info {
    const char *id, *title, *kind, *system, *summary;
    const struct hv_strategy_option *options;
    size_t n_options;
};

/**
 * Turns the text of an option into the JSON value that goes into files and jobs, checked against
 * type, limits and choices. Owner of *out: caller. Errors: HV_EUSAGE "faults: expected a whole
 * number from 0 to 16, found \"x\"".
 */
enum hv_status hv_strategy_option_parse(const struct hv_strategy_option *o, const char *text,
                                        json_t **out, struct hv_err *err) HV_NODISCARD;
/** Checks a JSON value in the same way. */
enum hv_status hv_strategy_option_check(const struct hv_strategy_option *o, const json_t *value,
                                        struct hv_err *err) HV_NODISCARD;
/** Row of that key, or NULL. */
const struct hv_strategy_option *hv_strategy_option_find(const struct hv_strategy_info *s,
                                                         const char *key);

#endif
