/** The report of an import: values that were understood, guessed and ignored. */
#ifndef HV_SOLVER_IO_IMPORT_DRAFT_NOTE_H
#define HV_SOLVER_IO_IMPORT_DRAFT_NOTE_H

#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** Certainty of a note. */
enum hv_import_level {
    HV_IMPORT_UNDERSTOOD, /**< given in the file */
    HV_IMPORT_GUESSED,    /**< not given in the file: to be checked */
    HV_IMPORT_IGNORED,    /**< given in the file, not used by hetviz */
    HV_IMPORT_LEVEL_N
};
/** One line of the report. */
struct hv_import_note {
    enum hv_import_level level;
    const char *file; /**< NULL: no single file */
    unsigned line;    /**< from 1; 0: no single line */
    unsigned times;   /**< number of equal notes, or of the members of this path */
    bool member;      /**< names a member of the file by its path: "optim.lr = 0.001" */
    const char *text;
};

struct hv_import;

/** The report, ordered by level and then as found. */
const struct hv_import_note *hv_import_notes(const struct hv_import *im, size_t *n);
/** Appends the report as text: three headed groups, one line per note; members of the files follow
 * in the same group, several in a line. */
void hv_import_report(const struct hv_import *im, struct hv_str *out);

/** Appends one note: position (with the file only when `name_file`), text, number of
 * occurrences. */
void hv_import_note_text(const struct hv_import_note *x, bool name_file, struct hv_str *out);

#endif
