/*
 * Device catalogue files (hetviz.devices/1) and single device objects. The defaults of a cluster
 * are chosen in cluster_file.c.
 */
#include "solver/io/own/cluster/device_file.h"

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/io/own/cluster/calibration_file.h"
#include "solver/io/own/cluster/profile_file.h"
#include "solver/io/own/doc/docs.h"
#include "solver/io/own/doc/keys.h"
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#define MAX_GIB    1e6 /* one device */
#define MAX_GBPS   1e6
#define MAX_TFLOPS 1e7
#define MAX_WATT   1e6
#define MAX_USD    1e6
#define MAX_DOMAIN 1000000

static const char *const class_words[HV_CLASS_N] = {"gpu", "tpu", "npu", "cpu"};

struct hv_device_kind hv_device_kind_unknown(const char *name)
{
    struct hv_device_kind k = {.name = name,
                               .memory_bytes = HV_UNKNOWN,
                               .memory_bytes_per_s = HV_UNKNOWN,
                               .matmul_flops_per_s = HV_UNKNOWN,
                               .link_bytes_per_s = HV_UNKNOWN,
                               .pcie_bytes_per_s = HV_UNKNOWN,
                               .tdp_w = HV_UNKNOWN};
    for (int i = 0; i < HV_PRECISION_N; i++) {
        k.flops_per_s[i] = HV_UNKNOWN;
    }
    return k;
}

/* A figure in the unit of the files, 0 < x ≤ most; kept as it is when absent. */
static enum hv_status read_figure(const struct hv_jp *p, const char *key, double most, double unit,
                                  double *io, struct hv_err *err)
{
    double x = HV_UNKNOWN;
    enum hv_status st = hv_jp_opt_number(p, key, 1e-9, most, &x, err);
    if (st == HV_OK && hv_known(x)) {
        *io = x * unit;
    }
    return st;
}

static enum hv_status read_text(const struct hv_jp *p, const char *key, struct hv_arena *arena,
                                const char **io, struct hv_err *err)
{
    const char *s = NULL;
    enum hv_status st = hv_jp_opt_string(p, key, &s, err);
    if (st == HV_OK && s) {
        *io = hv_arena_strdup(arena, s);
    }
    return st;
}

static enum hv_status read_flops(const struct hv_jp *p, struct hv_device_kind *k,
                                 struct hv_err *err)
{
    struct hv_jp f = hv_jp_get(p, "dense_TFLOPS");
    if (hv_jp_none(&f)) {
        return HV_OK;
    }
    enum hv_status st = hv_keys_check(&f, HV_KEYS_DEVICE_FLOPS, err);
    for (int i = 0; st == HV_OK && i < HV_PRECISION_N; i++) {
        st = read_figure(&f, hv_precision_name((enum hv_precision)i), MAX_TFLOPS, HV_TFLOPS,
                         &k->flops_per_s[i], err);
    }
    return st;
}

static enum hv_status read_link(const struct hv_jp *p, struct hv_arena *arena,
                                struct hv_device_kind *k, struct hv_err *err)
{
    struct hv_jp l = hv_jp_get(p, "link");
    if (hv_jp_none(&l)) {
        return HV_OK;
    }
    int64_t domain = k->link_domain;
    enum hv_status st = hv_keys_check(&l, HV_KEYS_DEVICE_LINK, err);
    if (st == HV_OK) {
        st = read_text(&l, "kind", arena, &k->link_kind, err);
    }
    if (st == HV_OK) {
        st = read_figure(&l, "bandwidth_GBps", MAX_GBPS, HV_GBPS, &k->link_bytes_per_s, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(&l, "domain", 1, MAX_DOMAIN, &domain, err);
    }
    k->link_domain = (int)domain;
    return st;
}

static enum hv_status read_price(const struct hv_jp *p, struct hv_arena *arena,
                                 struct hv_price *out, struct hv_err *err)
{
    *out = (struct hv_price){.usd_per_h = HV_UNKNOWN, .spot_usd_per_h = HV_UNKNOWN};
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"provider", &out->provider},
                 {"instance", &out->instance},
                 {"date", &out->date},
                 {"source", &out->source}};
    enum hv_status st = hv_keys_check(p, HV_KEYS_DEVICE_PRICE, err);
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(texts); i++) {
        st = read_text(p, texts[i].key, arena, texts[i].to, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_number(p, "usd_per_hour", 0, MAX_USD, &out->usd_per_h, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_number(p, "spot_usd_per_hour", 0, MAX_USD, &out->spot_usd_per_h, err);
    }
    return st ? st : hv_jp_opt_bool(p, "verified", &out->verified, err);
}

static enum hv_status read_prices(const struct hv_jp *p, struct hv_arena *arena,
                                  struct hv_device_kind *k, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(p, "prices");
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    size_t n = 0;
    enum hv_status st = hv_jp_array(&list, &n, err);
    struct hv_price *prices = hv_arena_new(arena, struct hv_price, n + 1);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_price(&at, arena, &prices[i], err);
    }
    k->prices = prices;
    k->n_prices = st ? 0 : n;
    return st;
}

