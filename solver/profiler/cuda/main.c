/*
 * hetviz-profile: measures a CUDA card of this machine. `hetviz profile` starts it with checked
 * arguments:
 *     hetviz-profile OUT quick|full keep|fresh DEVICE [KIND]
 */
#include "solver/base/file.h"
#include "solver/base/log.h"
#include "solver/base/str.h"
#include "solver/io/own/docs.h"
#include "solver/profiler/cuda/cuda_bench.h"
#include "solver/profiler/profiler.h"
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The only thing a handler may touch. */
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void watch_signals(void)
{
    struct sigaction act = {.sa_handler = on_signal};
    (void)sigemptyset(&act.sa_mask);
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)sigaction(SIGHUP, &act, NULL);
}

static int fail(const struct hv_err *err)
{
    hv_log_err("hetviz profile", err);
    return hv_status_exit_code(err->status);
}

static enum hv_status profile(int argc, char **argv, struct hv_err *err)
{
    struct hv_bench bench = {0};
    struct hv_device_catalogue devices = {0};
    char date[16];
    time_t now = time(NULL);
    (void)strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
    struct hv_profiler_options o = {.out = argv[1],
                                    .as = argc > 5 ? argv[5] : NULL,
                                    .date = date,
                                    .quick = strcmp(argv[2], "quick") == 0,
                                    .fresh = strcmp(argv[3], "fresh") == 0,
                                    .progress = stderr,
                                    .terminal = isatty(STDERR_FILENO) != 0,
                                    .stop = &stop};
    enum hv_status st = hv_cuda_open((int)strtol(argv[4], NULL, 10), &bench, err);
    if (st == HV_OK) {
        st = hv_device_catalogue_read(&devices, err);
    }
    if (st == HV_OK) {
        st = hv_profiler_run(&bench, &devices, &o, err);
    }
    hv_device_catalogue_free(&devices);
    hv_cuda_close(&bench);
    return st;
}

int main(int argc, char **argv)
{
    struct hv_err err = {0};
    (void)setlocale(LC_NUMERIC, "C");
    if (argc < 5 || argc > 6) {
        (void)fputs("hetviz-profile is started by `hetviz profile`\n", stderr);
        return 2;
    }
    watch_signals();
    if (profile(argc, argv, &err) != HV_OK) {
        return fail(&err);
    }
    struct hv_str done = {0};
    hv_text_addf(&done, "wrote %s; `hetviz profile --show %s` draws it\n", argv[1], argv[1]);
    (void)fputs(hv_str_cstr(&done), stdout);
    hv_str_free(&done);
    return 0;
}
