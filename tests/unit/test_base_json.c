/* JSON: errors with positions, checks, places, and the writer's round trip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/arena.h"
#include "solver/base/json/json.h"
#include "solver/base/json/json_int.h"
#include "solver/base/rng.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char sample[] = "{ \"format\": \"hetviz.cluster/1\",\n"
                             "  \"n\\u00f6des\": [\n"
                             "    { \"count\": -2, \"kind\": \"nvlnk\" },\n"
                             "    { \"cuont\": 8.5, \"f\": 1e-3, \"t\": true, \"x-my\": null }\n"
                             "  ], \"\u00fc\": \"\u20ac\", \"last\": 12.0\n"
                             "}";

static void refused(const char *text, size_t n, const char *want)
{
    struct hv_json j;
    struct hv_err e;
    char b[1400];
    assert_int_equal(hv_json_parse(&j, text, n, "c.json", &e), HV_EINPUT);
    assert_null(j.root);
    hv_err_format(&e, b, sizeof b);
    if (strncmp(b, want, strlen(want)) != 0) {
        fail_msg("want: %s\n found: %s", want, b);
    }
}

static void syntax_errors_have_positions(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "c.json:1:1: the text is empty"},
        {" \n ", "c.json:1:1: the text is empty"},
        {"[1,\n2", "c.json:2:2: expected ',' or ']', but the text ends here: is the file cut off?"},
        {"{\"a\": {\"b\": 1,\n \"a\": 2, \"b\": 3}}",
         "c.json:2:10: the key \"b\" stands twice in this object"},
        {"{\"a\\u0062\": 1, \"ab\": 2}", "c.json:1:16: the key \"ab\" stands twice"},
        {"[0, 1e999]", "c.json:1:5: this number is too large"},
        {"[9223372036854775808]", "c.json:1:2: this whole number is too large"},
        {"[-9223372036854775809]", "c.json:1:2: this whole number is too large"},
        {"{\"format\":\"hetviz.cluster/1\\u0000\"}", "c.json:1:28: \\u0000 (a NUL character)"},
        {"[1,]", "c.json:1:4: expected a value after the comma, found ']'; no comma before"},
        {"{\"a\":1,}", "c.json:1:8: expected a key after the comma, found '}'; no comma"},
        {"{'a':1}", "c.json:1:2: expected a key in double quotes or '}', found '''; strings"},
        {"[NaN]", "c.json:1:2: expected a value or ']', found 'NaN'; write null"},
        {"[True]", "c.json:1:2: expected a value or ']', found 'True'; write true and false"},
        {"// x\n1", "c.json:1:1: expected a value, found '/'; JSON has no comments"},
        {"[\"\u20ac\u20ac\" 1]", "c.json:1:7: expected ',' or ']', found '1'"},
        {"{\"a\" 1}", "c.json:1:6: expected ':' after the key, found '1'"},
        {"[01]", "c.json:1:2: a number must not start with a superfluous 0"},
        {"[1.]", "c.json:1:4: expected a digit after the decimal point"},
        {"[1e+]", "c.json:1:5: expected a digit of the exponent"},
        {"[-]", "c.json:1:3: expected a digit"},
        {"[\"a\\x\"]", "c.json:1:4: unknown escape"},
        {"[\"a\\u12g4\"]", "c.json:1:4: \\u needs four hexadecimal digits"},
        {"[\"\\ud800x\"]", "c.json:1:3: half of a \\u surrogate pair"},
        {"[\"a\nb\"]", "c.json:1:4: a line ends inside a string"},
        {"[\"a\001b\"]", "c.json:1:4: raw control character"},
        {"[\"\xff\"]", "c.json:1:3: not UTF-8"},
        {"[1] x", "c.json:1:5: expected nothing more after the end of the value, found 'x'"},
        {"{\"\": 1}", "c.json:1:2: a key must not be empty"},
        {"\xef\xbb\xbf{}", "c.json:1:1: starts with a byte order mark"},
        {"[1}", "c.json:1:3: expected ',' or ']', found '}'"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        refused(rows[i][0], strlen(rows[i][0]), rows[i][1]);
    }
    refused("[\"a\0b\"]", 7, "c.json:1:4: raw control character");
}

static void depth_is_limited(void **state)
{
    (void)state;
    struct hv_str s = {0};
    for (int i = 0; i < 100000; i++) {
        hv_str_addc(&s, '[');
    }
    refused(s.p, s.n, "c.json:1:201: nested more than 200 levels deep");
    for (size_t depth = 200; depth <= 201; depth++) {
        hv_str_clear(&s);
        for (size_t i = 0; i < 2 * depth; i++) {
            hv_str_addc(&s, i < depth ? '[' : ']');
        }
        struct hv_json j;
        struct hv_err e;
        enum hv_status want = depth == 200 ? HV_OK : HV_EINPUT;
        assert_int_equal(hv_json_parse(&j, s.p, s.n, "c.json", &e), want);
        hv_json_free(&j);
    }
    hv_str_free(&s);
}

static void every_truncation_is_an_error_at_the_end(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof sample - 1; n++) {
        struct hv_json j;
        struct hv_err e;
        assert_int_equal(hv_json_parse(&j, sample, n, "c.json", &e), HV_EINPUT);
        assert_true(e.line >= 1 && e.col >= 1);
        unsigned line = 1;
        for (size_t i = 0; i < n; i++) {
            line += sample[i] == '\n';
        }
        assert_int_equal(e.line, n == 0 ? 1 : line);
        bool torn = ((unsigned char)sample[n] & 0xC0) == 0x80; /* inside a UTF-8 character */
        assert_true(n == 0 || torn || strstr(e.text, "is the file cut off?"));
    }
}

