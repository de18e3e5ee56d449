/* Reads instances of stages with copies. The solvers are in solver/optim. */
#include "solver/base/units.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/instance/partition_int.h"
#include <math.h>

#define MAX_NUMBERS ((size_t)4 << 20)

/* A list of n numbers; zeros where the key is missing. */
static enum hv_status read_list(struct hv_arena *a, const struct hv_jp *width, const char *key,
                                size_t n, double **out, struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(width, key);
    size_t have = 0;
    *out = hv_arena_new(a, double, n + 1);
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    enum hv_status st = hv_jp_array(&list, &have, err);
    if (st == HV_OK && have != n) {
        return hv_jp_fail(&list, err, "expected %zu numbers, one per layer, found %zu", n, have);
    }
    for (size_t l = 0; l < n && st == HV_OK; l++) {
        struct hv_jp x = hv_jp_at(&list, l);
        st = hv_jp_number(&x, 0, 1e15, &(*out)[l], err);
    }
    return st;
}

/* One way to run the layers: three lists. */
static enum hv_status read_option(struct hv_arena *a, const struct hv_jp *at, size_t n, size_t step,
                                  struct hv_replica_option *out, struct hv_err *err)
{
    double *time, *fixed, *held;
    struct hv_jp need;
    enum hv_status st = hv_keys_check(at, HV_KEYS_INSTANCE_WAY, err);
    if (st == HV_OK) {
        st = hv_jp_need(at, "time_ms", "one number per layer", &need, err);
    }
    if (st == HV_OK) {
        st = read_list(a, at, "time_ms", n, &time, err);
    }
    if (st == HV_OK) {
        st = read_list(a, at, "fixed_GiB", n, &fixed, err);
    }
    if (st == HV_OK) {
        st = read_list(a, at, "held_GiB", n, &held, err);
    }
    for (size_t l = 0; l < n && st == HV_OK; l++) {
        out[l * step] = (struct hv_replica_option){time[l], fixed[l], held[l]};
    }
    return st;
}

static enum hv_status read_width(struct hv_arena *a, const struct hv_jp *at, size_t n,
                                 struct hv_replica_width *w, struct hv_err *err)
{
    struct hv_jp list;
    double *sync = NULL, *comm = NULL;
    int64_t width = 1;
    size_t n_options = 0;
    enum hv_status st = hv_keys_check(at, HV_KEYS_INSTANCE_WIDTH, err);
    if (st == HV_OK) {
        st = hv_jp_opt_int(at, "width", 1, 1 << 20, &width, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(at, "options", "a list of ways to run the layers", &list, err);
    }
    if (st == HV_OK) {
        st = hv_jp_array(&list, &n_options, err);
    }
    if (st == HV_OK && (n_options == 0 || n_options > MAX_NUMBERS / n)) {
        return hv_jp_expected(&list, err, "at least one way to run the layers, and not too many");
    }
    if (st == HV_OK) {
        st = read_list(a, at, "sync_ms", n, &sync, err);
    }
    if (st == HV_OK) {
        st = read_list(a, at, "comm_ms", n, &comm, err);
    }
    if (st != HV_OK) {
        return st;
    }
    struct hv_replica_option *options = hv_arena_new(a, struct hv_replica_option, n * n_options);
    struct hv_replica_layer *layers = hv_arena_new(a, struct hv_replica_layer, n);
    double *cuts = hv_arena_new(a, double, n + 1);
    for (size_t k = 0; k < n_options && st == HV_OK; k++) {
        struct hv_jp one = hv_jp_at(&list, k);
        st = read_option(a, &one, n, n_options, options + k, err);
    }
    for (size_t l = 0; l < n && st == HV_OK; l++) {
        layers[l] = (struct hv_replica_layer){options + l * n_options, n_options, sync[l]};
        cuts[l + 1] = comm[l];
    }
    *w = (struct hv_replica_width){.width = (size_t)width, .layers = layers, .cuts = cuts};
    return st;
}

enum hv_status hv__instance_read_replicas(struct hv_instance *in, const struct hv_jp *root,
                                          struct hv_err *err)
{
    struct hv_replicas *p = &in->replicas;
    int64_t layers = 0, devices = 0;
    struct hv_jp at;
    p->memory = HUGE_VAL;
    enum hv_status st = hv_keys_check(root, HV_KEYS_INSTANCE_REPLICAS, err);
    if (st == HV_OK) {
        st = hv_jp_need(root, "layers", "a whole number", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_int(&at, 1, (int64_t)HV_PARTITION_MAX_LAYERS, &layers, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(root, "devices", "a whole number", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_int(&at, 1, 1 << 16, &devices, err);
    }
    if (st == HV_OK) {
        st = hv_jp_opt_number(root, "capacity_GiB", 0, 1e15, &p->memory, err);
    }
    if (st == HV_OK) {
        st = hv_jp_need(root, "widths", "a list of widths", &at, err);
    }
    if (st == HV_OK) {
        st = hv_jp_array(&at, &p->n_widths, err);
    }
    if (st == HV_OK && (p->n_widths == 0 || p->n_widths > 64)) {
        return hv_jp_expected(&at, err, "1 to 64 widths");
    }
    struct hv_replica_width *widths =
        hv_arena_new(&in->arena, struct hv_replica_width, p->n_widths + 1);
    p->widths = widths;
    p->n_layers = (size_t)layers;
    p->n_devices = (size_t)devices;
    for (size_t w = 0; w < p->n_widths && st == HV_OK; w++) {
        struct hv_jp one = hv_jp_at(&at, w);
        st = read_width(&in->arena, &one, p->n_layers, &widths[w], err);
    }
    return st;
}
