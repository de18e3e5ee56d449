/* What a worker says: any bytes in any pieces end in exactly one verdict about the job. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "ui/process/pool_int.h"

/* A process number that no system gives out, so that signals go nowhere. */
#define NOBODY 0x7ffffffe

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    int ends;
};

static void on_event(void *ctx, const struct hv_pool_event *ev)
{
    struct seen *s = ctx;
    if (ev->text == NULL || ev->tail == NULL) {
        abort();
    }
    s->ends +=
        ev->kind == HV_POOL_RESULT || ev->kind == HV_POOL_FAILED || ev->kind == HV_POOL_CANCELLED;
}

static double no_time(void *ctx)
{
    (void)ctx;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen seen = {0};
    struct hv_pool_config config = {.on_event = on_event, .ctx = &seen, .now_s = no_time};
    struct hv_pool *pool = hv_pool_new(&config);
    struct hv__worker w = {.id = 1,
                           .pid = NOBODY,
                           .in_fd = -1,
                           .out_fd = -1,
                           .err_fd = -1,
                           .limit_s = HUGE_VAL,
                           .kill_s = HUGE_VAL};
    size_t piece = size > 0 ? (size_t)data[0] % 61 + 1 : 1;
    for (size_t at = 0; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        hv__pool_worker_take(pool, &w, (const char *)data + at, n);
        hv__pool_worker_take_stderr(&w, (const char *)data + at, n);
    }
    hv__pool_worker_take_rest(pool, &w);
    hv__pool_worker_conclude(pool, &w, size > 1 ? data[1] : 0);
    if (seen.ends != 1) {
        abort();
    }
    hv_str_free(&w.line);
    hv_str_free(&w.broken);
    json_decref(w.result);
    json_decref(w.error);
    hv_pool_free(pool);
    return 0;
}
