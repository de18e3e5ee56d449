/* Orders of named schedules against orders written out by hand, errors in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/rng.h"
#include "solver/base/str.h"
#include "solver/sim/pipeline/pipeline.h"
#include <stdio.h>
#include <string.h>

struct wanted {
    const char *name, *options; /* "key=value key=value" */
    int32_t p, m, v;
    const char *ranks[4];
};

static const struct wanted orders[] = {
    /* GPipe, NeurIPS'19, figure 2c: forwards, then backwards from the last micro-batch */
    {"gpipe", "", 2, 2, 1, {"F0.0 F0.1 BW0.1 BW0.0", "F1.0 F1.1 BW1.1 BW1.0"}},
    {"gpipe", "backward=forward recompute=full", 1, 2, 1, {"F0.0 F0.1 R0.0 BW0.0 R0.1 BW0.1"}},
    /* PipeDream-2BW, ICML'21, figure 2 (PipeDream-Flush) */
    {"1f1b",
     "",
     3,
     4,
     1,
     {"F0.0 F0.1 F0.2 BW0.0 F0.3 BW0.1 BW0.2 BW0.3", "F1.0 F1.1 BW1.0 F1.2 BW1.1 F1.3 BW1.2 BW1.3",
      "F2.0 BW2.0 F2.1 BW2.1 F2.2 BW2.2 F2.3 BW2.3"}},
    /* fewer micro-batches than ranks: the warm-up ends early */
    {"1f1b", "", 3, 1, 1, {"F0.0 BW0.0", "F1.0 BW1.0", "F2.0 BW2.0"}},
    /* DAPPLE, PPoPP'21, section 3.2, policy B: K = 2(p − r) − 1 */
    {"dapple",
     "early=pb",
     2,
     4,
     1,
     {"F0.0 F0.1 F0.2 BW0.0 F0.3 BW0.1 BW0.2 BW0.3",
      "F1.0 BW1.0 F1.1 BW1.1 F1.2 BW1.2 F1.3 BW1.3"}},
    /* HetPipe, ATC'20, section 4: at most N_m minibatches anywhere; the last rank alternates, the
     * middle one takes what comes first (f 1, backward 2: BW1 is there at 8, F2 at 10) */
    {"hetpipe",
     "in_flight=2",
     3,
     4,
     1,
     {"F0.0 F0.1 BW0.0 F0.2 BW0.1 F0.3 BW0.2 BW0.3", "F1.0 F1.1 BW1.0 BW1.1 F1.2 F1.3 BW1.2 BW1.3",
      "F2.0 BW2.0 F2.1 BW2.1 F2.2 BW2.2 F2.3 BW2.3"}},
    /* AutoPipe, CLUSTER'22: the first micro-batch forward in halves */
    {"autopipe",
     "sliced=1",
     2,
     2,
     1,
     {"F0.0.0 F0.0.1 F0.1 BW0.0 BW0.1", "F1.0.0 F1.0.1 BW1.0 F1.1 BW1.1"}},
    /* Megatron-LM, SC'21, figure 4: chunk by chunk in groups of p micro-batches */
    {"interleaved",
     "",
     2,
     2,
     2,
     {"F0.0 F0.1 F2.0 F2.1 BW2.0 BW2.1 BW0.0 BW0.1",
      "F1.0 F1.1 F3.0 BW3.0 F3.1 BW3.1 BW1.0 BW1.1"}},
    /* Breadth-first, MLSys'23, figure 4d */
    {"breadth-first",
     "",
     2,
     2,
     2,
     {"F0.0 F0.1 F2.0 F2.1 BW2.1 BW2.0 BW0.1 BW0.0",
      "F1.0 F1.1 F3.0 F3.1 BW3.1 BW3.0 BW1.1 BW1.0"}},
    /* Zero Bubble, ICLR'24, figure 2 (H1) with two ranks: W lags r behind */
    {"zb-h1",
     "",
     2,
     3,
     1,
     {"F0.0 F0.1 B0.0 W0.0 F0.2 B0.1 W0.1 B0.2 W0.2",
      "F1.0 B1.0 F1.1 B1.1 W1.0 F1.2 B1.2 W1.1 W1.2"}},
    /* Zero Bubble, ICLR'24, figure 3 (H2) with two ranks */
    {"zb-h2",
     "",
     2,
     3,
     1,
     {"F0.0 F0.1 F0.2 B0.0 W0.0 B0.1 W0.1 B0.2 W0.2",
      "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 W1.0 W1.1 W1.2"}},
    /* TeraPipe, ICML'21, figure 2d: slices through the pipeline, backwards reversed */
    {"terapipe",
     "slices=2",
     1,
     2,
     1,
     {"F0.0.0 F0.0.1 F0.1.0 F0.1.1 BW0.1.1 BW0.1.0 BW0.0.1 BW0.0.0"}},
    /* Seq1F1B, arXiv 2406.03488, figure 2 */
    {"seq1f1b",
     "slices=2",
     2,
     1,
     1,
     {"F0.0.0 F0.0.1 BW0.0.1 BW0.0.0", "F1.0.0 F1.0.1 BW1.0.1 BW1.0.0"}},
    /* Varuna, EuroSys'22, figure 5: no recompute on the last stage */
    {"varuna", "", 2, 2, 1, {"F0.0 F0.1 R0.0 BW0.0 R0.1 BW0.1", "F1.0 BW1.0 F1.1 BW1.1"}},
    /* DynaPipe, EuroSys'24: the authors' wait-free cyclic scheduler (dynapipe/schedule_opt at
     * d8666ad4) on equal micro-batches */
    {"dynapipe",
     "",
     4,
     8,
     1,
     {"F0.0 F0.1 F0.2 F0.3 F0.4 F0.5 F0.6 BW0.0 F0.7 BW0.1 BW0.2 BW0.3 BW0.4 BW0.5 BW0.6 BW0.7",
      "F1.0 F1.1 F1.2 F1.3 F1.4 BW1.0 F1.5 BW1.1 F1.6 BW1.2 F1.7 BW1.3 BW1.4 BW1.5 BW1.6 BW1.7",
      "F2.0 F2.1 F2.2 BW2.0 F2.3 BW2.1 F2.4 BW2.2 F2.5 BW2.3 F2.6 BW2.4 F2.7 BW2.5 BW2.6 BW2.7",
      "F3.0 BW3.0 F3.1 BW3.1 F3.2 BW3.2 F3.3 BW3.3 F3.4 BW3.4 F3.5 BW3.5 F3.6 BW3.6 F3.7 BW3.7"}},
    /* Chimera, SC'21, figure 3: grid of the authors' program (Chimera at 6b78ac7,
     * chimera_pipeline_rank.py) for D = N = 4; the up pipe has micro-batches 2 and 3 */
    {"chimera",
     "",
     4,
     4,
     1,
     {"F0.0 F0.1 F3.2 BW3.2 F3.3 BW3.3 BW0.0 BW0.1", "F1.0 F2.2 F1.1 F2.3 BW2.2 BW1.0 BW2.3 BW1.1",
      "F1.2 F2.0 F1.3 F2.1 BW2.0 BW1.2 BW2.1 BW1.3",
      "F0.2 F0.3 F3.0 BW3.0 F3.1 BW3.1 BW0.2 BW0.3"}},
    /* halves: a forward is both, the backwards come one by one */
    {"chimera",
     "mode=halving",
     2,
     2,
     1,
     {"F0.0.0 F0.0.1 F1.1.0 F1.1.1 BW1.1.1 BW0.0.1 BW1.1.0 BW0.0.0",
      "F0.1.0 F0.1.1 F1.0.0 F1.0.1 BW1.0.1 BW0.1.1 BW1.0.0 BW0.1.0"}},
    /* Hanayo, SC'23, one wave: Chimera with twice the ranks, folded in the middle */
    {"hanayo",
     "",
     2,
     2,
     2,
     {"F0.0 F0.1 F3.0 BW3.0 F3.1 BW3.1 BW0.0 BW0.1",
      "F1.0 F2.0 F1.1 F2.1 BW2.0 BW1.0 BW2.1 BW1.1"}},
    /* Controllable Memory, NeurIPS'24: the authors' search (zero-bubble-pipeline-parallelism,
     * v_auto_schedule.py at cac2b7d) run for p = 2, m = 4, max_mem = 4 */
    {"v-adaptive",
     "memory=4",
     2,
     4,
     2,
     {"F0.0 F0.1 F0.2 F3.0 B3.0 W3.0 F3.1 B3.1 B0.0 W3.1 W0.0 F0.3 F3.2 B3.2 B0.1 W3.2 W0.1 F3.3 "
      "B3.3 B0.2 W3.3 B0.3 W0.2 W0.3",
      "F1.0 F2.0 F1.1 F2.1 B2.0 W2.0 B1.0 F1.2 W1.0 B2.1 F2.2 W2.1 B1.1 F1.3 W1.1 F2.3 B2.2 B1.2 "
      "B2.3 B1.3 W2.2 W1.2 W2.3 W1.3"}},
};

