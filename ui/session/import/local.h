/** Importing the machine that hetviz runs on. */
#ifndef HV_UI_SESSION_IMPORT_LOCAL_H
#define HV_UI_SESSION_IMPORT_LOCAL_H

#include "solver/io/import/import.h"

/**
 * Runs nvidia-smi for the cards (-q -x) and their links (topo -m), without a shell; where it is
 * missing, reads the list of PCI devices in /sys. Takes at most ten seconds per call. Errors:
 * HV_ENO where this machine has no accelerator; the message lists the sources tried.
 */
enum hv_status hv_import_local(struct hv_import *im, struct hv_err *err) HV_NODISCARD;

#endif