static enum hv_status read_words(const struct hv_jp *p, struct hv_arena *arena,
                                 struct hv_device_kind *k, struct hv_err *err)
{
    const struct {
        const char *key;
        const char **to;
    } texts[] = {{"vendor", &k->vendor},      {"arch", &k->arch},
                 {"fabric", &k->fabric},      {"memory_type", &k->memory_type},
                 {"source", &k->spec_source}, {"note", &k->note}};
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(texts); i++) {
        st = read_text(p, texts[i].key, arena, texts[i].to, err);
    }
    static const char *const rates_words[] = {"measured", "plain"};
    int cls = (int)k->cls, rates = k->plain_rates;
    int64_t year = k->year;
    if (st == HV_OK) {
        st = hv_jp_opt_word(p, "class", class_words, HV_CLASS_N, &cls, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_int(p, "year", 1970, 2100, &year, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_word(p, "rates", rates_words, HV_COUNT(rates_words), &rates, err);
    }
    k->plain_rates = rates == 1;
    k->cls = (enum hv_device_class)cls;
    k->year = (int)year;
    return st ? st : hv_jp_opt_bool(p, "verified", &k->spec_verified, err);
}

enum hv_status hv_device_kind_read(const struct hv_jp *p, struct hv_arena *arena,
                                   struct hv_device_kind *k, struct hv_err *err)
{
    const struct {
        const char *key;
        double most, unit;
        double *to;
    } figures[] = {{"memory_GiB", MAX_GIB, HV_GIB, &k->memory_bytes},
                   {"bandwidth_GBps", MAX_GBPS, HV_GBPS, &k->memory_bytes_per_s},
                   {"matmul_TFLOPS", MAX_TFLOPS, HV_TFLOPS, &k->matmul_flops_per_s},
                   {"pcie_GBps", MAX_GBPS, HV_GBPS, &k->pcie_bytes_per_s},
                   {"tdp_W", MAX_WATT, 1, &k->tdp_w}};
    enum hv_status st = read_words(p, arena, k, err);
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(figures); i++) {
        st = read_figure(p, figures[i].key, figures[i].most, figures[i].unit, figures[i].to, err);
    }
    if (st == HV_OK) {
        st = read_flops(p, k, err);
    }
    if (st == HV_OK) {
        st = read_link(p, arena, k, err);
    }
    return st ? st : read_prices(p, arena, k, err);
}

