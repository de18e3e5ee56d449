/*
 * What a card's name means where people wrote it: the user's decision, else the kind that the name
 * and the hints of the file leave. Several left are a guess, reported with all candidates.
 */
#include "solver/io/import/draft/draft.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

/** Name of cards without one, for the user's decision. */
#define NAMELESS "gpu"

static const char *written_of(const struct hv__card *c)
{
    return c->card && *c->card ? c->card : NAMELESS;
}

/* ---- the user's decisions -------------------------------------------------------------------
 */

/* Behind the maker's name, which some files have and others lack. */
static const char *without_maker(const char *s)
{
    static const char *const makers[] = {"nvidia", "tesla", "amd", "instinct", "geforce"};
    for (size_t i = 0; i < HV_COUNT(makers); i++) {
        size_t n = strlen(makers[i]);
        if (strncasecmp(s, makers[i], n) == 0 && s[n] != '\0' && !isalnum((unsigned char)s[n])) {
            return without_maker(s + n + 1);
        }
    }
    return s;
}

/* Compares letters and digits: "NVIDIA A100" is a100. n: characters of `a` that count. */
static bool same_name(const char *a, size_t n, const char *b)
{
    const char *from = without_maker(a), *end = a + n;
    b = without_maker(b);
    for (a = from;;) {
        while (a < end && !isalnum((unsigned char)*a)) {
            a++;
        }
        while (*b != '\0' && !isalnum((unsigned char)*b)) {
            b++;
        }
        if (a >= end || *b == '\0') {
            return a >= end && *b == '\0';
        }
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b)) {
            return false;
        }
        a++;
        b++;
    }
}

/* The name of a slice ("a100_3g.20gb") counts up to the slice. */
static struct hv__wish *wish_for(struct hv_import *im, const struct hv__card *c)
{
    const char *name = written_of(c);
    size_t n =
        c->slice && strstr(name, c->slice) ? (size_t)(strstr(name, c->slice) - name) : strlen(name);
    for (size_t i = im->wishes.n; i > 0; i--) {
        struct hv__wish *w = &im->wishes.items[i - 1];
        if (same_name(name, n, w->written) || strcmp(name, w->written) == 0) {
            return w;
        }
    }
    return NULL;
}

/* Lists the names of the cards that there are. */
static void add_names(const struct hv_import *im, struct hv_str *out)
{
    enum { MOST = 400 };
    for (size_t i = 0; i < im->nodes.n; i++) {
        for (size_t k = 0; k < im->nodes.items[i].cards.n && out->n < MOST; k++) {
            struct hv_str one = {0};
            hv_str_addf(&one, "\"%s\"", written_of(&im->nodes.items[i].cards.items[k]));
            if (!strstr(hv_str_cstr(out), hv_str_cstr(&one))) {
                hv_str_addf(out, "%s%s", out->n > 0 ? ", " : "", hv_str_cstr(&one));
            }
            hv_str_free(&one);
        }
    }
}

enum hv_status hv__wishes_check(const struct hv_import *im, struct hv_err *err)
{
    for (size_t i = 0; i < im->wishes.n; i++) {
        if (!im->wishes.items[i].used) {
            struct hv_str names = {0};
            add_names(im, &names);
            enum hv_status st = hv_err_set(
                err, HV_EUSAGE, "--device: no card is named \"%.60s\"; the files have %s",
                im->wishes.items[i].written, names.n > 0 ? hv_str_cstr(&names) : "no cards");
            hv_str_free(&names);
            return st;
        }
    }
    return HV_OK;
}

enum hv_status hv_import_device(struct hv_import *im, const char *setting, struct hv_err *err)
{
    const char *equals = strrchr(setting, '='); /* kinds have none in their names */
    if (!equals || equals == setting || equals[1] == '\0') {
        return hv_err_set(
            err, HV_EUSAGE,
            "--device: expected NAME=KIND such as a100=A100-SXM-80GB, found \"%.60s\"", setting);
    }
    const struct hv_device_kind *kind = hv_device_find(im->devices, equals + 1);
    if (!kind) {
        const char **names = hv_arena_new(&im->arena, const char *, im->devices->n_kinds + 1);
        for (size_t i = 0; i < im->devices->n_kinds; i++) {
            names[i] = im->devices->kinds[i].name;
        }
        const char *near = hv_suggest(equals + 1, names, im->devices->n_kinds);
        return hv_err_set(err, HV_EUSAGE, "--device: the catalogue has no device \"%.60s\"%s%s%s",
                          equals + 1, near ? ", did you mean \"" : "", near ? near : "",
                          near ? "\"?" : "; the screen Cluster lists them");
    }
    for (size_t i = 0; i < im->wishes.n; i++) { /* the last word counts */
        const char *other = im->wishes.items[i].written;
        if (strlen(other) == (size_t)(equals - setting) &&
            strncmp(other, setting, strlen(other)) == 0) {
            im->wishes.items[i].kind = kind;
            return HV_OK;
        }
    }
    hv_vec_push(&im->wishes,
                (struct hv__wish){hv_arena_strndup(&im->arena, setting, (size_t)(equals - setting)),
                                  kind, false});
    return HV_OK;
}

/* ---- candidates ----------------------------------------------------------------------------- */

