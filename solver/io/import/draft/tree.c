/* Parses a text that looks like JSON, XML or YAML to a tree. The readers interpret the tree. */
#include "solver/io/import/draft/draft.h"
#include "solver/io/import/text/trees.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>

/* The first character that is no blank. */
static char first_of(const struct hv__in *in)
{
    size_t i = strspn(in->text, " \t\r\n\f\v");
    return i < in->n ? in->text[i] : '\0';
}

static void parse_json(struct hv__in *in)
{
    in->is_json = true;
    if (hv_json_parse(&in->json, in->text, in->n, in->name, &in->broken) == HV_OK) {
        in->tree = in->json.root;
        in->broken = (struct hv_err){0};
        return;
    }
    /* programs write NaN, duplicate keys and truncated files */
    json_error_t why;
    struct hv_str mended = {0};
    size_t places = hv__json_mend(in->text, in->n, &mended);
    json_t *tree = json_loadb(hv_str_cstr(&mended), mended.n, JSON_ALLOW_NUL, &why);
    if (tree) {
        in->tree = tree;
        in->broken = (struct hv_err){0};
        if (places > 0) {
            hv__guessed(in, 0,
                        "the JSON is incomplete or not strict: it was repaired in %zu places",
                        places);
        } else {
            hv__guessed(in, 0, "the JSON has a key twice: the last one counts");
        }
    }
    hv_str_free(&mended);
}

/* True where some line begins with a word and a colon, as in a mapping. */
static bool looks_like_yaml(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    while (hv__next_line(&l) && l.line < 200) {
        size_t i = 0;
        while (i < l.piece.n &&
               (isalnum((unsigned char)l.piece.p[i]) || strchr("_-.", l.piece.p[i]) != NULL)) {
            i++;
        }
        if (i > 0 && i < l.piece.n && l.piece.p[i] == ':' &&
            (i + 1 == l.piece.n || l.piece.p[i + 1] == ' ')) {
            return true;
        }
        if (l.piece.n > 0 && !strchr("# \t-%", l.piece.p[0])) {
            return false; /* the first line with content decides */
        }
    }
    return false;
}

void hv__parse(struct hv__in *in)
{
    char c = first_of(in);
    if (c == '<') {
        if (hv__xml_parse(&in->im->arena, in->name, in->text, in->n, &in->xml, &in->broken) !=
            HV_OK) {
            in->xml = NULL;
        }
    } else if (c == '{' || c == '[') {
        parse_json(in);
    } else if (looks_like_yaml(in)) {
        in->is_yaml = true;
        in->tree = hv__yaml(in->name, in->text, in->n, &in->lines, &in->broken);
    }
}

void hv__parse_free(struct hv__in *in)
{
    if (in->tree != in->json.root) {
        json_decref(in->tree);
    }
    hv_json_free(&in->json);
    hv_vec_free(&in->lines);
    in->tree = NULL;
}
