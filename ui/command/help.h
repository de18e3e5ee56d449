/** Texts made from the table of commands, from that of schedules and from that of import formats.
 */
#ifndef HV_UI_COMMAND_HELP_H
#define HV_UI_COMMAND_HELP_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include "ui/command/table.h"

struct hv_plugins;

/* ---- commands -------------------------------------------------------------------------------- */

/** Appends the whole help of a command: usage, text, options with their help. */
void hv_command_help(struct hv_str *out, const struct hv_command *c);
/** Appends the list of commands with summaries, as `hetviz help` prints it. */
void hv_command_list(struct hv_str *out);
/** Appends the manual page (roff) of the whole program, made from the tables. */
void hv_command_man(struct hv_str *out);

/* ---- completion (completion.c, words.c) ------------------------------------------------------ */

/** Appends a completion script. `shell`: "bash", "zsh" or "fish". Errors: HV_EUSAGE for others. */
enum hv_status hv_command_completion(struct hv_str *out, const char *shell,
                                     struct hv_err *err) HV_NODISCARD;
/**
 * Appends what the scripts offer, one word per line. `what`: "clusters", "models", "jobs", "plans",
 * "instances" (names of shipped files), "devices", "strategies", "schedules", "runtimes",
 * "targets", "columns" and "figures" (that every store of a sweep has), or "options" of the
 * strategy `name` as "key=" or "key=choice" (of several with , or + between; NULL: of all). `name`
 * also selects a schedule, whose options are given then. `lua` may be NULL. Errors: HV_EUSAGE for
 * another `what`.
 */
enum hv_status hv_completion_words(struct hv_str *out, const char *what, const char *name,
                                   const struct hv_plugins *lua, struct hv_err *err) HV_NODISCARD;

/* ---- the manual page beside commands (places.c) ---------------------------------------------- */

/** Appends the description of the program as roff; add_text escapes a text. */
void hv_description_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text));
/** Appends the sections FILES and ENVIRONMENT. */
void hv_places_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text));

/* ---- schedules (schedule_help.c) ------------------------------------------------------------- */

/** Appends the names and summaries of all schedules: the table of solver/sim, then the plugins with
 * order(p). `lua` may be NULL in all three. */
void hv_schedule_list(struct hv_str *out, const struct hv_plugins *lua);
/** Appends the description of one schedule, with its options. False: there is no such schedule. */
bool hv_schedule_help(struct hv_str *out, const char *name, const struct hv_plugins *lua);
/** Appends words for completion, one a line: all names, or (`name` not NULL) the options of one
 * schedule for `-o`, "key=" or "key=choice". */
void hv_schedule_words(struct hv_str *out, const char *name, const struct hv_plugins *lua);
/** Appends all schedules as roff; add_text escapes a text. */
void hv_schedule_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text));

/* ---- runtimes (runtime_help.c) --------------------------------------------------------------- */

/** Appends the names and titles of all runtimes. */
void hv_runtime_list(struct hv_str *out);
/** Appends what one runtime does by itself, with the sources. False: there is no such runtime. */
bool hv_runtime_help(struct hv_str *out, const char *name);
/** Appends the names of all runtimes for completion, one a line, each behind `key`. */
void hv_runtime_words(struct hv_str *out, const char *key);
/** Appends the names and titles of all targets. */
void hv_target_list(struct hv_str *out);
/** Appends what a target writes and what it can say of a plan. False: there is no such target. */
bool hv_target_help(struct hv_str *out, const char *name);
/** Appends the names of all targets for completion, one a line, each behind `key`. */
void hv_target_words(struct hv_str *out, const char *key);
/** Appends all targets as roff; add_text escapes a text. */
void hv_target_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text));
/** Appends all runtimes as roff; add_text escapes a text. */
void hv_runtime_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text));

/* ---- knobs (knob_help.c) --------------------------------------------------------------------- */

/** Appends every knob of plans and jobs, wrapped to 78 columns, and which of its values are
 * approximated. */
void hv_knob_list(struct hv_str *out);

/* ---- import formats (import_help.c) ---------------------------------------------------------- */

/** Appends the formats of `import` for its help; add_wrapped wraps a text at blanks. */
void hv_import_help(struct hv_str *out, void (*add_wrapped)(struct hv_str *out, const char *text));
/** The same as roff; add_text escapes a text. */
void hv_import_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text));
/** Appends the possible first arguments of `import`, separated by blanks: for completion. */
void hv_import_words(struct hv_str *out);

#endif
