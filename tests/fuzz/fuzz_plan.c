/*
 * Any bytes as a plan file on a small fixed cluster: build, check against a fixed model and job,
 * write the plan back and build that again. What is accepted must survive writing; what is refused
 * has a message.
 */
#include "solver/io/own/docs.h"
#include "solver/io/own/plan/write.h"
#include "tests/plan_fixture.h"
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x))                                                                                  \
            HV_BUG("%s", #x);                                                                      \
    } while (0)

static void check(const struct hv_plan *p, int experts)
{
    struct hv_arena arena = {0};
    struct hv_findings f = {.arena = &arena};
    struct hv_model *m = fixture_model(experts);
    struct hv_job j = fixture_job();
    hv_plan_check(p, m, &j, &f);
    for (size_t i = 0; i < f.n; i++) {
        REQUIRE(f.items[i].where[0] != '\0' && f.items[i].text[0] != '\0');
    }
    hv_model_unref(m);
    hv_arena_free(&arena);
}

static void write_and_build(const struct hv_plan *p, struct hv_cluster *c)
{
    struct hv_json json;
    struct hv_plan_doc again;
    struct hv_err err = {0};
    hv_json_wrap(&json, hv_plan_to_json(p, NULL, NULL, NULL), "written");
    if (hv_plan_doc_build(&again, json, c, &err) != HV_OK) {
        HV_BUG("a written plan is refused: %s", err.text);
    }
    REQUIRE(again.plan->n_replicas == p->n_replicas);
    hv_plan_doc_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json;
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err) != HV_OK) {
        return 0;
    }
    struct hv_cluster *c = fixture_cluster();
    if (hv_plan_doc_build(&doc, json, c, &err) == HV_OK) {
        check(doc.plan, 0);
        check(doc.plan, 8);
        write_and_build(doc.plan, c);
        hv_plan_doc_free(&doc);
    } else {
        REQUIRE(err.text[0] != '\0');
    }
    hv_cluster_unref(c);
    return 0;
}
