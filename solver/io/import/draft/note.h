/** The report of an import: what was understood, what was guessed, what was ignored. */
#ifndef HV_SOLVER_IO_IMPORT_DRAFT_NOTE_H
#define HV_SOLVER_IO_IMPORT_DRAFT_NOTE_H

#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** How sure the reader is. */
enum hv_import_level {
    HV_IMPORT_UNDERSTOOD, /**< the file says it */
    HV_IMPORT_GUESSED,    /**< the file does not say it: look at it */
    HV_IMPORT_IGNORED,    /**< the file says it, hetviz has no use for it */
    HV_IMPORT_LEVEL_N
};
/** One line of the report. */
struct hv_import_note {
    enum hv_import_level level;
    const char *file; /**< NULL: no single file */
    unsigned line;    /**< from 1; 0: no single line */
    unsigned times;   /**< how often the same was found */
    const char *text;
};

struct hv_import;

/** The report, ordered by level and then as found. */
const struct hv_import_note *hv_import_notes(const struct hv_import *im, size_t *n);
/** Appends the report as text: three headed groups, one line per note. */
void hv_import_report(const struct hv_import *im, struct hv_str *out);

/** Appends one note: where (the file only when `name_file`), what, how often. */
void hv_import_note_text(const struct hv_import_note *x, bool name_file, struct hv_str *out);

#endif