static struct hv_json parse(const char *text)
{
    struct hv_json j;
    struct hv_err e;
    char b[1400];
    if (hv_json_parse(&j, text, strlen(text), "c.json", &e) != HV_OK) {
        fail_msg("%s", hv_err_format(&e, b, sizeof b));
    }
    return j;
}

#define SAYS(call, want)                                                                           \
    do {                                                                                           \
        struct hv_err e;                                                                           \
        char b[1400];                                                                              \
        e.text[0] = e.file[0] = '\0';                                                              \
        assert_int_equal((call), HV_EINPUT);                                                       \
        assert_string_equal(hv_err_format(&e, b, sizeof b), want);                                 \
    } while (0)

static void checks_say_what_and_where(void **state)
{
    (void)state;
    struct hv_json j = parse(sample);
    struct hv_jp root = hv_jp_root(&j), nodes = hv_jp_get(&root, "n\u00f6des");
    struct hv_jp a = hv_jp_at(&nodes, 0), b2 = hv_jp_at(&nodes, 1);
    struct hv_jp count = hv_jp_get(&a, "count"), kind = hv_jp_get(&a, "kind"), q;
    static const char *const keys[] = {"count", "kind", "f", "t"};
    static const char *const words[] = {"nvlink", "pcie"};
    int64_t x = 77;
    int w = 77;
    double d = 77;
    bool t = false;
    const char *s = NULL;
    size_t n = 0;
#define AT(pos, path, text) "c.json:" pos ": " path ": " text
#define NODES               "[\"n\u00f6des\"]"
    SAYS(hv_jp_int(&count, 1, 1000000, &x, &e),
         AT("3:16", NODES "[0].count", "expected a whole number from 1 to 1000000, found -2"));
    SAYS(hv_jp_word(&kind, words, 2, &w, &e),
         AT("3:28", NODES "[0].kind",
            "expected one of \"nvlink\", \"pcie\", found \"nvlnk\", did you mean \"nvlink\"?"));
    SAYS(hv_jp_object(&b2, keys, 4, &e),
         AT("4:7", NODES "[1]", "unknown key \"cuont\", did you mean \"count\"?"));
    SAYS(hv_jp_object(&b2, keys + 1, 2, &e),
         AT("4:7", NODES "[1]", "unknown key \"cuont\"; known keys: \"kind\", \"f\""));
    SAYS(hv_jp_opt_int(&b2, "cuont", 0, INT64_MAX, &x, &e),
         AT("4:16", NODES "[1].cuont", "expected a whole number of at least 0, found 8.5"));
    SAYS(hv_jp_opt_number(&b2, "f", 0.5, 1, &d, &e),
         AT("4:26", NODES "[1].f", "expected a number from 0.5 to 1, found 0.001"));
    SAYS(hv_jp_opt_number(&b2, "t", DBL_MIN, (double)INFINITY, &d, &e),
         AT("4:37", NODES "[1].t", "expected a number above 0, found true"));
    SAYS(hv_jp_opt_bool(&root, "\u00fc", &t, &e),
         AT("5:11", "[\"\u00fc\"]", "expected true or false, found \"\u20ac\""));
    SAYS(hv_jp_need(&a, "gpus", "an array", &q, &e),
         AT("3:5", NODES "[0]", "missing key \"gpus\", expected an array"));
    SAYS(hv_jp_array(&root, &n, &e),
         AT("1:1", "(top level)", "expected an array, found an object"));
    SAYS(hv_jp_string(&nodes, &s, &e), AT("2:17", NODES, "expected a string, found an array of 2"));
    SAYS(
        hv_jp_format(&root, "hetviz.cluster/2", &e),
        AT("1:13", "format",
           "expected \"hetviz.cluster/2\", found \"hetviz.cluster/1\": a version this program does "
           "not know"));
    assert_true(x == 77 && w == 77 && d == 77 && !s);
    struct hv_err e;
    assert_int_equal(hv_jp_format(&root, "hetviz.cluster/1", &e), HV_OK);
    assert_int_equal(hv_jp_opt_int(&root, "last", 0, 12, &x, &e), HV_OK); /* 12.0 is whole */
    assert_int_equal(x, 12);
    assert_int_equal(hv_jp_opt_int(&root, "absent", 0, 12, &x, &e), HV_OK);
    assert_int_equal(hv_jp_opt_string(&b2, "x-my", &s, &e), HV_OK); /* null counts as absent */
    assert_true(x == 12 && !s);
    assert_int_equal(hv_jp_int(&count, 1, 2, &x, NULL), HV_EINPUT);
    hv_json_free(&j);
}

