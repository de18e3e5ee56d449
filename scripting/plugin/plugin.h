/**
 * Plugins: their location, metadata and options.
 *
 * Metadata is read once by running the plugin's chunk in a sandbox of its own and then kept in a
 * cache by hash of the file: with a warm cache no Lua code runs. A broken plugin stays in the list
 * with its error.
 */
#ifndef HV_SCRIPTING_PLUGIN_PLUGIN_H
#define HV_SCRIPTING_PLUGIN_PLUGIN_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/base/str.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The version of the plugin contract that this program supports (`api = 1`). */
#define HV_PLUGIN_API 1

/* clang-format off */
/** Types of options: constant, name in plugins. */
#define HV_OPTION_TYPE_MAP(X)          \
    X(HV_OPTION_INTEGER, "integer")    \
    X(HV_OPTION_NUMBER,  "number")     \
    X(HV_OPTION_BOOLEAN, "boolean")    \
    X(HV_OPTION_STRING,  "string")     \
    X(HV_OPTION_CHOICE,  "choice")     \
    X(HV_OPTION_SCHEDULE,"schedule")
/** Functions of a plugin: constant, member of the returned table. */
#define HV_PLUGIN_FUNCTION_MAP(X)      \
    X(HV_PLUGIN_PLAN,     "plan")      \
    X(HV_PLUGIN_APPLY,    "apply")     \
    X(HV_PLUGIN_ORDER,    "order")     \
    X(HV_PLUGIN_REPLAN,   "replan")    \
    X(HV_PLUGIN_CLAIM,    "claim")     \
    X(HV_PLUGIN_SELFTEST, "selftest")
/* clang-format on */
/* clang-format off */
/** Kinds of strategies, the headings of lists in their order: constant, word in plugins, what the
 * strategies of the kind decide. */
#define HV_KIND_MAP(X)                                                                   \
    X(HV_KIND_PLANNER,    "planner",       "searches over everything that a plan says")  \
    X(HV_KIND_BASELINE,   "baseline",      "layouts to compare with")                    \
    X(HV_KIND_DATA,       "data",          "what a replica holds, when it reduces")      \
    X(HV_KIND_TENSOR,     "tensor",        "one layer over several devices")             \
    X(HV_KIND_PIPELINE,   "pipeline",      "layers over stages, micro-batches in order") \
    X(HV_KIND_SEQUENCE,   "sequence",      "one sequence over several devices")          \
    X(HV_KIND_EXPERTS,    "experts",       "mixtures of experts")                        \
    X(HV_KIND_HETERO,     "hetero",        "unequal devices")                            \
    X(HV_KIND_AUTO,       "auto-parallel", "layouts per layer or operator, by search")   \
    X(HV_KIND_YOURS,      "yours",         "plugins of your own")
/* clang-format on */
/** Kind of a strategy. */
enum hv_kind {
#define X(c, name, about) c,
    HV_KIND_MAP(X)
#undef X
        HV_KIND_N
};
/** Word in plugins. */
const char *hv_kind_name(enum hv_kind k);
/** What its strategies decide, a few words. */
const char *hv_kind_about(enum hv_kind k);
/** The kind of that word, or HV_KIND_N. */
enum hv_kind hv_kind_of(const char *word);

/** How long a strategy's search takes: constant, word in plugins, most devices of a cluster on
 * which `auto` asks it by itself. `slow` ones are asked by name only, and so are those that declare
 * nothing. */
/* clang-format off */
#define HV_EFFORT_MAP(X)                   \
    X(HV_EFFORT_UNKNOWN, "unknown", 0)     \
    X(HV_EFFORT_QUICK,   "quick",   4096)  \
    X(HV_EFFORT_MEDIUM,  "medium",  256)   \
    X(HV_EFFORT_SLOW,    "slow",    0)
