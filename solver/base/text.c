/*
 * Untrusted text: makes it safe to show, and compares words by edit distance. Widths and wrapping
 * are computed by the user interface.
 */
#include "solver/base/str.h"
#include <string.h>
#include <utf8proc.h>

/* Characters that move the cursor, hide text or reorder it. */
static bool is_unsafe(utf8proc_int32_t c)
{
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

void hv_text_clean(struct hv_str *out, const char *text, size_t n)
{
    const utf8proc_uint8_t *s = (const utf8proc_uint8_t *)text;
    size_t i = 0, clean = 0; /* text[clean..i) is safe and not yet copied */
    while (i < n) {
        if (text[i] >= ' ' && text[i] < 0x7F) {
            i++;
            continue;
        }
        utf8proc_int32_t c;
        size_t left = n - i;
        utf8proc_ssize_t len = utf8proc_iterate(s + i, left > 4 ? 4 : (utf8proc_ssize_t)left, &c);
        if (len > 0 && !is_unsafe(c)) {
            i += (size_t)len;
            continue;
        }
        if (i > clean) {
            hv_str_add(out, text + clean, i - clean);
        }
        if (len <= 0) {
            hv_str_addf(out, "<0x%02X>", (unsigned)s[i]);
        } else if (c == '\n' || c == '\t') {
            hv_str_addc(out, ' ');
        } else if (c != '\r' || i + 1 >= n || s[i + 1] != '\n') { /* CR LF is one line end */
            hv_str_addf(out, "<U+%04X>", (unsigned)c);
        }
        i += len > 0 ? (size_t)len : 1;
        clean = i;
    }
    if (i > clean) {
        hv_str_add(out, text + clean, i - clean);
    }
}

#define WORD_CAP 128 /* candidates are names in hetviz's tables; longer words are never near */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edit distance with swaps of neighbours (optimal string alignment), three rolling rows. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][WORD_CAP + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++) {
        last[j] = j, before[j] = 0;
    }
    for (size_t i = 1; i <= na; i++) {
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t cost = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]) && before[j - 2] + 1 < row[j]) {
                row[j] = before[j - 2] + 1;
            }
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}

const char *hv_suggest(const char *word, const char *const *candidates, size_t n)
{
    size_t len = strlen(word), limit = len / 3 > 2 ? len / 3 : 2;
    const char *best = NULL;
    size_t best_d = limit + 1;
    for (size_t i = 0; i < n; i++) {
        size_t c = strlen(candidates[i]), gap = c > len ? c - len : len - c;
        if (gap > limit || c > WORD_CAP) {
            continue;
        }
        size_t d = distance(word, len, candidates[i], c);
        /* as many edits as letters: no letter in common */
        if (d < best_d && d < (c > len ? c : len)) {
            best = candidates[i];
            best_d = d;
        }
    }
    return best;
}
