/*
 * Device kinds of a cluster file: names looked up in `devices` and in the catalogue, bases
 * followed, and everything copied, so that the cluster outlives the catalogue.
 */
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/inventory/profile.h"
#include "solver/io/own/cluster/calibration_file.h"
#include "solver/io/own/cluster/cluster_int.h"
#include "solver/io/own/cluster/device_file.h"
#include "solver/io/own/doc/keys.h"
#include <ctype.h>
#include <string.h>

#define MAX_BASES 32

/* A chain of `base` under construction; `up` is the kind that named this one as its base. */
struct chain {
    const struct chain *up;
    const char *name;
    int depth;
};

static struct hv_device_kind *find_used(const struct hv_cluster_build *b, const char *name)
{
    const json_t *at = json_object_get(b->kind_at, name);
    return at != NULL ? b->used[json_integer_value(at)] : NULL;
}

static struct hv_device_kind *keep(struct hv_cluster_build *b, const struct hv_device_kind *k)
{
    if (b->n_used == b->cap_used) {
        b->cap_used = b->cap_used ? 2 * b->cap_used : HV_VEC_MIN;
        b->used = hv_xrealloc(b->used, b->cap_used, sizeof(struct hv_device_kind *));
    }
    struct hv_device_kind *mine = hv_arena_copy(&b->c->arena, k, 1, sizeof *k);
    json_object_set_new(b->kind_at, k->name, json_integer((json_int_t)b->n_used));
    b->used[b->n_used++] = mine;
    return mine;
}

static void copy_calibration(struct hv_arena *a, struct hv_device_kind *k)
{
    if (!k->calibration) {
        return;
    }
    struct hv_calibration *mine = hv_arena_copy(a, k->calibration, 1, sizeof *mine);
    mine->name = hv_arena_strdup(a, mine->name);
    mine->devices = hv_arena_strdup(a, mine->devices);
    mine->source = hv_arena_strdup(a, mine->source);
    mine->like = mine->like ? hv_arena_strdup(a, mine->like) : NULL;
    k->calibration = mine;
}

static void copy_kind(struct hv_arena *a, const struct hv_device_kind *from,
                      struct hv_device_kind *to)
{
    *to = *from;
    const char **texts[] = {&to->name,   &to->vendor,    &to->arch,        &to->memory_type,
                            &to->fabric, &to->link_kind, &to->spec_source, &to->note};
    for (size_t i = 0; i < HV_COUNT(texts); i++) {
        *texts[i] = hv_arena_strdup(a, *texts[i]);
    }
    struct hv_price *p = hv_arena_new(a, struct hv_price, from->n_prices + 1);
    for (size_t i = 0; i < from->n_prices; i++) {
        p[i] = from->prices[i];
        p[i].provider = hv_arena_strdup(a, p[i].provider);
        p[i].instance = hv_arena_strdup(a, p[i].instance);
        p[i].date = hv_arena_strdup(a, p[i].date);
        p[i].source = hv_arena_strdup(a, p[i].source);
    }
    to->prices = p;
    to->profile = hv_profile_copy(a, from->profile);
    copy_calibration(a, to);
}