/* clang-format on */
enum hv_effort {
#define X(c, name, devices) c,
    HV_EFFORT_MAP(X)
#undef X
        HV_EFFORT_N
};
/** Word in plugins. */
const char *hv_effort_name(enum hv_effort e);
/** Most devices on which a strategy of that effort is asked without being named; 0: never. */
size_t hv_effort_devices(enum hv_effort e);

/** Type of an option's values. */
enum hv_option_type {
#define X(c, name) c,
    HV_OPTION_TYPE_MAP(X)
#undef X
        HV_OPTION_TYPE_N
};
/** Functions that the table a plugin returns may hold. */
enum hv_plugin_function {
#define X(c, name) c,
    HV_PLUGIN_FUNCTION_MAP(X)
#undef X
        HV_PLUGIN_FUNCTION_N
};
/** Name in plugins. */
const char *hv_option_type_name(enum hv_option_type t);
const char *hv_plugin_function_name(enum hv_plugin_function f);

/** One option of a plugin. */
struct hv_option_row {
    const char *key, *help;
    enum hv_option_type type;
    const json_t *def; /**< default value, or NULL: none */
    double min, max;   /**< HV_UNKNOWN: no limit */
    const char **choices;
    size_t n_choices;
};

/** Most kinds of one strategy. */
#define HV_PLUGIN_KINDS_MAX 4
/** Metadata of a strategy: a plugin, or a row of one that is a family (`systems`). */
struct hv_plugin {
    const char *path;  /**< the file; of a plugin that is a folder, its plugin.lua */
    const char *name;  /**< for messages: "plugins/oobleck/plugin.lua" */
    const char *hides; /**< name of the plugin with the same id that this one replaces, or NULL */
    const char *error; /**< why it cannot be used ("file:line: …"), or NULL */
    const char *id, *title, *system, *reference, *summary;
    const char *kind;                        /**< its kinds as declared, joined by ", " */
    enum hv_kind kinds[HV_PLUGIN_KINDS_MAX]; /**< the first is its heading; of a plugin outside the
                                                shipped folder that is HV_KIND_YOURS */
    size_t n_kinds;
    const char *venue;     /**< "VLDB 2020", or NULL */
    int year;              /**< of publication; 0: unknown */
    const json_t *sets;    /**< knobs that it fixes: object path in a plan → value, or NULL */
    const char **searches; /**< what it decides */
    size_t n_searches;
    const char **verified; /**< names of its self-tests with numbers of the publication */
    size_t n_verified;
    const char *family; /**< of a row: the family's name, else NULL */
    bool shipped;       /**< its file lies in the shipped folder */
    const char *needs_model, *needs_jobs, *needs_mode; /**< NULL: any */
    struct hv_option_row *options;
    size_t n_options;
    bool has[HV_PLUGIN_FUNCTION_N];
    enum hv_effort effort;
    bool stale;      /**< its plans compute with stale weights */
    bool serves;     /**< it plans inference */
    bool file_order; /**< it takes node groups in the order of the cluster file; else in the
                        canonical order (hv_cluster_canonical) */
    bool as_given;   /**< its plans are what its options say: they may be beyond what the job's
                        runtime can run, and are then judged as if it could */
    bool in_folder;  /**< the folder of `path` is the plugin, its other files are modules */
    uint64_t hash;   /**< of the file's bytes, or of all Lua files of the folder but its
                        self-tests */
};

/** All plugins, sorted by id; of two with the same id the one found later wins. Owner:
 * hv_plugins_free. */
struct hv_plugins {
    struct hv_arena arena;
    json_t *meta; /**< keeps the option defaults alive */
    struct hv_plugin *items;
    size_t n;
    size_t n_run; /**< files whose chunk had to be run because the cache did not know them */
};

/**
 * Finds plugins in the shipped `plugins/` folder, $XDG_DATA_HOME/hetviz/plugins and the folders of
 * $HETVIZ_PLUGINS (separated by colons), each with its subfolders, and reads their metadata. A
 * subfolder with plugin.lua is one plugin; elsewhere each *.lua is one. A plugin that cannot be
 * read is an item with `error`. Errors: HV_EIO when the shipped folder is missing.
 */
