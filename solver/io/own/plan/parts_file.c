/*
 * Small pieces that every part of the plan reader uses: keys, lists, device addresses, options.
 */
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/io/own/plan/read.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Device mentions in one plan: four times the largest cluster. */
#define MENTIONS_MAX ((size_t)1 << 24)

/* clang-format off */
#define X(name, ...) static const char *const name##_keys[] = {__VA_ARGS__};
HV_PLAN_OBJECT_MAP(X)
#undef X
#define X(name, ...) {#name, name##_keys, HV_COUNT(name##_keys)},
const struct hv_plan_object_keys hv_plan_objects[HV_PLAN_OBJECT_N] = {HV_PLAN_OBJECT_MAP(X)};
#undef X
/* clang-format on */

enum hv_status hv_plan_read_object(const struct hv_jp *p, enum hv_plan_object which,
                                   struct hv_err *err)
{
    return hv_jp_object(p, hv_plan_objects[which].keys, hv_plan_objects[which].n, err);
}

enum hv_status hv_plan_read_int(const struct hv_jp *p, const char *key, int64_t lo, int64_t hi,
                                int *out, struct hv_err *err)
{
    int64_t v = *out;
    HV_TRY(hv_jp_opt_int(p, key, lo, hi, &v, err));
    *out = (int)v;
    return HV_OK;
}

enum hv_status hv_plan_read_span(const struct hv_jp *p, int *from, int *to, struct hv_err *err)
{
    struct hv_jp layers = hv_jp_get(p, "layers");
    if (hv_jp_none(&layers)) {
        return HV_OK;
    }
    size_t n = 0;
    HV_TRY(hv_jp_array(&layers, &n, err));
    if (n != 2) {
        return hv_jp_expected(&layers, err, "a range [from, to) of whole blocks");
    }
    struct hv_jp at[2] = {hv_jp_at(&layers, 0), hv_jp_at(&layers, 1)};
    int64_t v[2] = {0, 0};
    HV_TRY(hv_jp_int(&at[0], 0, HV_PLAN_BLOCKS_MAX, &v[0], err));
    HV_TRY(hv_jp_int(&at[1], v[0], HV_PLAN_BLOCKS_MAX, &v[1], err));
    *from = (int)v[0];
    *to = (int)v[1];
    return HV_OK;
}

enum hv_status hv_plan_read_ints(struct hv_plan_reader *rd, const struct hv_jp *p, int64_t lo,
                                 int64_t hi, int **out, size_t *n, struct hv_err *err)
{
    size_t len = 0;
    HV_TRY(hv_jp_array(p, &len, err));
    int *items = hv_arena_new(rd->arena, int, len);
    for (size_t i = 0; i < len; i++) {
        struct hv_jp e = hv_jp_at(p, i);
        int64_t v = 0;
        HV_TRY(hv_jp_int(&e, lo, hi, &v, err));
        items[i] = (int)v;
    }
    *out = items;
    *n = len;
    return HV_OK;
}

enum hv_status hv_plan_read_strings(struct hv_plan_reader *rd, const struct hv_jp *p,
                                    const char ***out, size_t *n, struct hv_err *err)
{
    size_t len = 0;
    HV_TRY(hv_jp_array(p, &len, err));
    const char **items = hv_arena_new(rd->arena, const char *, len);
    for (size_t i = 0; i < len; i++) {
        struct hv_jp e = hv_jp_at(p, i);
        const char *text = NULL;
        HV_TRY(hv_jp_string(&e, &text, err));
        items[i] = hv_arena_strdup(rd->arena, text);
    }
    *out = items;
    *n = len;
    return HV_OK;
}

struct id_list {
    uint32_t *items;
    size_t n, cap;
};

