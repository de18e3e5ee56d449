/*
 * Fuzz target: any bytes as an explicit order (one rank per line, tokens between blanks), read,
 * checked, compiled and priced. What compiles must run with finite times.
 */
#include "solver/sim/pipeline/pipeline.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RANKS = 8, TOKENS = 256 };

/* cuts the text into lines and words */
static int32_t split(char *text, const char *tokens[RANKS][TOKENS], struct hv_order_text *order)
{
    int32_t n = 0;
    char *line_at = NULL, *word_at = NULL;
    for (char *line = strtok_r(text, "\n", &line_at); line && n < RANKS;
         line = strtok_r(NULL, "\n", &line_at)) {
        order[n] = (struct hv_order_text){tokens[n], 0};
        for (char *w = strtok_r(line, " ", &word_at); w && order[n].n < TOKENS;
             w = strtok_r(NULL, " ", &word_at)) {
            tokens[n][order[n].n++] = w;
        }
        n++;
    }
    return n;
}

static void price(struct hv_arena *a, const struct hv_pipe *g)
{
    double *op_s = hv_arena_new(a, double, hv_schedule_n_ops(&g->s) + 1);
    for (size_t i = 0; i < hv_schedule_n_ops(&g->s); i++) {
        op_s[i] = (double)(i % 7);
    }
    struct hv_pipe_cost cost = {.op_s = op_s, .hop_all_s = 0.5};
    struct hv_pipe_run run;
    const struct hv_pipe_link *path;
    size_t n_path;
    hv_pipe_run_new(a, g, &run);
    hv_pipe_time(g, &cost, &run);
    hv_pipe_critical(a, g, &cost, &run, &path, &n_path);
    if (!isfinite(run.makespan_s) || n_path > (size_t)g->n_nodes) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *tokens[RANKS][TOKENS];
    struct hv_order_text order[RANKS];
    struct hv_arena a = {0};
    struct hv_err err;
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_schedule s;
    struct hv_pipe g;
    char *text = hv_arena_strndup(&a, (const char *)data, size);
    int32_t p = split(text, tokens, order);
    if (p > 0 && hv_schedule_find("explicit", &row, &err) == HV_OK) {
        hv_schedule_input_init(&in, row, p, 8);
        in.chunks = 2;
        in.order = order;
        if (hv_schedule_make(&a, &in, &s, &err) == HV_OK &&
            hv_pipe_compile(&a, &s, &g, &err) == HV_OK) {
            price(&a, &g);
        }
    }
    hv_arena_free(&a);
    return 0;
}
