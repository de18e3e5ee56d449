/** Offers of price lists between their readers and the draft. */
#ifndef HV_SOLVER_IO_IMPORT_MACHINE_PRICES_H
#define HV_SOLVER_IO_IMPORT_MACHINE_PRICES_H

#include "solver/io/import/draft/draft.h"
#include "solver/io/import/text/words.h"

/** What a price list says about an offer. */
enum hv__offer_column {
    HV__OFFER_CLOUD,
    HV__OFFER_INSTANCE,
    HV__OFFER_CARD,
    HV__OFFER_CARDS,
    HV__OFFER_MEMORY, /**< of the cards, in GB (or MB) */
    HV__OFFER_INFO,   /**< SkyPilot's GpuInfo */
    HV__OFFER_PRICE,
    HV__OFFER_CENTS,
    HV__OFFER_EACH, /**< price of one card */
    HV__OFFER_SPOT, /**< a price, or whether `price` is one */
    HV__OFFER_ZONE,
    HV__OFFER_REGION,
    HV__OFFER_USE,  /**< a text with "Spot", "Preemptible", "Commit1Yr", … in it */
    HV__OFFER_TYPE, /**< "Consumption", "Reservation", … */
    HV__OFFER_SYSTEM,
    HV__OFFER_CURRENCY,
    HV__OFFER_COLUMN_N
};
/** The column of a title or member, or -1. Case, blanks and separators do not matter. */
int hv__offer_column(struct hv__piece title);

/** The cells of an offer; those that the list lacks are empty. */
struct hv__offer {
    struct hv__piece cells[HV__OFFER_COLUMN_N];
    unsigned line;
};
/** Adds an offer to the draft. False: it has no price, no card, or is no offer per hour of a
 * machine in US dollars. */
bool hv__offer_add(struct hv__in *in, const struct hv__offer *o);

/** Cards of a cloud's machine by its name ("p4d.24xlarge", "gpu_8x_a100"): the kind, or the name to
 * look up, and their number. False: not known. Sources: the clouds' lists of machine types. */
bool hv__instance_cards(struct hv_arena *arena, const char *instance, const char **card,
                        double *cards);

#endif