static enum hv_status unknown_device(struct hv_cluster_build *b, const struct hv_jp *at,
                                     const char *name)
{
    size_t n = b->catalogue->n_kinds, own = json_object_size(b->own.v), i = 0;
    const char **names = hv_xcalloc(n + own + 1, sizeof *names);
    const char *key;
    json_t *v;
    json_object_foreach(b->own.v, key, v)
    {
        names[i++] = key;
    }
    for (size_t k = 0; k < n; k++) {
        names[i++] = b->catalogue->kinds[k].name;
    }
    const char *near = hv_suggest(name, names, i);
    hv_jp_fail(at, b->err,
               "expected a device of the catalogue or of \"devices\", found \"%.80s\"%s%s%s", name,
               near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    free(names);
    return HV_EINPUT;
}

/* Collectives run inside one fabric; without a given fabric it is the vendor, or the kind
 * itself. */
static void settle_fabric(struct hv_arena *a, struct hv_device_kind *k)
{
    if (k->fabric) {
        return;
    }
    char *f = hv_arena_strdup(a, k->vendor ? k->vendor : k->name);
    for (char *c = f; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    k->fabric = f;
}

static enum hv_status check_complete(const struct hv_jp *p, const struct hv_device_kind *k,
                                     struct hv_err *err)
{
    if (!hv_known(k->memory_bytes)) {
        return hv_jp_fail(p, err, "the device \"%.80s\" has no memory_GiB; give it or a \"base\"",
                          k->name);
    }
    for (int i = 0; i < HV_PRECISION_N; i++) {
        if (hv_known(k->flops_per_s[i])) {
            return HV_OK;
        }
    }
    return hv_jp_fail(p, err, "the device \"%.80s\" has no dense_TFLOPS; give them or a \"base\"",
                      k->name);
}

static enum hv_status find_kind(struct hv_cluster_build *b, const struct hv_jp *at,
                                const char *name, const struct chain *up,
                                const struct hv_device_kind **out);

/* The kind a definition starts from: its base, else the catalogue's kind of the same name. */
static enum hv_status start_from(struct hv_cluster_build *b, const struct hv_jp *def,
                                 const struct chain *me, struct hv_device_kind *k)
{
    struct hv_jp base = hv_jp_get(def, "base");
    const struct hv_device_kind *from = hv_device_find(b->catalogue, me->name);
    const char *name = me->name;
    enum hv_status st = HV_OK;
    if (!hv_jp_none(&base)) {
        st = hv_jp_string(&base, &name, b->err);
        if (st == HV_OK && strcmp(name, me->name) != 0) {
            st = find_kind(b, &base, name, me, &from);
        } else if (st == HV_OK && !from) {
            st = hv_jp_fail(&base, b->err, "the device \"%.80s\" is its own base", name);
        }
    }
    if (st == HV_OK && from) {
        copy_kind(&b->c->arena, from, k);
    }
    return st;
}

static enum hv_status build_own(struct hv_cluster_build *b, const char *name,
                                const struct chain *up, const struct hv_device_kind **out)
{
    struct chain me = {up, name, up ? up->depth + 1 : 0};
    struct hv_jp def = hv_jp_get(&b->own, name);
    for (const struct chain *i = up; i; i = i->up) {
        if (strcmp(i->name, name) == 0) {
            return hv_jp_fail(&def, b->err, "the bases of \"%.80s\" run in a circle", name);
        }
    }
    if (me.depth > MAX_BASES) {
        return hv_jp_fail(&def, b->err, "more than %d bases in a row", MAX_BASES);
    }
    struct hv_device_kind k = hv_device_kind_unknown(name);
    enum hv_status st;
    if ((st = hv_keys_check(&def, HV_KEYS_OWN_DEVICE, b->err)) ||
        (st = start_from(b, &def, &me, &k)) ||
        (st = hv_device_kind_read(&def, &b->c->arena, &k, b->err)) ||
        (st = check_complete(&def, &k, b->err))) {
        return st;
    }
    k.name = hv_arena_strdup(&b->c->arena, name);
    if (!k.calibration) {
        k.calibration = hv_calibration_find(b->catalogue, name);
        copy_calibration(&b->c->arena, &k);
    }
    settle_fabric(&b->c->arena, &k);
    *out = keep(b, &k);
    return HV_OK;
}

static enum hv_status find_kind(struct hv_cluster_build *b, const struct hv_jp *at,
                                const char *name, const struct chain *up,
                                const struct hv_device_kind **out)
{
    const struct hv_device_kind *k = find_used(b, name);
    if (k) {
        *out = k;
        return HV_OK;
    }
    if (json_object_get(b->own.v, name)) {
        return build_own(b, name, up, out);
    }
    k = hv_device_find(b->catalogue, name);
    if (!k) {
        return unknown_device(b, at, name);
    }
    struct hv_device_kind mine;
    copy_kind(&b->c->arena, k, &mine);
    settle_fabric(&b->c->arena, &mine);
    *out = keep(b, &mine);
    return HV_OK;
}

enum hv_status hv__cluster_kind(struct hv_cluster_build *b, const struct hv_jp *name,
                                const struct hv_device_kind **out)
{
    const char *s = NULL;
    enum hv_status st = hv_jp_string(name, &s, b->err);
    return st ? st : find_kind(b, name, s, NULL, out);
}

enum hv_status hv__cluster_own_kinds(struct hv_cluster_build *b)
{
    if (!b->own.v) {
        return HV_OK;
    }
    if (!json_is_object(b->own.v)) {
        return hv_jp_expected(&b->own, b->err, "an object of device kinds by name");
    }
    const char *key;
    json_t *v;
    json_object_foreach(b->own.v, key, v)
    {
        const struct hv_device_kind *k;
        enum hv_status st = find_kind(b, &b->own, key, NULL, &k);
        if (st) {
            return st;
        }
    }
    return HV_OK;
}
