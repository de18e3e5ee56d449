/* The Strategies screen with 80 strategies: headings, folding, search, filter, what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screens_bench.h"

/* Strategies per kind: 80 in all. */
static const struct {
    enum hv_kind kind;
    const char *ids; /* separated by blanks */
} kinds[] = {
    {HV_KIND_PLANNER, "auto"},
    {HV_KIND_BASELINE, "manual uniform"},
    {HV_KIND_DATA, "ddp fsdp horovod mics wus zero1 zero2 zero3"},
    {HV_KIND_TENSOR, "tp1d tp25d tp2d tp3d"},
    {HV_KIND_PIPELINE, "adapipe bfpp bpipe chimera ctrlmem dapple distmm dynapipe gpipe graphpipe "
                       "hanayo mcap mpress pipedream ptdp seq1f1b terapipe tessel varuna zb"},
    {HV_KIND_SEQUENCE, "burst distflash dsp loongtrain megatron_sp ring rsa striped ulysses usp "
                       "wallfacer"},
    {HV_KIND_EXPERTS, "dsmoe fastermoe fastmoe flexmoe gshard janus lina megablocks pipemoe "
                      "prophet scattermoe schemoe smartmoe switch tamoe tutel"},
    {HV_KIND_HETERO, "amp crius disttrain dtfm fireflyer flashflex helix heterps hethub hetpipe "
                     "hexgen metis oobleck preduce sailor whale"},
    {HV_KIND_AUTO, "aceso galvatron"},
};

#define N_ROWS 80
static struct hv_plugin plugins[N_ROWS];
static char ids[N_ROWS][16], titles[N_ROWS][32];

/* Year and venue of a few, so that they can be searched for. */
static void add_paper(struct hv_plugin *p)
{
    static const char *searches[] = {"degrees", "micro-batch"};
    p->searches = searches;
    p->n_searches = 2;
    if (strncmp(p->id, "zero", 4) == 0) {
        p->sets = json_pack("{s:i}", "zero.stage", p->id[4] - '0');
        p->year = 2020;
        p->venue = "SC";
        p->summary = "Held in parts.";
    } else if (strcmp(p->id, "wallfacer") == 0) {
        p->sets = json_pack("{s:s}", "cp.scheme", "wallfacer");
        p->year = 2024;
        p->reference = "arXiv:2407.00611";
        p->summary = "Teams gather their tokens.";
    } else if (strcmp(p->id, "tutel") == 0) {
        p->sets = json_pack("{s:s}", "moe.all_to_all", "a2a_2dh");
        p->venue = "MLSys";
        p->year = 2023;
    } else if (strcmp(p->id, "pipedream") == 0) {
        p->kind = "pipeline, auto-parallel";
        p->kinds[p->n_kinds++] = HV_KIND_AUTO;
        p->system = "PipeDream: Generalized Pipeline Parallelism, SOSP 2019";
    } else if (strcmp(p->id, "fsdp") == 0) {
        p->summary = "As zero stage 3, in units.";
    }
}

static size_t make_plugins(void)
{
    size_t n = 0;
    for (size_t k = 0; k < HV_COUNT(kinds); k++) {
        for (const char *at = kinds[k].ids; *at != '\0';) {
            size_t len = strcspn(at, " ");
            assert_true(n < N_ROWS && len < sizeof ids[0]);
            json_decref((json_t *)(uintptr_t)plugins[n].sets);
            (void)snprintf(ids[n], sizeof ids[n], "%.*s", (int)len, at);
            (void)snprintf(titles[n], sizeof titles[n], "System %c%s", ids[n][0] - 32, ids[n] + 1);
            plugins[n] = (struct hv_plugin){.path = "plugins/one/plugin.lua",
                                            .name = "plugins/one/plugin.lua",
                                            .id = ids[n],
                                            .title = titles[n],
                                            .kind = hv_kind_name(kinds[k].kind),
                                            .kinds = {kinds[k].kind},
                                            .n_kinds = 1,
                                            .shipped = true,
                                            .has = {[HV_PLUGIN_PLAN] = true}};
            /* a baseline that searches stands before one that is entered by hand */
            plugins[n].effort =
                strcmp(ids[n], "uniform") == 0 ? HV_EFFORT_QUICK : HV_EFFORT_UNKNOWN;
            add_paper(&plugins[n]);
            n++;
            at += len + (at[len] == ' ');
        }
    }
    return n;
}