/* sets "key=value key=value" */
static void set_options(struct hv_schedule_input *in, const char *text)
{
    char copy[200];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        char *eq = strchr(word, '=');
        assert_non_null(eq);
        *eq = '\0';
        assert_int_equal(hv_schedule_set_option(in, word, eq + 1, NULL), HV_OK);
    }
}

static enum hv_status make(struct hv_arena *a, const struct wanted *w, struct hv_schedule *s,
                           struct hv_err *err)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    assert_int_equal(hv_schedule_find(w->name, &row, err), HV_OK);
    hv_schedule_input_init(&in, row, w->p, w->m);
    in.chunks = w->v;
    set_options(&in, w->options);
    return hv_schedule_make(a, &in, s, err);
}

static void rank_text(const struct hv_schedule *s, int32_t r, struct hv_str *out)
{
    hv_str_clear(out);
    for (size_t i = s->rank_at[r]; i < s->rank_at[r + 1];) {
        hv_str_adds(out, i > s->rank_at[r] ? " " : "");
        i += hv_schedule_add_token(s, i, out);
    }
}

static void orders_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(orders); i++) {
        struct hv_arena a = {0};
        struct hv_schedule s;
        struct hv_str text = {0};
        assert_int_equal(make(&a, &orders[i], &s, NULL), HV_OK);
        for (int32_t r = 0; r < orders[i].p; r++) {
            rank_text(&s, r, &text);
            assert_string_equal(hv_str_cstr(&text), orders[i].ranks[r]);
        }
        hv_str_free(&text);
        hv_arena_free(&a);
    }
}

