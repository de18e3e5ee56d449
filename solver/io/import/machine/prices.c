/*
 * Price lists of clouds: SkyPilot's catalogue (vms.csv) and cloud-gpus.csv. A machine is offered in
 * many regions: the cheapest counts. An empty price is none, not 0. Sources: the READMEs of
 * skypilot-catalog and of cloud-gpus.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include <string.h>

enum column { CLOUD, INSTANCE, CARD, CARDS, MEMORY, PRICE, SPOT, ZONE, REGION, COLUMN_N };
/* The titles of both lists. */
static const struct {
    const char *title;
    enum column column;
} titles[] = {
    {"InstanceType", INSTANCE},
    {"Name", INSTANCE},
    {"AcceleratorName", CARD},
    {"GPU Type", CARD},
    {"AcceleratorCount", CARDS},
    {"GPUs", CARDS},
    {"GPU RAM", MEMORY},
    {"Price", PRICE},
    {"On-demand", PRICE},
    {"SpotPrice", SPOT},
    {"Spot", SPOT},
    {"AvailabilityZone", ZONE},
    {"Region", REGION},
    {"Cloud", CLOUD},

};

static void read_titles(const struct hv__row *r, int at[COLUMN_N])
{
    memset(at, -1, COLUMN_N * sizeof *at);
    for (size_t i = 0; i < r->n; i++) {
        for (size_t k = 0; k < HV_COUNT(titles); k++) {
            if (hv__like(r->fields[i], titles[k].title) && at[titles[k].column] < 0) {
                at[titles[k].column] = (int)i;
            }
        }
    }
}

static bool are_titles(const int at[COLUMN_N])
{
    return at[CARD] >= 0 && at[PRICE] >= 0;
}

bool hv__is_cloud_prices(const struct hv__in *in)
{
    struct hv__csv c = {.arena = &in->im->arena, .rest = in->text, .left = in->n, .separator = ','};
    struct hv__row r = {0};
    int at[COLUMN_N];
    if (in->tree || in->xml || !hv__csv_next(&c, &r)) {
        return false;
    }
    read_titles(&r, at);
    return are_titles(at);
}

static struct hv__piece cell(const struct hv__row *r, const int at[COLUMN_N], enum column c)
{
    bool there = at[c] >= 0 && (size_t)at[c] < r->n;
    return there ? r->fields[at[c]] : (struct hv__piece){"", 0};
}

/* "$40.97" or "1,234.5": a positive amount, or HV_UNKNOWN. */
static double amount(struct hv__piece s)
{
    char plain[32];
    size_t n = 0;
    for (size_t i = 0; i < s.n && n + 1 < sizeof plain; i++) {
        if (s.p[i] != ',' && s.p[i] != '$') {
            plain[n++] = s.p[i];
        }
    }
    double x = hv__plain_number(hv__strip((struct hv__piece){plain, n}));
    return x > 0 && x < 1e6 ? x : HV_UNKNOWN;
}

static double cheaper(double a, double b)
{
    return !hv_known(a) || b < a ? b : a;
}

/* True where it is the same offer in another region. */
static bool same_offer(const struct hv__price *a, const struct hv__price *b)
{
    return strcmp(a->instance, b->instance) == 0 && strcmp(a->card, b->card) == 0 &&
           strcmp(a->cloud, b->cloud) == 0 && fabs(a->cards - b->cards) < 1e-9;
}

static void keep(struct hv_import *im, const struct hv__price *p)
{
    /* lists are sorted by machine, so equal offers are close together: a window keeps this
     * linear */
    size_t from = im->prices.n > 256 ? im->prices.n - 256 : 0;
    for (size_t i = im->prices.n; i > from; i--) {
        struct hv__price *o = &im->prices.items[i - 1];
        if (same_offer(o, p)) {
            bool less = p->usd_per_h < hv_or(o->usd_per_h, (double)INFINITY);
            o->zone = less ? p->zone : o->zone;
            o->usd_per_h = cheaper(o->usd_per_h, p->usd_per_h);
            o->spot_usd_per_h = cheaper(o->spot_usd_per_h, p->spot_usd_per_h);
            return;
        }
    }
    hv_vec_push(&im->prices, *p);
}

/* GCP prices cards and machines apart: a card without a machine is offered alone. */
static bool read_row(struct hv__in *in, const struct hv__row *r, const int at[COLUMN_N])
{
    struct hv_arena *a = &in->im->arena;
    struct hv__piece card = cell(r, at, CARD), instance = cell(r, at, INSTANCE);
    struct hv__piece zone = cell(r, at, REGION).n > 0 ? cell(r, at, REGION) : cell(r, at, ZONE);
    double cards = hv__plain_number(cell(r, at, CARDS));
    struct hv__price p = {.line = r->line,
                          .cards = hv_known(cards) ? cards : 1,
                          .usd_per_h = amount(cell(r, at, PRICE)),
                          .spot_usd_per_h = amount(cell(r, at, SPOT))};
    if (card.n == 0 || p.cards < 0.5 || (!hv_known(p.usd_per_h) && !hv_known(p.spot_usd_per_h))) {
        return false;
    }
    double memory = hv__plain_number(cell(r, at, MEMORY));
    p.card = hv__copy(a, card);
    p.instance =
        instance.n > 0 ? hv__copy(a, instance) : hv_arena_printf(a, "%s-x%.0f", p.card, p.cards);
    p.cloud = hv__copy(a, cell(r, at, CLOUD));
    p.zone = hv__copy(a, zone);
    p.card_bytes = memory > 0 ? memory / p.cards * HV_GIB : hv__memory_in_name(p.card);
    if (instance.n == 0) {
        hv__guessed(
            in, 0,
            "rows without a machine give the price of the cards alone: the machine costs more");
    }
    keep(in->im, &p);
    return true;
}

