/* Profile files: any bytes are read or refused with a word; what was read gives rates and times. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "solver/io/own/cluster/profile_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct hv_profile *p)
{
    for (double x = 0.5; x < 1e12; x *= 33) {
        for (size_t i = 0; i < p->n_gemm; i++) {
            double u = log2(x);
            double rate = exp2(hv_gemm_table_log2_flops_per_s(&p->gemm[i], u, 3 - u, 2 * u));
            if (!(rate > 0) || rate > p->gemm[i].best_flops_per_s * 1.000001) {
                abort();
            }
        }
        if (p->stream && !(hv_stream_table_bytes_per_s(p->stream, x) > 0)) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json = {0};
    struct hv_err err = {0};
    struct hv_arena arena = {0};
    struct hv_profile *p = NULL;
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err) != HV_OK) {
        return 0;
    }
    enum hv_status st = hv_profile_read(&json, &arena, &p, &err);
    if (st != HV_OK && err.text[0] == '\0') {
        abort(); /* a refusal without a word */
    }
    if (st == HV_OK) {
        use(p);
    }
    hv_json_free(&json);
    hv_arena_free(&arena);
    return 0;
}