/* every row of the table, over many sizes: a valid, deadlock-free order, or a worded refusal */
static void all_schedules_run(void **state)
{
    (void)state;
    size_t n_rows, n_made = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    for (size_t k = 0; k < n_rows * 6 * 12 * 3; k++) {
        const struct hv_schedule_row *row = &rows[k % n_rows];
        struct hv_arena a = {0};
        struct hv_schedule_input in;
        struct hv_schedule s;
        struct hv_pipe g;
        struct hv_err err = {0};
        hv_schedule_input_init(&in, row, (int32_t)(k / n_rows % 6) + 1,
                               (int32_t)(k / n_rows / 6 % 12) + 1);
        in.chunks = row->flags & HV_SCHEDULE_CHUNKS ? (int32_t)(k / n_rows / 72) + 1 : row->chunks;
        enum hv_status st = hv_schedule_make(&a, &in, &s, &err);
        if (st == HV_OK) {
            st = hv_pipe_compile(&a, &s, &g, &err);
            if (st != HV_OK) {
                print_error("%s p=%d m=%d v=%d: %s\n", row->name, in.ranks, in.micro_batches,
                            in.chunks, err.text);
            }
            assert_int_equal(st, HV_OK);
            n_made++;
        } else {
            assert_true(st == HV_EUSAGE || st == HV_ENO);
            assert_true(strlen(err.text) > 20);
        }
        hv_arena_free(&a);
    }
    assert_true(n_made > n_rows * 70);
}

