/* Cluster files: any bytes are read or refused with a word; every address of a read cluster
 * resolves. */
#include "solver/base/vec.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read once and kept for all inputs. */
static const struct hv_device_catalogue *catalogue(void)
{
    static struct hv_device_catalogue devices;
    if (devices.n_kinds == 0 && hv_device_catalogue_read(&devices, NULL)) {
        abort();
    }
    return &devices;
}

static void visit(const struct hv_cluster *c)
{
    uint32_t ids[64];
    size_t n = 0, n_back = 0;
    struct hv_str s = {0};
    struct hv_arena a = {0};
    uint32_t *back = NULL;
    for (uint32_t i = 0; i < c->n_devices && n < HV_COUNT(ids); i += 1 + c->n_devices / 50) {
        ids[n++] = i;
        struct hv_path p = hv_cluster_path(c, 0, i);
        if (!(p.bytes_per_s > 0) || !(p.latency_s >= 0)) {
            abort();
        }
    }
    hv_address_format(c, ids, n, ",", &s);
    if (hv_address_resolve(c, hv_str_cstr(&s), &a, &back, &n_back, NULL) || n_back != n ||
        memcmp(back, ids, n * sizeof *ids) != 0) {
        abort();
    }
    hv_arena_free(&a);
    hv_str_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_cluster_doc d;
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err)) {
        return 0;
    }
    enum hv_status st = hv_cluster_doc_build(&d, json, catalogue(), &err);
    if (st) {
        if (err.text[0] == '\0') {
            abort(); /* a refusal without a word */
        }
        return 0;
    }
    visit(d.cluster);
    struct hv_str text = {0};
    hv_json_write(&text, d.json.root, true);
    if (text.n == 0) {
        abort();
    }
    hv_str_free(&text);
    hv_cluster_doc_free(&d);
    return 0;
}
