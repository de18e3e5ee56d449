/* Specifications of sweeps: any bytes are read or refused with a word. */
#include "solver/sweep/sweep.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_sweep s;
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err)) {
        return 0;
    }
    if (hv_sweep_build(&s, json, "", &err)) {
        if (err.text[0] == '\0') {
            abort(); /* a refusal without a word */
        }
        return 0;
    }
    for (size_t i = 0; i < s.n_cells && i < 100; i++) {
        for (size_t k = 0; k < s.n_axes; k++) {
            if (hv_sweep_value(&s, &s.cells[i], k)->label == NULL) {
                abort();
            }
        }
        json_decref(hv_sweep_options(&s, &s.cells[i]));
    }
    json_decref(hv_sweep_whole(&s));
    hv_sweep_free(&s);
    return 0;
}
