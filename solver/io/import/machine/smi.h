/** Functions shared by the readers of nvidia-smi's outputs. */
#ifndef HV_SOLVER_IO_IMPORT_MACHINE_SMI_H
#define HV_SOLVER_IO_IMPORT_MACHINE_SMI_H

#include "solver/io/import/draft/draft.h"

/** Bytes of "81920 MiB"; a number alone counts MiB. HV_UNKNOWN for N/A and similar words. */
double hv__smi_bytes(const char *text);
/** The number at the start ("16x", "7001 MHz"), or HV_UNKNOWN. */
double hv__smi_number(const char *text);
/** True where there is a value (not N/A, deprecated, …). */
bool hv__smi_says(const char *text);
/** True where the text marks a card that does not respond. */
bool hv__smi_lost(const char *text);
/** Adds a note on the slices of a card, which are not used. */
void hv__smi_mig(struct hv__in *in, unsigned line, const char *card, size_t slices);

#endif
