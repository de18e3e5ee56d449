/*
 * Repairs JSON as programs write it in practice: NaN and Infinity for numbers, commas before
 * closing brackets, an array of events that is not closed because the program was stopped. The text
 * is copied with these errors repaired; all other errors are left to the parser. One pass, O(n).
 */
#include "solver/io/import/text/trees.h"
#include <ctype.h>
#include <string.h>

/* The copy under construction. */
struct mend {
    const char *text;
    size_t n, at;
    struct hv_str *out;
    HV_VEC(char) open;  /* stack of the closing brackets of open brackets */
    size_t whole;       /* bytes of `out` up to the last whole element of a list of events */
    size_t whole_depth; /* brackets open there */
    size_t places;
};

/* Length of the string at `at`, both quotation marks counted; 0 when it has no end. */
static size_t string_length(const struct mend *m)
{
    for (size_t i = m->at + 1; i < m->n; i++) {
        if (m->text[i] == '\\') {
            i++;
        } else if (m->text[i] == '"') {
            return i + 1 - m->at;
        }
    }
    return 0;
}

/* Numbers that JSON does not have. */
static size_t odd_number(const struct mend *m)
{
    static const char *const words[] = {"NaN", "nan", "-Infinity", "Infinity", "-inf", "inf"};
    for (size_t i = 0; i < HV_COUNT(words); i++) {
        size_t len = strlen(words[i]);
        if (m->n - m->at >= len && memcmp(m->text + m->at, words[i], len) == 0 &&
            (m->at + len == m->n || !isalnum((unsigned char)m->text[m->at + len]))) {
            return len;
        }
    }
    return 0;
}

/* Removes a comma at the end of the copy before a closing bracket. */
static void drop_comma(struct mend *m)
{
    size_t n = m->out->n;
    while (n > 0 && isspace((unsigned char)m->out->p[n - 1])) {
        n--;
    }
    if (n > 0 && m->out->p[n - 1] == ',') {
        m->out->n = n - 1;
        m->out->p[n - 1] = '\0';
        m->places++;
    }
}

static void closed(struct mend *m, char c)
{
    drop_comma(m);
    if (m->open.n > 0 && m->open.items[m->open.n - 1] == c) {
        m->open.n--;
    }
    hv_str_addc(m->out, c);
    /* an element of a list at most two levels down: the text after it may be cut */
    if (m->open.n > 0 && m->open.n <= 2 && m->open.items[m->open.n - 1] == ']') {
        m->whole = m->out->n;
        m->whole_depth = m->open.n;
    }
}

/* Copies one character, string or word. False: the text ends inside a string. */
static bool step(struct mend *m)
{
    char c = m->text[m->at];
    size_t len = c == '"' ? string_length(m) : 1;
    if (len == 0) {
        return false;
    }
    if (c == '{' || c == '[') {
        hv_vec_push(&m->open, c == '{' ? '}' : ']');
        hv_str_addc(m->out, c);
    } else if (c == '}' || c == ']') {
        closed(m, c);
    } else if (c != '"' && (len = odd_number(m)) > 0) {
        hv_str_adds(m->out, "null");
        m->places++;
    } else {
        len = c == '"' ? string_length(m) : 1;
        hv_str_add(m->out, m->text + m->at, len);
    }
    m->at += len;
    return true;
}

size_t hv__json_mend(const char *text, size_t n, struct hv_str *out)
{
    struct mend m = {.text = text, .n = n, .out = out};
    while (m.at < n && step(&m)) {
        if (m.open.n == 0 && m.at < n && out->n > 1) {
            /* the value is complete: the parser checks the rest */
            hv_str_add(out, text + m.at, n - m.at);
            break;
        }
    }
    if (m.open.n > 0 && m.whole > 0) {
        out->n = m.whole;
        out->p[m.whole] = '\0';
        for (size_t i = m.whole_depth; i > 0; i--) {
            hv_str_addc(out, m.open.items[i - 1]);
        }
        m.places++;
    }
    hv_vec_free(&m.open);
    return m.places;
}
