/**
 * The table of commands: one row per command with its options, arguments and help. The command
 * line, `help`, completion, the `:` prompt, the manual page and the tests all read this table; the
 * implementation is found by the id of the command (ui/cli has one function per command).
 */
#ifndef HV_UI_COMMAND_TABLE_H
#define HV_UI_COMMAND_TABLE_H

#include <stdbool.h>
#include <stddef.h>

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
    X(SHARD,      shard)        \
    X(SWEEP,      sweep)        \
    X(STRATEGIES, strategies)   \
    X(SELFTEST,   selftest)     \
    X(VALIDATE,   validate)     \
    X(CALIBRATE,  calibrate)    \
    X(PROFILE,    profile)      \
    X(CHECK,      check)        \
    X(IMPORT,     import)       \
    X(EXPORT,     export)       \
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

/** Type of the value of an option. Values are checked while parsing. */
enum hv_opt_type {
    HV_ARG_FLAG,   /**< nothing */
    HV_ARG_TEXT,   /**< any text */
    HV_ARG_FILE,   /**< a file, or a name of the catalogue for the options whose help mentions it */
    HV_ARG_INT,    /**< whole number in [lo, hi] */
    HV_ARG_NUMBER, /**< finite number in [lo, hi] */
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

#endif
