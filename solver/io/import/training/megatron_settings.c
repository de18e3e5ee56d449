/*
 * Looks up settings of Megatron-LM. They are collected in megatron_args.c; they are interpreted in
 * megatron.c (job and layout) and megatron_model.c.
 */
#include "solver/io/import/training/megatron.h"
#include <string.h>

const struct hv__setting *hv__setting(struct hv__settings *s, const char *name)
{
    struct hv__setting *last = NULL;
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->items[i].name, name) == 0) {
            s->items[i].used = true;
            last = &s->items[i];
        }
    }
    bool says = last && !strchr("?$<", last->value[0] ? last->value[0] : 'x');
    return says ? last : NULL;
}

double hv__setting_number(struct hv__settings *s, const char *name)
{
    const struct hv__setting *x = hv__setting(s, name);
    return x ? hv__plain_number(hv__piece_of(x->value)) : HV_UNKNOWN;
}

bool hv__setting_on(struct hv__settings *s, const char *name)
{
    const struct hv__setting *x = hv__setting(s, name);
    return x && strcmp(x->value, "false") != 0 && strcmp(x->value, "False") != 0 &&
           strcmp(x->value, "0") != 0;
}
