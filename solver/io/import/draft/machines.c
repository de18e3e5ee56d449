/*
 * Which files describe one machine. nvidia-smi, NCCL and nvbandwidth do not name the host: files
 * are of one machine when their cards have a UUID in common, or, where UUIDs are missing, the same
 * number of cards of the same kinds and no other driver. Files of one machine are joined: the list
 * of cards with more figures stays, links complete each other.
 */
#include "solver/io/import/draft/draft.h"
#include "solver/io/import/text/words.h"
#include <string.h>
#include <strings.h>

#define MAX_IDS 8192 /* bytes of a list of identities */

void hv__identity_add(struct hv__in *in, const char **list, const char *id)
{
    size_t n = strlen(id);
    if (n < 3 || strchr(id, ' ') || strcasecmp(id, "N/A") == 0 || id[0] == '[' ||
        (*list && strlen(*list) > MAX_IDS)) {
        return;
    }
    const char *colon = strchr(id, ':');
    if (colon &&
        strchr(colon + 1, ':')) { /* a bus address: programs write its domain differently */
        id = colon + 1;
    }
    *list = *list ? hv_arena_printf(&in->im->arena, "%s %s", *list, id)
                  : hv_arena_strdup(&in->im->arena, id);
}

/* True where both lists have a word in common; false where one of them is missing. */
static bool share_word(const char *a, const char *b)
{
    struct hv__piece rest = hv__piece_of(a ? a : ""), w;
    while ((w = hv__next_word(&rest)).n > 0) {
        struct hv__piece others = hv__piece_of(b ? b : ""), o;
        while ((o = hv__next_word(&others)).n > 0) {
            if (o.n == w.n && strncasecmp(o.p, w.p, w.n) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* ---- cards ----------------------------------------------------------------------------------
 */

/* The kinds that a card may be. */
static size_t kinds_of(const struct hv_import *im, const struct hv__card *c,
                       const struct hv_device_kind *out[HV_DEVICE_CANDIDATES])
{
    const struct hv_device_hints hints = {c->slice ? HV_UNKNOWN : c->memory_bytes, HV_UNKNOWN,
                                          c->features};
    if (c->by_hand) {
        return hv_device_candidates(im->devices, c->card, &hints, out);
    }
    out[0] = hv_device_match(im->devices, c->card, hints.memory_bytes);
    return out[0] != NULL;
}

/* True where both may be cards of one kind. */
static bool may_be_equal(const struct hv_import *im, const struct hv__card *a,
                         const struct hv__card *b)
{
    const struct hv_device_kind *x[HV_DEVICE_CANDIDATES], *y[HV_DEVICE_CANDIDATES];
    if (!a->card || !b->card || strcasecmp(a->card, b->card) == 0) {
        return true;
    }
    size_t n = kinds_of(im, a, x), m = kinds_of(im, b, y);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < m; k++) {
            if (x[i] == y[k]) {
                return true;
            }
        }
    }
    return false;
}

/* True where every card of one machine may be a card of the other. */
static bool kinds_agree(const struct hv_import *im, const struct hv__node *a,
                        const struct hv__node *b)
{
    for (size_t i = 0; i < a->cards.n; i++) {
        bool found = false;
        for (size_t k = 0; k < b->cards.n && !found; k++) {
            found = may_be_equal(im, &a->cards.items[i], &b->cards.items[k]);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static bool cards_agree(const struct hv_import *im, const struct hv__node *a,
                        const struct hv__node *b)
{
    return hv__cards(a) == hv__cards(b) && kinds_agree(im, a, b) && kinds_agree(im, b, a);
}

/* Figures that a list of cards has: the list with more of them is kept. */
static int figures_of(const struct hv__node *n)
{
    int sum = 0;
    for (size_t i = 0; i < n->cards.n && i < 1; i++) {
        const struct hv__card *c = &n->cards.items[i];
        sum += 4 * (c->card != NULL) + 2 * hv_known(c->memory_bytes) +
               hv_known(c->pcie_bytes_per_s) + hv_known(c->tdp_w) + (c->arch != NULL);
    }
    return sum;
}

static void take_cards(struct hv__node *to, const struct hv__node *from)
{
    to->cards.n = 0;
    for (size_t i = 0; i < from->cards.n; i++) {
        hv_vec_push(&to->cards, from->cards.items[i]);
    }
}

/* ---- links ----------------------------------------------------------------------------------
 */

static void complete_links(struct hv__links *to, const struct hv__links *from)
{
    to->device_bytes_per_s = hv_or(to->device_bytes_per_s, from->device_bytes_per_s);
    to->device_latency_s = hv_or(to->device_latency_s, from->device_latency_s);
    to->host_bytes_per_s = hv_or(to->host_bytes_per_s, from->host_bytes_per_s);
    if (!to->nv && from->nv) {
        to->nv = from->nv;
        to->n = from->n;
    }
    if (to->nvlinks == 0) {
        to->nvlinks = from->nvlinks;
        to->nvlink_bytes_per_s = hv_or(to->nvlink_bytes_per_s, from->nvlink_bytes_per_s);
    }
    if (!hv_known(to->nic_bytes_per_s)) {
        to->nic_bytes_per_s = from->nic_bytes_per_s;
        to->nic_is_sum = from->nic_is_sum;
    }
    to->nic_latency_s = hv_or(to->nic_latency_s, from->nic_latency_s);
    to->n_nics = to->n_nics ? to->n_nics : from->n_nics;
}

/* ---- files of one machine -------------------------------------------------------------------
 */

/* How the report names a file. */
static const char *short_name(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? slash + 1 : file ? file : "another file";
}

/* Why two machines with cards are not the same; NULL: they may be. */
static const char *difference(struct hv_import *im, const struct hv__node *a,
                              const struct hv__node *b)
{
    const struct hv__identity *x = &a->id, *y = &b->id;
    if (!kinds_agree(im, a, b) && !kinds_agree(im, b, a)) {
        return "other cards";
    }
    if (x->uuids && y->uuids) {
        return share_word(x->uuids, y->uuids) ? NULL : "other UUIDs";
    }
    if (!cards_agree(im, a, b)) {
        return "other cards";
    }
    if (x->buses && y->buses && !share_word(x->buses, y->buses)) {
        return "other bus addresses";
    }
    return x->driver && y->driver && strcmp(x->driver, y->driver) != 0 ? "another driver" : NULL;
}

/* Joins the machine of the present file with an earlier one. */
static void join(struct hv__in *in, struct hv__node *to, struct hv__node *from)
{
    bool sure = share_word(to->id.uuids, from->id.uuids);
    if (sure) {
        hv__understood(in, 0, "the machine of %s: UUIDs are the same", short_name(to->id.file));
    } else {
        hv__guessed(in, 0, "taken for the machine of %s: as many cards of the same kind",
                    short_name(to->id.file));
    }
    if (figures_of(from) >= figures_of(to)) {
        take_cards(to, from);
    }
    struct hv__links links = from->links;
    complete_links(&links, &to->links);
    to->links = links;
    to->id.uuids = to->id.uuids ? to->id.uuids : from->id.uuids;
    to->id.buses = to->id.buses ? to->id.buses : from->id.buses;
    to->id.driver = to->id.driver ? to->id.driver : from->id.driver;
    to->read_in = from->read_in;
    hv_vec_free(&from->cards);
    from->links.n = 0;
    from->links.nv = NULL;
}

/* Removes an empty machine; one that is not the last node stays without cards and is left out. */
static void drop(struct hv_import *im, size_t i)
{
    if (i + 1 == im->nodes.n) {
        im->nodes.n--;
    }
}

void hv__machine_settle(struct hv__in *in)
{
    struct hv_import *im = in->im;
    size_t here = im->here;
    const struct hv__node *other = NULL;
    const char *why = NULL;
    im->here = 0;
    if (here == 0 || im->nodes.items[here - 1].cards.n == 0) {
        return;
    }
    struct hv__node *mine = &im->nodes.items[here - 1];
    for (size_t i = here - 1; i > 0; i--) {
        struct hv__node *n = &im->nodes.items[i - 1];
        if (n->name || n->cards.n == 0) {
            continue;
        }
        const char *differs = difference(im, n, mine);
        if (!differs) {
            join(in, n, mine);
            drop(im, here - 1);
            return;
        }
        other = other ? other : n;
        why = why ? why : differs;
    }
    if (other) {
        hv__understood(in, 0, "another machine than that of %s: %s", short_name(other->id.file),
                       why);
    }
}

/* ---- at the end -----------------------------------------------------------------------------
 */

/* Gives the figures of a machine without a name to the named nodes with the same cards that have
 * none from such a machine yet, and counts it as one of these nodes. False: there is no node left
 * that it may be. `given`, `taken`: by node. */
static bool unite_one(struct hv_import *im, const struct hv__node *here, bool *given,
                      uint32_t *taken, size_t *same)
{
    bool is_named = false;
    for (size_t i = 0; i < im->nodes.n; i++) {
        struct hv__node *n = &im->nodes.items[i];
        if (!n->name || !cards_agree(im, n, here)) {
            continue;
        }
        if (!given[i]) {
            take_cards(n, here);
            complete_links(&n->links, &here->links);
            given[i] = true;
            (*same)++;
        }
        if (!is_named && taken[i] < n->count) {
            taken[i]++;
            is_named = true;
        }
    }
    return is_named;
}

/* Some files name the machine (Slurm, nccl-tests), others do not (nvidia-smi): with equal cards
 * they describe the same machine. Files without a name have more figures of the cards. */
static void unite_named(struct hv_import *im)
{
    size_t same = 0;
    bool *given = hv_arena_new(&im->arena, bool, im->nodes.n + 1);
    uint32_t *taken = hv_arena_new(&im->arena, uint32_t, im->nodes.n + 1);
    for (size_t h = 0; h < im->nodes.n; h++) {
        struct hv__node *here = &im->nodes.items[h];
        if (!here->name && hv__cards(here) > 0 && unite_one(im, here, given, taken, &same)) {
            here->cards.n = 0;
            here->links.n = 0;
            here->links.nv = NULL;
        }
    }
    if (same > 0) {
        hv__note(im, HV_IMPORT_GUESSED,
                 "the files without a host name are taken to describe the %zu named nodes with the "
                 "same cards",
                 same);
    }
}

/* True where the links of a file without cards fit a node with cards. */
static bool links_fit(const struct hv__node *n, const struct hv__links *from)
{
    return n->cards.n > 0 && (from->n == 0 || hv__cards(n) == from->n);
}

/* The machine without a name that a matrix of links belongs to: the last one before its file, or
 * else after it, that fits and has no matrix yet. NULL: none. */
static struct hv__node *machine_for(struct hv_import *im, size_t at)
{
    const struct hv__links *from = &im->nodes.items[at].links;
    for (size_t k = 1; k < im->nodes.n; k++) {
        size_t i = k <= at ? at - k : k;
        struct hv__node *n = &im->nodes.items[i];
        if (!n->name && !n->links.nv && links_fit(n, from)) {
            return n;
        }
    }
    return NULL;
}

/* Link data of files without cards and host name complete those of the nodes they fit. */
static void spread_links(struct hv_import *im)
{
    size_t machines = 0;
    for (size_t i = 0; i < im->nodes.n; i++) {
        machines += !im->nodes.items[i].name && im->nodes.items[i].cards.n > 0;
    }
    for (size_t i = 0; i < im->nodes.n; i++) {
        struct hv__node *from = &im->nodes.items[i];
        struct hv__node *one = machines > 1 && from->links.nv ? machine_for(im, i) : NULL;
        if (from->name || from->cards.n > 0) {
            continue;
        }
        if (one) {
            hv__note(im, HV_IMPORT_GUESSED,
                     "the links of %s are taken for those of the machine of %s",
                     short_name(from->id.file), short_name(one->id.file));
            complete_links(&one->links, &from->links);
            continue;
        }
        for (size_t k = 0; k < im->nodes.n; k++) {
            struct hv__node *n = &im->nodes.items[k];
            if (n->cards.n > 0 &&
                (machines + (n->name != NULL) < 2 || links_fit(n, &from->links))) {
                complete_links(&n->links, &from->links);
            }
        }
    }
}

/* Measured rates between host and card replace those of the catalogue. */
static void apply_host_rates(struct hv_import *im)
{
    for (size_t i = 0; i < im->nodes.n; i++) {
        struct hv__node *n = &im->nodes.items[i];
        for (size_t k = 0; hv_known(n->links.host_bytes_per_s) && k < n->cards.n; k++) {
            n->cards.items[k].pcie_bytes_per_s = n->links.host_bytes_per_s;
        }
    }
}

void hv__machines_unite(struct hv_import *im)
{
    unite_named(im);
    spread_links(im);
    apply_host_rates(im);
}
