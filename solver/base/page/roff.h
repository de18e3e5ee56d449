/** Manual pages: their head, and prose as the macros of man(7) take it. */
#ifndef HV_SOLVER_BASE_PAGE_ROFF_H
#define HV_SOLVER_BASE_PAGE_ROFF_H

#include "solver/base/str.h"

/** The day of this version (ISO 8601), as it stands on manual pages and in the package. */
#define HV_RELEASE_DATE "2026-11-28"

/** Adds the head of a page: `name` in capitals ("HETVIZ"), its section, date and version. */
void hv_roff_head(struct hv_str *out, const char *name, int section);
/**
 * Adds text with everything that roff interprets escaped. Its line ends stay; longer lines are
 * folded at blanks, which does not show, but where they start with a blank (examples). No line end
 * is added at the end.
 */
void hv_roff_text(struct hv_str *out, const char *text);
/** As hv_roff_text for what must stay on one line: the arguments of a macro. */
void hv_roff_words(struct hv_str *out, const char *text);

#endif
