/**
 * Numbers as people type them: "25GbE", "100 Gb/s", "2x100GbE", "HDR", "80 GiB", "5 min", "$3.50",
 * "2x8". They become the number that a member of a file holds in its own unit.
 */
#ifndef HV_UI_COMMAND_TYPED_H
#define HV_UI_COMMAND_TYPED_H

#include <stdbool.h>
#include <stddef.h>

#include "solver/base/status.h"

/**
 * Reads a number that counts in `unit` ("GB/s", "GiB", "us", "s", "$/h", "1/h", "TFLOP/s",
 * "tokens"; NULL or any other word: no unit but that word may follow). Without a unit the text
 * means `unit`. Rates: bits where the unit says so (GbE, Gb/s, Gbps, Gbit/s, or 25G alone), bytes
 * in GB/s and GiB/s; EDR, HDR, NDR and XDR are four-lane InfiniBand ports of 100 to 800 Gb/s; "4x"
 * in front multiplies (ports). Memory: GB and G mean GiB, as on cards. Tokens: k is 1024. Whatever
 * is not told from capital letters ("gb/s") is refused, with both readings. Errors: HV_EUSAGE.
 */
enum hv_status hv_typed_number(const char *text, const char *unit, double *out,
                               struct hv_err *err) HV_NODISCARD;

/** Reads "2x8", "2 x 8", "2*8" or with a times sign: two whole numbers from 1. False: it is
 * something else. */
bool hv_typed_shape(const char *text, double *first, double *second);

/** True where every word of `words` is in `text`, in any order and case; no words: true. */
bool hv_typed_words_in(const char *text, const char *words);

#endif