/* every row with random sizes and random values of all its options: as above */
static void all_options_run(void **state)
{
    (void)state;
    size_t n_rows, n_made = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n_rows);
    struct hv_rng r;
    hv_rng_seed(&r, 29);
    for (size_t k = 0; k < n_rows * 100; k++) {
        const struct hv_schedule_row *row = &rows[k % n_rows];
        struct hv_arena a = {0};
        struct hv_schedule_input in;
        struct hv_schedule s;
        struct hv_pipe g;
        struct hv_err err = {0};
        hv_schedule_input_init(&in, row, (int32_t)(1 + hv_rng_below(&r, 9)),
                               (int32_t)(1 + hv_rng_below(&r, 24)));
        for (size_t i = 0; i < row->n_options; i++) {
            const struct hv_schedule_option *o = &row->options[i];
            int64_t most = o->max < o->min + 12 ? o->max : o->min + 12;
            in.options[i] = o->min + (int64_t)hv_rng_below(&r, (uint64_t)(most - o->min) + 1);
        }
        in.chunks = hv_schedule_usual_chunks(&in);
        in.cost =
            (struct hv_stage_cost){1 + hv_rng_double(&r), 2 * hv_rng_double(&r), hv_rng_double(&r)};
        in.hop_s = hv_rng_double(&r);
        enum hv_status st = hv_schedule_make(&a, &in, &s, &err);
        if (st == HV_OK) {
            st = hv_pipe_compile(&a, &s, &g, &err);
            if (st != HV_OK) {
                print_error("%s p=%d m=%d v=%d: %s\n", row->name, in.ranks, in.micro_batches,
                            in.chunks, err.text);
            }
            assert_int_equal(st, HV_OK);
            n_made++;
        } else {
            assert_true(st == HV_EUSAGE || st == HV_ENO);
            assert_true(strlen(err.text) > 20);
        }
        hv_arena_free(&a);
    }
    assert_true(n_made > n_rows * 40);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        struct wanted w;
        enum hv_status st;
        const char *says;
    } cases[] = {
        {{"interleaved", "", 4, 9, 2, {0}}, HV_EUSAGE, "m = 9 micro-batches"},
        {{"interleaved", "group=2", 4, 8, 2, {0}}, HV_EUSAGE, "group must lie between 4"},
        {{"interleaved", "group=2", 4, 8, 2, {0}}, HV_EUSAGE, "use group = 4"},
        {{"interleaved", "group=9", 4, 20, 2, {0}}, HV_EUSAGE, "use group = 8"},
        {{"interleaved", "", 4, 8, 1, {0}}, HV_EUSAGE, "at least 2 chunks; use v = 2"},
        {{"1f1b", "", 4, 8, 2, {0}}, HV_EUSAGE, "use v = 1"},
        {{"zb-h2", "", 4, 6, 1, {0}}, HV_EUSAGE, "use m = 7"},
        {{"dualpipe", "", 3, 8, 1, {0}}, HV_EUSAGE, "use p = 4, m = 8"},
        {{"dualpipe", "", 4, 13, 1, {0}}, HV_EUSAGE, "use p = 4, m = 14"},
        {{"dualpipev", "", 4, 7, 2, {0}}, HV_EUSAGE, "use m = 8"},
        {{"hetpipe", "in_flight=5", 4, 7, 1, {0}}, HV_EUSAGE, "use in_flight = 4"},
        {{"bpipe", "", 5, 4, 1, {0}}, HV_EUSAGE, "use p = 4 or p = 6"},
        {{"bpipe", "", 1, 4, 1, {0}}, HV_EUSAGE, "found p = 1; use p = 2"},
        {{"chimera", "", 1, 4, 1, {0}}, HV_EUSAGE, "found p = 1; use p = 2"},
        {{"interleaved", "", 4, 9, 2, {0}}, HV_EUSAGE, "use m = 8 or m = 12, or group = 5"},
        {{"chimera", "", 3, 4, 1, {0}}, HV_EUSAGE, "use p = 2 or p = 4"},
        {{"chimera", "pipes=6", 8, 8, 1, {0}}, HV_EUSAGE, "use pipes = 4"},
        {{"chimera", "mode=doubling", 4, 7, 1, {0}}, HV_EUSAGE, "use m = 8"},
        {{"hanayo", "", 4, 4, 3, {0}}, HV_EUSAGE, "use v = 2 or v = 4"},
        {{"hanayo", "waves=2", 4, 4, 2, {0}}, HV_EUSAGE, "use v = 4 or waves = 1"},
        {{"v-adaptive", "memory=2", 4, 8, 2, {0}}, HV_ENO, "use memory = 4"},
        {{"pipedream-2bw", "", 4, 3, 1, {0}}, HV_EUSAGE, "use m = 4"},
        {{"1f1b", "", 65536, 1 << 22, 1, {0}}, HV_ELIMIT, "the limit is"},
        {{"v-half", "", 4096, 4, 2, {0}}, HV_ELIMIT, "use fewer ranks"},
        {{"v-min", "", 65536, 4, 2, {0}}, HV_ELIMIT, "use fewer ranks"},
        {{"v-adaptive", "", 512, 4, 2, {0}}, HV_ELIMIT, "use fewer ranks"},
        {{"1f1b-v", "", 65536, 4, 2, {0}}, HV_ELIMIT, "use fewer ranks"},
        {{"hanayo", "", 65536, 4, 2, {0}}, HV_ELIMIT, "use fewer ranks"},
        {{"dynapipe", "", 65536, 4, 1, {0}}, HV_ELIMIT, "use fewer ranks"},
        {{"chimera", "", 65536, 4, 1, {0}}, HV_ELIMIT, "use fewer ranks"},
        {{"explicit", "", 1, 1, 1, {0}}, HV_EUSAGE, "needs an order"},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct hv_arena a = {0};
        struct hv_schedule s;
        struct hv_err err = {0};
        assert_int_equal(make(&a, &cases[i].w, &s, &err), cases[i].st);
        assert_non_null(strstr(err.text, cases[i].says));
        hv_arena_free(&a);
    }
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_err err = {0};
    assert_int_equal(hv_schedule_find("zb-h3", &row, &err), HV_EUSAGE);
    assert_non_null(strstr(err.text, "did you mean \"zb-h1\""));
    assert_int_equal(hv_schedule_find("gpipe", &row, &err), HV_OK);
    hv_schedule_input_init(&in, row, 2, 2);
    assert_int_equal(hv_schedule_set_option(&in, "backwards", "reverse", &err), HV_EUSAGE);
    assert_non_null(strstr(err.text, "did you mean \"backward\""));
    assert_int_equal(hv_schedule_set_option(&in, "backward", "up", &err), HV_EUSAGE);
    assert_non_null(strstr(err.text, "reverse, forward"));
}

