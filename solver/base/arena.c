/*
 * Arena of chained blocks, and the malloc family that never returns NULL. Objects that are freed
 * one by one use the heap instead (hv_xmalloc).
 *
 * With the address sanitizer, every allocation is followed by a poisoned gap, and memory that is
 * not allocated or was rewound is poisoned, so that the sanitizer also finds overruns inside a
 * block.
 */
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS, madvise */
#include "solver/base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef HV_ARENA_BLOCK
#define HV_ARENA_BLOCK 65536 /* bytes in an ordinary block; tests build with 64 */
#endif

#define ALIGN alignof(max_align_t)

/* Allocations of at least this size (bytes) are mapped directly from the system, with large pages
 * where available. The system returns them zeroed, which saves the memset that would dominate the
 * cost of a large allocation. */
#if defined(MAP_ANONYMOUS) && defined(MADV_HUGEPAGE) && !HV_ASAN
#define MAP_BYTES ((size_t)4 << 20)
#else
#define MAP_BYTES SIZE_MAX
#endif

#if HV_ASAN
#include <sanitizer/asan_interface.h>
#define GAP_BYTES ((size_t)16)
static void hide(void *p, size_t n)
{
    __asan_poison_memory_region(p, n);
}
static void reveal(void *p, size_t n)
{
    __asan_unpoison_memory_region(p, n);
}
#else
#define GAP_BYTES ((size_t)0)
static void hide(void *p, size_t n)
{
    (void)p, (void)n;
}
static void reveal(void *p, size_t n)
{
    (void)p, (void)n;
}
#endif

/* An allocation that would fill much of a block gets a block of its own, chained *below* the head,
 * so that the head stays in use; a rewind uses `at` to decide whether it frees the block. */
struct hv_arena_block {
    struct hv_arena_block *prev;
    size_t cap, used;
    size_t at; /* the arena's used_bytes when the block was made */
    bool own, mapped;
    alignas(max_align_t) unsigned char data[];
};

static size_t checked_bytes(size_t n, size_t size)
{
    if (size && n > (SIZE_MAX / 4) / size) {
        hv_oom(SIZE_MAX);
    }
    return n * size;
}

static struct hv_arena_block *map_block(size_t bytes)
{
#if defined(MAP_ANONYMOUS) && defined(MADV_HUGEPAGE)
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        hv_oom(bytes);
    }
    (void)madvise(p, bytes, MADV_HUGEPAGE); /* a hint only: on failure the pages stay small */
    return p;
#else
    return hv_xmalloc(bytes);
#endif
}

static struct hv_arena_block *make_block(const struct hv_arena *a, size_t cap)
{
    bool mapped = cap >= MAP_BYTES;
    struct hv_arena_block *b = mapped ? map_block(sizeof *b + cap) : hv_xmalloc(sizeof *b + cap);
    *b = (struct hv_arena_block){.cap = cap, .at = a->used_bytes, .mapped = mapped};
    hide(b->data, cap);
    return b;
}

static void free_block(struct hv_arena_block *b)
{
    reveal(b->data, b->cap);
    if (b->mapped) {
        munmap(b, sizeof *b + b->cap);
    } else {
        free(b);
    }
}

/* Allocates `bytes` (a multiple of ALIGN) that do not fit into the head block. *clean: true where
 * the memory is already zero. */
static unsigned char *alloc_slow(struct hv_arena *a, size_t bytes, bool *clean)
{
    if (bytes > HV_ARENA_BLOCK / 4) {
        struct hv_arena_block *b = make_block(a, bytes + GAP_BYTES);
        b->own = true;
        b->used = b->cap;
        *clean = b->mapped;
        if (a->head) {
            b->prev = a->head->prev;
            a->head->prev = b;
        } else {
            a->head = b;
        }
        return b->data;
    }
    struct hv_arena_block *b = a->spare;
    if (b != NULL) {
        a->spare = b->prev;
        b->at = a->used_bytes;
    } else {
        b = make_block(a, HV_ARENA_BLOCK);
    }
    b->used = bytes + GAP_BYTES;
    b->prev = a->head;
    a->head = b;
    return b->data;
}

