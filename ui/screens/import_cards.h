/** Cards of an import whose names may mean several kinds: which kind is taken, and how another is
 * named. */
#ifndef HV_UI_SCREENS_IMPORT_CARDS_H
#define HV_UI_SCREENS_IMPORT_CARDS_H

#include "solver/base/str.h"
#include "solver/io/import/import.h"
#include "ui/session/session.h"

/** One line about a kind: "A100-SXM-80GB      80 GiB  312 TF/s fp16", the name padded to `width`.
 */
void hv_import_kind_text(const struct hv_device_kind *k, enum hv_precision p, int width,
                         struct hv_str *out);
/**
 * The kind that typed words name: the only candidate of the card with all of them, in any order and
 * case, else the only kind of the catalogue. Errors: HV_ENO with those that fit, or none.
 */
enum hv_status hv_import_kind_named(const struct hv_session *s, const struct hv_import_choice *c,
                                    const char *words, const struct hv_device_kind **out,
                                    struct hv_err *err) HV_NODISCARD;
/** Appends `--device NAME=KIND` to the words of an import so that it stays one word. */
void hv_import_add_kind(struct hv_str *words, const char *written, const char *kind);

#endif