static int open_rows(void **state)
{
    assert_int_equal(make_plugins(), N_ROWS);
    return bench_open_with(state, 0, plugins, N_ROWS);
}

/* Adds a finished plan of a strategy: so many layers on the first node, ZeRO as given. */
static void add_plan(struct bench *b, const char *strategy, int first, int zero)
{
    struct hv_str text = {0}, name = {0};
    struct hv_json json = {0};
    struct hv_err err = {0};
    uint32_t id = 0;
    hv_str_addf(&name, "%s-1", strategy);
    hv_str_addf(&text,
                "{\"format\": \"hetviz.plan/1\", \"strategy\": {\"name\": \"%s\"}, "
                "\"micro_batch\": 4, \"replicas\": [{\"micro_batches\": 32, \"stages\": ["
                "{\"devices\": \"a[0].*\", \"layers\": [0, %d], \"tp\": 4, \"dp\": 2, \"zero\": "
                "%d}, {\"devices\": \"v[0-1].*\", \"layers\": [%d, 32], \"tp\": 4, \"dp\": 4, "
                "\"zero\": %d}]}], \"schedule\": {\"name\": \"1f1b\"}}",
                strategy, first, zero, first, zero);
    assert_int_equal(hv_json_parse(&json, hv_str_cstr(&text), text.n, "plan", &err), HV_OK);
    assert_int_equal(
        hv_session_row_add(b->session, hv_str_cstr(&name), json_incref(json.root), &id, &err),
        HV_OK);
    hv_json_free(&json);
    hv_str_free(&text);
    hv_str_free(&name);
}

static void all_kinds_are_seen(void **state)
{
    struct bench *b = *state;
    static const char *const headings[] = {
        "data           8", "tensor         4", "pipeline      20", "sequence      11",
        "experts       16", "hetero        16", "auto-parallel  3"};
    bench_script(b, "resize 80x24\nkeys 3\n");
    for (size_t i = 0; i < HV_COUNT(headings); i++) {
        assert_true(bench_sees(b, headings[i]));
    }
    assert_false(bench_sees(b, "more ")); /* nothing has to be scrolled */
    bench_script(b, "wait 80 strategies in 7 kinds\n");
    bench_golden(b, "kinds_80x24");
    bench_script(b, "resize 120x40\n");
    bench_golden(b, "kinds_120x40");
    bench_script(b, "resize 170x45\n");
    bench_golden(b, "kinds_170x45");
}

/* auto, then the baseline that searches, then the one entered by hand. */
static void baselines_come_first(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 80x24\nkeys 3gj\nwait -[uniform]\nkeys j\nwait -[manual]\nkeys j\n"
                    "wait -[data]\n");
}

static void headings_open_and_close(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 80x24\nkeys 3gjjj<Right>\nwait zero3\n");
    bench_script(b, "keys jjj\nwait -[horovod]\nkeys <Left>\nwait -[data]\n");
    assert_false(bench_sees(b, "zero3"));
    /* one of two kinds stands under both */
    bench_script(b, "keys G<Right>\nwait pipedream\nkeys <Left>gg/pipedream<Enter>\nwait mpress\n");
    bench_script(b, "keys <Left>\nwait -[pipeline]\n:right\nwait adapipe\n:left\n");
    assert_false(bench_sees(b, "adapipe"));
}

