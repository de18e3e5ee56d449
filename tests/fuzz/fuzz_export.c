/*
 * Any bytes as a plan file on a small fixed cluster, exported to every target: an answer with files
 * or with a reason; scripts hold no control character and no byte beyond ASCII outside of comments.
 */
#include "solver/io/export/target/export.h"
#include "solver/io/own/docs.h"
#include "tests/plan_fixture.h"
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
    do {                                                                                           \
        if (!(x))                                                                                  \
            HV_BUG("%s", #x);                                                                      \
    } while (0)

static void check_script(const char *text)
{
    bool comment = false, line_start = true;
    for (const char *c = text; *c != '\0'; c++) {
        comment = line_start ? *c == '#' : comment;
        line_start = *c == '\n';
        REQUIRE(*c == '\n' || (unsigned char)*c >= 0x20);
        REQUIRE(comment || line_start || (unsigned char)*c < 0x7f);
    }
}

static void export_all(const struct hv_export_source *s)
{
    for (int t = HV_TARGET_ANY + 1; t < HV_TARGET_N; t++) {
        struct hv_export files;
        struct hv_err err = {0};
        if (hv_export_plan(s, (enum hv_target_id)t, &files, &err) != HV_OK) {
            REQUIRE(err.text[0] != '\0');
            continue;
        }
        REQUIRE(files.files.n > 0);
        for (size_t i = 0; i < files.files.n; i++) {
            const struct hv_export_file *f = &files.files.items[i];
            REQUIRE(strchr(f->name, '/') == NULL);
            if (f->is_program) {
                check_script(hv_str_cstr(&f->text));
            }
        }
        hv_export_free(&files);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hv_json json;
    struct hv_plan_doc doc;
    struct hv_err err = {0};
    struct hv_str name = {0};
    if (hv_json_parse(&json, (const char *)data, size, "fuzz", &err) != HV_OK) {
        return 0;
    }
    struct hv_cluster *c = fixture_cluster();
    hv_str_add(&name, (const char *)data, size < 80 ? size : 80); /* a hostile name */
    if (hv_plan_doc_build(&doc, json, c, &err) == HV_OK) {
        struct hv_model *m = fixture_model(8);
        struct hv_job j = fixture_job();
        struct hv_arena arena = {0};
        struct hv_verdict verdict = {.findings = {.arena = &arena}};
        m->name = hv_str_cstr(&name);
        hv_plan_check(doc.plan, m, &j, &verdict.findings);
        export_all(&(struct hv_export_source){doc.plan, m, &j, &verdict, NULL, hv_str_cstr(&name)});
        hv_arena_free(&arena);
        hv_model_unref(m);
        hv_plan_doc_free(&doc);
    }
    hv_str_free(&name);
    hv_cluster_unref(c);
    return 0;
}
