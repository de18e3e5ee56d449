/* The table of members as data; see keys.h. */
#include "solver/io/own/doc/keys.h"

#define X(c, schema, where, ...) static const char *const names_##c[] = {__VA_ARGS__};
HV_KEYS_MAP(X)
#undef X

#define X(c, schema, where, ...) {schema, where, names_##c, HV_COUNT(names_##c)},
static const struct hv_key_set key_sets[HV_KEYS_N] = {HV_KEYS_MAP(X)};
#undef X

const struct hv_key_set *hv_keys_of(enum hv_keys k)
{
    return &key_sets[k];
}

enum hv_status hv_keys_check(const struct hv_jp *p, enum hv_keys k, struct hv_err *err)
{
    return hv_jp_object(p, key_sets[k].keys, key_sets[k].n, err);
}
