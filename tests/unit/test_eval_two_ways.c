/** Two ways, one truth: a transformer by layers and the same one as a graph of operators on a mesh
 * take the same time and memory within 3 %. Both without dropout and mask, with fused attention. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "solver/base/str.h"
#include "tests/eval_fixture.h"

#define TOLERANCE 0.03

struct shape {
    int layers, hidden, heads, tokens, vocab;
};

static const char two_ways_job[] =
    "{\"format\":\"hetviz.job/1\",\"global_batch\":64,\"sequence\":2048,\"precision\":\"bf16\","
    "\"optimizer\":\"adam\",\"attention\":\"flash\",\"dropout\":\"off\"}";

static void by_layers(struct hv_str *s, const struct shape *m)
{
    hv_str_addf(
        s,
        "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"transformer\",\"layers\":%d,"
        "\"hidden\":%d,\"heads\":%d,\"kv_heads\":%d,\"ffn\":%d,\"ffn_kind\":\"gelu\",\"vocab\":"
        "%d,\"max_sequence\":%d,\"norm\":\"layernorm\",\"position\":\"none\",\"causal\":false,"
        "\"tied_embeddings\":false}",
        m->layers, m->hidden, m->heads, m->heads, 4 * m->hidden, m->vocab, m->tokens);
}

static void add_weights(struct hv_str *s, int i)
{
    static const struct {
        const char *name, *dims;
    } rows[] = {{"wq", "\"hidden\",\"heads\",\"dim\""},
                {"wk", "\"hidden\",\"heads\",\"dim\""},
                {"wv", "\"hidden\",\"heads\",\"dim\""},
                {"wo", "\"heads\",\"dim\",\"hidden\""},
                {"wu", "\"hidden\",\"ffn\""},
                {"wd", "\"ffn\",\"hidden\""},
                {"g1", "\"hidden\""},
                {"b1", "\"hidden\""},
                {"g2", "\"hidden\""},
                {"b2", "\"hidden\""}};
    for (size_t k = 0; k < HV_COUNT(rows); k++) {
        hv_str_addf(s, ",\"l%d.%s\":{\"dims\":[%s],\"role\":\"parameter\"}", i, rows[k].name,
                    rows[k].dims);
    }
}

#define STREAM "\"out\":[\"batch\",\"seq\",\"hidden\"]"
#define KEYS   "{\"tensor\":\"l%d.n1\",\"as\":[\"batch\",\"keys\",\"hidden\"]}"

static void add_layer(struct hv_str *s, int i, const char *before)
{
    hv_str_addf(s,
                ",{\"id\":\"l%d.n1\",\"op\":\"layernorm\",\"in\":[\"%s\",\"l%d.g1\",\"l%d.b1\"],"
                "\"over\":[\"hidden\"]," STREAM "}",
                i, before, i, i);
    hv_str_addf(s,
                ",{\"id\":\"l%d.q\",\"op\":\"einsum\",\"in\":[\"l%d.n1\",\"l%d.wq\"],\"out\":["
                "\"batch\",\"seq\",\"heads\",\"dim\"]}",
                i, i, i);
    hv_str_addf(s,
                ",{\"id\":\"l%d.k\",\"op\":\"einsum\",\"in\":[" KEYS ",\"l%d.wk\"],\"out\":["
                "\"batch\",\"keys\",\"heads\",\"dim\"]}",
                i, i, i);
    hv_str_addf(s,
                ",{\"id\":\"l%d.v\",\"op\":\"einsum\",\"in\":[" KEYS ",\"l%d.wv\"],\"out\":["
                "\"batch\",\"keys\",\"heads\",\"dim\"]}",
                i, i, i);
    hv_str_addf(s,
                ",{\"id\":\"l%d.scores\",\"op\":\"einsum\",\"in\":[\"l%d.q\",\"l%d.k\"],\"out\":["
                "\"batch\",\"heads\",\"seq\",\"keys\"]},{\"id\":\"l%d.softmax\",\"op\":\"softmax\","
                "\"in\":[\"l%d.scores\"],\"over\":[\"keys\"],\"out\":[\"batch\",\"heads\",\"seq\","
                "\"keys\"]}",
                i, i, i, i, i);
    hv_str_addf(
        s,
        ",{\"id\":\"l%d.values\",\"op\":\"einsum\",\"in\":[\"l%d.softmax\",\"l%d.v\"],"
        "\"out\":[\"batch\",\"seq\",\"heads\",\"dim\"]},{\"id\":\"l%d.out\",\"op\":\"einsum\","
        "\"in\":[\"l%d.values\",\"l%d.wo\"]," STREAM "}",
        i, i, i, i, i, i);
    hv_str_addf(
        s,
        ",{\"id\":\"l%d.add1\",\"op\":\"add\",\"in\":[\"%s\",\"l%d.out\"]," STREAM "},"
        "{\"id\":\"l%d.n2\",\"op\":\"layernorm\",\"in\":[\"l%d.add1\",\"l%d.g2\",\"l%d.b2\"],"
        "\"over\":[\"hidden\"]," STREAM "}",
        i, before, i, i, i, i, i);
    hv_str_addf(
        s,
        ",{\"id\":\"l%d.up\",\"op\":\"einsum\",\"in\":[\"l%d.n2\",\"l%d.wu\"],\"out\":["
        "\"batch\",\"seq\",\"ffn\"]},{\"id\":\"l%d.act\",\"op\":\"gelu\",\"in\":[\"l%d.up\"],"
        "\"out\":[\"batch\",\"seq\",\"ffn\"]}",
        i, i, i, i, i);
    hv_str_addf(s,
                ",{\"id\":\"l%d.down\",\"op\":\"einsum\",\"in\":[\"l%d.act\",\"l%d.wd\"]," STREAM
                "},{\"id\":\"l%d.add2\",\"op\":\"add\",\"in\":[\"l%d.add1\",\"l%d.down\"]," STREAM
                "}",
                i, i, i, i, i, i);
}

static void by_graph(struct hv_str *s, const struct shape *m)
{
    char before[32] = "embed";
    hv_str_addf(
        s,
        "{\"format\":\"hetviz.model/1\",\"name\":\"m\",\"kind\":\"graph\",\"batch\":\"batch\","
        "\"dims\":{\"batch\":1,\"seq\":%d,\"keys\":%d,\"hidden\":%d,\"heads\":%d,\"dim\":%d,"
        "\"ffn\":%d,\"vocab\":%d},\"tensors\":{\"ids\":{\"dims\":[\"batch\",\"seq\"],\"dtype\":"
        "\"s32\"},\"labels\":{\"dims\":[\"batch\",\"seq\"],\"dtype\":\"s32\"},\"table\":{"
        "\"dims\":[\"vocab\",\"hidden\"],\"role\":\"parameter\"},\"head_w\":{\"dims\":["
        "\"hidden\",\"vocab\"],\"role\":\"parameter\"},\"g\":{\"dims\":[\"hidden\"],\"role\":"
        "\"parameter\"},\"b\":{\"dims\":[\"hidden\"],\"role\":\"parameter\"}",
        m->tokens, m->tokens, m->hidden, m->heads, m->hidden / m->heads, 4 * m->hidden, m->vocab);
    for (int i = 0; i < m->layers; i++) {
        add_weights(s, i);
    }
    hv_str_addf(s, "},\"ops\":[{\"id\":\"embed\",\"op\":\"embedding\",\"in\":[\"table\",\"ids\"],"
                   "\"rows\":\"vocab\"," STREAM "}");
    for (int i = 0; i < m->layers; i++) {
        add_layer(s, i, before);
        (void)snprintf(before, sizeof before, "l%d.add2", i);
    }
    hv_str_addf(s,
                ",{\"id\":\"norm\",\"op\":\"layernorm\",\"in\":[\"%s\",\"g\",\"b\"],\"over\":["
                "\"hidden\"]," STREAM "},{\"id\":\"logits\",\"op\":\"einsum\",\"in\":[\"norm\","
                "\"head_w\"],\"out\":[\"batch\",\"seq\",\"vocab\"]},{\"id\":\"loss\",\"op\":"
                "\"cross_entropy\",\"in\":[\"logits\",\"labels\"],\"over\":[\"vocab\"],\"out\":["
                "\"batch\",\"seq\"]}]}",
                before);
}

/** Time and memory per stage. */
struct figures {
    double iteration_s, peak_bytes[4];
    size_t n;
};