/* Allocates `asked` bytes; *clean: true where the memory is already zero. */
static unsigned char *make_room(struct hv_arena *a, size_t asked, bool *clean)
{
    size_t bytes = asked ? (asked + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    unsigned char *p;
    struct hv_arena_block *b = a->head;
    if (b && b->cap - b->used >= bytes + GAP_BYTES) {
        p = b->data + b->used;
        b->used += bytes + GAP_BYTES;
    } else {
        p = alloc_slow(a, bytes, clean);
    }
    a->used_bytes += bytes;
    reveal(p, asked);
    return p;
}

void *hv_arena_alloc(struct hv_arena *a, size_t n, size_t size)
{
    size_t asked = checked_bytes(n, size);
    bool clean = false;
    unsigned char *p = make_room(a, asked, &clean);
    if (!clean) {
        memset(p, 0, asked);
    }
    return p;
}

char *hv_arena_strndup(struct hv_arena *a, const char *s, size_t n)
{
    if (n == SIZE_MAX) {
        hv_oom(n);
    }
    char *p = hv_arena_alloc(a, n + 1, 1);
    if (n) {
        memcpy(p, s, n);
    }
    return p;
}

char *hv_arena_strdup(struct hv_arena *a, const char *s)
{
    return s ? hv_arena_strndup(a, s, strlen(s)) : NULL;
}

char *hv_arena_printf(struct hv_arena *a, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = hv_arena_alloc(a, n < 0 ? 1 : (size_t)n + 1, 1);
    if (n > 0) {
        vsnprintf(p, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    return p;
}

void *hv_arena_copy(struct hv_arena *a, const void *src, size_t n, size_t size)
{
    size_t asked = checked_bytes(n, size);
    bool clean = false;
    unsigned char *p = make_room(a, asked, &clean);
    if (asked > 0) {
        memcpy(p, src, asked);
    }
    return p;
}

struct hv_arena_mark hv_arena_mark(const struct hv_arena *a)
{
    return (struct hv_arena_mark){a->head, a->head ? a->head->used : 0, a->used_bytes};
}

void hv_arena_rewind(struct hv_arena *a, struct hv_arena_mark m)
{
    while (a->head != m.block) {
        struct hv_arena_block *b = a->head;
        a->head = b->prev;
        free_block(b);
    }
    struct hv_arena_block *h = a->head;
    if (h) {
        while (h->prev && h->prev->own && h->prev->at >= m.used_bytes) {
            struct hv_arena_block *b = h->prev;
            h->prev = b->prev;
            free_block(b);
        }
#ifdef HV_DEBUG
        reveal(h->data + m.used, h->used - m.used);
        memset(h->data + m.used, 0xDD, h->used - m.used);
#endif
        hide(h->data + m.used, h->used - m.used);
        h->used = m.used;
    }
    a->used_bytes = m.used_bytes;
}

void hv_arena_free(struct hv_arena *a)
{
    hv_arena_rewind(a, (struct hv_arena_mark){0});
    while (a->spare != NULL) {
        struct hv_arena_block *b = a->spare;
        a->spare = b->prev;
        free_block(b);
    }
}

/* Takes the first ordinary block out of the arena; NULL: there is none. */
static struct hv_arena_block *take_ordinary(struct hv_arena *a)
{
    struct hv_arena_block **at = &a->head;
    while (*at != NULL && (*at)->own) {
        at = &(*at)->prev;
    }
    struct hv_arena_block *b = *at;
    if (b != NULL) {
        *at = b->prev;
    }
    return b;
}

void hv_arena_reset(struct hv_arena *a)
{
    int n = 0;
    struct hv_arena_block *kept = a->spare, *b;
    for (b = kept; b != NULL; b = b->prev) {
        n++;
    }
    for (; n < HV_ARENA_SPARES && (b = take_ordinary(a)) != NULL; n++) {
        hide(b->data, b->cap);
        b->used = 0;
        b->prev = kept;
        kept = b;
    }
    a->spare = NULL;
    hv_arena_free(a);
    a->spare = kept;
}

void *hv_xmalloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p) {
        hv_oom(n);
    }
    return p;
}

void *hv_xcalloc(size_t n, size_t size)
{
    size_t bytes = checked_bytes(n, size);
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p) {
        hv_oom(bytes);
    }
    return p;
}

void *hv_xrealloc(void *p, size_t n, size_t size)
{
    size_t bytes = checked_bytes(n, size);
    void *q = realloc(p, bytes ? bytes : 1);
    if (!q) {
        hv_oom(bytes);
    }
    return q;
}

char *hv_xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(hv_xmalloc(n), s, n);
}
