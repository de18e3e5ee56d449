/*
 * Kind of the catalogue for each card. A card that the catalogue lacks keeps its name and the
 * figures in the file, and takes the rest from the most similar kind, with a note in the report.
 */
#include "solver/io/import/draft/draft.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NO_CARD "unknown-GPU"
/** Kind used where no property of the card is known. */
#define ANY_CARD "A100-SXM-80GB"

/* Device numbers of NVIDIA on the PCI bus. Source: the PCI ID repository (pci.ids), vendor 10de. */
static const struct {
    unsigned device;
    const char *card;
} pci_cards[] = {
    {0x102d, "Tesla K80"},
    {0x15f7, "Tesla P100-PCIE-12GB"},
    {0x15f8, "Tesla P100-PCIE-16GB"},
    {0x15f9, "Tesla P100-SXM2-16GB"},
    {0x1db1, "Tesla V100-SXM2-16GB"},
    {0x1db4, "Tesla V100-PCIE-16GB"},
    {0x1db5, "Tesla V100-SXM2-32GB"},
    {0x1db6, "Tesla V100-PCIE-32GB"},
    {0x1db8, "Tesla V100-SXM3-32GB"},
    {0x1eb8, "Tesla T4"},
    {0x1e04, "GeForce RTX 2080 Ti"},
    {0x1e07, "GeForce RTX 2080 Ti"},
    {0x20b0, "A100-SXM4-40GB"},
    {0x20b1, "A100-PCIE-40GB"},
    {0x20b2, "A100-SXM4-80GB"},
    {0x20b5, "A100-PCIE-80GB"},
    {0x20b7, "A30"},
    {0x20bd, "A800-SXM4-40GB"},
    {0x20f1, "A100-PCIE-40GB"},
    {0x20f3, "A800-SXM4-80GB"},
    {0x2204, "GeForce RTX 3090"},
    {0x2230, "RTX A6000"},
    {0x2231, "RTX A5000"},
    {0x2235, "A40"},
    {0x2236, "A10"},
    {0x2237, "A10G"},
    {0x25b6, "A2"},
    {0x2684, "GeForce RTX 4090"},
    {0x2685, "GeForce RTX 4090 D"},
    {0x26b1, "RTX 6000 Ada"},
    {0x26b5, "L40"},
    {0x26b9, "L40S"},
    {0x27b8, "L4"},
    {0x2321, "H100 NVL"},
    {0x2324, "H800-SXM"},
    {0x2329, "H20"},
    {0x2330, "H100-SXM-80GB"},
    {0x2331, "H100-PCIe-80GB"},
    {0x2335, "H200-SXM"},
    {0x233b, "H200 NVL"},
    {0x2342, "GH200"},
    {0x2901, "B200-SXM"},
    {0x2941, "GB200-NVL72"},
    {0x2b85, "GeForce RTX 5090"},
};

const char *hv__pci_card(unsigned device)
{
    for (size_t i = 0; i < HV_COUNT(pci_cards); i++) {
        if (pci_cards[i].device == device) {
            return pci_cards[i].card;
        }
    }
    return NULL;
}

/* Compute capabilities by architecture. Source: CUDA C Programming Guide, compute capabilities. */
static const char *arch_of(double compute)
{
    static const struct {
        int from;
        const char *arch;
    } rows[] = {{120, "Blackwell"}, {103, "Blackwell Ultra"}, {100, "Blackwell"}, {90, "Hopper"},
                {89, "Ada"},        {80, "Ampere"},           {75, "Turing"},     {70, "Volta"},
                {60, "Pascal"},     {50, "Maxwell"},          {30, "Kepler"}};
    for (size_t i = 0; hv_known(compute) && i < HV_COUNT(rows); i++) {
        if (compute >= rows[i].from) {
            return rows[i].arch;
        }
    }
    return NULL;
}