static struct figures figures_of(const char *model, int micro_batch, const char *stages)
{
    struct world w;
    struct hv_arena a = {0};
    struct hv_str body = {0};
    struct figures out = {0};
    open_world(&w, cluster_text, model, two_ways_job);
    hv_str_addf(&body, "\"micro_batch\":%d,\"replicas\":[{\"micro_batches\":%d,\"stages\":[%s]}]",
                micro_batch, 64 / micro_batch, stages);
    struct hv_verdict v = judge(&w, &a, false, hv_str_cstr(&body));
    if (v.findings.n > 0) {
        fail_msg("%s: %s", stages, v.findings.items[0].text);
    }
    out.iteration_s = v.metrics.iteration_s;
    out.n = v.n_memory;
    for (size_t i = 0; i < v.n_memory && i < HV_COUNT(out.peak_bytes); i++) {
        out.peak_bytes[i] = v.memory[i].peak_bytes;
    }
    hv_str_free(&body);
    hv_arena_free(&a);
    close_world(&w);
    return out;
}

#define FUSED ",\"fuse\":[[\"*.scores\",\"*.softmax\"],[\"*.softmax\",\"*.values\"]]"
/* queries, keys and values as one product, as layers have them */
#define FUSED_QKV                                                                                  \
    ",\"fuse\":[[\"*.scores\",\"*.softmax\"],[\"*.softmax\",\"*.values\"],"                        \
    "[\"*.q\",\"*.k\"],[\"*.k\",\"*.v\"]]"