enum hv_status hv__read_cloud_prices(struct hv__in *in, struct hv_err *err)
{
    struct hv__csv csv = {
        .arena = &in->im->arena, .rest = in->text, .left = in->n, .separator = ','};
    struct hv__row r = {0};
    int at[COLUMN_N];
    size_t n = 0, other = 0, before = in->im->prices.n;
    if (hv__csv_next(&csv, &r)) {
        read_titles(&r, at);
    }
    if (r.n == 0 || !are_titles(at)) {
        return hv_err_at(err, HV_EINPUT, in->name, 1, 0,
                         "the first line names no columns for card and price, as SkyPilot's "
                         "vms.csv and cloud-gpus.csv do");
    }
    while (hv__csv_next(&csv, &r)) {
        bool good = read_row(in, &r, at);
        n += good;
        other += !good && r.n > 1;
    }
    if (other > 0) {
        hv__ignored(in, 0, "%zu rows without an accelerator or without a price", other);
    }
    if (n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0, "no row has an accelerator and a price");
    }
    hv__understood(in, 0, "%zu offers of %zu types of machine: the cheapest zone of each is used",
                   n, in->im->prices.n - before);
    hv__guessed(in, 0, "the list has no date: the prices are taken as today's");
    return HV_OK;
}

/* ---- conversion to nodes --------------------------------------------------------------------- */

static const struct hv_device_kind *kind_of(const struct hv_import *im, const char *card,
                                            double bytes)
{
    return card ? hv_device_match(im->devices, card, bytes) : NULL;
}

/* Prices a node with one sort of cards: by the offer for its own machine type, else by the cheapest
 * offer with as many of these cards. */
static void price_node(struct hv_import *im, struct hv__node *n)
{
    double cards = hv__cards(n);
    if (n->cards.n != 1) {
        return;
    }
    const struct hv__card *c = &n->cards.items[0];
    const struct hv_device_kind *k = kind_of(im, c->card, c->memory_bytes);
    const struct hv__price *best = NULL;
    double least = (double)INFINITY;
    for (size_t i = 0; k && i < im->prices.n; i++) {
        const struct hv__price *p = &im->prices.items[i];
        bool whole = fabs(p->cards - cards) < 0.5;
        bool named = n->type && strcmp(n->type, p->instance) == 0;
        double usd = hv_or(p->usd_per_h, 1e9) - (named ? 1e10 : 0);
        if ((whole || named) && usd < least && kind_of(im, p->card, p->card_bytes) == k) {
            best = p;
            least = usd;
        }
    }
    if (best) {
        n->usd_per_h = best->usd_per_h;
        n->spot_usd_per_h = best->spot_usd_per_h;
        hv__note(im, HV_IMPORT_GUESSED, "the price of %.0f × %s is that of %s%s%s in %s", cards,
                 k->name, best->cloud, *best->cloud ? " " : "", best->instance,
                 *best->zone ? best->zone : "its cheapest zone");
    }
}

/* One node per sort of machine. */
static void add_machine(struct hv_import *im, const struct hv__price *p)
{
    struct hv__card c = hv__card_unknown();
    const char *name = p->instance;
    struct hv__node *n = hv__node_add(im);
    if (!n) {
        return;
    }
    n->name = name;
    n->zone = p->zone;
    n->type = *p->cloud ? p->cloud : NULL;
    n->usd_per_h = p->usd_per_h;
    n->spot_usd_per_h = p->spot_usd_per_h;
    c.card = p->card;
    c.by_hand = true;
    c.memory_bytes = p->card_bytes;
    c.count = (uint32_t)fmin(round(p->cards), 100000);
    hv__card_add(n, &c);
}

void hv__prices_apply(struct hv_import *im)
{
    size_t nodes = im->nodes.n, unknown = 0;
    for (size_t i = 0; i < nodes && im->prices.n > 0; i++) {
        price_node(im, &im->nodes.items[i]);
    }
    for (size_t i = 0; nodes == 0 && i < im->prices.n; i++) {
        const struct hv__price *p = &im->prices.items[i];
        if (kind_of(im, p->card, p->card_bytes)) {
            add_machine(im, p);
        } else {
            unknown++;
        }
    }
    if (unknown > 0) {
        hv__note(im, HV_IMPORT_IGNORED, "%zu machines with cards that the catalogue lacks",
                 unknown);
    }
    if (nodes == 0 && im->prices.n > 0) {
        hv__note(im, HV_IMPORT_GUESSED,
                 "no file describes a cluster: one machine of each type is listed");
    }
}