static enum hv_status explicit_order(struct hv_arena *a, const struct hv_order_text *order,
                                     int32_t p, int32_t m, struct hv_pipe *g, struct hv_err *err)
{
    const struct hv_schedule_row *row;
    struct hv_schedule_input in;
    struct hv_schedule s;
    enum hv_status st = hv_schedule_find("explicit", &row, err);
    hv_schedule_input_init(&in, row, p, m);
    in.order = order;
    st = st == HV_OK ? hv_schedule_make(a, &in, &s, err) : st;
    return st == HV_OK ? hv_pipe_compile(a, &s, g, err) : st;
}

static void bad_orders(void **state)
{
    (void)state;
    static const struct {
        const char *tokens[2][4];
        enum hv_status st;
        const char *says;
    } cases[] = {
        {{{"F0.0", "BW0.0", NULL}, {"F1.0", "BW1.0", NULL}}, HV_OK, ""},
        {{{"F0.0", "BW0.0", NULL}, {"BW1.0", "F1.0", NULL}}, HV_ENO, "BW1.0 comes before"},
        {{{"F0.0", "F0.0", "BW0.0", NULL}, {"F1.0", "BW1.0", NULL}}, HV_EINPUT, "twice"},
        {{{"F0.0", "BW0.0", NULL}, {"F1.0", NULL}}, HV_EINPUT, "F1.0 has no backward"},
        {{{"F0.0", "B0.0", NULL}, {"F1.0", "BW1.0", NULL}}, HV_EINPUT, "no W"},
        {{{"F0.0", "BW0.0", NULL}, {"F1.0", "BW1.0", "X", NULL}}, HV_EINPUT, "found \"X\""},
        {{{"F0.0", "BW0.0", NULL}, {"F1.0", "BW7.0", NULL}}, HV_EINPUT, "not that many stages"},
        {{{"F0.0", "BW0.0", NULL}, {"F1.0", "BW1.9", NULL}}, HV_EINPUT, "micro-batches"},
        {{{"BW0.0", "W0.0", NULL}, {"F1.0", "BW1.0", NULL}}, HV_ENO, "before its forward"},
        {{{"F1.0", "BW1.0", NULL}, {NULL}}, HV_EINPUT, "F1.0 waits for F0.0"},
        {{{"F0.0", "BW1.0", NULL}, {"F1.0", "BW0.0", NULL}}, HV_ENO, "before its forward"},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct hv_arena a = {0};
        struct hv_pipe g;
        struct hv_err err = {0};
        struct hv_order_text order[2];
        for (int r = 0; r < 2; r++) {
            order[r] = (struct hv_order_text){cases[i].tokens[r], 0};
            while (cases[i].tokens[r][order[r].n]) {
                order[r].n++;
            }
        }
        assert_int_equal(explicit_order(&a, order, 2, 1, &g, &err), cases[i].st);
        assert_non_null(strstr(err.text, cases[i].says));
        hv_arena_free(&a);
    }
}

