/** The strategies of a session: the plugins it was given, or those that are read at first use. */
#ifndef HV_UI_SESSION_RUN_STRATEGIES_H
#define HV_UI_SESSION_RUN_STRATEGIES_H

#include "scripting/plugin/plugin.h"
#include "solver/base/json/json.h"
#include "ui/session/log/log.h"

/** The strategies. Owner: hv__strategies_free. */
struct hv__strategies;

/** `plugins` [n] in menu order, borrowed. `later`: no plugins are given and hv_plugins_read reads
 * them at the first use, to open faster. */
struct hv__strategies *hv__strategies_new(const struct hv_plugin *plugins, size_t n, bool later);
void hv__strategies_free(struct hv__strategies *l);
/** All of them, in menu order (broken ones have their error). A failure of the reading is logged;
 * there are none then. Valid until the next reload. */
const struct hv_plugin *hv__strategies_items(struct hv__strategies *l, size_t *n);
/** The same as a list for the functions of scripting/plugin/plugin.h, which only read it. */
struct hv_plugins hv__strategies_list(struct hv__strategies *l);
/** The strategy of that id, or NULL. */
const struct hv_plugin *hv__strategies_find(struct hv__strategies *l, const char *id);
/** Checks a list [{"id", "options"}] by the options that the plugins declare; options of a missing
 * strategy are accepted. Errors: HV_EINPUT, HV_EUSAGE with the option. */
enum hv_status hv__strategies_check(struct hv__strategies *l, json_t *tree,
                                    struct hv_err *err) HV_NODISCARD;
/**
 * Reads those again whose files changed, and that of `id` (may be NULL) in any case; *n_read counts
 * those that took the place of older ones, each of which is logged. Errors: HV_EPLUGIN (file:line)
 * or HV_EIO of the plugin `id`, else of the first; such a strategy is unchanged. O(bytes of all
 * files).
 */
enum hv_status hv__strategies_reload(struct hv__strategies *l, struct hv__log *log, const char *id,
                                     size_t *n_read, struct hv_err *err) HV_NODISCARD;

#endif
