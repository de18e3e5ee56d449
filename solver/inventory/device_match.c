/*
 * Finds the catalogue's kind for a driver's name of a card: "NVIDIA A100-SXM4-80GB" is
 * A100-SXM-80GB, "NVIDIA GeForce RTX 3090" is RTX3090-24GB.
 */
#include "solver/base/units.h"
#include "solver/inventory/device.h"
#include "solver/inventory/device_names.h"

/* Score of a kind whose chip matches; the highest score is the most likely kind. */
static double likeness(const struct hv_device_kind *k, const char *card, double memory_bytes,
                       size_t chip)
{
    static const char *const forms[] = {"SXM", "PCIe", "NVL", "SXM2", "SXM3"};
    double score = 100 * (double)chip;
    bool said = false;
    for (size_t i = 0; i < HV_COUNT(forms); i++) {
        if (hv__contains(card, forms[i]) && !(i == 2 && hv__contains(card, "NVLink"))) {
            said = true;
            score += hv__contains(k->name, forms[i]) ? 10 : 0;
        }
    }
    if (!said && hv__contains(k->name, "SXM")) { /* driver names contain the other form factors */
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
        char chip[HV__CHIP_NAME];
        size_t n = hv__chip_of(c->kinds[i].name, chip);
        if (hv__holds_chip(card, chip, n)) {
            double score = likeness(&c->kinds[i], card, memory_bytes, n);
            if (best == NULL || score > most) {
                best = &c->kinds[i];
                most = score;
            }
        }
    }
    return best;
}
