/* Workspace files: any bytes are read or refused with a word; what is read writes back equal. */
#include <stdint.h>
#include <stdlib.h>

#include "solver/io/own/workspace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_workspace w;
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err) != HV_OK) {
        return 0;
    }
    if (hv_workspace_build(&w, json, NULL, &err) != HV_OK) {
        if (err.text[0] == '\0') {
            abort(); /* a refusal without a word */
        }
        return 0;
    }
    struct hv_str path = {0};
    for (size_t i = 0; i < w.n_plans; i++) {
        if (w.plans[i].name != NULL) {
            hv_workspace_resolve(&w, w.plans[i].name, &path);
        }
    }
    hv_str_free(&path);
    hv_workspace_free(&w);
    return 0;
}
