/*
 * What scripting costs: 10,000 stage candidates priced by a plugin, three ways, and reading the
 * metadata of 100 plugins with and without the cache. Judges nothing.
 */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "scripting/plugin/plugin.h"
#include "scripting/worker/run.h"
#include "solver/base/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PLUGINS = 100, RUNS = 9 };

#define HEAD "return { api = 1, id = '%s', title = 't', kind = 'test', summary = 's',\n"
#define NODE "local d = {devices = 'a[0].0-7', tp = 8, recompute = 'full', layers = {0, 1}}\n"

/* 19 shapes of all 528 ranges of 32 layers: 10,032 candidates */
static const struct {
    const char *name, *body;
} ways[] = {
    {"nothing (an empty plan function)", ""},
    {"hv.cost.stages, all ranges per call",
     NODE "local r = {} for i = 1, 32 do for j = i, 32 do r[#r + 1] = i r[#r + 1] = j end end\n"
          "d.layers, d.ranges = nil, r\n"
          "for mb = 1, 19 do d.micro_batch = mb hv.cost.stages(d) end"},
    {"layers:time and layers:bytes",
     "for mb = 1, 19 do local t = hv.cost.layers{tp = 8, micro_batch = mb}\n"
     "for i = 1, 32 do for j = i, 32 do local x = t:time(i, j, 'A100-SXM-80GB') + t:bytes(i, j) "
     "end end end"},
    {"hv.cost.stage, one by one",
     NODE "for mb = 1, 19 do d.micro_batch = mb for i = 1, 32 do for j = i, 32 do\n"
          "d.layers[1], d.layers[2] = i - 1, j hv.cost.stage(d) end end end"},
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

static void report(const char *name, double *seconds)
{
    qsort(seconds, RUNS, sizeof *seconds, by_value);
    printf("  %-44s median %9.2f ms   worst %9.2f ms\n", name, seconds[RUNS / 2] * 1e3,
           seconds[RUNS - 1] * 1e3);
}

static void write_plugin(const char *folder, const char *id, const char *rest)
{
    struct hv_str path = {0}, text = {0};

    hv_str_addf(&path, "%s/%s.lua", folder, id);
    hv_str_addf(&text, HEAD, id);
    hv_str_adds(&text, rest);
    if (hv_file_write(hv_str_cstr(&path), hv_str_cstr(&text), text.n, NULL) != HV_OK) {
        exit(1);
    }
    hv_str_free(&path);
    hv_str_free(&text);
}

static void time_prices(const char *folder, const struct hv_inputs *in)
{
    for (size_t w = 0; w < HV_COUNT(ways); w++) {
        double seconds[RUNS];
        struct hv_str body = {0}, path = {0};
        struct hv_plugins list;
        struct hv_err err = {0};
        hv_str_addf(&body, "plan = function(ctx)\n%s\nreturn nil, 'done' end }", ways[w].body);
        write_plugin(folder, "price", hv_str_cstr(&body));
        hv_str_addf(&path, "%s/price.lua", folder);
        if (hv_plugins_read_file(&list, hv_str_cstr(&path), &err) != HV_OK) {
            exit(1);
        }
        for (int i = 0; i < RUNS; i++) {
            const struct hv_run_request r = {
                .inputs = in, .plugins = &list, .strategy = "price", .seed = 1};
            struct hv_run_result out;
            double start = now_s();
            if (hv_run_strategy(&r, &out, &err) != HV_ENO) {
                printf("  %s\n", err.text);
            }
            seconds[i] = now_s() - start;
            hv_run_result_free(&out);
        }
        report(ways[w].name, seconds);
        hv_plugins_free(&list);
        (void)remove(hv_str_cstr(&path));
        hv_str_free(&body);
        hv_str_free(&path);
    }
}

static void time_metadata(const char *folder, const char *cache)
{
    double cold[RUNS], warm[RUNS];

    for (int i = 0; i < PLUGINS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "p%03d", i);
        write_plugin(
            folder, id,
            "options = { { key = 'a', type = 'integer', default = 1, min = 0, max = 9, help "
            "= 'h' } },\nplan = function() end }");
    }
    for (int i = 0; i < RUNS; i++) {
        struct hv_plugins list;
        (void)remove(cache);
        double start = now_s();
        if (hv_plugins_read(&list, NULL) != HV_OK) {
            exit(1);
        }
        cold[i] = now_s() - start;
        hv_plugins_free(&list);
        start = now_s();
        if (hv_plugins_read(&list, NULL) != HV_OK) {
            exit(1);
        }
        warm[i] = now_s() - start;
        hv_plugins_free(&list);
    }
    report("metadata of 100 plugins, cached", warm);
    report("metadata of 100 plugins, no cache", cold);
}

int main(void)
{
    char folder[] = "/var/tmp/hetviz-bench-XXXXXX", cache[64], command[96];
    struct hv_inputs in = {0};
    struct hv_err err = {0};

    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    (void)snprintf(cache, sizeof cache, "%s/hetviz/plugins.json", folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("XDG_DATA_HOME", folder, 1);
    setenv("HETVIZ_PLUGINS", folder, 1);
    if (hv_inputs_read(&in, "two-generations", "llama-3-8b", NULL, &err) != HV_OK) {
        printf("%s\n", err.text);
        return 1;
    }
    printf("a plugin that prices 10,032 stage candidates\n");
    time_prices(folder, &in);
    time_metadata(folder, cache);
    hv_inputs_free(&in);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? 0 : 1;
}
