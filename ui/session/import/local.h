/** Importing the machine that hetviz runs on. */
#ifndef HV_UI_SESSION_IMPORT_LOCAL_H
#define HV_UI_SESSION_IMPORT_LOCAL_H

#include "solver/io/import/import.h"

/**
 * Asks nvidia-smi for its cards (-q -x) and their links (topo -m), without a shell; where there is
 * none, the list of PCI devices in /sys. Takes at most ten seconds per question.
 * Errors: HV_ENO when this machine has no accelerator, saying where was looked.
 */
enum hv_status hv_import_local(struct hv_import *im, struct hv_err *err) HV_NODISCARD;

#endif
