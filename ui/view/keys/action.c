/* The action table as data. */
#include "ui/view/keys/action.h"

#include <string.h>

#include "solver/base/attr.h"

/* clang-format off */
static const struct hv_action_row rows[] = {
#define X(id, name, views, keys, label, help) {name, views, keys, label, help},
    HV_ACTION_MAP(X)
#undef X
};
/* clang-format on */

const struct hv_action_row *hv_action_row(enum hv_action a)
{
    return &rows[a < HV_ACT_N ? a : HV_ACT_NONE];
}

enum hv_action hv_action_find(const char *name)
{
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return (enum hv_action)i;
        }
    }
    return HV_ACT_N;
}

bool hv_action_in_view(enum hv_action a, const char *view)
{
    const char *s = hv_action_row(a)->views;
    if (strcmp(s, "*") == 0) {
        return true;
    }
    size_t n = strlen(view);
    while (*s) {
        size_t len = strcspn(s, ",");
        if (len == n && strncmp(s, view, n) == 0) {
            return true;
        }
        s += len + (s[len] == ',');
    }
    return false;
}
