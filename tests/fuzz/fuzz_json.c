/*
 * Any bytes: parse, walk, write, parse again. The trees must be equal and writing must be stable;
 * a text that is refused must have a position inside it; what is read fast is what jansson reads.
 */
#include "solver/base/arena.h"
#include "solver/base/json/json.h"
#include "solver/base/json/json_int.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x))                                                                                  \
            HV_BUG("%s", #x);                                                                      \
    } while (0)

static void walk(const struct hv_jp *p, unsigned *budget)
{
    unsigned line, col;
    if (*budget == 0) {
        return;
    }
    --*budget; /* locating is O(text): the walk must not become quadratic */
    hv_jp_where(p, &line, &col);
    REQUIRE(line > 0 && col > 0);
    struct hv_err err;
    REQUIRE(hv_jp_fail(p, &err, "x") == HV_EINPUT);
    for (size_t i = 0; i < json_array_size(p->v); i++) {
        struct hv_jp q = hv_jp_at(p, i);
        walk(&q, budget);
    }
    const char *key;
    json_t *v;
    json_object_foreach(p->v, key, v)
    {
        struct hv_jp q = hv_jp_get(p, key);
        REQUIRE(q.v == v);
        walk(&q, budget);
    }
    const char *const keys[] = {"format", "nodes"};
    (void)!hv_jp_object(p, keys, 2, &err);
    int word;
    (void)!hv_jp_word(p, keys, 2, &word, &err);
}

static void check_writing(const struct hv_json *j, bool pretty)
{
    struct hv_str one = {0}, two = {0};
    struct hv_json again;
    struct hv_err err;
    hv_json_write(&one, j->root, pretty);
    REQUIRE(hv_json_parse(&again, hv_str_cstr(&one), one.n, "again", &err) == HV_OK);
    REQUIRE(json_equal(j->root, again.root));
    hv_json_write(&two, again.root, pretty);
    REQUIRE(one.n == two.n && memcmp(one.p, two.p, one.n) == 0);
    hv_json_free(&again);
    hv_str_free(&one);
    hv_str_free(&two);
}

static void compare_with_jansson(const uint8_t *data, size_t size)
{
    char *text = hv_xmalloc(size + 1);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    json_t *fast = hv__json_fast(text, size);
    if (fast) {
        json_t *slow = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
        REQUIRE(slow && json_equal(fast, slow));
        json_decref(slow);
    }
    json_decref(fast);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json j;
    compare_with_jansson(data, size);
    struct hv_err err;
    if (hv_json_parse(&j, (const char *)data, size, "fuzz", &err) != HV_OK) {
        REQUIRE(err.status == HV_EINPUT && err.line > 0 && err.col > 0 && err.text[0]);
        REQUIRE(strncmp(err.text, "not JSON:", 9) != 0); /* we know why, not only jansson */
        return 0;
    }
    unsigned budget = 300;
    struct hv_jp root = hv_jp_root(&j);
    walk(&root, &budget);
    check_writing(&j, true);
    check_writing(&j, false);
    hv_json_free(&j);
    return 0;
}
