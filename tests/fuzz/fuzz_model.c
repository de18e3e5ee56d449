/* Model files, our own and Hugging Face configs: any bytes are read or refused with a word; counts
 * of a read model are sound. */
#include "solver/base/vec.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(const struct hv_model *m)
{
    if (!(hv_model_parameters(m) >= 0) || !(hv_model_active_parameters(m) >= 0)) {
        abort();
    }
    if (m->kind == HV_MODEL_TRANSFORMER && !isfinite(hv_model_forward_flops(m, 128, true))) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_model_doc d;
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err)) {
        return 0;
    }
    enum hv_status st = hv_model_doc_build(&d, json, &err);
    if (st) {
        if (err.text[0] == '\0') {
            abort(); /* a refusal without a word */
        }
        return 0;
    }
    visit(d.model);
    struct hv_str text = {0};
    hv_json_write(&text, d.json.root, true);
    if (text.n == 0) {
        abort();
    }
    hv_str_free(&text);
    hv_model_doc_free(&d);
    return 0;
}
