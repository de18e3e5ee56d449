/** Reader of the line-based settings files (themes, keys, scripts): words, comments, positions. */
#ifndef HV_UI_VIEW_SETTINGS_LINES_H
#define HV_UI_VIEW_SETTINGS_LINES_H

#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>

/** State of the reader. Set text, n and name; zero the rest. */
struct hv_lines {
    const char *text;
    size_t n;
    const char *name;             /**< for messages */
    size_t next;                  /**< start of the next line */
    size_t begin, end, at, token; /**< this line, read position, start of the last word */
    unsigned line;
};

/** Goes to the next line that holds more than blanks and a comment; false at the end. */
bool hv_lines_next(struct hv_lines *l);
/**
 * Copies the next word, cut at cap - 1 bytes; false at the end of the line. `#` after a blank (or
 * at the start) begins a comment only when a blank or the line's end follows it or the line starts
 * with it.
 */
bool hv_lines_word(struct hv_lines *l, char *word, size_t cap);
/** Copies the rest of the line without surrounding blanks; comments are not cut. */
bool hv_lines_rest(struct hv_lines *l, char *rest, size_t cap);
/** Records HV_EINPUT at the last word. */
enum hv_status hv_lines_error(const struct hv_lines *l, struct hv_err *err, const char *fmt, ...)
    HV_PRINTF(3, 4);

#endif
