/* Findings of the plan checker: codes in words, and the list with their places in the plan. */
#include "solver/plan/check.h"

#include "solver/base/str.h"
#include "solver/plan/check_inside.h"
#include <stdarg.h>

/* clang-format off */
const char *hv_violation_name(enum hv_violation_code c)
{
    static const char *const names[] = {
#define X(code, name, text) name,
        HV_VIOLATION_MAP(X)
#undef X
    };
    return c < HV_VIOLATION_N ? names[c] : "?";
}

const char *hv_violation_meaning(enum hv_violation_code c)
{
    static const char *const texts[] = {
#define X(code, name, text) text,
        HV_VIOLATION_MAP(X)
#undef X
    };
    return c < HV_VIOLATION_N ? texts[c] : "?";
}
/* clang-format on */

static void finding_put(struct hv_findings *f, enum hv_violation_code code, double by,
                        const char *where, const char *text)
{
    if (f->n == f->cap) {
        size_t cap = f->cap > 0 ? 2 * f->cap : 8;
        struct hv_violation *items = hv_arena_new(f->arena, struct hv_violation, cap);
        for (size_t i = 0; i < f->n; i++) {
            items[i] = f->items[i];
        }
        f->items = items;
        f->cap = cap;
    }
    f->items[f->n++] = (struct hv_violation){.code = code,
                                             .where = hv_arena_strdup(f->arena, where),
                                             .text = hv_arena_strdup(f->arena, text),
                                             .by = by};
}

size_t hv_findings_of_rules(const struct hv_findings *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        n += !hv_violation_is_limit(f->items[i].code);
    }
    return n;
}

void hv_finding_add(struct hv_findings *f, enum hv_violation_code code, double by,
                    const char *where, const char *fmt, ...)
{
    struct hv_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&text, fmt, ap);
    va_end(ap);
    finding_put(f, code, by, where, hv_str_cstr(&text));
    hv_str_free(&text);
}

void hv_check_stage_add(const struct hv_check *c, const struct hv_check_stage *at, const char *key,
                        enum hv_violation_code code, double by, const char *fmt, ...)
{
    struct hv_str where = {0}, text = {0};
    hv_str_addf(&where, "replicas[%zu].stages[%zu]", at->replica, at->stage);
    if (key != NULL) {
        hv_str_addf(&where, ".%s", key);
    }
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&text, fmt, ap);
    va_end(ap);
    finding_put(c->out, code, by, hv_str_cstr(&where), hv_str_cstr(&text));
    hv_str_free(&where);
    hv_str_free(&text);
}

void hv_check_replica_add(const struct hv_check *c, size_t replica, const char *key,
                          enum hv_violation_code code, double by, const char *fmt, ...)
{
    struct hv_str where = {0}, text = {0};
    hv_str_addf(&where, "replicas[%zu].%s", replica, key);
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&text, fmt, ap);
    va_end(ap);
    finding_put(c->out, code, by, hv_str_cstr(&where), hv_str_cstr(&text));
    hv_str_free(&where);
    hv_str_free(&text);
}
