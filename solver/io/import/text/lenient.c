/*
 * Repairs JSON as programs and people write it in practice: NaN and Infinity for numbers, commas
 * before closing brackets, comments, Python's quotation marks and words, keys and placeholders
 * without quotation marks, an array of events that is not closed because the program was stopped.
 * The text is copied with these errors repaired; all other errors are left to the parser. One pass,
 * O(n).
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

/* Length of a number at `at`; 0: none. */
static size_t number_length(const struct mend *m)
{
    size_t len = 0;
    const char *at = m->text + m->at;
    if (!isdigit((unsigned char)at[0]) && at[0] != '-') {
        return 0;
    }
    while (m->at + len < m->n && at[len] != '\0' &&
           (isdigit((unsigned char)at[len]) || strchr("+-.eE", at[len]))) {
        len++;
    }
    return len;
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

/* Length of the comment at `at`: "# …", "// …" up to the end of the line, or between slashes and
 * stars; 0: none. */
static size_t comment_length(const struct mend *m)
{
    const char *at = m->text + m->at, *end = m->text + m->n, *p = at;
    bool block = end - at > 3 && at[0] == '/' && at[1] == '*';
    if (!block && at[0] != '#' && !(end - at > 1 && at[0] == '/' && at[1] == '/')) {
        return 0;
    }
    if (!block) {
        while (p < end && *p != '\n') {
            p++;
        }
        return (size_t)(p - at);
    }
    for (p = at + 2; p + 1 < end; p++) {
        if (p[0] == '*' && p[1] == '/') {
            return (size_t)(p + 2 - at);
        }
    }
    return (size_t)(end - at);
}

/* Copies a text in single quotation marks. Returns its length; 0: it has no end on its line. */
static size_t copy_single(struct mend *m)
{
    size_t end = m->at + 1;
    while (end < m->n && m->text[end] != '\'' && m->text[end] != '\n') {
        end += m->text[end] == '\\' ? 2 : 1;
    }
    if (end >= m->n || m->text[end] != '\'') {
        return 0;
    }
    hv_str_addc(m->out, '"');
    for (size_t i = m->at + 1; i < end; i++) {
        bool quote = m->text[i] == '\\' && m->text[i + 1] == '\'';
        if (m->text[i] == '"') {
            hv_str_addc(m->out, '\\');
        }
        if (!quote) {
            hv_str_addc(m->out, m->text[i]);
        }
    }
    hv_str_addc(m->out, '"');
    m->places++;
    return end + 1 - m->at;
}

/* Copies a word: those of JSON as they are, Python's as JSON's, others in quotation marks. */
static size_t copy_word(struct mend *m)
{
    static const struct {
        const char *word, *json;
    } rows[] = {{"true", "true"}, {"false", "false"}, {"null", "null"},
                {"True", "true"}, {"False", "false"}, {"None", "null"}};
    const char *at = m->text + m->at;
    size_t len = 0;
    while (m->at + len < m->n && (isalnum((unsigned char)at[len]) || strchr("_-.$<>{}", at[len]))) {
        bool bracket = strchr("{}", at[len]) != NULL;
        if (at[len] == '\0' || (bracket && (len == 0 || (at[len] == '{' && at[len - 1] != '$') ||
                                            (at[len] == '}' && !memchr(at, '{', len))))) {
            break;
        }
        len++;
    }
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (strlen(rows[i].word) == len && memcmp(rows[i].word, at, len) == 0) {
            hv_str_adds(m->out, rows[i].json);
            m->places += strcmp(rows[i].word, rows[i].json) != 0;
            return len;
        }
    }
    hv_str_addf(m->out, "\"%.*s\"", (int)len, at);
    m->places++;
    return len;
}

/* Copies what is no JSON in a way that is. Returns its length; 0: it is JSON, or cannot be. */
static size_t odd_piece(struct mend *m)
{
    char c = m->text[m->at];
    size_t len = odd_number(m);
    if (len > 0) {
        hv_str_adds(m->out, "null");
        m->places++;
        return len;
    }
    if ((len = comment_length(m)) > 0) {
        m->places++;
        return len;
    }
    if (c == '\'') {
        return copy_single(m);
    }
    return isalpha((unsigned char)c) || c == '_' || c == '$' || c == '<' ? copy_word(m) : 0;
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
    } else if (c == '"' || (len = odd_piece(m)) == 0) {
        len = c == '"' ? string_length(m) : number_length(m);
        len = len > 0 ? len : 1;
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