enum hv_status hv_plugins_read(struct hv_plugins *out, struct hv_err *err) HV_NODISCARD;
/**
 * Reads the strategies of one file or folder with plugin.lua, without the cache: one, or the rows
 * of a family in their order. Errors: HV_EPLUGIN with file:line and what is wrong; HV_EIO.
 */
enum hv_status hv_plugins_read_file(struct hv_plugins *out, const char *path,
                                    struct hv_err *err) HV_NODISCARD;
/** True where this text names a plugin by its file or folder (it has a `/` or ends in `.lua`), not
 * by its id. */
bool hv_plugin_is_path(const char *name);
/** True where the plugin's files on disk, its self-tests apart, are unchanged since it was read.
 * False for a broken plugin. */
bool hv_plugin_is_current(const struct hv_plugin *p);
/** Frees it. */
void hv_plugins_free(struct hv_plugins *p);
/** The plugin of that id, or NULL. */
const struct hv_plugin *hv_plugins_find(const struct hv_plugins *p, const char *id);
/** True where the strategy is of the kind. */
bool hv_plugin_is_of(const struct hv_plugin *p, enum hv_kind kind);
/** True where the strategy stands under the heading of the kind; HV_KIND_N is the heading of broken
 * ones. One of two kinds stands under both; a plugin of the user's under HV_KIND_YOURS only. */
bool hv_plugin_stands_under(const struct hv_plugin *p, enum hv_kind kind);
/** Numbers of those of `p` [n] that stand under the kind, in the order of lists: by place, but
 * baselines that search before those that are entered by hand. `out` has room for n; returns how
 * many. O(n). */
size_t hv_plugins_under(const struct hv_plugin *p, size_t n, enum hv_kind kind, size_t *out);
/** Its citation: publication, venue and year where these do not name it, reference. Appended. */
void hv_plugin_cite(const struct hv_plugin *p, struct hv_str *out);
/** As hv_plugins_find; errors (HV_EUSAGE) name the nearest; a broken plugin is HV_EPLUGIN with its
 * error. */
enum hv_status hv_plugins_get(const struct hv_plugins *p, const char *id,
                              const struct hv_plugin **out, struct hv_err *err) HV_NODISCARD;

/**
 * Options from KEY=VALUE texts: checked against the rows, defaults filled in. *out is a new JSON
 * object (owner: caller). Errors: HV_EUSAGE naming option, expectation and the nearest key.
 */
enum hv_status hv_options_parse(const struct hv_plugin *p, const char *const *texts, size_t n,
                                json_t **out, struct hv_err *err) HV_NODISCARD;
/** The same from a JSON object of given values (`given` NULL = none). */
enum hv_status hv_options_check(const struct hv_plugin *p, const json_t *given, json_t **out,
                                struct hv_err *err) HV_NODISCARD;
/** Value of one option as it is written in KEY=VALUE, into buf ("" when there is none). Returns
 * buf. */
const char *hv_option_text(const json_t *value, char *buf, size_t cap);

/**
 * A commented plugin of one file that runs, as `hetviz new-plugin NAME.lua` writes it. `id` must be
 * a-z, 0-9, - or _. Errors: HV_EUSAGE.
 */
enum hv_status hv_plugin_skeleton(struct hv_str *out, const char *id,
                                  struct hv_err *err) HV_NODISCARD;
/**
 * Writes the same plugin as a folder: plugin.lua, a module and selftest.lua. The folder is made;
 * it must not exist. Errors: HV_EUSAGE (name, folder exists), HV_EIO.
 */
enum hv_status hv_plugin_skeleton_folder(const char *folder, const char *id,
                                         struct hv_err *err) HV_NODISCARD;
/** The same as a family: one engine, two rows ID-a and ID-b. */
enum hv_status hv_plugin_skeleton_family(const char *folder, const char *id,
                                         struct hv_err *err) HV_NODISCARD;

#endif
