/*
 * Families of Hugging Face models: default configurations of transformers 5.23 (only the members
 * that describe the shape) against the parameters that its own classes allocate; the syntax of the
 * table's formulas; what an unknown family is told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/io/own/model/hf_rules.h"
#include "tests/unit/import_bench.h"

/* Parameters of the default configuration, tied matrices once. */
static const struct {
    const char *name;
    double parameters;
} families[] = {{"bamba", 9992765440},
                {"bart", 254084096},
                {"bitnet", 2741155840},
                {"bloom", 16156544},
                {"cpmant", 9517453312},
                {"deepseek_v3", 671026404352},
                {"doge", 403055872},
                {"electra", 13546682},
                {"falcon_h1", 8514961408},
                {"gemma3n_text", 6835235568},
                {"gemma4_text", 5077177856},
                {"glm4_moe", 103481200640},
                {"gpt_oss", 116829156672},
                {"granitemoehybrid", 38601064448},
                {"hrm_text", 1447822848},
                {"hy_v4", 58278193133},
                {"jetmoe", 4293888000},
                {"kimi_linear", 49133074464},
                {"lfm2", 2705497600},
                {"llama", 6738415616},
                {"mamba2", 7285403648},
                {"mistral", 7241732096},
                {"modernbert-decoder", 149655232},
                {"nemotron_h", 1968355712},
                {"phimoe", 41872793600},
                {"qwen3_next", 79674391296},
                {"recurrent_gemma", 2010263040},
                {"rembert", 993263548},
                {"rwkv", 7392649216},
                {"t5", 60506624},
                {"vaultgemma", 2614222080},
                {"xglm", 564463616},
                {"xlstm", 6865424896},
                {"zamba", 7232490496},
                {"zamba2", 2481848336}};

static bool has_guess(const struct import *x, const char *words)
{
    size_t n;
    const struct hv_import_note *notes = hv_import_notes(x->im, &n);
    for (size_t i = 0; i < n; i++) {
        if (notes[i].level == HV_IMPORT_GUESSED && strstr(notes[i].text, words) != NULL) {
            return true;
        }
    }
    return false;
}

static struct import import_family(const char *name)
{
    struct hv_str path = {0}, text = {0};
    char file[256];
    (void)snprintf(file, sizeof file, "tests/golden/hf/families/%s.json", name);
    assert_int_equal(hv_data_path(&path, file, NULL), HV_OK);
    assert_int_equal(hv_file_read(hv_str_cstr(&path), &text, NULL), HV_OK);
    struct import x = import_one("hf_config", hv_str_cstr(&text));
    hv_str_free(&path);
    hv_str_free(&text);
    return x;
}

/* The count is that of the document written by the import and read again. */
static void parameters_of_families(void **state)
{
    (void)state;
    for (size_t i = 0; i < HV_COUNT(families); i++) {
        struct import x = import_family(families[i].name);
        double off = hv_import_parameters(x.im) / families[i].parameters - 1;
        if (fabs(off) > 5e-3) {
            fail_msg("%s: %+.2f %%", families[i].name, 100 * off);
        }
        if (has_guess(&x, "is not known")) {
            fail_msg("%s is not known", families[i].name);
        }
        import_free(&x);
    }
}

static struct hv__value no_member(void *ctx, const char *name, size_t n)
{
    (void)ctx;
    (void)name;
    (void)n;
    return (struct hv__value){.kind = HV__MISSING};
}

static void formulas_are_valid(void **state)
{
    (void)state;
    size_t n;
    const struct hv__hf_family *rows = hv__hf_families(&n);
    for (size_t i = 0; i < n; i++) {
        struct hv_arena arena = {0};
        bool exact = false, valid = false;
        struct hv__hf_rules rules = hv__hf_rules_of(&rows[i], NULL, &arena);
        if (rows[i].like && (!hv__hf_family_of(rows[i].like, &exact) || !exact)) {
            fail_msg("%s is like %s, which has no row", rows[i].types, rows[i].like);
        }
        for (size_t r = 0; r < rules.n; r++) {
            const struct hv__hf_rule *x = &rules.items[r];
            (void)hv__formula(x->from, x->to, no_member, NULL, &valid);
            if (!valid || x->name[0] == '+') {
                fail_msg("%s: %s =%.*s", rows[i].types, x->name, (int)(x->to - x->from), x->from);
            }
        }
        hv_arena_free(&arena);
    }
}

