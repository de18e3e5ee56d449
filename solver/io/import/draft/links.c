/*
 * Links of a node: NVLink counts of a topology are converted to bandwidths by the generation of the
 * card. Measured figures take precedence over counted ones; figures that no file gives come from
 * the catalogue.
 */
#include "solver/io/import/draft/draft.h"
#include <string.h>

/* Bytes per second of one NVLink, one direction. Sources: NVIDIA P100, V100, A100, H100 and GB200
 * architecture papers; GA102 paper for the desktop cards (4 links of 14.0625 GB/s). */
static double nvlink_rate(const struct hv_device_kind *k)
{
    static const struct {
        const char *arch;
        double bytes_per_s;
    } rows[] = {{"Pascal", 20e9}, {"Volta", 25e9},  {"Turing", 25e9},    {"Ampere", 25e9},
                {"Ada", 25e9},    {"Hopper", 25e9}, {"Blackwell", 50e9}, {"Blackwell Ultra", 50e9}};
    bool small = k->arch && strcmp(k->arch, "Ampere") == 0 && k->link_bytes_per_s < 60e9;
    for (size_t i = 0; k->arch && i < HV_COUNT(rows); i++) {
        if (strcmp(k->arch, rows[i].arch) == 0) {
            return small ? 14.0625e9 : rows[i].bytes_per_s;
        }
    }
    return 25e9;
}

/* Usual speed of one network card beside a generation of devices. */
static double usual_nic(const struct hv_device_kind *k)
{
    const char *arch = k->arch ? k->arch : "";
    if (strcmp(arch, "Hopper") == 0 || strncmp(arch, "Blackwell", 9) == 0) {
        return 50e9;
    }
    return strcmp(arch, "Ampere") == 0 ? 25e9 : 12.5e9;
}

static const struct hv_device_kind *first_kind(const struct hv__node *n)
{
    return n->cards.n > 0 ? n->cards.items[0].kind : NULL;
}

static json_t *link_json(const char *kind, double bytes_per_s, double latency_s)
{
    json_t *o = json_pack("{s:s}", "kind", kind);
    json_object_set_new(o, "bandwidth_GBps", hv_json_num(round(bytes_per_s / 1e6) / 1e3));
    if (hv_known(latency_s)) {
        json_object_set_new(o, "latency_us", hv_json_num(round(latency_s / HV_US * 100) / 100));
    }
    return o;
}

static double pcie_of(const struct hv__node *n)
{
    double least = HV_UNKNOWN;
    for (size_t i = 0; i < n->cards.n; i++) {
        const struct hv__card *c = &n->cards.items[i];
        double x = hv_or(c->pcie_bytes_per_s, c->kind ? c->kind->pcie_bytes_per_s : HV_UNKNOWN);
        least = hv_known(least) ? fmin(least, hv_or(x, least)) : x;
    }
    return hv_or(least, HV_PCIE_BYTES_PER_S);
}

/* Links of device i to all others, and whether it has one to each of them. */
static int links_of(const struct hv__links *l, uint32_t i, bool *all)
{
    int sum = 0;
    for (uint32_t k = 0; k < l->n; k++) {
        int nv = l->nv[i * l->n + k];
        sum += nv;
        *all = *all && (k == i || nv > 0);
    }
    return sum;
}

/* Sets of devices connected by NVLink: island[i] is the first device of i's island. */
static void find_islands(const struct hv__links *l, uint32_t *island)
{
    for (uint32_t i = 0; i < l->n; i++) {
        island[i] = i;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < l->n; i++) {
            for (uint32_t k = 0; k < l->n; k++) {
                if (l->nv[i * l->n + k] > 0 && island[k] < island[i]) {
                    island[i] = island[k];
                    changed = true;
                }
            }
        }
    }
}

/* `intra.groups`: the islands laid side by side (the order of equal devices does not matter). */
static json_t *islands_json(struct hv_import *im, const struct hv__node *n, const uint32_t *island)
{
    const struct hv__links *l = &n->links;
    double rate = hv_or(l->nvlink_bytes_per_s, nvlink_rate(first_kind(n)));
    json_t *o = link_json("pcie", pcie_of(n), HV_UNKNOWN), *groups = json_array();
    uint32_t slot = 0;
    bool moved = false;
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t size = 0, last = i;
        int least = 255;
        for (uint32_t k = i; island[i] == i && k < l->n; k++) {
            if (island[k] == i) {
                bool all = true;
                int sum = links_of(l, k, &all);
                least = sum < least ? sum : least;
                moved = moved || k > last + 1;
                last = k;
                size++;
            }
        }
        if (size > 1) {
            json_t *g = link_json("nvlink", least * rate, HV_UNKNOWN);
            json_object_set_new(g, "devices", json_sprintf("%u-%u", slot, slot + size - 1));
            json_array_append_new(groups, g);
        }
        slot += size;
    }
    if (moved) {
        hv__note(im, HV_IMPORT_GUESSED,
                 "devices joined by NVLink are not numbered side by side: their order was changed");
    }
    hv__note(im, HV_IMPORT_UNDERSTOOD, "NVLink joins %zu groups of devices, PCIe the rest",
             json_array_size(groups));
    json_object_set_new(o, "groups", groups);
    return o;
}

