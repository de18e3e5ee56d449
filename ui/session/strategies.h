/** The strategies of a session and the options set for their runs. */
#ifndef HV_UI_SESSION_STRATEGIES_H
#define HV_UI_SESSION_STRATEGIES_H

#include "scripting/plugin/plugin.h"

struct hv_session;

/** All strategies, in menu order (broken ones have their error). The first call reads them where
 * the environment has `plugins_later`; a failure is logged and leaves the list empty. */
const struct hv_plugin *hv_session_strategies(const struct hv_session *s, size_t *n);
/** Names of all schedules that a plan may name: those of the table, then those written in Lua.
 * Owner: the caller frees the array. */
const char **hv_session_schedules(const struct hv_session *s, size_t *n);
/** Strategy of that id, or NULL. */
const struct hv_plugin *hv_session_strategy(const struct hv_session *s, const char *id);
/**
 * Reads the plugins again whose files changed since they were read, and that of `id` (may be NULL)
 * in any case; *n_read = number of replaced strategies. Pointers to strategies, their texts and
 * rows become invalid. Errors: HV_EPLUGIN (file:line) or HV_EIO of the plugin `id`, else of the
 * first; a strategy whose file cannot be read is unchanged. O(bytes of all files).
 */
enum hv_status hv_session_strategies_reload(struct hv_session *s, const char *id, size_t *n_read,
                                            struct hv_err *err) HV_NODISCARD;
/** Current value of an option as text: the value set, else the default. Appended to `out`. */
void hv_session_option(const struct hv_session *s, const char *strategy, const char *key,
                       struct hv_str *out);
/** True where a value is set for the option. */
bool hv_session_option_is_set(const struct hv_session *s, const char *strategy, const char *key);
/** Sets an option for the next runs (checked, one undo step, saved with the workspace); NULL text:
 * back to the default. */
enum hv_status hv_session_option_set(struct hv_session *s, const char *strategy, const char *key,
                                     const char *text, struct hv_err *err) HV_NODISCARD;

#endif