static void figures_stand_in_headings(void **state)
{
    struct bench *b = *state;
    add_plan(b, "uniform", 16, 1);
    add_plan(b, "zero1", 20, 1);
    add_plan(b, "wus", 20, 1); /* the same plan */
    add_plan(b, "zero2", 22, 2);
    bench_script(b, "resize 80x24\nkeys 3\nwait 3 of 8\nkeys gjjj\nwait fastest here\n");
    bench_golden(b, "kinds_best_80x24");
    bench_script(b, "keys <Right>jjjjj\nwait -[wus]\nwait unlike uniform\nwait cut      16|16 -> "
                    "20|12\nkeys j\nwait = wus\n");
    bench_golden(b, "kinds_open_80x24");
    bench_script(b, "resize 120x40\n");
    bench_golden(b, "kinds_open_120x40");
    bench_script(b, "resize 170x45\n");
    bench_golden(b, "kinds_open_170x45");
    /* sorted by time the fastest is first inside its kind */
    bench_script(b, "resize 80x24\nkeys ss\nwait sorted\nkeys s<Esc>\n");
}

static void filters_look_into_everything(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 80x24\nkeys 3fzero<Enter>\nwait 4 of 80 hold \"zero\": 3 by name, 1 by "
                    "text or knob\nwait fsdp\n");
    assert_false(bench_sees(b, "tensor"));
    bench_script(b, "wait -[fsdp]\nkeys /zero2<Enter>\nwait found in  id, title, knob\n");
    bench_golden(b, "kinds_filter_80x24");
    bench_script(b,
                 "keys <Esc>\nwait tensor\n:filter 2024\nwait wallfacer\nwait 1 of 80 hold\n"
                 ":filter a2a\nwait tutel\nwait 1 of 80 hold\n:filter sosp\nwait pipedream\n"
                 ":filter micro-batch\nwait 80 of 80 hold\n:filter arxiv:2407\nwait wallfacer\n");
    bench_script(b, "keys <Esc>\nwait 80 strategies\n");
}

/* Search, citation, run of the kind, Gantt: at most eight keys from the screen on. */
static void a_tour_in_eight_keys(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 80x24\nkeys 3\nkeys /wal<Enter>\nwait -[wallfacer]\n"
                    "wait arXiv:2407.00611\nkeys <Left><Enter>\nwait sequence: 11 queued\n"
                    "keys 5\nwait <5 Gantt>\n"); /* / w a l Enter Left Enter 5 */
    size_t n = 0;
    (void)hv_session_rows(b->session, &n);
    assert_int_equal(n, 3 + 11);
    bench_script(b, "keys 3x\n");
}

/* A heading's fastest plan is what the Gantt chart shows. */
static void the_fastest_plan_is_selected(void **state)
{
    struct bench *b = *state;
    add_plan(b, "ring", 16, 1);
    add_plan(b, "wallfacer", 22, 1);
    bench_script(b, "resize 80x24\nkeys 3/wal<Enter><Left>\nwait wallfacer\n");
    const struct hv_row *row = hv_session_row(b->session, hv_session_selected(b->session));
    const struct hv_row *other = NULL;
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(b->session, &n);
    for (size_t i = 0; i < n; i++) {
        bool is_of_kind =
            strcmp(rows[i]->strategy, "ring") == 0 || strcmp(rows[i]->strategy, "wallfacer") == 0;
        other = is_of_kind && rows[i] != row ? rows[i] : other;
    }
    assert_non_null(other);
    double mine = hv_session_verdict(b->session, row->id, false, NULL)->metrics.iteration_s;
    double its = hv_session_verdict(b->session, other->id, false, NULL)->metrics.iteration_s;
    assert_true(mine <= its);
}

static void space_queues_a_heading(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 80x24\nkeys 3/tensor<Enter><Space>\nwait tensor: 4 queued\n"
                    "wait -[pipeline]\nkeys kx\nwait tensor: 4 cancelled\n"
                    ":run tensor\nwait 4 strategies queued\nkeys x\n:run all x=1\nwait no "
                    "options\n:run tensor x=1\nwait a kind takes no options\n");
}

static void the_mouse_folds(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 80x24\nkeys 3\nwait tensor\n");
    /* the mark of the first heading, which is the sixth row of the panel */
    struct hv_event press = {.type = HV_EV_MOUSE, .mouse = HV_MOUSE_PRESS, .x = 2, .y = 6};
    (void)hv_app_feed(b->app, &press);
    assert_true(bench_sees(b, "horovod"));
    (void)hv_app_feed(b->app, &press);
    assert_false(bench_sees(b, "horovod"));
}

