/* Words of line-based settings files. Independent of the contents of the files. */
#include "ui/view/settings/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\0';
}

static void skip_blanks(struct hv_lines *l)
{
    while (l->at < l->end && is_blank(l->text[l->at])) {
        l->at++;
    }
}

static bool at_comment(const struct hv_lines *l)
{
    if (l->text[l->at] != '#') {
        return false;
    }
    return l->at == l->begin || l->at + 1 >= l->end || is_blank(l->text[l->at + 1]);
}

bool hv_lines_next(struct hv_lines *l)
{
    while (l->next < l->n) {
        const char *nl = memchr(l->text + l->next, '\n', l->n - l->next);
        l->begin = l->at = l->token = l->next;
        l->end = nl ? (size_t)(nl - l->text) : l->n;
        l->next = l->end + 1;
        l->line++;
        skip_blanks(l);
        if (l->at < l->end && !at_comment(l)) {
            return true;
        }
    }
    return false;
}

bool hv_lines_word(struct hv_lines *l, char *word, size_t cap)
{
    skip_blanks(l);
    l->token = l->at;
    word[0] = '\0';
    if (l->at >= l->end || at_comment(l)) {
        return false;
    }
    size_t n = 0;
    while (l->at < l->end && !is_blank(l->text[l->at])) {
        if (n + 1 < cap) {
            word[n++] = l->text[l->at];
        }
        l->at++;
    }
    word[n] = '\0';
    return true;
}

bool hv_lines_rest(struct hv_lines *l, char *rest, size_t cap)
{
    skip_blanks(l);
    l->token = l->at;
    size_t end = l->end;
    while (end > l->at && is_blank(l->text[end - 1])) {
        end--;
    }
    size_t n = end - l->at;
    if (n >= cap) {
        n = cap - 1;
    }
    memcpy(rest, l->text + l->at, n);
    rest[n] = '\0';
    l->at = l->end;
    return n > 0;
}

enum hv_status hv_lines_error(const struct hv_lines *l, struct hv_err *err, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return hv_err_at(err, HV_EINPUT, l->name, l->line, (unsigned)(l->token - l->begin) + 1, "%s",
                     text);
}
