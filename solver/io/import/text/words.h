/**
 * Pieces that the readers of other programs' texts share: lines, fields, numbers with units, lists
 * of hosts. A piece is a slice of the text; nothing is copied.
 */
#ifndef HV_SOLVER_IO_IMPORT_TEXT_WORDS_H
#define HV_SOLVER_IO_IMPORT_TEXT_WORDS_H

#include "solver/base/arena.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** A piece of a text. */
struct hv__piece {
    const char *p;
    size_t n;
};

/** Walks over the lines of a text; begin with `{.rest = text, .left = n}`. */
struct hv__lines {
    const char *rest;
    size_t left;
    unsigned line;          /**< number of the line last given, from 1 */
    struct hv__piece piece; /**< it, without its end */
};
/** The next line; false at the end. O(line). */
bool hv__next_line(struct hv__lines *l);

/** Without blanks (and quotation marks when `quotes`) at both ends. */
struct hv__piece hv__strip(struct hv__piece s);
struct hv__piece hv__unquote(struct hv__piece s);
/** The next word of *rest, up to a blank; empty at the end. */
struct hv__piece hv__next_word(struct hv__piece *rest);
/** The text before the first `c` in *rest (all of it when there is none); *rest then begins after
 * it. */
struct hv__piece hv__before(struct hv__piece *rest, char c);
/** Comparisons; `_like` ignores case. */
bool hv__is(struct hv__piece s, const char *text);
bool hv__like(struct hv__piece s, const char *text);
bool hv__starts(struct hv__piece s, const char *with);
/** First occurrence of `what` in s, or NULL; `_like` ignores case. O(n · what). */
const char *hv__find(struct hv__piece s, const char *what);
const char *hv__find_like(struct hv__piece s, const char *what);
/** A copy with a final NUL. */
char *hv__copy(struct hv_arena *a, struct hv__piece s);
/** The piece of a C string. */
struct hv__piece hv__piece_of(const char *s);

/** A number at the start of s ("81920 MiB", "1_000", "16x"): *rest is the text after it. False:
 * none. Words for missing values (N/A, [Not Supported], …) are not numbers. */
bool hv__number(struct hv__piece s, double *out, struct hv__piece *rest);
/** A number that is all of s, or HV_UNKNOWN. */
double hv__plain_number(struct hv__piece s);
/** Bytes of "81920 MiB", "40 GB", "16367668Ki", "128G"; a number alone counts in `unit` bytes. */
double hv__bytes(struct hv__piece s, double unit);

/** Called with each host of a list; false ends it. */
typedef bool hv__host_fn(void *ctx, const char *name, size_t n);
/** Hosts of "a[001-004,7],b2": at most `most`. Returns their number; a text that is not a list is
 * one host. Source: slurm hostlist expressions (scontrol(1), show hostnames). */
size_t hv__hosts(struct hv__piece list, size_t most, hv__host_fn *each, void *ctx);

/** One row of a CSV text (RFC 4180): fields without quotation marks lie in the arena. */
struct hv__row {
    struct hv__piece *fields;
    size_t n;
    unsigned line;
};
/** Reads the next row of *rest into `row` (fields are reused); false at the end. */
struct hv__csv {
    struct hv_arena *arena;
    const char *rest;
    size_t left;
    unsigned line;
    char separator;
    struct hv__piece *fields;
    size_t cap;
};
bool hv__csv_next(struct hv__csv *c, struct hv__row *row);

#endif