/* A click on the head of a column sorts, the next one the other way round. */
static void the_mouse_sorts(void **state)
{
    struct bench *b = *state;
    bench_script(b, "resize 120x40\nkeys 3\nwait S/ITER\n");
    struct hv_event press = {.type = HV_EV_MOUSE, .mouse = HV_MOUSE_PRESS, .x = 0, .y = 2};
    static const char *const orders[] = {"sorted inside kinds by time",
                                         "sorted inside kinds by trust",
                                         "sorted inside kinds by year, descending"};
    for (size_t i = 0; i < HV_COUNT(orders); i++) {
        while (press.x < 119 && !bench_sees(b, orders[i])) {
            press.x++;
            (void)hv_app_feed(b->app, &press);
        }
        assert_true(bench_sees(b, orders[i]));
    }
    (void)hv_app_feed(b->app, &press);
    assert_true(bench_sees(b, "sorted inside kinds by year"));
    assert_false(bench_sees(b, "descending"));
}

/* The screen of a second session over the same workspace and state folder. */
static void folding_and_filter_are_kept(void **state)
{
    struct bench *b = *state;
    struct hv_err err = {0};
    bench_script(b, "resize 80x24\nkeys 3/zero2<Enter>sj\n");
    bench_script(b, ":filter parts\nwait f parts\n");
    for (int again = 0; again < 2; again++) {
        hv_app_free(b->app);
        hv_session_close(b->session);
        struct hv_session_env env = {.state_dir = "state", .plugins = plugins, .n_plugins = N_ROWS};
        assert_int_equal(hv_session_open(&b->session, "lab.json", &env, &err), HV_OK);
        b->ui = (struct hv_ui){.session = b->session};
        b->app = hv_ui_app(&b->ui, &b->keys, true);
        if (again == 0) {
            bench_script(b, "resize 80x24\nkeys 3\nwait f parts\nwait 3 of 80 hold\nkeys <Esc>\n"
                            "wait zero2\nwait sorted by time\n");
        } else { /* and what was changed in the second */
            bench_script(b, "resize 80x24\nkeys 3\nwait 80 strategies\nwait horovod\n");
            assert_false(bench_sees(b, "tp25d"));
        }
    }
}

/* The program is killed: what was unfolded a second before is there again, and half a second after
 * the key not yet. */
static void folding_survives_a_kill(void **state)
{
    struct bench *b = *state;
    struct hv_err err = {0};
    bench_script(b, "resize 80x24\nkeys 3/zero2<Enter>s\n");
    hv_app_tick(b->app, 10000);
    hv_app_tick(b->app, 10500);
    struct hv_app *killed = b->app;
    struct hv_session_env env = {.state_dir = "state", .plugins = plugins, .n_plugins = N_ROWS};
    for (int late = 0; late < 2; late++) {
        struct hv_ui ui = {0};
        assert_int_equal(hv_session_open(&ui.session, "lab.json", &env, &err), HV_OK);
        b->app = hv_ui_app(&ui, &b->keys, true);
        bench_script(b, "resize 80x24\nkeys 3\nwait 80 strategies\n");
        assert_int_equal(bench_sees(b, "zero1"), late);
        hv_app_free(b->app);
        hv_session_close(ui.session);
        hv_app_tick(killed, 11600);
    }
    b->app = killed;
}

/* Keys and clicks at random, with all kinds of plans there. */
static void nothing_breaks_headings(void **state)
{
    struct bench *b = *state;
    add_plan(b, "zero1", 20, 1);
    add_plan(b, "ring", 16, 1);
    bench_script(b, "keys 3\n");
    bench_fuzz(b, 33, 1500);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rows, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_kinds_are_seen),
        TEST(baselines_come_first),
        TEST(headings_open_and_close),
        TEST(figures_stand_in_headings),
        TEST(filters_look_into_everything),
        TEST(a_tour_in_eight_keys),
        TEST(the_fastest_plan_is_selected),
        TEST(space_queues_a_heading),
        TEST(the_mouse_folds),
        TEST(the_mouse_sorts),
        TEST(folding_and_filter_are_kept),
        TEST(folding_survives_a_kill),
        TEST(nothing_breaks_headings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