/* Values at the head of the file hold for each of its kinds that has none of its own. */
static enum hv_status read_one(const struct hv_jp *root, const struct hv_jp *p,
                               struct hv_device_catalogue *c, struct hv_err *err)
{
    const char *name = NULL;
    struct hv_jp at_name = {0};
    enum hv_status st = hv_keys_check(p, HV_KEYS_DEVICE, err);
    if (st == HV_OK) {
        st = hv_jp_need(p, "name", "the name of the device", &at_name, err);
    }
    if (st == HV_OK) {
        st = hv_jp_string(&at_name, &name, err);
    }
    if (st) {
        return st;
    }
    if (hv_device_find(c, name)) {
        return hv_jp_fail(&at_name, err, "the device \"%.80s\" is in the catalogue twice", name);
    }
    struct hv_device_kind k = hv_device_kind_unknown(hv_arena_strdup(&c->arena, name));
    int cls = 0;
    st = read_text(root, "vendor", &c->arena, &k.vendor, err);
    if (st == HV_OK) {
        st = read_text(root, "fabric", &c->arena, &k.fabric, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_word(root, "class", class_words, HV_CLASS_N, &cls, err);
    }
    k.cls = (enum hv_device_class)cls;
    k.calibration = hv_calibration_find(c, name);
    if (st == HV_OK) {
        st = hv_device_kind_read(p, &c->arena, &k, err);
    }
    c->kinds[c->n_kinds] = k;
    c->n_kinds += st == HV_OK;
    return st;
}

enum hv_status hv_device_catalogue_add(struct hv_device_catalogue *c, const struct hv_json *json,
                                       struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(json), list = {0};
    size_t n = 0;
    enum hv_status st = hv_jp_format(&root, "hetviz.devices/1", err);
    if (st == HV_OK) {
        st = hv_keys_check(&root, HV_KEYS_DEVICES, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(&root, "devices", "a list of device kinds", &list, err);
    }
    if (st == HV_OK) {
        st = hv_jp_array(&list, &n, err);
    }
    struct hv_device_kind *more =
        hv_arena_new(&c->arena, struct hv_device_kind, c->n_kinds + n + 1);
    if (c->n_kinds) {
        memcpy(more, c->kinds, c->n_kinds * sizeof *more);
    }
    c->kinds = more;
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = read_one(&root, &at, c, err);
    }
    return st;
}

/* Adds the kinds of one file to the catalogue. */
typedef enum hv_status add_fn(struct hv_device_catalogue *c, const struct hv_json *json,
                              struct hv_err *err);

static enum hv_status read_file(struct hv_device_catalogue *c, const char *path, add_fn *add,
                                struct hv_err *err)
{
    struct hv_str text = {0};
    struct hv_json json = {0};
    enum hv_status st = hv_file_read(path, &text, err);
    if (st == HV_OK) {
        st = hv_json_parse(&json, hv_str_cstr(&text), text.n, path, err);
    }
    if (st == HV_OK) {
        st = add(c, &json, err);
    }
    hv_json_free(&json);
    hv_str_free(&text);
    return st;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of all .json files of the folder, sorted, so that the order does not depend on the disk. */
static enum hv_status list_folder(const char *folder, struct hv_arena *arena, char ***names,
                                  size_t *n, struct hv_err *err)
{
    DIR *d = opendir(folder);
    if (!d) {
        return hv_err_set(err, HV_EIO, "cannot open the data folder %s", folder);
    }
    HV_VEC(char *) found = {0};
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        const char *dot = strrchr(e->d_name, '.');
        if (dot && strcmp(dot, ".json") == 0 && e->d_name[0] != '.') {
            hv_vec_push(&found, hv_arena_printf(arena, "%s/%s", folder, e->d_name));
        }
    }
    closedir(d);
    if (found.n) {
        qsort(found.items, found.n, sizeof *found.items, compare_names);
        *names = hv_arena_copy(arena, found.items, found.n, sizeof *found.items);
    }
    *n = found.n;
    hv_vec_free(&found);
    return HV_OK;
}

static enum hv_status read_all(struct hv_device_catalogue *c, const char *folder, add_fn *add,
                               struct hv_err *err)
{
    char **names = NULL;
    size_t n = 0;
    enum hv_status st = list_folder(folder, &c->arena, &names, &n, err);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        st = read_file(c, names[i], add, err);
    }
    return st;
}

static enum hv_status read_folder(struct hv_device_catalogue *c, const char *where, add_fn *add,
                                  struct hv_err *err)
{
    struct hv_str folder = {0};
    enum hv_status st = hv_data_path(&folder, where, err);
    if (st == HV_OK) {
        st = read_all(c, hv_str_cstr(&folder), add, err);
    }
    hv_str_free(&folder);
    return st;
}

/* Reads what the user measured: a folder of the data folder, which most users do not have. */
static enum hv_status read_own(struct hv_device_catalogue *c, const char *where, add_fn *add,
                               struct hv_err *err)
{
    struct hv_str folder = {0};
    enum hv_status st = HV_OK;
    if (hv_user_dir(&folder, HV_DIR_DATA, NULL) == HV_OK) {
        hv_str_addf(&folder, "/%s", where);
        if (access(hv_str_cstr(&folder), F_OK) == 0) {
            st = read_all(c, hv_str_cstr(&folder), add, err);
        }
    }
    hv_str_free(&folder);
    return st;
}

enum hv_status hv_device_catalogue_own_profiles(struct hv_device_catalogue *c, struct hv_err *err)
{
    return read_own(c, "profiles", hv_profile_add, err);
}

/* The first class that names a device counts: calibrations on the user's own runs come first. */
static enum hv_status read_catalogue(struct hv_device_catalogue *out, bool own_calibrations,
                                     struct hv_err *err)
{
    *out = (struct hv_device_catalogue){0};
    enum hv_status st =
        own_calibrations ? read_own(out, HV_CALIBRATIONS_FOLDER, hv_calibration_add, err) : HV_OK;
    if (st == HV_OK) {
        st = read_folder(out, "share/calibration", hv_calibration_add, err);
    }
    if (st == HV_OK) {
        st = read_folder(out, "share/devices", hv_device_catalogue_add, err);
    }
    if (st == HV_OK) {
        st = read_folder(out, "share/profiles", hv_profile_add, err);
    }
    if (st == HV_OK) {
        st = hv_device_catalogue_own_profiles(out, err);
    }
    if (st) {
        hv_device_catalogue_free(out);
    }
    return st;
}

enum hv_status hv_device_catalogue_read(struct hv_device_catalogue *out, struct hv_err *err)
{
    return read_catalogue(out, true, err);
}

enum hv_status hv_device_catalogue_read_shipped(struct hv_device_catalogue *out, struct hv_err *err)
{
    return read_catalogue(out, false, err);
}
