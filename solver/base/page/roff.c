/** Writes the text of manual pages. Which pages there are is known elsewhere. */
#include "solver/base/page/roff.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Where long lines are folded; mandoc warns beyond 80 bytes. */
#define FOLD_BYTES 68

/** Adds one character; returns how many bytes of the text it took. */
static size_t add_character(struct hv_str *out, const char *text)
{
    int32_t c = 0;
    size_t n = (unsigned char)*text >= 0x80 ? hv_text_char(text, strlen(text), &c) : 0;

    if (n > 0 && c == 0x2026) {
        hv_str_adds(out, "..."); /* an ellipsis, which terminals of one byte lack */
    } else if (n > 0) {
        hv_str_addf(out, "\\[u%04X]", (unsigned)c);
    } else if (*text == '\\') {
        hv_str_adds(out, "\\e");
    } else if (*text == '-') {
        hv_str_adds(out, "\\-");
    } else {
        hv_str_addc(out, *text);
    }
    return n > 0 ? n : 1;
}

void hv_roff_words(struct hv_str *out, const char *text)
{
    while (*text != '\0') {
        text += add_character(out, text);
    }
}

/** Adds a word, up to the next blank or line end; returns how many bytes it has. */
static size_t add_word(struct hv_str *out, const char *text)
{
    size_t n = 0;

    if (*text == '.' || *text == '\'') {
        hv_str_adds(out, "\\&"); /* a line that begins so would be a request */
    }
    while (text[n] != '\0' && text[n] != ' ' && text[n] != '\n') {
        n += add_character(out, text + n);
    }
    return n;
}

/** Bytes of the text before its last line. */
static size_t last_line(const struct hv_str *out)
{
    size_t n = out->n;

    while (n > 0 && out->p[n - 1] != '\n') {
        n--;
    }
    return n;
}

/** Adds one line of the text without its end; returns how many bytes it has. */
static size_t add_line(struct hv_str *out, const char *text)
{
    size_t n = 0, start = last_line(out);
    bool as_it_is = *text == ' ' && start == out->n;

    while (text[n] != '\0' && text[n] != '\n') {
        size_t blanks = strspn(text + n, " ");
        hv_str_add(out, text + n, blanks);
        n += blanks;
        size_t at = out->n;
        n += add_word(out, text + n);
        /* several blanks stand for themselves, and no line may begin or end with one */
        bool folds = !as_it_is && out->n > at && at > start + 1 && out->p[at - 1] == ' ' &&
                     out->p[at - 2] != ' ';
        if (folds && out->n - start > FOLD_BYTES) {
            out->p[at - 1] = '\n';
            start = at;
        }
    }
    return n;
}

void hv_roff_text(struct hv_str *out, const char *text)
{
    for (;;) {
        text += add_line(out, text);
        if (*text == '\0') {
            return;
        }
        text++;
        hv_str_addc(out, '\n');
        /* a line that begins with a blank breaks by itself; empty lines are paragraphs */
        if (*text == '\n') {
            hv_str_adds(out, ".sp");
        } else if (*text != ' ' && *text != '\0') {
            hv_str_adds(out, ".br\n");
        }
    }
}

void hv_roff_head(struct hv_str *out, const char *name, int section)
{
    hv_str_adds(out, ".TH ");
    hv_roff_words(out, name);
    hv_str_addf(out, " %d %s \"hetviz " HV_VERSION "\"\n", section, HV_RELEASE_DATE);
}
