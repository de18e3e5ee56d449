/* Counts of a trace, taken from the text as it is read: a dense trace has millions of them, whose
 * tree would need twenty times the memory of the numbers. */
#include "solver/io/own/routing_text.h"

#include "solver/base/json/stream.h"
#include "solver/base/vec.h"
#include "solver/workload/router.h"
#include <string.h>

#define MOST_TOKENS 1e12
/* A whole number with more digits does not fit into 16 bits. */
#define MOST_DIGITS 5

/* What is being read. */
struct reading {
    struct hv_json_stream *s;
    struct hv_arena *arena;
    struct hv__counts *out;
    size_t cap; /* counts that the file can hold at most */
    uint16_t *counts, *expert;
    float *tokens;     /* NULL: all counts so far are in `counts` */
    HV_VEC(size_t) at; /* of rows by objects */
    size_t *seen;      /* [HV_ROUTER_AXIS_MOST] the row in which an expert was met last, from 1 */
    size_t row;
};

/* ---- numbers -------------------------------------------------------------------------------- */

/* Numbers from now on are not whole, or too large for 16 bits. */
static void widen(struct reading *r)
{
    r->tokens = hv_arena_new(r->arena, float, r->cap);
    for (size_t i = 0; i < r->out->n; i++) {
        r->tokens[i] = (float)r->counts[i];
    }
}

/* Appends the next number, whatever it is like. */
static bool add_number(struct reading *r)
{
    double x = 0;
    if (r->out->n == r->cap || !hv_json_stream_number(r->s, &x) || !(x >= 0) ||
        !(x <= MOST_TOKENS)) {
        return false;
    }
    if (!r->tokens) {
        widen(r);
    }
    r->tokens[r->out->n++] = (float)x;
    return true;
}

/* The whole number below 65536 at `p`, and its end; NULL where there is none. */
static inline const char *small_number(const char *p, unsigned *out)
{
    unsigned digit = (unsigned)(*p - '0'), x = digit;
    const char *from = p;
    if (digit > 9) {
        return NULL;
    }
    for (p++; (digit = (unsigned)(*p - '0')) <= 9; p++) {
        if (p - from == MOST_DIGITS || x == 0) {
            return NULL;
        }
        x = 10 * x + digit;
    }
    *out = x;
    return x <= UINT16_MAX && *p != '.' && *p != 'e' && *p != 'E' ? p : NULL;
}

/* Appends the next number. */
static inline bool add_count(struct reading *r)
{
    unsigned x = 0;
    (void)hv_json_stream_peek(r->s);
    const char *end = r->tokens ? NULL : small_number(r->s->at, &x);
    if (!end || r->out->n == r->cap) {
        return add_number(r);
    }
    r->counts[r->out->n++] = (uint16_t)x;
    r->s->at = end;
    return true;
}

/* A whole number below 65536. */
static bool read_index(struct reading *r, size_t *out)
{
    unsigned x = 0;
    (void)hv_json_stream_peek(r->s);
    const char *end = small_number(r->s->at, &x);
    if (end) {
        r->s->at = end;
        *out = x;
    }
    return end != NULL;
}

/* After an element: true where another one follows; *ok false where the list does not go on. */
static inline bool more(struct reading *r, char close, bool *ok)
{
    if (hv_json_stream_take(r->s, ',')) {
        return true;
    }
    *ok = hv_json_stream_take(r->s, close);
    return false;
}

/* ---- nested lists --------------------------------------------------------------------------- */

/* A list of so many elements as the ones before. */
static bool same_length(size_t *length, size_t n)
{
    bool ok = (*length == 0 || *length == n) && n > 0 && n <= HV_ROUTER_AXIS_MOST;
    *length = n;
    return ok;
}

/* Takes the small numbers that are in memory, each with a comma behind it: nearly all of a dense
 * list. */
static void take_small(struct reading *r)
{
    const char *p = r->s->at;
    size_t n = r->out->n;
    while (r->s->end - p > (ptrdiff_t)HV_JSON_STREAM_TOKEN && n < r->cap) {
        unsigned x = 0;
        const char *end = small_number(p, &x);
        if (!end || *end != ',') {
            break;
        }
        r->counts[n++] = (uint16_t)x;
        p = end + 1 + (end[1] == ' ');
    }
    r->out->n = n;
    r->s->at = p;
}

/* What one source sends to all experts. */
static bool read_list(struct reading *r)
{
    size_t from = r->out->n;
    bool ok = hv_json_stream_take(r->s, '[') && !r->expert;
    do {
        if (ok && !r->tokens) {
            take_small(r);
        }
        ok = ok && add_count(r);
    } while (ok && more(r, ']', &ok));
    return ok && same_length(&r->out->experts, r->out->n - from);
}

/* The number of an expert that is a key of an object, with its colon. */
static bool read_expert(struct reading *r)
{
    unsigned x = 0;
    const char *end = hv_json_stream_take(r->s, '"') ? small_number(r->s->at, &x) : NULL;
    if (!end || *end != '"' || r->out->n == r->cap || r->seen[x] == r->row) {
        return false;
    }
    r->s->at = end + 1;
    r->seen[x] = r->row;
    r->expert[r->out->n] = (uint16_t)x;
    r->out->most_expert = x > r->out->most_expert ? x : r->out->most_expert;
    return hv_json_stream_take(r->s, ':');
}

