/* Slurm's generic resources and node states. The outputs that contain them are read elsewhere. */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/scheduler/slurm.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* The next element of a list, commas in brackets left alone. */
static struct hv__piece next_item(struct hv__piece *rest)
{
    size_t i = 0;
    for (int depth = 0; i < rest->n && (depth > 0 || rest->p[i] != ','); i++) {
        depth +=
            (rest->p[i] == '(' || rest->p[i] == '[') - (rest->p[i] == ')' || rest->p[i] == ']');
        depth = depth > 0 ? depth : 0;
    }
    struct hv__piece s = {rest->p, i};
    i += i < rest->n;
    rest->p += i;
    rest->n -= i;
    return hv__strip(s);
}

/* "gpu:a100:4(S:0-3)" or "gres/gpu:h100=8": its type and number. */
static bool read_gres(struct hv__piece item, struct hv__piece *type, double *count)
{
    item = hv__before(&item, '(');
    if (hv__starts(item, "gres/")) {
        item.p += 5;
        item.n -= 5;
    }
    struct hv__piece rest = item, equals = item, name = hv__before(&rest, ':');
    struct hv__piece before_equals = hv__before(&equals, '=');
    *count = 1;
    if (before_equals.n < item.n) {
        *count = hv__plain_number(equals);
        rest = before_equals;
        name = hv__before(&rest, ':');
    }
    if (!hv__is(name, "gpu") && !hv__is(name, "mig") && !hv__is(name, "GPU")) {
        return false;
    }
    *type = (struct hv__piece){rest.p, 0};
    while (rest.n > 0) {
        struct hv__piece part = hv__before(&rest, ':');
        double x = hv__plain_number(part);
        if (rest.n == 0 && hv_known(x) && before_equals.n == item.n) {
            *count = x;
        } else if (!hv__is(part, "no_consume")) {
            *type = part;
        }
    }
    return hv_known(*count) && *count >= 0 && *count <= 100000;
}

bool hv__is_gres(struct hv__piece s)
{
    static const char *const starts[] = {"gpu:", "gres/gpu", "gres:gpu", "mig:", "gpu("};
    for (size_t i = 0; i < HV_COUNT(starts); i++) {
        if (hv__starts(s, starts[i])) {
            return true;
        }
    }
    return hv__is(s, "gpu") || hv__find(s, ",gpu:") != NULL;
}

struct hv__piece hv__feature_card(const struct hv_import *im, struct hv__piece features)
{
    while (features.n > 0) {
        struct hv__piece f = hv__strip(hv__before(&features, ','));
        char name[64];
        if (f.n > 1 && f.n < sizeof name) {
            memcpy(name, f.p, f.n);
            name[f.n] = '\0';
            if (hv_device_match(im->devices, name, HV_UNKNOWN)) {
                return f;
            }
        }
    }
    return features;
}

uint32_t hv__gres_add(struct hv__in *in, unsigned line, struct hv__node *n, struct hv__piece gres,
                      struct hv__piece features)
{
    uint32_t sum = 0;
    double typed = 0, frac, bytes;
    while (gres.n > 0) {
        struct hv__piece item = next_item(&gres), type;
        struct hv__card c = hv__card_unknown();
        double count;
        if (hv__starts(item, "gres:")) {
            item.p += 5;
            item.n -= 5;
        }
        if (!read_gres(item, &type, &count) || count < 1) {
            continue;
        }
        if (type.n == 0 && typed > 0) {
            continue; /* TRES list gres/gpu=8 in addition to gres/gpu:h100=8 */
        }
        typed += type.n > 0 ? count : 0;
        if (type.n == 0) {
            type = hv__feature_card(in->im, features);
            hv__guessed(in, line, "GPUs without a type%s%.*s",
                        type.n > 0 ? " are, by a feature, " : "", (int)type.n,
                        type.n > 0 ? type.p : "");
        }
        c.card = type.n > 0 ? hv__copy(&in->im->arena, type) : NULL;
        c.slice = c.card && hv__slice_of(c.card, &frac, &bytes) ? c.card : NULL;
        c.count = (uint32_t)count;
        c.line = line;
        if (c.slice) {
            const char *at = strpbrk(c.card, "0123456789");
            for (; at && !(isdigit((unsigned char)*at) && at[1] == 'g' && at[2] == '.'); at++) {
                continue;
            }
            c.slice = at;
            c.memory_bytes = bytes;
        }
        hv__card_add(n, &c);
        sum += c.count;
    }
    return sum;
}

bool hv__slurm_out(struct hv__piece state)
{
    static const char *const words[] = {
        "drain", "drng",   "down", "fail",  "maint",      "not_responding", "unk",
        "inval", "future", "futr", "error", "no_respond", "drained",        "draining"};
    struct hv__piece s = hv__strip(state);
    if (s.n > 0 && s.p[s.n - 1] == '*') {
        return true; /* does not respond */
    }
    while (s.n > 0) {
        size_t n = 0;
        while (n < s.n && (isalnum((unsigned char)s.p[n]) || s.p[n] == '_')) {
            n++;
        }
        struct hv__piece w = {s.p, n};
        for (size_t i = 0; i < HV_COUNT(words); i++) {
            size_t len = strlen(words[i]);
            if (w.n >= len && strncasecmp(w.p, words[i], len) == 0) {
                return true;
            }
        }
        n += n < s.n;
        s.p += n;
        s.n -= n;
    }
    return false;
}