static void positions_survive_odd_keys(void **state)
{
    (void)state;
    struct hv_json j =
        parse("{\"a\\\"}{[,\\\\\": {\"\\ud83d\\ude00\\/\": [[1, \"]\"], [ 2,\n 3]]}}");
    struct hv_jp root = hv_jp_root(&j), a = hv_jp_get(&root, "a\"}{[,\\");
    struct hv_jp b = hv_jp_get(&a, "\U0001F600/"), c = hv_jp_at(&b, 1), d = hv_jp_at(&c, 1);
    unsigned line, col;
    assert_int_equal(json_integer_value(d.v), 3);
    hv_jp_where(&d, &line, &col);
    assert_true(line == 2 && col == 2);
    hv_json_free(&j);

    struct hv_str big = {0}, path = {0};
    hv_str_adds(&big, "{\"");
    for (int i = 0; i < 1000000; i++) {
        hv_str_addc(&big, 'k');
    }
    hv_str_adds(&big, "\": 1, \"z\": [2]}");
    j = parse(big.p);
    root = hv_jp_root(&j);
    struct hv_err e;
    static const char *const keys[] = {"z"};
    assert_int_equal(hv_jp_object(&root, keys, 1, &e), HV_EINPUT);
    assert_int_equal(e.col, 2);
    assert_true(strlen(e.text) < 200);
    struct hv_jp z = hv_jp_get(&root, "z"), two = hv_jp_at(&z, 0);
    hv_jp_where(&two, &line, &col);
    assert_int_equal(col, 1000000 + 15);
    struct hv_jp none = hv_jp_at(&z, 5);
    assert_true(hv_jp_none(&none));
    hv_jp_path(&none, &path);
    assert_string_equal(path.p, "z[5]");
    hv_str_free(&path);
    hv_str_free(&big);
    hv_json_free(&j);
}

static void format_comes_first(void **state)
{
    (void)state;
    struct hv_json j = parse("{\"a\": 1,\n \"format\": \"k/1\"}");
    struct hv_jp root = hv_jp_root(&j);
    SAYS(hv_jp_format(&root, "k/1", &e),
         "c.json:2:12: format: \"format\" must be the first member of the file");
    SAYS(hv_jp_format(&root, "other/1", &e),
         "c.json:2:12: format: expected \"other/1\", found \"k/1\"");
    hv_json_free(&j);
    hv_json_wrap(&j, json_object(), "made");
    root = hv_jp_root(&j);
    SAYS(hv_jp_format(&root, "k/1", &e), "made: (top level): missing key \"format\", expected "
                                         "\"format\": \"k/1\" as the first member");
    hv_json_free(&j);
}

