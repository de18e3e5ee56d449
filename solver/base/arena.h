/**
 * Arena: zeroed, aligned memory that is freed as a whole.
 *
 * One arena per document, plan, run and frame. Lack of memory ends the program through hv_oom;
 * sizes that come from files or Lua must be range-checked before (HV_ELIMIT). Pointers stay valid
 * until the arena is rewound past them, reset or freed.
 */
#ifndef HV_SOLVER_BASE_ARENA_H
#define HV_SOLVER_BASE_ARENA_H

#include "solver/base/attr.h"
#include <stddef.h>

struct hv_arena_block;

/** An arena; `{0}` is a valid empty one. Owner: whoever owns the struct calls hv_arena_free. */
struct hv_arena {
    struct hv_arena_block *head;
    struct hv_arena_block *spare; /**< empty blocks for later (hv_arena_reset) */
    size_t used_bytes;            /**< bytes allocated since the last reset */
};

/** Blocks that hv_arena_reset keeps at most: 1 MiB. */
#define HV_ARENA_SPARES 16

/** A position to rewind to. */
struct hv_arena_mark {
    struct hv_arena_block *block;
    size_t used, used_bytes;
};

/** Zeroed memory for n objects of `size` bytes, aligned for any type; overflow of n × size ends the
 * program like lack of memory. */
void *hv_arena_alloc(struct hv_arena *a, size_t n, size_t size);
/** Copy of the first n bytes of s, with a final NUL. */
char *hv_arena_strndup(struct hv_arena *a, const char *s, size_t n);
/** Copy of s; NULL stays NULL. */
char *hv_arena_strdup(struct hv_arena *a, const char *s);
/** Formatted string. */
char *hv_arena_printf(struct hv_arena *a, const char *fmt, ...) HV_PRINTF(2, 3);
/** Copy of n objects of `size` bytes. */
void *hv_arena_copy(struct hv_arena *a, const void *src, size_t n, size_t size);
/** Records the fill position of the arena. */
struct hv_arena_mark hv_arena_mark(const struct hv_arena *a);
/** Frees everything allocated since the mark. */
void hv_arena_rewind(struct hv_arena *a, struct hv_arena_mark m);
/** Frees everything; the arena can be used again. */
void hv_arena_free(struct hv_arena *a);
/** As hv_arena_free, but keeps up to HV_ARENA_SPARES blocks for what is allocated next: for an
 * arena that is filled again and again, which else would return its memory to the system each time.
 */
void hv_arena_reset(struct hv_arena *a);

/** `T *hv_arena_new(arena, T, n)`: n zeroed objects of type T. */
#define hv_arena_new(a, T, n) ((T *)hv_arena_alloc((a), (n), sizeof(T)))

/** malloc family that never returns NULL: lack of memory restores the terminal and ends the
 * program. */
void *hv_xmalloc(size_t n);
/** As hv_xmalloc, zeroed, n × size with overflow check. */
void *hv_xcalloc(size_t n, size_t size);
/** As realloc, n × size with overflow check. */
void *hv_xrealloc(void *p, size_t n, size_t size);
/** Heap copy of s. Owner: caller frees. */
char *hv_xstrdup(const char *s);
/** Reports lack of memory, runs the die hook and ends the program with exit code 70. */
void hv_oom(size_t wanted_bytes) HV_NORETURN;

#endif
