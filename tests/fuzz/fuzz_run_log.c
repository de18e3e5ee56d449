/* Any bytes as the log of a trainer: reading never crashes, a refusal has a text, and what is read
 * is a positive time with the number of its reports. */
#include "solver/io/runs/run_log.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_run_log log;
    struct hv_err err = {0};
    enum hv_status st = hv_run_log_text("log", (const char *)data, size, &log, &err);
    double s = st == HV_OK ? hv_run_log_iteration_s(&log, 8, 2048, 4) : 1;
    bool sound = st == HV_OK ? log.n > 0 && log.trainer != NULL : err.text[0] != '\0';
    if (!sound || !(s >= 0)) {
        abort();
    }
    return 0;
}
