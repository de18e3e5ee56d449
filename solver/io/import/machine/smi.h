/** What the readers of nvidia-smi's outputs share. */
#ifndef HV_SOLVER_IO_IMPORT_MACHINE_SMI_H
#define HV_SOLVER_IO_IMPORT_MACHINE_SMI_H

#include "solver/io/import/draft/draft.h"

/** Bytes of "81920 MiB"; a number alone counts MiB. HV_UNKNOWN for N/A and the like. */
double hv__smi_bytes(const char *text);
/** The number at the start ("16x", "7001 MHz"), or HV_UNKNOWN. */
double hv__smi_number(const char *text);
/** Is there a value (not N/A, deprecated, …)? */
bool hv__smi_says(const char *text);
/** Does it say that the card does not answer? */
bool hv__smi_lost(const char *text);
/** Notes the slices of a card, which do not count. */
void hv__smi_mig(struct hv__in *in, unsigned line, const char *card, size_t slices);
/** Several listings of one machine: the cards are those of the listing that says most. Called
 * before a listing adds its cards. */
void hv__smi_again(struct hv__in *in, struct hv__node *here);

#endif
