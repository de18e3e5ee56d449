/*
 * Kinds that a name written by people may mean. A driver names memory and form factor; a name in a
 * scheduler's file ("a100") often names the chip only. All variants of the chip are candidates, and
 * whatever else the source says excludes some of them.
 */
#include "solver/base/units.h"
#include "solver/inventory/device.h"
#include "solver/inventory/device_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define WORD 64

/** The candidates that are left. */
struct set {
    const struct hv_device_kind *kinds[HV_DEVICE_CANDIDATES];
    size_t n;
};

/* True where the kind is of that chip. */
static bool is_of_chip(const struct hv_device_kind *k, const char *chip, size_t n)
{
    char own[HV__CHIP_NAME];
    return hv__chip_of(k->name, own) == n && hv__begins(own, n, chip) && n > 0;
}

static void add_chip(const struct hv_device_catalogue *c, const char *chip, size_t n,
                     struct set *out)
{
    char name[HV__CHIP_NAME];
    n = n < sizeof name - 1 ? n : sizeof name - 1;
    memcpy(name, chip, n);
    name[n] = '\0';
    for (size_t i = 0; i < c->n_kinds && out->n < HV_DEVICE_CANDIDATES; i++) {
        if (is_of_chip(&c->kinds[i], name, n)) {
            out->kinds[out->n++] = &c->kinds[i];
        }
    }
}

/* Kinds whose chip is the longest one in the name. */
static struct set find_chip(const struct hv_device_catalogue *c, const char *card,
                            const struct hv__card_name **row)
{
    struct set out = {.n = 0};
    char best[HV__CHIP_NAME] = "", chip[HV__CHIP_NAME];
    size_t most = 0;
    for (size_t i = 0; i < c->n_kinds; i++) {
        size_t n = hv__chip_of(c->kinds[i].name, chip);
        if (n > most && hv__holds_chip(card, chip, n)) {
            memcpy(best, chip, n);
            most = n;
        }
    }
    *row = hv__card_name_in(card);
    if (*row && strlen((*row)->written) < most) {
        *row = NULL;
    }
    for (const char *s = *row ? (*row)->chips : ""; *s != '\0';) {
        size_t n = strcspn(s, " ");
        add_chip(c, s, n, &out);
        s += n + strspn(s + n, " ");
    }
    if (!*row) {
        add_chip(c, best, most, &out);
    }
    return out;
}

/* Keeps the kinds that `fits`; all of them where none does. */
static bool keep(struct set *s, bool (*fits)(const struct hv_device_kind *k, const void *what),
                 const void *what)
{
    struct set left = {.n = 0};
    for (size_t i = 0; i < s->n; i++) {
        if (fits(s->kinds[i], what)) {
            left.kinds[left.n++] = s->kinds[i];
        }
    }
    if (left.n > 0) {
        *s = left;
    }
    return left.n > 0;
}

/* ---- memory -------------------------------------------------------------------------------- */

static bool has_memory(const struct hv_device_kind *k, const void *what)
{
    return fabs(log2(*(const double *)what / k->memory_bytes)) < 0.025;
}

/* Sizes are nominal or what a driver has left of them. */
static bool has_about_memory(const struct hv_device_kind *k, const void *what)
{
    return fabs(log2(*(const double *)what / k->memory_bytes)) < 0.17;
}

static void keep_bytes(struct set *s, double bytes)
{
    if (bytes > 0 && !keep(s, has_memory, &bytes)) {
        (void)keep(s, has_about_memory, &bytes);
    }
}

/* Length of the unit of gibibytes at s: "GB", "G", "GiB"; 0: none, or a longer word. */
static size_t unit_length(const char *s)
{
    static const char *const units[] = {"GiB", "GB", "G"};
    for (size_t i = 0; i < HV_COUNT(units); i++) {
        size_t n = strlen(units[i]);
        if (hv__begins(s, strlen(s), units[i]) && !isalpha((unsigned char)s[n])) {
            return n;
        }
    }
    return 0;
}

/* Keeps the kinds of a memory that the word names: "80gb" anywhere; a number without a unit only
 * where the word is about this chip or its memory ("a100-80", "gpumem80"). */
static void keep_memory(struct set *s, const char *word, bool about_it)
{
    bool named = hv__contains(word, "mem") || hv__contains(word, "vram");
    for (const char *at = word; *at != '\0';) {
        size_t digits = strspn(at, "0123456789");
        bool whole = digits > 0 && digits < 4 && (at == word || at[-1] != '.');
        bool unit = unit_length(at + digits) > 0;
        bool apart = at == word || !isalnum((unsigned char)at[-1]) || named;
        bool bare = (about_it || named) && apart && !isalnum((unsigned char)at[digits]);
        if (whole && (unit || bare)) {
            keep_bytes(s, strtod(at, NULL) * HV_GIB);
        }
        at += digits > 0 ? digits : 1;
    }
}

/* ---- form factor ---------------------------------------------------------------------------- */

static bool has_form(const struct hv_device_kind *k, const void *what)
{
    return hv__contains(k->name, what);
}

/* True where a word of the text (letters, then digits) is `form`: "sxm4", "a100_pcie". */
static bool has_form_word(const char *text, const char *form)
{
    size_t n = strlen(form);
    for (const char *at = text; *at != '\0'; at++) {
        if ((at == text || !isalpha((unsigned char)at[-1])) && hv__begins(at, strlen(at), form) &&
            !isalpha((unsigned char)at[n])) {
            return true;
        }
    }
    return false;
}

