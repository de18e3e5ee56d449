/**
 * Texts of JSON files piece by piece, for readers that take a long list as it is written, without a
 * tree. Only a subset of JSON is taken; where a call returns false the reader gives up and the file
 * is read by hv_json_parse, which also words the errors. Thread: any, one reader at a time.
 */
#ifndef HV_SOLVER_BASE_JSON_STREAM_H
#define HV_SOLVER_BASE_JSON_STREAM_H

#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** Longest number or key that is taken, bytes. */
#define HV_JSON_STREAM_TOKEN ((size_t)63)

/** A file that is being read. Owner: hv_json_stream_close. */
struct hv_json_stream {
    const char *at, *end; /**< what is in memory and not yet taken; a NUL byte is behind it */
    char *buffer;
    int file;
    bool over;    /**< nothing comes behind `end` */
    size_t bytes; /**< of the whole file */
};

/** Opens a regular file of at most HV_FILE_LIMIT bytes; false for anything else. */
bool hv_json_stream_open(struct hv_json_stream *s, const char *path);
/** Closes it; fine after hv_json_stream_open failed. */
void hv_json_stream_close(struct hv_json_stream *s);
/** Reads on, so that a whole number or key is in memory or the rest of the file is. */
void hv_json_stream_fill(struct hv_json_stream *s);
/** A number as JSON writes it; false where the next value is none, or is not finite. */
bool hv_json_stream_number(struct hv_json_stream *s, double *out);
/** Takes blanks, a key of plain characters and its colon, and appends them to `out`; the key alone
 * is put into `key`. */
bool hv_json_stream_key(struct hv_json_stream *s, char key[HV_JSON_STREAM_TOKEN + 1],
                        struct hv_str *out);
/** Appends the next value to `out` as it is written, unchecked, up to the comma or bracket behind
 * it. */
bool hv_json_stream_copy(struct hv_json_stream *s, struct hv_str *out);

/** The next character that is no blank, not taken; NUL at the end. A whole number or key that
 * begins there is in memory. */
static inline char hv_json_stream_peek(struct hv_json_stream *s)
{
    for (;;) {
        if (s->end - s->at <= (ptrdiff_t)HV_JSON_STREAM_TOKEN + 1 && !s->over) {
            hv_json_stream_fill(s);
        }
        if (*s->at != ' ' && *s->at != '\n' && *s->at != '\t' && *s->at != '\r') {
            return *s->at;
        }
        s->at++;
    }
}

/** Takes the next character where it is `c`. */
static inline bool hv_json_stream_take(struct hv_json_stream *s, char c)
{
    if (hv_json_stream_peek(s) != c || s->at == s->end) {
        return false;
    }
    s->at++;
    return true;
}

#endif