const struct hv_import_choice *hv_import_choices(const struct hv_import *im, size_t *n)
{
    *n = im->choices.n;
    return im->choices.items;
}

/* Keeps a choice; equal names with the same candidates are one. */
static void keep_choice(struct hv_import *im, const char *written,
                        const struct hv_device_kind *const *kinds, size_t n, size_t taken)
{
    for (size_t i = 0; i < im->choices.n; i++) {
        if (strcmp(im->choices.items[i].written, written) == 0) {
            return;
        }
    }
    hv_vec_push(&im->choices,
                (struct hv_import_choice){
                    written, hv_arena_copy(&im->arena, kinds, n, sizeof *kinds), n, taken});
}

/* The first feature that names a card, with its candidates; NULL: none. */
static const char *card_in_features(struct hv_import *im, const struct hv__card *c,
                                    const struct hv_device_hints *hints,
                                    const struct hv_device_kind *out[HV_DEVICE_CANDIDATES],
                                    size_t *n)
{
    for (const char *at = c->features; at && *at != '\0';) {
        size_t len = strcspn(at, HV_DEVICE_FEATURE_ENDS);
        const char *word = hv_arena_strndup(&im->arena, at, len);
        *n = len > 0 ? hv_device_candidates(im->devices, word, hints, out) : 0;
        if (*n > 0) {
            return word;
        }
        at += len + (at[len] != '\0');
    }
    return NULL;
}

static void note_guess(struct hv_import *im, const struct hv__card *c, const char *by,
                       const struct hv_device_kind *const *kinds, size_t n)
{
    enum { SHOWN = 6 };
    struct hv_str s = {0};
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        hv_str_addf(&s, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", kinds[i]->name);
    }
    if (n > SHOWN) {
        hv_str_addf(&s, " and %zu more", n - SHOWN);
    }
    bool host = hv_known(c->host_bytes) && n > 1 && kinds[0]->memory_bytes > kinds[1]->memory_bytes;
    hv__note(im, HV_IMPORT_GUESSED,
             "\"%s\"%s%s%s may be %s: %s is taken%s; --device %s=KIND decides", written_of(c),
             by ? ", by the feature \"" : "", by ? by : "", by ? "\"," : "", hv_str_cstr(&s),
             kinds[0]->name, host ? ", as the memory of its host suggests" : "", written_of(c));
    hv_str_free(&s);
}

static const struct hv_device_kind *take_wish(struct hv_import *im, const struct hv__card *c,
                                              struct hv__wish *w,
                                              const struct hv_device_kind **kinds, size_t n)
{
    size_t at = 0;
    while (at < n && kinds[at] != w->kind) {
        at++;
    }
    if (at == n && n < HV_DEVICE_CANDIDATES) {
        kinds[n++] = w->kind;
    }
    w->used = true;
    if (n > 1 && at < n) {
        keep_choice(im, written_of(c), kinds, n, at);
    }
    hv__note(im, HV_IMPORT_UNDERSTOOD, "\"%s\" is %s, as --device says", written_of(c),
             w->kind->name);
    return w->kind;
}

/* The kinds that a card may be; *by: the feature that names it, or NULL. */
static size_t kinds_of(struct hv_import *im, const struct hv__card *c, double memory_bytes,
                       const struct hv_device_kind *out[HV_DEVICE_CANDIDATES], const char **by)
{
    const struct hv_device_hints hints = {memory_bytes, c->host_bytes, c->features};
    size_t n = 0;
    *by = NULL;
    if (c->card && c->by_hand) {
        n = hv_device_candidates(im->devices, c->card, &hints, out);
    } else if (c->card) {
        out[0] = hv_device_match(im->devices, c->card, memory_bytes);
        n = out[0] != NULL;
    }
    if (n == 0) {
        *by = card_in_features(im, c, &hints, out, &n);
    }
    return n;
}

const struct hv_device_kind *hv__card_kind(struct hv_import *im, const struct hv__card *c)
{
    const struct hv_device_kind *kinds[HV_DEVICE_CANDIDATES] = {NULL};
    const struct hv__wish *wish = wish_for(im, c);
    const char *by;
    size_t n = kinds_of(im, c, c->slice ? HV_UNKNOWN : c->memory_bytes, kinds, &by);
    return wish ? wish->kind : n > 0 ? kinds[0] : NULL;
}

const struct hv_device_kind *hv__card_choose(struct hv_import *im, const struct hv__card *c,
                                             double memory_bytes)
{
    const struct hv_device_kind *kinds[HV_DEVICE_CANDIDATES] = {NULL};
    struct hv__wish *wish = wish_for(im, c);
    const char *by;
    size_t n = kinds_of(im, c, memory_bytes, kinds, &by);
    if (wish) {
        return take_wish(im, c, wish, kinds, n);
    }
    if (n > 1 || by) {
        note_guess(im, c, by, kinds, n);
        if (n > 1) {
            keep_choice(im, written_of(c), kinds, n, 0);
        }
    } else if (n == 1 && strcmp(c->card, kinds[0]->name) != 0) {
        hv__note(im, HV_IMPORT_UNDERSTOOD, "\"%s\" is %s", c->card, kinds[0]->name);
    }
    return n > 0 ? kinds[0] : NULL;
}