double hv__pcie_bytes_per_s(double generation, double lanes)
{
    /* after line coding: 8b/10b, from generation 3 on 128b/130b. Source: PCI Express Base
     * Specification */
    static const double per_lane[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
    bool good = hv_known(generation) && hv_known(lanes) && generation >= 1 && generation <= 6 &&
                lanes >= 1 && lanes <= 32;
    return good ? per_lane[(int)generation] * lanes : HV_UNKNOWN;
}

double hv__memory_in_name(const char *name)
{
    double gib = HV_UNKNOWN;
    for (const char *s = name; s && *s; s++) {
        size_t digits = strspn(s, "0123456789");
        if (digits > 0 && digits < 5 && strncasecmp(s + digits, "GB", 2) == 0 &&
            (s == name || s[-1] != '.')) {
            gib = hv__plain_number((struct hv__piece){s, digits}) * HV_GIB;
        }
        s += digits > 0 ? digits - 1 : 0;
    }
    return gib;
}

bool hv__slice_of(const char *text, double *compute_frac, double *memory_bytes)
{
    /* "3g.20gb", "1c.3g.20gb", "1g.10gb+me": seven slices of compute. Source: MIG User Guide */
    for (const char *s = text; s && *s; s++) {
        if (isdigit((unsigned char)s[0]) && s[1] == 'g' && s[2] == '.' &&
            (s == text || !isalnum((unsigned char)s[-1]))) {
            struct hv__piece rest;
            double gb;
            if (hv__number(hv__piece_of(s + 3), &gb, &rest) && rest.n >= 2 &&
                strncasecmp(rest.p, "gb", 2) == 0) {
                *compute_frac = fmin((s[0] - '0') / 7.0, 1);
                *memory_bytes = gb * HV_GIB;
                return true;
            }
        }
    }
    return false;
}

/* ---- names ------------------------------------------------------------------------------------
 */

/* Architecture derived from a product's name, where the file gives none. */
static const char *arch_in_name(const char *card)
{
    static const struct {
        const char *word, *arch;
    } rows[] = {{"GTX 9", "Maxwell"},     {"GTX 10", "Pascal"},    {"Quadro P", "Pascal"},
                {"Tesla P", "Pascal"},    {"GTX 16", "Turing"},    {"RTX 20", "Turing"},
                {"Quadro RTX", "Turing"}, {"Titan V", "Volta"},    {"Titan X", "Pascal"},
                {"RTX 30", "Ampere"},     {"RTX A", "Ampere"},     {" Ada", "Ada"},
                {"RTX 40", "Ada"},        {"RTX 50", "Blackwell"}, {"Blackwell", "Blackwell"},
                {"Tesla M", "Maxwell"},   {"Tesla K", "Kepler"},   {"GTX 7", "Kepler"}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (hv__find_like(hv__piece_of(card), rows[i].word)) {
            return rows[i].arch;
        }
    }
    return NULL;
}

/* True for desktop cards, which have slower links between devices. */
static bool is_desktop(const char *name)
{
    static const char *const words[] = {"RTX", "GTX", "Quadro", "Titan", "GeForce"};
    for (size_t i = 0; name && i < HV_COUNT(words); i++) {
        if (hv__find_like(hv__piece_of(name), words[i])) {
            return true;
        }
    }
    return false;
}

/* The catalogue's name of an architecture: the nearest in time for one that the catalogue lacks,
 * other names unchanged. */
static const char *neighbour_arch(const char *arch)
{
    if (strcasecmp(arch, "Maxwell") == 0) {
        return "Pascal";
    }
    return strcasecmp(arch, "Ada Lovelace") == 0 ? "Ada" : arch;
}

/* The kind that is most similar to an unknown card: architecture, then desktop or not, then
 * memory. */
static const struct hv_device_kind *stand_in(const struct hv_import *im, const struct hv__card *c)
{
    const char *arch = c->arch ? c->arch : arch_of(c->compute);
    arch = arch ? arch : c->card ? arch_in_name(c->card) : NULL;
    const struct hv_device_kind *best = hv_device_find(im->devices, ANY_CARD);
    double least = (double)INFINITY;
    if (!arch && !hv_known(c->memory_bytes)) {
        return best;
    }
    for (size_t i = 0; i < im->devices->n_kinds; i++) {
        const struct hv_device_kind *k = &im->devices->kinds[i];
        if (k->cls != HV_CLASS_GPU || !k->vendor || strcmp(k->vendor, "NVIDIA") != 0) {
            continue;
        }
        double off = fabs(log2(hv_or(c->memory_bytes, k->memory_bytes) / k->memory_bytes));
        off += is_desktop(c->card) != is_desktop(k->name) ? 3 : 0;
        off += arch && k->arch && strcasecmp(neighbour_arch(arch), k->arch) != 0 ? 100 : 0;
        if (off < least) {
            least = off;
            best = k;
        }
    }
    return best;
}

/* Name of a new kind: the source's name, limited to characters that names in files may have. */
static const char *own_name(struct hv_import *im, const char *card)
{
    struct hv_str s = {0};
    for (const char *p = card; *p && s.n < 60; p++) {
        bool plain = isalnum((unsigned char)*p) || strchr("-+_", *p);
        if (plain) {
            hv_str_addc(&s, *p);
        } else if (s.n > 0 && s.p[s.n - 1] != '-') {
            hv_str_addc(&s, '-');
        }
    }
    while (s.n > 0 && s.p[s.n - 1] == '-') {
        s.n--;
    }
    const char *start = s.p;
    if (s.n > 7 && strncasecmp(s.p, "NVIDIA-", 7) == 0) {
        start += 7;
        s.n -= 7;
    }
    const char *out = s.n > 0 ? hv_arena_strndup(&im->arena, start, s.n) : NO_CARD;
    hv_str_free(&s);
    return out;
}

/* ---- new kinds ------------------------------------------------------------------------------- */

/* Four significant digits; further digits are rounding of unit conversion. */
static json_t *rounded(double x)
{
    double unit = x > 0 ? pow(10, floor(log10(x)) - 3) : 1;
    return hv_json_num(unit < 1 ? round(x / unit) / round(1 / unit) : round(x / unit) * unit);
}

static json_t *scaled_flops(const struct hv_device_kind *k, double frac)
{
    json_t *o = json_object();
    for (int i = 0; i < HV_PRECISION_N; i++) {
        if (hv_known(k->flops_per_s[i])) {
            json_object_set_new(o, hv_precision_name((enum hv_precision)i),
                                rounded(k->flops_per_s[i] / HV_TFLOPS * frac));
        }
    }
    return o;
}

/* True where the file's figure differs from the catalogue's by more than rounding. */
static bool differs(double said, double known, double tolerance)
{
    return hv_known(said) && (!hv_known(known) || fabs(said / known - 1) > tolerance);
}

static json_t *slice_kind(struct hv_import *im, struct hv__card *c)
{
    double frac = 1, bytes = HV_UNKNOWN;
    (void)hv__slice_of(c->slice, &frac, &bytes);
    bytes = hv_or(c->memory_bytes, bytes);
    json_t *o = json_object();
    json_object_set_new(o, "base", json_string(c->kind->name));
    json_object_set_new(o, "memory_GiB", rounded(bytes / HV_GIB));
    json_object_set_new(
        o, "bandwidth_GBps",
        rounded(c->kind->memory_bytes_per_s / HV_GBPS * fmin(bytes / c->kind->memory_bytes, 1)));
    json_object_set_new(o, "dense_TFLOPS", scaled_flops(c->kind, frac));
    json_object_set_new(o, "link", json_pack("{s:s}", "kind", "PCIe"));
    json_object_set_new(o, "note", json_string("MIG slice: its share of compute and memory"));
    c->name = own_name(im, hv_arena_printf(&im->arena, "%s-MIG-%s", c->kind->name, c->slice));
    hv__note(im, HV_IMPORT_GUESSED, "%s: %.2g of the chip's compute, %.3g GiB of its memory",
             c->name, frac, bytes / HV_GIB);
    return o;
}

/* A kind with the figures in which the file differs from the catalogue; NULL when it agrees. */
static json_t *changed_kind(struct hv_import *im, struct hv__card *c)
{
    double memory = c->memory_bytes / HV_GIB, pcie = c->pcie_bytes_per_s / HV_GBPS;
    /* drivers report the memory left after reserves, slightly less than the nominal size of the
     * catalogue */
    bool less = differs(c->memory_bytes, c->kind->memory_bytes, 0.12);
    bool slow = differs(c->pcie_bytes_per_s, c->kind->pcie_bytes_per_s, 0.05);
    if (!less && !slow) {
        return NULL;
    }
    json_t *o = json_object();
    json_object_set_new(o, "base", json_string(c->kind->name));
    c->name = c->kind->name;
    if (less) {
        json_object_set_new(o, "memory_GiB", rounded(memory));
        c->name = own_name(im, hv_arena_printf(&im->arena, "%s-%.3gGiB", c->kind->name, memory));
    }
    if (slow) {
        json_object_set_new(o, "pcie_GBps", rounded(pcie));
        c->name = own_name(im, hv_arena_printf(&im->arena, "%s-pcie%.0f", c->name, pcie));
        hv__note(im, HV_IMPORT_UNDERSTOOD,
                 "%s: %.3g GB/s over PCIe instead of the catalogue's %.3g", c->name, pcie,
                 c->kind->pcie_bytes_per_s / HV_GBPS);
    }
    return o;
}

static json_t *unknown_kind(struct hv_import *im, struct hv__card *c)
{
    const struct hv_device_kind *like = stand_in(im, c);
    json_t *o = json_object();
    c->name = own_name(im, c->card ? c->card : NO_CARD);
    json_object_set_new(o, "base", json_string(like->name));
    if (hv_known(c->memory_bytes)) {
        json_object_set_new(o, "memory_GiB", rounded(c->memory_bytes / HV_GIB));
    }
    if (hv_known(c->pcie_bytes_per_s)) {
        json_object_set_new(o, "pcie_GBps", rounded(c->pcie_bytes_per_s / HV_GBPS));
    }
    if (hv_known(c->tdp_w)) {
        json_object_set_new(o, "tdp_W", rounded(c->tdp_w));
    }
    json_object_set_new(
        o, "note",
        json_sprintf("not in the catalogue; figures that the import lacks are those of %s",
                     like->name));
    hv__note(im, HV_IMPORT_GUESSED,
             "\"%s\" is not in the catalogue: speed and links are those of %s until you give them, "
             "or say what it is with --device %s=KIND",
             c->card ? c->card : NO_CARD, like->name, c->card ? c->card : "gpu");
    return o;
}

/* Memory of the whole card that a slice is cut from: 3g.20gb has four of its eight parts. */
static double slice_of_what(const struct hv__card *c)
{
    static const double parts[] = {8, 8, 4, 2, 2, 2, 2, 1};
    double frac = 1, bytes = HV_UNKNOWN;
    (void)hv__slice_of(c->slice, &frac, &bytes);
    return bytes * parts[(int)round(frac * 7)];
}

static void find_kind(struct hv_import *im, struct hv__card *c)
{
    json_t *own = NULL;
    double memory = c->slice                    ? slice_of_what(c)
                    : hv_known(c->memory_bytes) ? c->memory_bytes
                                                : hv__memory_in_name(c->card);
    c->kind = hv__card_choose(im, c, memory);
    if (c->kind && c->slice) {
        own = slice_kind(im, c);
    } else if (c->kind) {
        c->name = c->kind->name;
        own = changed_kind(im, c);
    } else {
        own = unknown_kind(im, c);
        c->kind = stand_in(im, c);
    }
    if (own) {
        im->own = im->own ? im->own : json_object();
        if (!json_object_get(im->own, c->name)) {
            json_object_set(im->own, c->name, own);
        }
        json_decref(own);
    }
}

/* What the kind of a card depends on, as text; figures that differ by rounding are equal. */
static void add_key(const struct hv__card *c, struct hv_str *out)
{
    hv_str_addf(out, "%s|%s|%s|%d|%.3g|%.3g|%.3g|%.2g", c->card ? c->card : "",
                c->slice ? c->slice : "", c->features ? c->features : "", c->by_hand,
                c->memory_bytes, c->pcie_bytes_per_s, c->compute, c->host_bytes);
}

/* Cards of equal figures are looked up once: a site has thousands of nodes of a few sorts. */
void hv__kinds_find(struct hv_import *im)
{
    HV_VEC(struct hv__card) seen = {0};
    json_t *index = json_object();
    struct hv_str key = {0};
    for (size_t i = 0; i < im->nodes.n; i++) {
        for (size_t k = 0; k < im->nodes.items[i].cards.n; k++) {
            struct hv__card *c = &im->nodes.items[i].cards.items[k];
            c->host_bytes = im->nodes.items[i].memory_bytes / hv__cards(&im->nodes.items[i]);
            hv_str_clear(&key);
            add_key(c, &key);
            json_t *at = json_object_get(index, hv_str_cstr(&key));
            if (at) {
                const struct hv__card *known = &seen.items[json_integer_value(at)];
                c->kind = known->kind;
                c->name = known->name;
            } else {
                find_kind(im, c);
                json_object_set_new(index, hv_str_cstr(&key), json_integer((json_int_t)seen.n));
                hv_vec_push(&seen, *c);
            }
        }
    }
    hv_str_free(&key);
    json_decref(index);
    hv_vec_free(&seen);
}
