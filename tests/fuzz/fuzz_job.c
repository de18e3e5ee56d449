/* Job files: any bytes are read or refused with a word. */
#include "solver/base/vec.h"
#include "solver/io/own/docs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_job_doc d;
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err)) {
        return 0;
    }
    enum hv_status st = hv_job_doc_build(&d, json, 2048, &err);
    if (st) {
        if (err.text[0] == '\0') {
            abort(); /* a refusal without a word */
        }
        return 0;
    }
    if (d.job.global_batch < 1 || d.job.sequence < 1 || !(hv_job_weight_bytes(&d.job) > 0)) {
        abort();
    }
    struct hv_str text = {0};
    hv_json_write(&text, d.json.root, true);
    if (text.n == 0) {
        abort();
    }
    hv_str_free(&text);
    hv_job_doc_free(&d);
    return 0;
}
