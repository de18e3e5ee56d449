/* Values of single blocks on the model screen: written as the file has them, marked, taken away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/screen/screen_bench.h"

static void assert_list(const struct screen *s, const char *want)
{
    struct hv_str got = {0};
    const json_t *list = hv_session_get(s->session, "model.layer_list");
    if (list != NULL) {
        hv_json_write(&got, list, false);
    }
    assert_string_equal(hv_str_cstr(&got), want);
    hv_str_free(&got);
}

static void assert_ffn(const struct screen *s, size_t block, int ffn)
{
    assert_int_equal(hv_session_model(s->session)->model->blocks[block].ffn, ffn);
}

/* Eight blocks with an ffn of 4096. */
static void blocks_get_values_of_their_own(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, "resize 160x48\n:screen model\nwait 8 blocks\nkeys <Tab>je\nwait blocks to "
                   "change, of 0-7\nkeys ^U2-3<Enter>\nwait Values of blocks 2-3\nkeys "
                   "jjj<Enter>^U1024<Enter>\nwait * 2 with individual values\nwait *+ 2-3\n");
    assert_list(&s, "[{\"repeat\":2},{\"repeat\":2,\"ffn\":1024}]");
    assert_ffn(&s, 1, 4096);
    assert_ffn(&s, 2, 1024);
    assert_ffn(&s, 3, 1024);
    assert_ffn(&s, 4, 4096);
    /* one of the two once more: the list says which */
    screen_run(&s, "keys <Esc>e^U3<Enter>\nwait Values of block 3\nkeys jjjjj<Enter>^U512<Enter>\n"
                   "keys <Esc>\nwait * 2 with\n");
    assert_list(&s, "[{\"repeat\":2},{\"ffn\":1024},{\"ffn\":1024,\"window\":512}]");
    assert_int_equal(hv_session_model(s.session)->model->blocks[3].window, 512);
    /* emptied values and d bring the model's back, each as one step that can be undone */
    screen_run(&s, "keys d\nwait the blocks follow the model again\n");
    assert_list(&s, "[{\"repeat\":2},{\"ffn\":1024}]");
    screen_run(&s, "keys ke\nwait Values of block 2\nkeys jjj<Enter>^U<Enter>\nwait 8 blocks\n");
    assert_list(&s, "");
    assert_int_equal(hv_session_n_undo(s.session), 4);
    screen_run(&s, "keys uuuu\nwait undone\n");
    assert_list(&s, "");
    screen_run(&s, "keys ^R^R\n");
    assert_ffn(&s, 3, 1024);
    screen_close(&s);
}

static void wrong_blocks_and_values_are_refused(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(
        &s, "resize 160x48\n:screen model\nkeys <Tab>e\nwait only blocks can have individual "
            "values\nkeys je^U8<Enter>\nwait expected a block such as 5\nkeys e^U5-2<Enter>\nwait "
            "expected a block\nkeys e^Ux<Enter>\nwait expected a block\nkeys d\nwait no individual "
            "values\nkeys e^U0<Enter><Enter>^U3<Enter>\nwait not accepted\n");
    assert_list(&s, ""); /* 3 heads do not divide the width */
    screen_close(&s);
}

/* The file says what it says about blocks that nobody changed. */
static void lists_of_files_are_kept(void **state)
{
    struct screen s;
    screen_open(&s, *state);
    screen_run(&s, ":set model.layer_list [{\"repeat\": 3, \"window\": 64}, {}, {\"ffn\": "
                   "0}]\n:screen model\nresize 160x48\nwait *+ 0-2\nkeys <Tab>jd\nwait the blocks "
                   "follow the model again\n");
    assert_list(&s, "[{\"repeat\":4},{\"ffn\":0}]");
    screen_run(&s, "keys u\nwait *+ 0-2\n");
    assert_list(&s, "[{\"repeat\":3,\"window\":64},{},{\"ffn\":0}]");
    screen_close(&s);
}

