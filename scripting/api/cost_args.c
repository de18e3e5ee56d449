/*
 * Arguments that the calls of hv.cost share.
 */
#include "scripting/api/cost_int.h"

#include <string.h>

const struct hv_device_kind *hv__kind_by_name(const struct hv_cluster *c, const char *name)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        if (strcmp(c->kinds[i]->name, name) == 0) {
            return c->kinds[i];
        }
    }
    return NULL;
}

/** Recompute word or units joined by +. */
static unsigned recompute_of(lua_State *L, int i, const char *fn)
{
    const char *text = hv__text(L, i, fn, "recompute", "none");
    unsigned mask = HV_RC_NONE;

    if (strcmp(text, "none") == 0) {
        return HV_RC_NONE;
    }
    if (strcmp(text, "full") == 0) {
        return HV_RC_FULL;
    }
    if (strcmp(text, "selective") == 0) {
        return HV_RC_CORE;
    }
    while (text != NULL) {
        size_t len = strcspn(text, "+"), bit = 0;
        while (bit < hv_recompute_N && (strlen(hv_recompute_words[bit]) != len ||
                                        strncmp(hv_recompute_words[bit], text, len) != 0)) {
            bit++;
        }
        if (bit == hv_recompute_N) {
            luaL_error(L, "%s: recompute: expected none, selective, full or units joined by +", fn);
        }
        mask |= 1U << bit;
        text = text[len] == '+' ? text + len + 1 : NULL;
    }
    return mask;
}

struct hv_part_query hv__part_args(lua_State *L, const char *fn, const struct hv_job *job)
{
    return (struct hv_part_query){
        .tp = (int)hv__int(L, 1, fn, "tp", 1, 1, 4096),
        .cp = (int)hv__int(L, 1, fn, "cp", 1, 1, 4096),
        .ep = (int)hv__int(L, 1, fn, "ep", 1, 1, 4096),
        .sequence_parallel = hv__bool(L, 1, fn, "sequence_parallel", false),
        .sequences = hv__num(L, 1, fn, "micro_batch", 1, 1e-9, 1e9),
        .tokens = hv__num(L, 1, fn, "tokens", (double)job->sequence, 1, 1e9),
        .context = hv__num(L, 1, fn, "context", 0, 0, 1e9),
        .recompute = recompute_of(L, 1, fn)};
}
