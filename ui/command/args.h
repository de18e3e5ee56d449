/** Arguments of a command, parsed against its row of the table. */
#ifndef HV_UI_COMMAND_ARGS_H
#define HV_UI_COMMAND_ARGS_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "ui/command/table.h"

/** One option as given. */
struct hv_arg_value {
    const struct hv_opt *opt;
    const char *text; /**< borrowed from argv; NULL for flags */
    double number;    /**< numbers and durations (s); index of the word for HV_ARG_WORD */
};

/** Parsed arguments. Owner: hv_args_free. Texts are borrowed from argv. */
struct hv_args {
    const struct hv_command *command;
    struct hv_arena arena;
    struct hv_arg_value *values; /**< in the order given */
    size_t n_values;
    const char **positional;
    size_t n_positional;
    bool wants_help; /**< --help or -h was given: nothing else was checked */
};

/**
 * Parses argv[0..argc) (without the command's name) against a row. `--name=value`, `--name value`,
 * `-xvalue`, `-x value`, `--` ends options, a single `-` is an argument. An argument that looks
 * like a negative number is one. Errors: HV_EUSAGE naming the option, the expected value and the
 * nearest existing option.
 */
enum hv_status hv_args_parse(struct hv_args *out, const struct hv_command *command, int argc,
                             const char *const *argv, struct hv_err *err) HV_NODISCARD;
/** Frees it. */
void hv_args_free(struct hv_args *a);
/** True where the option was given. `name` must be in the row or global. */
bool hv_args_has(const struct hv_args *a, const char *name);
/** Text of the last one given, or `otherwise`. */
const char *hv_args_text(const struct hv_args *a, const char *name, const char *otherwise);
/** Number of the last one given, or `otherwise`. */
double hv_args_number(const struct hv_args *a, const char *name, double otherwise);
/** All texts of an option in order (array in the arena). HV_ARG_LIST is split at commas. */
const char **hv_args_all(struct hv_args *a, const char *name, size_t *n);
/** All numbers of an HV_ARG_NUMBERS option (last one given), in the arena. */
double *hv_args_numbers(struct hv_args *a, const char *name, size_t *n);

/** Splits a `:` line into words: spaces separate, "double quotes" and backslash keep. Words lie in
 * the arena. */
enum hv_status hv_command_split(struct hv_arena *arena, const char *line, const char ***words,
                                size_t *n, struct hv_err *err) HV_NODISCARD;

#endif