static void written(const char *in, bool pretty, const char *want)
{
    struct hv_json j = parse(in);
    struct hv_str s = {0};
    hv_json_write(&s, j.root, pretty);
    assert_string_equal(s.p, want);
    hv_str_free(&s);
    hv_json_free(&j);
}

static void layout_of_the_writer(void **state)
{
    (void)state;
    written("{\"z\":1,\"a\":[]}", false, "{\"z\":1,\"a\":[]}");
    written("{\"z\":[{\"n\":\"a\",\"c\":2},{}],\"a\":[1,2.50,[3]]}", true,
            "{\n  \"z\": [\n    { \"n\": \"a\", \"c\": 2 },\n    {}\n  ],\n"
            "  \"a\": [1, 2.5, [3]]\n}\n");
    written("[\"\\u0001\\n\\\"\\u007f/\"]", true, "[\"\\u0001\\n\\\"\\u007f/\"]\n");
    written("3.0", true, "3.0\n");
    written("{}", true, "{}\n");
    struct hv_str s = {0};
    json_t *v = json_pack("[o,o,o,o,o]", hv_json_num((double)NAN), hv_json_num((double)INFINITY),
                          hv_json_num(4096), hv_json_num(0.1), hv_json_num(-0x1p53));
    hv_json_write(&s, v, false);
    assert_string_equal(s.p, "[null,null,4096,0.1,-9007199254740992.0]");
    json_decref(v);
    hv_str_free(&s);
}

static json_t *random_tree(struct hv_rng *r, int depth)
{
    static const char *const texts[] = {"", "a", "\u20ac\"\\", "line\nbreak\001",
                                        "0123456789abcdef"};
    uint64_t pick = hv_rng_below(r, depth > 0 ? 9 : 6);
    json_t *v;
    switch (pick) {
    case 0:
        return json_integer((json_int_t)hv_rng_u64(r));
    case 1:
        return json_real(ldexp(hv_rng_double(r) - 0.5, (int)hv_rng_below(r, 2000) - 1000));
    case 2:
        return json_real((double)hv_rng_below(r, 1000));
    case 3:
        return json_string(texts[hv_rng_below(r, HV_COUNT(texts))]);
    case 4:
        return json_boolean(hv_rng_below(r, 2));
    case 5:
        return json_null();
    case 6:
        v = json_array();
        for (uint64_t n = hv_rng_below(r, 40); n > 0; n--) {
            json_array_append_new(v, random_tree(r, 0));
        }
        return v;
    case 7:
        v = json_array();
        for (uint64_t n = hv_rng_below(r, 6); n > 0; n--) {
            json_array_append_new(v, random_tree(r, depth - 1));
        }
        return v;
    default:
        v = json_object();
        for (uint64_t n = hv_rng_below(r, 6); n > 0; n--) {
            char key[32];
            snprintf(key, sizeof key, "k%d\u20ac", (int)hv_rng_below(r, 100));
            json_object_set_new(v, key, random_tree(r, depth - 1));
        }
        return v;
    }
}

static void check_round_trip(const json_t *v, bool pretty)
{
    struct hv_str one = {0}, two = {0};
    hv_json_write(&one, v, pretty);
    struct hv_json j = parse(one.p);
    assert_true(json_equal(v, j.root));
    hv_json_write(&two, j.root, pretty);
    assert_string_equal(one.p, two.p);
    size_t col = 0;
    for (size_t i = 0; pretty && i < one.n; i++) {
        col = one.p[i] == '\n' ? 0 : col + (((unsigned char)one.p[i] & 0xC0) != 0x80);
        assert_true(col <= 100);
    }
    hv_str_free(&one);
    hv_str_free(&two);
    hv_json_free(&j);
}

/* Every character comes back from the text, and none that a terminal would obey, or that is not
 * visible, stands in it as it is. */
