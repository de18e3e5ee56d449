/**
 * The table of commands: one row per command with its options, arguments and help. The command
 * line, `help`, completion, the `:` prompt, the manual page and the tests all read this table; what
 * a command does is looked up elsewhere by its id (ui/cli has one function per command).
 */
#ifndef HV_UI_COMMAND_COMMAND_H
#define HV_UI_COMMAND_COMMAND_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/** Commands of the program: constant suffix, name in C (ui/cli: hv_cli_<name>). */
#define HV_COMMAND_MAP(X)       \
    X(PLAN,       plan)         \
    X(COMPARE,    compare)      \
    X(EVAL,       eval)         \
    X(GANTT,      gantt)        \
    X(SCHEDULE,   schedule)     \
    X(SOLVE,      solve)        \
    X(BOUND,      bound)        \
    X(EXPLAIN,    explain)      \
    X(FAILURES,   failures)     \
    X(STRATEGIES, strategies)   \
    X(SELFTEST,   selftest)     \
    X(VALIDATE,   validate)     \
    X(PROFILE,    profile)      \
    X(CHECK,      check)        \
    X(IMPORT,     import)       \
    X(NEW_PLUGIN, new_plugin)   \
    X(LUA,        lua)          \
    X(COMPLETION, completion)   \
    X(HELP,       help)         \
    X(WORKER,     worker)
/** Commands of the `:` prompt that change the session: constant suffix, name in C. */
#define HV_PROMPT_MAP(X)        \
    X(SET,        set)          \
    X(UNDO,       undo)         \
    X(REDO,       redo)         \
    X(WRITE,      write)        \
    X(QUIT,       quit)         \
    X(RUN,        run)          \
    X(CANCEL,     cancel)       \
    X(OPTION,     option)       \
    X(EXPORT,     export)       \
    X(IMPORT,     import)       \
    X(SCREEN,     screen)       \
    X(SAVE_SCREEN,save_screen)  \
    X(HELP,       help)         \
    X(REMOVE,     remove)       \
    X(INSERT,     insert)       \
    X(COLLECT,    begin)        \
    X(COLLECTED,  end)          \
    X(DELETE,     delete)       \
    X(RENAME,     rename)       \
    X(NOTE,       note)         \
    X(PLAN,       plan)         \
    X(SELECT,     select)       \
    X(LIMIT,      limit)        \
    X(LUA,        lua)          \
    X(RECORD,     record)
/* clang-format on */

/** Identity of a command. */
enum hv_command_id {
#define X(id, name) HV_CMD_##id,
    HV_COMMAND_MAP(X)
#undef X
        HV_CMD_N,
#define X(id, name) HV_PROMPT_##id,
    HV_PROMPT_MAP(X)
#undef X
        HV_PROMPT_END
};

/** What an option takes. Values are checked while parsing. */
enum hv_opt_type {
    HV_ARG_FLAG,      /**< nothing */
    HV_ARG_TEXT,      /**< any text */
    HV_ARG_FILE,      /**< a file, or a name of the catalogue where help says so */
    HV_ARG_INT,       /**< whole number in [lo, hi] */
    HV_ARG_NUMBER,    /**< finite number in [lo, hi] */
    HV_ARG_DURATION,  /**< seconds, or with a unit: 10, 10s, 500ms, 2min, 1h; in [lo, hi] s */
    HV_ARG_KEY_VALUE, /**< KEY=VALUE, may be given more than once */
    HV_ARG_LIST,      /**< words separated by commas */
    HV_ARG_NUMBERS,   /**< numbers separated by commas, each in [lo, hi] */
    HV_ARG_WORD,      /**< one of `words` */
    HV_ARG_TYPE_N
};

/** One option. */
struct hv_opt {
    const char *name; /**< long name without dashes */
    char letter;      /**< short name, or 0 */
    enum hv_opt_type type;
    const char *metavar;      /**< "CLUSTER"; NULL for flags */
    const char *help;         /**< one sentence */
    double lo, hi;            /**< limits of numbers */
    const char *const *words; /**< NULL-terminated, HV_ARG_WORD only */
    bool required;
};

/** One command. */
struct hv_command {
    enum hv_command_id id;
    const char *name;  /**< as typed: "new-plugin" */
    const char *alias; /**< shorter form, or NULL */
    const char *args;  /**< positional arguments for the usage line: "PLAN", "[STRATEGY...]", "" */
    int min_args, max_args; /**< positional arguments; max −1 = any number */
    const char *summary;    /**< one line */
    const char *help;       /**< a few sentences with an example */
    const struct hv_opt *options;
    size_t n_options;
    bool hidden; /**< internal: not in lists */
};

/** Commands of the program, in the order of the help. */
const struct hv_command *hv_commands(size_t *n);
/** Commands of the `:` prompt. */
const struct hv_command *hv_prompt_commands(size_t *n);
/** Options that every command accepts (--seed, --budget, --quiet, --plain, --help). */
const struct hv_opt *hv_global_options(size_t *n);
/** Options of the program without a command: of its screens. */
const struct hv_opt *hv_front_options(size_t *n);
/** Row of that name or alias in `rows`, or NULL. */
const struct hv_command *hv_command_find(const struct hv_command *rows, size_t n, const char *name);

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
 * `-xvalue`,
 * `-x value`, `--` ends options, a single `-` is an argument. An argument that looks like a
 * negative number is one. Errors: HV_EUSAGE naming the option, what was expected and the nearest
 * option there is.
 */
enum hv_status hv_args_parse(struct hv_args *out, const struct hv_command *command, int argc,
                             const char *const *argv, struct hv_err *err) HV_NODISCARD;
/** Frees it. */
void hv_args_free(struct hv_args *a);
/** Was the option given? `name` must be in the row or global. */
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

/** Appends the usage line: "hetviz plan -c CLUSTER -m MODEL … ". */
void hv_command_usage(struct hv_str *out, const struct hv_command *c);
/** Appends the whole help of a command: usage, text, options with their help. */
void hv_command_help(struct hv_str *out, const struct hv_command *c);
struct hv_plugins;
/** Appends the names and summaries of all schedules: the table of solver/sim, then the plugins with
 * order(p). `lua` may be NULL in all three. */
void hv_schedule_list(struct hv_str *out, const struct hv_plugins *lua);
/** Appends what is known of one schedule, with its options. False: there is none. */
bool hv_schedule_help(struct hv_str *out, const char *name, const struct hv_plugins *lua);
/** Appends words for completion, one a line: all names, or (`name` not NULL) what `-o` takes of one
 * schedule, "key=" or "key=choice". */
void hv_schedule_words(struct hv_str *out, const char *name, const struct hv_plugins *lua);
/** Appends all schedules as roff; add_text escapes a text. */
void hv_schedule_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text));
/** Appends the formats of `import` for its help; add_wrapped wraps a text at blanks. */
void hv_import_help(struct hv_str *out, void (*add_wrapped)(struct hv_str *out, const char *text));
/** The same as roff; add_text escapes a text. */
void hv_import_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text));
/** Appends what `import` takes first, with blanks between: for completion. */
void hv_import_words(struct hv_str *out);
/** Appends the list of commands with summaries, as `hetviz help` prints it. */
void hv_command_list(struct hv_str *out);
/** Appends the manual page (roff) of the whole program, made from the tables. */
void hv_command_man(struct hv_str *out);
/** Appends a completion script. `shell`: "bash", "zsh" or "fish". Errors: HV_EUSAGE for others. */
enum hv_status hv_command_completion(struct hv_str *out, const char *shell,
                                     struct hv_err *err) HV_NODISCARD;

#endif
