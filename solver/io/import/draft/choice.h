/** Names of cards that may mean several kinds, and the user's decision. */
#ifndef HV_SOLVER_IO_IMPORT_DRAFT_CHOICE_H
#define HV_SOLVER_IO_IMPORT_DRAFT_CHOICE_H

#include "solver/base/status.h"
#include <stddef.h>

struct hv_device_kind;
struct hv_import;

/** A name of a card that may mean several kinds. */
struct hv_import_choice {
    const char *written; /**< name in the file, "gpu" where the file has none */
    const struct hv_device_kind *const *candidates;
    size_t n;     /**< candidates, at least 2 */
    size_t taken; /**< the one in the document */
};

/** The guessed cards in the order found, after hv_import_finish. Borrowed. */
const struct hv_import_choice *hv_import_choices(const struct hv_import *im, size_t *n);
/**
 * Decides what a name of a card means: "a100=A100-SXM-80GB"; "gpu=NAME" is for cards without a
 * name. To be called before hv_import_finish, which refuses a decision that no card needs. Errors:
 * HV_EUSAGE for a text without =, or a kind that the catalogue lacks (with the nearest one).
 */
enum hv_status hv_import_device(struct hv_import *im, const char *setting,
                                struct hv_err *err) HV_NODISCARD;

#endif