static void every_character_survives_and_none_steers(void **state)
{
    (void)state;
    for (int32_t from = 1; from < 0x110000; from += 256) {
        struct hv_str in = {0}, out = {0};
        for (int32_t c = from; c < from + 256 && c < 0x110000; c++) {
            char bytes[5] = {0};
            if (c >= 0xD800 && c < 0xE000) {
                continue;
            }
            if (c < 0x80) {
                bytes[0] = (char)c;
            } else if (c < 0x800) {
                snprintf(bytes, sizeof bytes, "%c%c", 0xC0 | c >> 6, 0x80 | (c & 63));
            } else if (c < 0x10000) {
                snprintf(bytes, sizeof bytes, "%c%c%c", 0xE0 | c >> 12, 0x80 | (c >> 6 & 63),
                         0x80 | (c & 63));
            } else {
                snprintf(bytes, sizeof bytes, "%c%c%c%c", 0xF0 | c >> 18, 0x80 | (c >> 12 & 63),
                         0x80 | (c >> 6 & 63), 0x80 | (c & 63));
            }
            hv_str_adds(&in, bytes);
        }
        json_t *v = json_stringn(hv_str_cstr(&in), in.n);
        assert_non_null(v);
        hv_json_write(&out, v, false);
        struct hv_json j = parse(out.p);
        assert_true(json_equal(v, j.root));
        int32_t c = 0;
        for (size_t i = 0, len = 1; i < out.n; i += len) {
            len = hv_text_char(out.p + i, out.n - i, &c);
            assert_true(len > 0);
            assert_false(hv_text_is_unsafe(c));
        }
        hv_json_free(&j);
        json_decref(v);
        hv_str_free(&in);
        hv_str_free(&out);
    }
}

static void random_trees_survive(void **state)
{
    (void)state;
    struct hv_rng r;
    hv_rng_seed(&r, 20);
    for (int i = 0; i < 2000; i++) {
        json_t *v = random_tree(&r, 5);
        check_round_trip(v, true);
        check_round_trip(v, false);
        json_decref(v);
    }
}

static void strings_have_limits(void **state)
{
    (void)state;
    struct hv_str text = {0};
    hv_str_adds(&text, "[\"\", \"");
    for (int i = 0; i < 4097; i++) {
        hv_str_addc(&text, 'x');
    }
    hv_str_adds(&text, "\", 1e300]");
    struct hv_json j = parse(text.p);
    struct hv_jp root = hv_jp_root(&j), a = hv_jp_at(&root, 0), b2 = hv_jp_at(&root, 1);
    struct hv_jp c = hv_jp_at(&root, 2);
    const char *s;
    int64_t x;
    SAYS(hv_jp_string(&a, &s, &e),
         "c.json:1:2: [0]: expected a string that is not empty, found \"\"");
    SAYS(hv_jp_string(&b2, &s, &e),
         "c.json:1:6: [1]: expected a string of at most 4096 bytes, found one of 4097");
    SAYS(hv_jp_int(&c, INT64_MIN, INT64_MAX, &x, &e),
         "c.json:1:4107: [2]: expected a whole number, found 1e300");
    hv_json_free(&j);
    hv_str_free(&text);
}

static json_t *by_jansson(const char *text, size_t n)
{
    return json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
}

