/* Files of other programs: any bytes are read or refused with a word, whatever format they are
 * taken for; a document that comes of them is one that our own readers take. */
#include "tests/fuzz/import_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run(NULL, data, size);
    /* as a format that it may not be: the first byte says which */
    size_t n = 0;
    while (hv_import_format_at(n) != NULL) {
        n++;
    }
    if (size > 0) {
        run(hv_import_format_at(data[0] % n), data, size);
    }
    return 0;
}
