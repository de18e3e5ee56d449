/* Programs in StableHLO text: any bytes are read or refused with a word; a model that comes of them
 * is one that our own reader takes. */
#include "tests/fuzz/import_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    run(hv_import_format_find("stablehlo"), data, size);
    return 0;
}