static void measured_layers_are_edited_one_by_one(void **state)
{
    struct screen s;
    struct hv_str path = {0};
    hv_str_addf(&path, "%s/samples/models/measured-layers.json", screen_root());
    screen_open_new(&s, *state, "a100-v100-t4", hv_str_cstr(&path));
    hv_str_free(&path);
    screen_run(&s, "resize 160x48\n:screen model\nkeys <Tab>e\nwait Values of block\n");
    const json_t *layer = hv_session_get(s.session, "model.layers[0]");
    double before = json_number_value(json_object_get(layer, "output_bytes"));
    screen_run(&s, "keys G<Enter>^U12345<Enter>\n");
    layer = hv_session_get(s.session, "model.layers[0]");
    assert_true(json_number_value(json_object_get(layer, "output_bytes")) == 12345);
    screen_run(&s, "keys <Esc>u\nwait undone\n");
    layer = hv_session_get(s.session, "model.layers[0]");
    assert_true(json_number_value(json_object_get(layer, "output_bytes")) == before);
    screen_random(&s, 7, 600);
    screen_close(&s);
}

/* The first value of a block's own turns a config.json into a model of ours; two steps back and it
 * is the config again. */
static void blocks_of_a_config_get_values_of_their_own(void **state)
{
    struct screen s;
    struct hv_str path = {0};
    hv_str_addf(&path, "%s/tests/golden/hf/qwen2-14b-cogito.json", screen_root());
    screen_open_new(&s, *state, "a100-v100-t4", hv_str_cstr(&path));
    hv_str_free(&path);
    json_t *config = json_deep_copy(hv_session_tree(s.session, HV_DOC_MODEL));
    double before = hv_model_parameters(hv_session_model(s.session)->model);
    screen_run(&s, "resize 160x48\n:screen model\nkeys <Tab>je^U5<Enter>\nwait Values of block 5\n"
                   "keys <Esc>\n");
    assert_true(json_equal(config, hv_session_tree(s.session, HV_DOC_MODEL))); /* only looked at */
    screen_run(&s, "keys e^U5<Enter>/window<Enter><Enter>^U64<Enter>\n");
    assert_list(&s, "[{\"repeat\":5},{\"window\":64}]");
    assert_string_equal(json_string_value(hv_session_get(s.session, "model.format")),
                        "hetviz.model/1");
    double after = hv_model_parameters(hv_session_model(s.session)->model);
    assert_true(after > before * 0.999999 && after < before * 1.000001);
    assert_int_equal(hv_session_n_undo(s.session), 2);
    screen_run(&s, "keys <Esc>uu\nwait undone\n");
    assert_true(json_equal(config, hv_session_tree(s.session, HV_DOC_MODEL)));
    json_decref(config);
    screen_close(&s);
}

static void profiles_are_loaded_here(void **state)
{
    struct screen s;
    struct bench *b = *state;
    struct hv_str script = {0};
    assert_int_equal(setenv("XDG_DATA_HOME", b->folder, 1), 0);
    screen_open(&s, b);
    hv_str_addf(
        &script,
        "resize 160x48\n:screen model\nkeys p\nwait profile to load\nkeys nowhere<Enter>\nwait No "
        "such file\nkeys <Esc><Tab>p%s/share/profiles/A40.json<Enter>\nwait this profile now "
        "prices A40-48GB\n",
        screen_root());
    screen_run(&s, hv_str_cstr(&script));
    hv_str_free(&script);
    screen_close(&s);
    assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
    (void)screen_root();
    const struct CMUnitTest tests[] = {
        WITH_BENCH(blocks_get_values_of_their_own),
        WITH_BENCH(wrong_blocks_and_values_are_refused),
        WITH_BENCH(lists_of_files_are_kept),
        WITH_BENCH(measured_layers_are_edited_one_by_one),
        WITH_BENCH(blocks_of_a_config_get_values_of_their_own),
        WITH_BENCH(profiles_are_loaded_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