/* Keeps the kinds of a form that the word names. A number behind it is the generation of the
 * socket. */
static void keep_form(struct set *s, const char *word, bool about_it)
{
    static const struct {
        const char *word, *form;
    } rows[] = {{"SXM2", "SXM2"}, {"SXM3", "SXM3"},   {"SXM", "SXM"},    {"PCIE", "PCIe"},
                {"PCI", "PCIe"},  {"NVL", "NVL"},     {"NVLINK", "SXM"}, {"HGX", "SXM"},
                {"DGX", "SXM"},   {"NVSWITCH", "SXM"}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        /* "pcie4" alone tells the generation of the bus */
        bool bus = strcmp(rows[i].form, "PCIe") == 0 && !about_it &&
                   isdigit((unsigned char)word[strlen(word) - 1]);
        if (has_form_word(word, rows[i].word) && !bus && keep(s, has_form, rows[i].form)) {
            return;
        }
    }
    /* HBM3 alone is what the driver writes for the SXM card */
    if (about_it && hv__contains(word, "HBM3")) {
        (void)keep(s, has_form, "SXM");
    }
}

/* ---- features ------------------------------------------------------------------------------ */

/* True where a word names the chip of the kind. */
static bool is_in_word(const struct hv_device_kind *k, const void *what)
{
    char chip[HV__CHIP_NAME];
    size_t n = hv__chip_of(k->name, chip);
    return hv__holds_chip(what, chip, n);
}

/* True where a word names a chip of the catalogue. */
static bool names_chip(const struct hv_device_catalogue *c, const char *word)
{
    for (size_t i = 0; i < c->n_kinds; i++) {
        if (is_in_word(&c->kinds[i], word)) {
            return true;
        }
    }
    return false;
}

/* True where a word names the chip of one of the candidates. */
static bool names_candidate(const struct set *s, const char *word)
{
    for (size_t i = 0; i < s->n; i++) {
        if (is_in_word(s->kinds[i], word)) {
            return true;
        }
    }
    return false;
}

static void keep_by_features(const struct hv_device_catalogue *c, struct set *s,
                             const char *features)
{
    while (features && *features != '\0' && s->n > 1) {
        size_t n = strcspn(features, HV_DEVICE_FEATURE_ENDS);
        char word[WORD];
        if (n > 0 && n < sizeof word) {
            memcpy(word, features, n);
            word[n] = '\0';
            bool about_it = names_candidate(s, word);
            if (about_it) {
                (void)keep(s, is_in_word, word);
            }
            if (about_it || !names_chip(c, word)) { /* else it is about another card */
                keep_memory(s, word, about_it);
                keep_form(s, word, about_it);
            }
        }
        features += n + (features[n] != '\0');
    }
}

/* ---- order --------------------------------------------------------------------------------- */

static void to_front(struct set *s, size_t i)
{
    const struct hv_device_kind *k = s->kinds[i];
    memmove(s->kinds + 1, s->kinds, i * sizeof *s->kinds);
    s->kinds[0] = k;
}

/* True where both are of one chip. */
static bool same_chip(const struct hv_device_kind *a, const struct hv_device_kind *b)
{
    char chip[HV__CHIP_NAME + 1];
    chip[hv__chip_of(a->name, chip)] = '\0';
    return is_of_chip(b, chip, strlen(chip));
}

/* Puts the most likely kind first: the SXM form with the least memory, or a card of at least 1.5
 * times that memory where the host has twice the larger one. Hosts are built with that much: DGX-2,
 * DGX A100, and the clouds' p3dn, ND A100 v4 and a2-ultragpu. */
static void order(struct set *s, const struct hv_device_hints *h)
{
    size_t best = 0;
    for (size_t i = s->n; i-- > 0;) {
        bool form = hv__contains(s->kinds[i]->name, "SXM") > hv__contains(s->kinds[0]->name, "SXM");
        best = form && same_chip(s->kinds[i], s->kinds[0]) ? i : best;
    }
    to_front(s, best);
    best = 0;
    for (size_t i = 1; i < s->n; i++) {
        const struct hv_device_kind *k = s->kinds[i], *first = s->kinds[0];
        bool larger = k->memory_bytes >= 1.5 * first->memory_bytes && same_chip(k, first) &&
                      k->memory_bytes > s->kinds[best]->memory_bytes;
        bool form = hv__contains(k->name, "SXM") == hv__contains(first->name, "SXM");
        best = larger && form && h->host_bytes_per_card >= 2 * k->memory_bytes ? i : best;
    }
    to_front(s, best);
}

size_t hv_device_candidates(const struct hv_device_catalogue *c, const char *card,
                            const struct hv_device_hints *hints,
                            const struct hv_device_kind *out[HV_DEVICE_CANDIDATES])
{
    const struct hv__card_name *row;
    struct set s = find_chip(c, card, &row);
    keep_bytes(&s, hv_or(hints->memory_bytes, 0));
    keep_memory(&s, card, true);
    keep_form(&s, card, true);
    if (row && row->memory_gib > 0) {
        keep_bytes(&s, row->memory_gib * HV_GIB);
    }
    if (row && row->form) {
        (void)keep(&s, has_form, row->form);
    }
    keep_by_features(c, &s, hints->features);
    if (s.n > 1) {
        order(&s, hints);
    }
    memcpy(out, s.kinds, s.n * sizeof *out);
    return s.n;
}