static enum hv_status add_address(struct hv_plan_reader *rd, const struct hv_jp *p,
                                  struct id_list *ids, struct hv_err *err)
{
    const char *address = NULL;
    HV_TRY(hv_jp_string(p, &address, err));
    struct hv_arena_mark mark = hv_arena_mark(rd->arena);
    uint32_t *found = NULL;
    size_t n = 0;
    struct hv_err why = {0};
    if (hv_address_resolve(rd->cluster, address, rd->arena, &found, &n, &why) != HV_OK) {
        return hv_jp_fail(p, err, "%s", why.text);
    }
    rd->devices_named += n;
    if (rd->devices_named > MENTIONS_MAX) {
        return hv_jp_fail(p, err, "expected a plan that names fewer than %zu devices, found more",
                          MENTIONS_MAX);
    }
    hv_vec_reserve(ids, ids->n + n);
    if (n > 0) {
        memcpy(ids->items + ids->n, found, n * sizeof *found);
    }
    ids->n += n;
    hv_arena_rewind(rd->arena, mark);
    return HV_OK;
}

static enum hv_status add_addresses(struct hv_plan_reader *rd, const struct hv_jp *p,
                                    struct id_list *ids, struct hv_err *err)
{
    if (json_is_string(p->v)) {
        return add_address(rd, p, ids, err);
    }
    if (!json_is_array(p->v) || json_array_size(p->v) == 0) {
        return hv_jp_expected(p, err, "a device address such as \"a[0].0-7\" or a list of them");
    }
    for (size_t i = 0; i < json_array_size(p->v); i++) {
        struct hv_jp e = hv_jp_at(p, i);
        HV_TRY(add_address(rd, &e, ids, err));
    }
    return HV_OK;
}

enum hv_status hv_plan_read_devices(struct hv_plan_reader *rd, const struct hv_jp *p,
                                    uint32_t **out, size_t *n, struct hv_err *err)
{
    struct id_list ids = {0};
    enum hv_status s = add_addresses(rd, p, &ids, err);
    if (s == HV_OK) {
        *out = hv_arena_copy(rd->arena, ids.items, ids.n, sizeof *ids.items);
        *n = ids.n;
    }
    hv_vec_free(&ids);
    return s;
}

/* Text of an option's value: strings as they are, everything else as compact JSON. */
static const char *option_text(struct hv_arena *a, const json_t *v)
{
    if (json_is_string(v)) {
        return hv_arena_strdup(a, json_string_value(v));
    }
    struct hv_str text = {0};
    hv_json_write(&text, v, false);
    const char *copy = hv_arena_strndup(a, hv_str_cstr(&text), text.n);
    hv_str_free(&text);
    return copy;
}

static bool is_skipped(const char *key, const char *const *skip, size_t n_skip)
{
    if (strncmp(key, "x-", 2) == 0) {
        return true;
    }
    for (size_t i = 0; i < n_skip; i++) {
        if (strcmp(key, skip[i]) == 0) {
            return true;
        }
    }
    return false;
}

enum hv_status hv_plan_read_options(struct hv_plan_reader *rd, const struct hv_jp *p,
                                    const char *const *skip, size_t n_skip, struct hv_option **out,
                                    size_t *n, struct hv_err *err)
{
    if (!json_is_object(p->v)) {
        return hv_jp_expected(p, err, "an object of options");
    }
    struct hv_option *items = hv_arena_new(rd->arena, struct hv_option, json_object_size(p->v));
    size_t count = 0;
    const char *key = NULL;
    json_t *v = NULL;
    json_object_foreach(p->v, key, v)
    {
        if (is_skipped(key, skip, n_skip)) {
            continue;
        }
        if (json_is_object(v)) {
            struct hv_jp e = hv_jp_get(p, key);
            return hv_jp_expected(&e, err, "a number, text, true, false or a list");
        }
        items[count].key = hv_arena_strdup(rd->arena, key);
        items[count++].value = option_text(rd->arena, v);
    }
    *out = items;
    *n = count;
    return HV_OK;
}