/* What one source sends to some experts, by their numbers. */
static bool read_object(struct reading *r)
{
    bool ok = hv_json_stream_take(r->s, '{') && r->out->experts == 0;
    if (ok && !r->expert) {
        r->expert = hv_arena_new(r->arena, uint16_t, r->cap);
        r->seen = hv_xcalloc(HV_ROUTER_AXIS_MOST, sizeof *r->seen);
    }
    if (ok && hv_json_stream_peek(r->s) == '}') {
        r->s->at++;
        return true;
    }
    do {
        ok = ok && read_expert(r) && add_count(r);
    } while (ok && more(r, '}', &ok));
    return ok;
}

static bool read_source(struct reading *r)
{
    hv_vec_push(&r->at, r->out->n);
    r->row++;
    return hv_json_stream_peek(r->s) == '{' ? read_object(r) : read_list(r);
}

static bool read_layer(struct reading *r)
{
    size_t n = 0;
    bool ok = hv_json_stream_take(r->s, '[');
    do {
        ok = ok && read_source(r);
        n++;
    } while (ok && more(r, ']', &ok));
    return ok && same_length(&r->out->sources, n);
}

/* An iteration after its opening bracket. */
static bool read_iteration(struct reading *r)
{
    size_t n = 0;
    bool ok = true;
    do {
        ok = ok && read_layer(r);
        n++;
    } while (ok && more(r, ']', &ok));
    return ok && same_length(&r->out->layers, n);
}

static bool read_nested(struct reading *r)
{
    bool ok = true, first = true;
    r->counts = hv_arena_new(r->arena, uint16_t, r->cap);
    do {
        ok = ok && (first || hv_json_stream_take(r->s, '[')) && read_iteration(r);
        first = false;
        r->out->iterations++;
    } while (ok && more(r, ']', &ok));
    r->out->counts = r->tokens ? NULL : r->counts;
    r->out->tokens = r->tokens;
    if (ok && r->expert) {
        hv_vec_push(&r->at, r->out->n);
        r->out->expert = r->expert;
        r->out->at = hv_arena_copy(r->arena, r->at.items, r->at.n, sizeof *r->at.items);
    }
    return ok && r->out->iterations <= HV_ROUTER_AXIS_MOST;
}

/* ---- entries -------------------------------------------------------------------------------- */

/* Shortest entry: [0,0,0,0,1] and a comma. */
#define ENTRY_BYTES 12

/* An entry after its opening bracket. */
static bool read_entry(struct reading *r, struct hv__count_entry *e)
{
    double tokens = 0;
    for (int i = 0; i < 4; i++) {
        size_t x = 0;
        if (!read_index(r, &x) || !hv_json_stream_take(r->s, ',')) {
            return false;
        }
        e->at[i] = (uint16_t)x;
    }
    bool ok = hv_json_stream_number(r->s, &tokens) && tokens >= 0 && tokens <= MOST_TOKENS;
    e->tokens = (float)tokens;
    return ok && hv_json_stream_take(r->s, ']');
}

static bool read_entries(struct reading *r)
{
    size_t cap = r->s->bytes / ENTRY_BYTES + 1;
    struct hv__count_entry *list = hv_arena_new(r->arena, struct hv__count_entry, cap);
    bool ok = true, first = true;
    do {
        ok = ok && (first || hv_json_stream_take(r->s, '[')) && r->out->n < cap &&
             read_entry(r, &list[r->out->n]);
        first = false;
        r->out->n += ok;
    } while (ok && more(r, ']', &ok));
    r->out->entries = true;
    r->out->entry = list;
    return ok;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Counts: the second bracket is followed by a number in entries, by another bracket otherwise. */
static bool read_counts(struct reading *r)
{
    if (!hv_json_stream_take(r->s, '[') || !hv_json_stream_take(r->s, '[')) {
        return false;
    }
    return hv_json_stream_peek(r->s) == '[' ? read_nested(r) : read_entries(r);
}

static bool read_file(struct reading *r, struct hv_str *rest)
{
    char key[HV_JSON_STREAM_TOKEN + 1];
    bool ok = hv_json_stream_take(r->s, '{'), found = false;
    hv_str_addc(rest, '{');
    do {
        ok = ok && hv_json_stream_key(r->s, key, rest);
        if (ok && strcmp(key, "counts") == 0 && !found) {
            found = true;
            ok = read_counts(r);
            hv_str_adds(rest, "[]");
        } else {
            ok = ok && hv_json_stream_copy(r->s, rest);
        }
        hv_str_addc(rest, ok && hv_json_stream_peek(r->s) == ',' ? ',' : '}');
    } while (ok && more(r, '}', &ok));
    return ok && found && hv_json_stream_peek(r->s) == '\0' && r->s->at == r->s->end;
}

bool hv__counts_read(const char *path, struct hv_arena *arena, struct hv_str *rest,
                     struct hv__counts *out)
{
    struct hv_json_stream s;
    *out = (struct hv__counts){0};
    struct reading r = {.s = &s, .arena = arena, .out = out};
    bool ok = hv_json_stream_open(&s, path);
    r.cap = s.bytes / 2 + 1; /* each has a digit and what ends it */
    ok = ok && read_file(&r, rest);
    hv_json_stream_close(&s);
    hv_vec_free(&r.at);
    free(r.seen);
    return ok;
}
