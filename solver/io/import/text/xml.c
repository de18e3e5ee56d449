/*
 * XML texts as trees, by expat. External entities and DTDs are never fetched: no handler for them
 * is set. Expat limits the expansion of internal entities.
 */
#include "solver/io/import/text/xml.h"
#include "solver/io/import/text/trees.h"
#include "solver/io/import/text/words.h"
#include <expat.h>
#include <string.h>

struct reader {
    struct hv_arena *arena;
    XML_Parser parser;
    struct hv__xml *root, *at;
    struct hv_str text; /* of `at`, so far */
    size_t n, depth;
    bool too_much;
};

static void XMLCALL on_start(void *ctx, const char *name, const char **attributes)
{
    struct reader *r = ctx;
    if (++r->n > HV__MAX_ITEMS || ++r->depth > HV__MAX_DEPTH) {
        r->too_much = true;
        (void)XML_StopParser(r->parser, XML_FALSE);
        return;
    }
    struct hv__xml *e = hv_arena_new(r->arena, struct hv__xml, 1);
    size_t n = 0;
    while (attributes[n]) {
        n++;
    }
    e->attributes = hv_arena_new(r->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        e->attributes[i] = hv_arena_strdup(r->arena, attributes[i]);
    }
    e->name = hv_arena_strdup(r->arena, name);
    e->line = (unsigned)XML_GetCurrentLineNumber(r->parser);
    e->up = r->at;
    e->text = "";
    if (r->at) { /* prepended; reversed when the parent ends */
        e->next = r->at->first;
        r->at->first = e;
    } else {
        r->root = e;
    }
    r->at = e;
    hv_str_clear(&r->text);
}

static void XMLCALL on_end(void *ctx, const char *name HV_UNUSED)
{
    struct reader *r = ctx;
    struct hv__xml *e = r->at, *turned = NULL;
    struct hv__piece text = hv__strip((struct hv__piece){hv_str_cstr(&r->text), r->text.n});
    if (text.n > 0 && !e->first) {
        e->text = hv__copy(r->arena, text);
    }
    for (struct hv__xml *c = e->first, *next; c; c = next) {
        next = c->next;
        c->next = turned;
        turned = c;
    }
    e->first = turned;
    hv_str_clear(&r->text);
    r->at = e->up;
    r->depth--;
}

static void XMLCALL on_text(void *ctx, const char *s, int n)
{
    struct reader *r = ctx;
    if (r->text.n < 65536) {
        hv_str_add(&r->text, s, (size_t)n);
    }
}

enum hv_status hv__xml_parse(struct hv_arena *arena, const char *name, const char *text, size_t n,
                             struct hv__xml **out, struct hv_err *err)
{
    struct reader r = {.arena = arena, .parser = XML_ParserCreate(NULL)};
    enum hv_status st = HV_OK;
    if (!r.parser) {
        hv_oom(n);
    }
    XML_SetUserData(r.parser, &r);
    XML_SetElementHandler(r.parser, on_start, on_end);
    XML_SetCharacterDataHandler(r.parser, on_text);
    if (XML_Parse(r.parser, text, (int)n, XML_TRUE) != XML_STATUS_OK || !r.root) {
        unsigned line = (unsigned)XML_GetCurrentLineNumber(r.parser);
        unsigned col = (unsigned)XML_GetCurrentColumnNumber(r.parser) + 1;
        st = r.too_much
                 ? hv_err_at(err, HV_ELIMIT, name, line, col,
                             "nested more deeply or longer than such files are")
                 : hv_err_at(err, HV_EINPUT, name, line, col,
                             "the XML is broken (%s); was the output cut short? Write it again",
                             XML_ErrorString(XML_GetErrorCode(r.parser)));
    }
    XML_ParserFree(r.parser);
    hv_str_free(&r.text);
    *out = st == HV_OK ? r.root : NULL;
    return st;
}

static const struct hv__xml *named(const struct hv__xml *e, const char *name, size_t n)
{
    while (e && (strlen(e->name) != n || memcmp(e->name, name, n) != 0)) {
        e = e->next;
    }
    return e;
}

const struct hv__xml *hv__xml_child(const struct hv__xml *e, const char *name)
{
    return e ? named(e->first, name, strlen(name)) : NULL;
}

const struct hv__xml *hv__xml_next(const struct hv__xml *e, const char *name)
{
    return named(e->next, name, strlen(name));
}

const struct hv__xml *hv__xml_at(const struct hv__xml *e, const char *path)
{
    while (e && *path) {
        size_t n = strcspn(path, "/");
        e = named(e->first, path, n);
        path += n + (path[n] == '/');
    }
    return e;
}

const char *hv__xml_text(const struct hv__xml *e)
{
    return e ? e->text : "";
}

const char *hv__xml_attribute(const struct hv__xml *e, const char *name)
{
    for (size_t i = 0; e && e->attributes[i]; i += 2) {
        if (strcmp(e->attributes[i], name) == 0) {
            return e->attributes[i + 1];
        }
    }
    return NULL;
}
