/** Names that people give to cards, and how a name is compared with a chip; for device_match.c and
 * device_candidates.c. */
#ifndef HV_SOLVER_INVENTORY_DEVICE_NAMES_H
#define HV_SOLVER_INVENTORY_DEVICE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/** Most letters of a chip's name. */
#define HV__CHIP_NAME 128

/** A short name and what it may mean. */
struct hv__card_name {
    const char *written; /**< letters and digits only */
    const char *chips;   /**< chips of the catalogue, separated by blanks, the usual one first */
    double memory_gib;   /**< 0: the name does not tell */
    const char *form;    /**< "SXM", "PCIe", or NULL */
};

/** The table row of the longest short name in a card's name, or NULL. */
const struct hv__card_name *hv__card_name_in(const char *card);
/** The chip's name without form, memory and separators: "RTX6000Ada" of RTX6000-Ada-48GB. Returns
 * its length; no final NUL. */
size_t hv__chip_of(const char *kind, char out[HV__CHIP_NAME]);
/** True where the card's name contains the characters of the chip's name in sequence, from the
 * start to the end of words, with any separators between them. */
bool hv__holds_chip(const char *card, const char *chip, size_t n);
/** True where a text of n bytes begins with `with`; case does not matter. */
bool hv__begins(const char *s, size_t n, const char *with);
/** True where `with` occurs anywhere in the name; case does not matter. */
bool hv__contains(const char *name, const char *with);

#endif