/* One island with everything in it: through a switch when the counts exceed the links of a card. */
static json_t *joined_json(struct hv_import *im, const struct hv__node *n)
{
    const struct hv__links *l = &n->links;
    const struct hv_device_kind *k = first_kind(n);
    double rate = hv_or(l->nvlink_bytes_per_s, nvlink_rate(k));
    int least = 65535, one = 0, has = (int)round(hv_or(k->link_bytes_per_s / rate, 12));
    bool all = true;
    for (uint32_t i = 0; i < l->n; i++) {
        int sum = links_of(l, i, &all);
        least = sum < least ? sum : least;
    }
    for (uint32_t i = 0; i < l->n * l->n; i++) {
        one = l->nv[i] > one ? l->nv[i] : one;
    }
    bool switched = all && l->n > 2 && (least > has || one >= 6);
    if (!all) {
        hv__note(
            im, HV_IMPORT_GUESSED,
            "some pairs of devices have no direct NVLink: the hops between them are not counted");
    }
    double sum = (switched ? one : least) * rate;
    hv__note(im, HV_IMPORT_UNDERSTOOD, "%d NVLinks per device%s: %.4g GB/s one way",
             switched ? one : least, switched ? " through a switch" : "", sum / HV_GBPS);
    return link_json(switched ? "nvswitch" : "nvlink", sum, HV_UNKNOWN);
}

static json_t *matrix_json(struct hv_import *im, const struct hv__node *n)
{
    const struct hv__links *l = &n->links;
    uint32_t *island = hv_xcalloc(l->n, sizeof *island);
    bool one = true, any = false;
    json_t *o;
    find_islands(l, island);
    for (uint32_t i = 0; i < l->n; i++) {
        one = one && island[i] == 0;
        any = any || island[i] != i;
    }
    if (!any) {
        hv__note(im, HV_IMPORT_UNDERSTOOD, "no NVLink between the devices: PCIe, %.4g GB/s",
                 pcie_of(n) / HV_GBPS);
        o = link_json("pcie", pcie_of(n), HV_UNKNOWN);
    } else {
        o = one ? joined_json(im, n) : islands_json(im, n, island);
    }
    free(island);
    return o;
}

json_t *hv__intra_json(struct hv_import *im, const struct hv__node *n)
{
    const struct hv__links *l = &n->links;
    const struct hv_device_kind *k = first_kind(n);
    uint32_t devices = hv__cards(n);
    if (k && l->nv && l->n != devices) {
        hv__note(im, HV_IMPORT_IGNORED,
                 "the topology has %u devices, the list of cards has %u: the links of the "
                 "catalogue are used",
                 l->n, devices);
    }
    if (!k || devices < 2) {
        return NULL;
    }
    if (hv_known(l->device_bytes_per_s)) {
        bool nvlink = k->link_kind && strncmp(k->link_kind, "PCIe", 4) != 0 &&
                      l->device_bytes_per_s > 1.2 * pcie_of(n);
        return link_json(nvlink ? "nvlink" : "pcie", l->device_bytes_per_s, l->device_latency_s);
    }
    if (l->nv && l->n == devices) {
        return matrix_json(im, n);
    }
    if (l->nvlinks > 0 && hv_known(l->nvlink_bytes_per_s)) {
        return link_json("nvlink", l->nvlinks * l->nvlink_bytes_per_s, HV_UNKNOWN);
    }
    return NULL;
}

json_t *hv__nic_json(struct hv_import *im, const struct hv__node *n)
{
    const struct hv__links *l = &n->links;
    uint32_t count = l->n_nics > 0 ? l->n_nics : 1;
    double one = l->nic_bytes_per_s;
    if (l->n_nics == 0 && !hv_known(one)) {
        return NULL;
    }
    if (!hv_known(one) && first_kind(n)) {
        one = usual_nic(first_kind(n));
        hv__note(im, HV_IMPORT_GUESSED,
                 "the speed of the network cards (%u) is not given: %.3g GB/s each is assumed, the "
                 "usual value for %s",
                 count, one / HV_GBPS, first_kind(n)->name);
    }
    json_t *o = json_object();
    double all = l->nic_is_sum ? one : one * count;
    json_object_set_new(o, "bandwidth_GBps", hv_json_num(round(all / 1e6) / 1e3));
    if (hv_known(l->nic_latency_s)) {
        json_object_set_new(o, "latency_us",
                            hv_json_num(round(l->nic_latency_s / HV_US * 100) / 100));
    }
    json_object_set_new(o, "count", hv_json_num(count));
    return o;
}
