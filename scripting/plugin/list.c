/* Looks plugins up in the list by id. */
#include "scripting/plugin/plugin.h"
#include "solver/base/str.h"

#include <stdlib.h>
#include <string.h>

const struct hv_plugin *hv_plugins_find(const struct hv_plugins *p, const char *id)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(p->items[i].id, id) == 0) {
            return &p->items[i];
        }
    }
    return NULL;
}

enum hv_status hv_plugins_get(const struct hv_plugins *p, const char *id,
                              const struct hv_plugin **out, struct hv_err *err)
{
    *out = hv_plugins_find(p, id);
    if (*out != NULL && (*out)->error == NULL) {
        return HV_OK;
    }
    if (*out != NULL) {
        return hv_err_set(err, HV_EPLUGIN, "%s", (*out)->error);
    }
    const char **names = hv_xcalloc(p->n + 1, sizeof *names);
    for (size_t i = 0; i < p->n; i++) {
        names[i] = p->items[i].id;
    }
    const char *near = hv_suggest(id, names, p->n);
    free(names);
    if (near != NULL) {
        return hv_err_set(err, HV_EUSAGE, "unknown strategy '%s', did you mean '%s'?", id, near);
    }
    return hv_err_set(err, HV_EUSAGE, "unknown strategy '%s' (see `hetviz strategies`)", id);
}