#define SEQUENCE                                                                                   \
    ",\"embed\":{\"x\":\"seq\"},\"*.n1\":{\"x\":\"seq\"},\"*.n2\":{\"x\":\"seq\"},"                \
    "\"*.add1\":{\"x\":\"seq\"},\"*.add2\":{\"x\":\"seq\"},\"norm\":{\"x\":\"seq\"},"              \
    "\"*.q\":{\"x\":\"heads\"},\"*.k\":{\"x\":\"heads\"},\"*.v\":{\"x\":\"heads\"},"               \
    "\"*.scores\":{\"x\":\"heads\"},\"*.softmax\":{\"x\":\"heads\"},\"*.values\":{\"x\":"          \
    "\"heads\"},\"*.up\":{\"x\":\"ffn\"},\"*.act\":{\"x\":\"ffn\"},\"logits\":{\"x\":\"vocab\"}"
#define TP                                                                                         \
    "\"*.wq\":{\"x\":\"heads\"},\"*.wk\":{\"x\":\"heads\"},\"*.wv\":{\"x\":\"heads\"},"            \
    "\"*.wo\":{\"x\":\"heads\"},\"*.wu\":{\"x\":\"ffn\"},\"*.wd\":{\"x\":\"ffn\"}"
#define ENDS ",\"table\":{\"x\":\"vocab\"},\"head_w\":{\"x\":\"vocab\"}"

/** A plan in both ways. */
struct plan {
    const char *name, *layers, *graph;
    int micro_batch;
};