/* The bytes of both as the writer shows them: order of keys, type and every bit of a number. */
static void assert_same_tree(const char *text, const json_t *a, const json_t *b)
{
    char *one = json_dumps(a, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    char *two = json_dumps(b, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (one == NULL || two == NULL || strcmp(one, two) != 0) {
        fail_msg("'%s' is '%s', jansson says '%s'", text, one ? one : "-", two ? two : "-");
    }
    free(one);
    free(two);
}

/* What is read fast is what jansson reads; `must` = it has to be read fast. */
static void same_as_jansson(const char *text, size_t n, bool must)
{
    json_t *fast = hv__json_fast(text, n), *slow = NULL;
    if (fast == NULL && !must) {
        return;
    }
    slow = by_jansson(text, n);
    if (fast == NULL || slow == NULL) {
        fail_msg("'%s': read fast: %d, by jansson: %d", text, fast != NULL, slow != NULL);
    }
    assert_same_tree(text, fast, slow);
    json_decref(fast);
    json_decref(slow);
}

static void what_is_read_fast_is_what_jansson_reads(void **state)
{
    (void)state;
    static const char *const usual[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "1.5e-3",
                                        "9007199254740993e0",
                                        "0.1",
                                        "123456789012345678",
                                        "1e22",
                                        "1e-22",
                                        "1E+23",
                                        "17976931348623157e292",
                                        "4.9406564584124654e-324",
                                        "1e-400",
                                        "0.30000000000000004",
                                        "[]",
                                        "{}",
                                        " [ 1 , [ ] , { } ] ",
                                        "true",
                                        "[null,false]",
                                        "{\"a\":{\"b\":[1,2.5,\"x\"]},\"c\":\"\"}",
                                        "\"\\\"\\\\\\/\\b\\f\\n\\r\\tz\"",
                                        "\"\xe2\x82\xac\"",
                                        "{\"\xc3\xb6\":1}"};
    static const char *const odd[] = {"",
                                      "01",
                                      "-",
                                      "1.",
                                      ".5",
                                      "1e",
                                      "+1",
                                      "1e999",
                                      "9223372036854775808",
                                      "\"\\u0041\"",
                                      "\"\\x\"",
                                      "\"a\nb\"",
                                      "\"\xff\"",
                                      "{\"\":1}",
                                      "{\"a\":1,\"a\":2}",
                                      "[1,]",
                                      "{\"a\":1,}",
                                      "[1 2]",
                                      "{1:2}",
                                      "nul",
                                      "truex",
                                      "[",
                                      "{\"a\"",
                                      "1 1",
                                      "\"a",
                                      "{\"\\u0061\":1}"};
    for (size_t i = 0; i < HV_COUNT(usual); i++) {
        same_as_jansson(usual[i], strlen(usual[i]), true);
    }
    for (size_t i = 0; i < HV_COUNT(odd); i++) {
        assert_null(hv__json_fast(odd[i], strlen(odd[i])));
    }
    assert_null(hv__json_fast("1\0", 2));
}

static void numbers_are_read_to_the_last_bit(void **state)
{
    (void)state;
    struct hv_rng rng;
    hv_rng_seed(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        uint64_t bits = hv_rng_u64(&rng);
        double x = 0;
        memcpy(&x, &bits, sizeof x);
        if (!isfinite(x)) {
            continue;
        }
        int digits = 1 + (int)hv_rng_below(&rng, 17);
        if (i % 2 == 0) { /* of the size that files hold */
            x = ldexp((double)(bits >> 12), -(int)hv_rng_below(&rng, 60));
        }
        (void)snprintf(text, sizeof text, "%.*g", digits, x);
        same_as_jansson(text, strlen(text), strspn(text, "-0123456789") < strlen(text));
    }
}

static void changed_texts_are_read_alike_or_left_alone(void **state)
{
    (void)state;
    static const char bytes[] = "{}[]:,\"\\ 0123456789.eE+-tfn\n\x80u";
    char text[sizeof sample];
    struct hv_rng rng;
    hv_rng_seed(&rng, 11);
    for (int i = 0; i < 50000; i++) {
        memcpy(text, sample, sizeof text);
        size_t n = sizeof text - 1;
        for (size_t k = hv_rng_below(&rng, 4); k > 0; k--) {
            text[hv_rng_below(&rng, n)] = bytes[hv_rng_below(&rng, sizeof bytes - 1)];
        }
        same_as_jansson(text, n, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_fast_is_what_jansson_reads),
        cmocka_unit_test(numbers_are_read_to_the_last_bit),
        cmocka_unit_test(changed_texts_are_read_alike_or_left_alone),
        cmocka_unit_test(syntax_errors_have_positions),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(every_truncation_is_an_error_at_the_end),
        cmocka_unit_test(checks_say_what_and_where),
        cmocka_unit_test(positions_survive_odd_keys),
        cmocka_unit_test(format_comes_first),
        cmocka_unit_test(layout_of_the_writer),
        cmocka_unit_test(every_character_survives_and_none_steers),
        cmocka_unit_test(random_trees_survive),
        cmocka_unit_test(strings_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
