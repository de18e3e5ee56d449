/** The table of formats with their functions; for import.c only. */
#ifndef HV_SOLVER_IO_IMPORT_FORMATS_H
#define HV_SOLVER_IO_IMPORT_FORMATS_H

#include "solver/io/import/draft/readers.h"
#include "solver/io/import/import.h"

/** A format with its functions. */
struct hv__format {
    struct hv_import_format public;
    hv__detector *is;
    hv__reader *read;
    hv__applier *apply; /**< NULL: no step is needed after all files are read */
};

/** The rows of all formats, in the order of detection. */
const struct hv__format *hv__format_table(size_t *n);

#endif
