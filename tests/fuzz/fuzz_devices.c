/* Device catalogue files: any bytes are read or refused with a word; figures are never negative. */
#include <stdint.h>
#include <stdlib.h>

#include "solver/io/own/cluster/device_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_device_catalogue c = {0};
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err) != HV_OK) {
        return 0;
    }
    if (hv_device_catalogue_add(&c, &json, &err) != HV_OK && err.text[0] == '\0') {
        abort(); /* a refusal without a word */
    }
    for (size_t i = 0; i < c.n_kinds; i++) {
        if (c.kinds[i].memory_bytes < 0 || c.kinds[i].memory_bytes_per_s < 0) {
            abort();
        }
    }
    hv_json_free(&json);
    hv_device_catalogue_free(&c);
    return 0;
}