/* Two names: a list of 4, 5, 6 and the number 10. */
static struct hv__value two_names(void *ctx, const char *name, size_t n)
{
    return n == 4 && memcmp(name, "list", n) == 0  ? hv__value_of(ctx)
           : n == 3 && memcmp(name, "ten", n) == 0 ? hv__value_number(10)
                                                   : no_member(ctx, name, n);
}

static void formulas_calculate(void **state)
{
    static const struct {
        const char *text;
        double want; /* HV_UNKNOWN: missing */
    } rows[] = {{"2 + 3 * 4", 14},
                {"(2 + 3) * 4 - ten / 5", 18},
                {"7 % 4 = 3 & !(2 > 3)", 1},
                {"nothing ?? ten", 10},
                {"nothing + 1", HV_UNKNOWN},
                {"1 / 0", HV_UNKNOWN},
                {"list[1]", 5},
                {"list[9] ?? 0 - 1", -1},
                {"repeat(list, 4)", 5},
                {"nth(list, 5, 0) + in(list, 6) + len(list)", 5},
                {"nth(list, 5, 1)", 3},
                {"up(10924, 64)", 10944},
                {"if(part('full_attention', 'full'), max(1, 2), min(1, 2))", 2},
                {"if(at('M-*', 2) = '*', ceil(1 / 2), floor(1 / 2))", 1}};
    static const char *const broken[] = {"", "1 +", "(1", "if(1, 2)", "unknown(1)", "'open", "1 2"};
    json_t *list = json_pack("[i, i, i]", 4, 5, 6);
    bool valid;
    (void)state;
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        const char *s = rows[i].text;
        struct hv__value v = hv__formula(s, s + strlen(s), two_names, list, &valid);
        bool same = hv_known(rows[i].want) ? v.kind == HV__NUMBER && v.x == rows[i].want
                                           : v.kind == HV__MISSING;
        if (!valid || !same) {
            fail_msg("%s: %g", s, v.x);
        }
    }
    for (size_t i = 0; i < HV_COUNT(broken); i++) {
        (void)hv__formula(broken[i], broken[i] + strlen(broken[i]), two_names, list, &valid);
        if (valid) {
            fail_msg("accepted: %s", broken[i]);
        }
    }
    json_decref(list);
}

static void unknown_families_name_their_matrices(void **state)
{
    (void)state;
    struct import x = import_one(
        "hf_config", "{\"model_type\":\"brand_new\",\"hidden_size\":64,\"num_hidden_layers\":3,"
                     "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":1000,"
                     "\"intermediate_size\":128,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,"
                     "\"vision_config\":{\"hidden_size\":32,\"num_hidden_layers\":2,"
                     "\"num_attention_heads\":2,\"image_size\":32,\"patch_size\":8}}");
    assert_true(has_guess(&x, "\"brand_new\" is not known"));
    assert_true(has_guess(&x, "3 layers are assumed"));
    assert_true(has_guess(&x, "q 64 x 64, k and v 64 x 32, o 64 x 64"));
    assert_true(has_guess(&x, "gate and up 64 x 128, down 128 x 64"));
    assert_true(has_guess(&x, "vision_config, 2 layers of about"));
    assert_true(has_guess(&x, "and its projection are left out"));
    import_free(&x);
    /* a member that a formula of the family needs is asked for by name */
    x = import_one("hf_config",
                   "{\"model_type\":\"glm_moe_dsa\",\"hidden_size\":64,\"num_hidden_layers\":3,"
                   "\"num_attention_heads\":4,\"vocab_size\":1000,\"intermediate_size\":128}");
    assert_true(has_guess(&x, "indexer: not counted, the config lacks a member of"));
    import_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parameters_of_families),
                                       cmocka_unit_test(formulas_are_valid),
                                       cmocka_unit_test(formulas_calculate),
                                       cmocka_unit_test(unknown_families_name_their_matrices)};
    return cmocka_run_group_tests_name("io: families of Hugging Face models", tests, import_setup,
                                       import_teardown);
}
