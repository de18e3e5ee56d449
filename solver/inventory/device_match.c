/*
 * Finds the catalogue's kind for a driver's name of a card: "NVIDIA A100-SXM4-80GB" is
 * A100-SXM-80GB, "NVIDIA GeForce RTX 3090" is RTX3090-24GB.
 */
#include "solver/base/units.h"
#include "solver/inventory/device.h"
#include <ctype.h>
#include <string.h>

#define MAX_NAME 128

static bool same_letter(char a, char b)
{
    return toupper((unsigned char)a) == toupper((unsigned char)b);
}

/* Length of the run of letters and digits at s. */
static size_t word_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n])) {
        n++;
    }
    return n;
}

static bool begins(const char *s, size_t n, const char *with)
{
    size_t len = strlen(with), i = 0;
    while (i < len && i < n && same_letter(s[i], with[i])) {
        i++;
    }
    return i == len;
}

/* True where a word of a kind's name is the form factor or the memory of the card, not its chip. */
static bool is_detail(const char *word, size_t n)
{
    static const char *const forms[] = {"SXM", "PCIe", "NVL", "HBM"};
    for (size_t i = 0; i < HV_COUNT(forms); i++) {
        if (begins(word, n, forms[i])) {
            return true;
        }
    }
    return isdigit((unsigned char)word[0]) && (toupper((unsigned char)word[n - 1]) == 'B' ||
                                               toupper((unsigned char)word[n - 1]) == 'W');
}

/* The chip's name without separators: "RTX6000ADA" of RTX6000-Ada-48GB. */
static size_t chip_of(const char *kind, char out[MAX_NAME])
{
    size_t n = 0;
    while (*kind != '\0') {
        size_t len = word_length(kind);
        if (len > 0 && !is_detail(kind, len)) {
            for (size_t i = 0; i < len && n + 1 < MAX_NAME; i++) {
                out[n++] = kind[i];
            }
        }
        kind += len > 0 ? len : 1;
    }
    return n;
}

/* True where the card's name contains the characters of the chip's name in sequence, from the start
 * to the end of words, with any separators between them. */
static bool holds_chip(const char *card, const char *chip, size_t n)
{
    for (const char *start = card; *start != '\0'; start++) {
        if (start != card && isalnum((unsigned char)start[-1])) {
            continue;
        }
        size_t i = 0;
        const char *at = start;
        while (i < n && *at != '\0' &&
               (!isalnum((unsigned char)*at) || same_letter(*at, chip[i]))) {
            i += isalnum((unsigned char)*at) != 0;
            at++;
        }
        if (i == n && n > 0 && !isalnum((unsigned char)*at)) {
            return true;
        }
    }
    return false;
}

static bool has_word(const char *name, const char *with)
{
    for (; *name != '\0'; name++) {
        if (begins(name, strlen(name), with)) {
            return true;
        }
    }
    return false;
}

/* Score of a kind whose chip matches; the highest score is the most likely kind. */
static double likeness(const struct hv_device_kind *k, const char *card, double memory_bytes,
                       size_t chip)
{
    static const char *const forms[] = {"SXM", "PCIe", "NVL", "SXM2", "SXM3"};
    double score = 100 * (double)chip;
    bool said = false;
    for (size_t i = 0; i < HV_COUNT(forms); i++) {
        if (has_word(card, forms[i]) && !(i == 2 && has_word(card, "NVLink"))) {
            said = true;
            score += has_word(k->name, forms[i]) ? 10 : 0;
        }
    }
    if (!said && has_word(k->name, "SXM")) { /* driver names contain the other form factors */
        score += 5;
    }
    double off = fabs(log2(memory_bytes / k->memory_bytes));
    return score - (hv_known(off) ? 20 * fmin(off, 2) : 0);
}

const struct hv_device_kind *hv_device_match(const struct hv_device_catalogue *c, const char *card,
                                             double memory_bytes)
{
    const struct hv_device_kind *best = NULL;
    double most = 0;
    for (size_t i = 0; i < c->n_kinds; i++) {
        char chip[MAX_NAME];
        size_t n = chip_of(c->kinds[i].name, chip);
        if (holds_chip(card, chip, n)) {
            double score = likeness(&c->kinds[i], card, memory_bytes, n);
            if (best == NULL || score > most) {
                best = &c->kinds[i];
                most = score;
            }
        }
    }
    return best;
}
