/* Slurm's generic resources and node states. The outputs that contain them are read elsewhere. */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/scheduler/slurm.h"
#include <ctype.h>
#include <stdlib.h>
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

/* Gbit/s that a feature names: "25gbe", "100ge", "ib-hdr"; 0: none. */
static double gbit_of(struct hv__piece word)
{
    static const struct {
        const char *name;
        double gbit_per_s;
    } ports[] = {{"edr", 100}, {"hdr", 200}, {"ndr", 400}, {"xdr", 800}};
    char text[16] = "", *end = NULL;
    for (size_t i = 0; i < word.n && word.n < sizeof text; i++) {
        text[i] = (char)tolower((unsigned char)word.p[i]);
    }
    const char *s = strncmp(text, "ib", 2) == 0 ? text + 2 + strspn(text + 2, "-_") : text;
    for (size_t i = 0; i < HV_COUNT(ports); i++) {
        if (strcmp(s, ports[i].name) == 0) {
            return ports[i].gbit_per_s;
        }
    }
    unsigned long gbit = strtoul(text, &end, 10);
    bool ethernet = end != text && (strcmp(end, "gbe") == 0 || strcmp(end, "ge") == 0);
    return ethernet && gbit <= 10000 ? (double)gbit : 0;
}

static void read_network(struct hv__in *in, unsigned line, struct hv__node *n,
                         struct hv__piece features)
{
    double most = 0;
    while (features.n > 0) {
        double gbit = gbit_of(hv__strip(hv__before(&features, ',')));
        most = gbit > most ? gbit : most;
    }
    if (most > 0 && !hv_known(n->links.nic_bytes_per_s)) {
        n->links.nic_bytes_per_s = most * 1e9 / 8;
        n->links.nic_is_sum = true;
        hv__understood(in, line, "network of %.4g Gb/s, by a feature of the node", most);
    }
}

uint32_t hv__gres_add(struct hv__in *in, unsigned line, struct hv__node *n, struct hv__piece gres,
                      struct hv__piece features)
{
    uint32_t sum = 0;
    read_network(in, line, n, features);
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
            hv__guessed(in, line, "GPUs without a type: a feature of the node may name them");
        }
        c.card = type.n > 0 ? hv__copy(&in->im->arena, type) : NULL;
        c.features = features.n > 0 ? hv__copy(&in->im->arena, features) : NULL;
        c.by_hand = true;
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

/* True where a list with commas has the word. */
static bool has_word(const char *list, struct hv__piece word)
{
    struct hv__piece rest = hv__piece_of(list);
    while (rest.n > 0) {
        struct hv__piece w = hv__before(&rest, ',');
        if (w.n == word.n && memcmp(w.p, word.p, w.n) == 0) {
            return true;
        }
    }
    return false;
}

void hv__slurm_partitions(struct hv__in *in, struct hv__node *n, struct hv__piece list)
{
    enum { MOST = 1000 };
    while (list.n > 0) {
        struct hv__piece w = hv__strip(hv__before(&list, ','));
        w.n -= w.n > 0 && w.p[w.n - 1] == '*'; /* the default partition */
        bool none = w.n == 0 || hv__is(w, "(null)") || hv__is(w, "N/A");
        if (!none && !(n->partitions && has_word(n->partitions, w)) &&
            (!n->partitions || strlen(n->partitions) < MOST)) {
            n->partitions = n->partitions ? hv_arena_printf(&in->im->arena, "%s,%.*s",
                                                            n->partitions, (int)w.n, w.p)
                                          : hv__copy(&in->im->arena, w);
        }
    }
}

bool hv__is_slurm_state(struct hv__piece word)
{
    static const char *const states[] = {
        "idle",   "alloc",    "allocated", "mix",         "mixed",        "down",
        "drain",  "drained",  "draining",  "drng",        "comp",         "completing",
        "maint",  "resv",     "reserved",  "fail",        "failing",      "failg",
        "plnd",   "planned",  "unk",       "unknown",     "inval",        "futr",
        "future", "boot",     "reboot",    "no_respond",  "powered_down", "powering_down",
        "pow_dn", "pow_up",   "npc",       "powering_up", "block",        "blocked",
        "error",  "perfctrs", "cloud",     "maintenance", "reboot_issued"};
    size_t n = 0;
    while (n < word.n && (isalpha((unsigned char)word.p[n]) || word.p[n] == '_')) {
        n++;
    }
    for (size_t i = n; i < word.n; i++) {
        if (!isalpha((unsigned char)word.p[i]) && !strchr("*~#!%$@^-+_", word.p[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < HV_COUNT(states); i++) {
        if (hv__like((struct hv__piece){word.p, n}, states[i])) {
            return true;
        }
    }
    return false;
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