/* two ranks, each waiting for what the other has behind its own head */
static void deadlock_names_the_heads(void **state)
{
    (void)state;
    static const char *const r0[] = {"F0.0", "BW0.0", "F0.1", "BW0.1"};
    static const char *const r1[] = {"F1.1", "BW1.1", "F1.0", "BW1.0"};
    struct hv_order_text order[] = {{r0, 4}, {r1, 4}};
    struct hv_arena a = {0};
    struct hv_pipe g;
    struct hv_err err = {0};
    assert_int_equal(explicit_order(&a, order, 2, 2, &g, &err), HV_ENO);
    assert_string_equal(err.text,
                        "the order deadlocks: rank 0 stops at BW0.0, waiting for BW1.0 of rank "
                        "1; rank 1 stops at F1.1, waiting for F0.1 of rank 0");
    hv_arena_free(&a);
}

/* closed forms of memory: GPipe m, 1F1B min(m, p − r), DAPPLE-PB, ZB-H1 p, ZB-H2 2p − 1, DualPipe p
 * + 1 */
static void peaks_in_flight(void **state)
{
    (void)state;
    static const struct {
        struct wanted w;
        int32_t want[4];
    } cases[] = {
        {{"gpipe", "", 4, 8, 1, {0}}, {8, 8, 8, 8}},
        {{"1f1b", "", 4, 8, 1, {0}}, {4, 3, 2, 1}},
        {{"1f1b", "", 4, 2, 1, {0}}, {2, 2, 2, 1}},
        {{"dapple", "early=pb", 4, 8, 1, {0}}, {7, 5, 3, 1}},
        {{"interleaved", "", 4, 8, 2, {0}}, {11, 9, 7, 5}},
        {{"zb-h1", "", 4, 8, 1, {0}}, {4, 4, 4, 4}},
        {{"zb-h2", "", 4, 8, 1, {0}}, {7, 7, 7, 7}},
        {{"zb-1p", "", 4, 8, 1, {0}}, {4, 4, 4, 4}},
        {{"seq1f1b", "slices=2", 4, 8, 1, {0}}, {5, 4, 3, 2}},
        {{"dualpipe", "", 4, 8, 1, {0}}, {5, 5, 5, 5}},
        {{"zb-v", "", 4, 8, 2, {0}}, {8, 8, 8, 8}},
    };
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        struct hv_arena a = {0};
        struct hv_schedule s;
        int32_t got[4];
        assert_int_equal(make(&a, &cases[i].w, &s, NULL), HV_OK);
        hv_schedule_peak_inflight(&s, got);
        assert_memory_equal(got, cases[i].want, sizeof got);
        hv_arena_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_by_hand),  cmocka_unit_test(all_schedules_run),
        cmocka_unit_test(all_options_run), cmocka_unit_test(refusals),
        cmocka_unit_test(bad_orders),      cmocka_unit_test(deadlock_names_the_heads),
        cmocka_unit_test(peaks_in_flight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