static const struct plan plans[] = {
    {"one device", "{\"devices\":\"a[0].0\",\"layers\":[0,8]}",
     "{\"devices\":\"a[0].0\",\"ops\":[\"*\"]" FUSED "}", 1},
    {"dp 8", "{\"devices\":\"a[0].*\",\"layers\":[0,8],\"dp\":8}",
     "{\"devices\":\"a[0].*\",\"ops\":[\"*\"],\"mesh\":{\"d\":8},\"shard\":{\"ids\":{\"d\":"
     "\"batch\"}}" FUSED "}",
     8},
    {"tp 8", "{\"devices\":\"a[0].*\",\"layers\":[0,8],\"tp\":8}",
     "{\"devices\":\"a[0].*\",\"ops\":[\"*\"],\"mesh\":{\"x\":8},\"shard\":{" TP ENDS "}" FUSED "}",
     1},
    {"tp 8, sequences",
     "{\"devices\":\"a[0].*\",\"layers\":[0,8],\"tp\":8,\"sequence_parallel\":true}",
     "{\"devices\":\"a[0].*\",\"ops\":[\"*\"],\"mesh\":{\"x\":8},\"shard\":{" TP ENDS SEQUENCE
     "}" FUSED_QKV "}",
     1},
    {"pp 4 x tp 2",
     "{\"devices\":\"a[0].0-1\",\"layers\":[0,2],\"tp\":2},{\"devices\":\"a[0].2-3\",\"layers\":["
     "2,4],\"tp\":2},{\"devices\":\"a[0].4-5\",\"layers\":[4,6],\"tp\":2},{\"devices\":"
     "\"a[0].6-7\",\"layers\":[6,8],\"tp\":2}",
     "{\"devices\":\"a[0].0-1\",\"ops\":[\"embed\",\"l0.*\",\"l1.*\"],\"mesh\":{\"x\":2},"
     "\"shard\":{" TP ENDS "}" FUSED "},"
     "{\"devices\":\"a[0].2-3\",\"ops\":[\"l2.*\",\"l3.*\"],\"mesh\":{\"x\":2},\"shard\":{" TP
     "}" FUSED "},"
     "{\"devices\":\"a[0].4-5\",\"ops\":[\"l4.*\",\"l5.*\"],\"mesh\":{\"x\":2},\"shard\":{" TP
     "}" FUSED "},"
     "{\"devices\":\"a[0].6-7\",\"ops\":[\"l6.*\",\"l7.*\",\"norm\",\"logits\",\"loss\"],\"mesh\":"
     "{\"x\":2},\"shard\":{" TP ENDS "}" FUSED "}",
     1}};

static void near(const char *what, const char *plan, double a, double b)
{
    if (!(fabs(a - b) <= TOLERANCE * a)) {
        fail_msg("%s, %s: %g by layers, %g by graph: %+.2f %%", plan, what, a, b,
                 100 * (b / a - 1));
    }
}

static void transformers_take_as_long_either_way(void **state)
{
    static const struct shape shapes[] = {{8, 2048, 16, 2048, 51200}, {8, 4096, 32, 2048, 51200}};
    (void)state;

    for (size_t i = 0; i < HV_COUNT(shapes); i++) {
        struct hv_str layers = {0}, graph = {0};
        by_layers(&layers, &shapes[i]);
        by_graph(&graph, &shapes[i]);
        for (size_t k = 0; k < HV_COUNT(plans); k++) {
            const struct plan *p = &plans[k];
            struct figures a = figures_of(hv_str_cstr(&layers), p->micro_batch, p->layers);
            struct figures b = figures_of(hv_str_cstr(&graph), p->micro_batch, p->graph);
            near("iteration", p->name, a.iteration_s, b.iteration_s);
            assert_int_equal(a.n, b.n);
            for (size_t s = 0; s < a.n && s < HV_COUNT(a.peak_bytes); s++) {
                near("peak memory", p->name, a.peak_bytes[s], b.peak_bytes[s]);
            }
        }
        hv_str_free(&layers);
        hv_str_free(&graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(transformers_take_as_long_either_way)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
