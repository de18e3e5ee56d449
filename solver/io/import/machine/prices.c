/*
 * Price lists of clouds, as CSV or JSON: each row or object with a price and cards is an offer. A
 * machine is offered in many regions: the cheapest counts. An empty price is none, not 0. The words
 * for columns are in offers.c.
 */
#include "solver/io/import/machine/prices.h"
#include "solver/io/import/draft/readers.h"
#include <string.h>

#define MAX_DEPTH   12 /* of the trees of lists */
#define OFFER_DEPTH 7  /* of the members of an offer */

/* ---- tables ---------------------------------------------------------------------------------- */

/* Columns of a table by their titles; -1: none. */
struct table {
    int at[HV__OFFER_COLUMN_N];
};

/* The columns in the report. */
static void tell_titles(struct hv__in *in, const struct hv__row *r)
{
    for (size_t i = 0; i < r->n; i++) {
        hv__member(in, hv__offer_column(r->fields[i]) >= 0, r->line,
                   hv__copy(&in->im->arena, r->fields[i]), NULL);
    }
}

static struct table read_titles(const struct hv__row *r)
{
    struct table t;
    memset(t.at, -1, sizeof t.at);
    for (size_t i = 0; i < r->n; i++) {
        int c = hv__offer_column(r->fields[i]);
        if (c >= 0 && t.at[c] < 0) {
            t.at[c] = (int)i;
        }
    }
    return t;
}

static bool has(const struct table *t, enum hv__offer_column c)
{
    return t->at[c] >= 0;
}

static bool has_price(const struct table *t)
{
    return has(t, HV__OFFER_PRICE) || has(t, HV__OFFER_EACH) || has(t, HV__OFFER_SPOT) ||
           has(t, HV__OFFER_CENTS);
}

static bool are_titles(const struct table *t)
{
    return (has(t, HV__OFFER_CARD) || has(t, HV__OFFER_INSTANCE)) && has_price(t);
}

/* The separator of a table by its first line. */
static char separator_of(const struct hv__in *in)
{
    size_t n = strcspn(in->text, "\r\n");
    return memchr(in->text, '\t', n)                               ? '\t'
           : memchr(in->text, ';', n) && !memchr(in->text, ',', n) ? ';'
                                                                   : ',';
}

static struct hv__csv open_csv(const struct hv__in *in)
{
    return (struct hv__csv){
        .arena = &in->im->arena, .rest = in->text, .left = in->n, .separator = separator_of(in)};
}

static void read_table(struct hv__in *in, size_t *n, size_t *other)
{
    struct hv__csv csv = open_csv(in);
    struct hv__row r = {0};
    if (!hv__csv_next(&csv, &r)) {
        return;
    }
    struct table t = read_titles(&r);
    tell_titles(in, &r);
    while (hv__csv_next(&csv, &r)) {
        struct hv__offer o = {.line = r.line};
        for (size_t c = 0; c < HV__OFFER_COLUMN_N; c++) {
            bool there = t.at[c] >= 0 && (size_t)t.at[c] < r.n;
            o.cells[c] = there ? r.fields[t.at[c]] : (struct hv__piece){"", 0};
        }
        bool good = hv__offer_add(in, &o);
        *n += good;
        *other += !good && r.n > 1;
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A price of Google's: {"units": "2", "nanos": 934000000}. */
static double money_of(json_t *v)
{
    json_t *units = json_object_get(v, "units"), *nanos = json_object_get(v, "nanos");
    double whole = json_is_string(units) ? hv__plain_number(hv__piece_of(json_string_value(units)))
                                         : json_number_value(units);
    return json_is_number(nanos) ? hv_or(whole, 0) + json_number_value(nanos) / 1e9 : HV_UNKNOWN;
}

/* A scalar as text; empty for others. */
static struct hv__piece text_of(struct hv_arena *a, json_t *v)
{
    char buf[HV_FMT_CAP];
    double money = json_is_object(v) ? money_of(v) : HV_UNKNOWN;
    if (json_is_number(v) || hv_known(money)) {
        double x = json_is_number(v) ? json_number_value(v) : money;
        return hv__piece_of(hv_arena_strdup(a, hv_fmt_double(buf, sizeof buf, x)));
    }
    return hv__piece_of(json_is_string(v)  ? json_string_value(v)
                        : json_is_true(v)  ? "true"
                        : json_is_false(v) ? "false"
                                           : "");
}

/* Fills the cells that are empty from an object's members, then from those of its children. */
static void collect(struct hv__in *in, json_t *v, int depth, struct hv__offer *o)
{
    const char *key;
    json_t *x;
    json_object_foreach(v, key, x)
    {
        int c = hv__offer_column(hv__piece_of(key));
        struct hv__piece s = c >= 0 ? text_of(&in->im->arena, x) : (struct hv__piece){"", 0};
        if (c >= 0 && s.n > 0 && o->cells[c].n == 0) {
            o->cells[c] = s;
        }
    }
    json_object_foreach(v, key, x)
    {
        json_t *first = json_is_array(x) ? json_array_get(x, 0) : x;
        if (depth < OFFER_DEPTH && json_is_object(first)) {
            collect(in, first, depth + 1, o);
        }
    }
}

/* Notes for the report which members of an offer have a meaning; those that collect reads. */
static void mark_used(struct hv__in *in, json_t *v, int depth)
{
    const char *key;
    json_t *x;
    json_object_foreach(v, key, x)
    {
        json_t *first = json_is_array(x) ? json_array_get(x, 0) : x;
        if (hv__offer_column(hv__piece_of(key)) >= 0 &&
            (!json_is_object(x) || hv_known(money_of(x)))) {
            (void)hv__get_whole(in, v, key);
        } else if (depth < OFFER_DEPTH && json_is_object(first)) {
            mark_used(in, first, depth + 1);
        }
    }
}

static struct hv__offer offer_of(struct hv__in *in, json_t *v)
{
    struct hv__offer o = {.line = 0};
    for (size_t c = 0; c < HV__OFFER_COLUMN_N; c++) {
        o.cells[c] = (struct hv__piece){"", 0};
    }
    collect(in, v, 0, &o);
    if (o.cells[HV__OFFER_CARD].n == 0) { /* "Nvidia Tesla A100 GPU running in Americas" */
        json_t *text = json_object_get(v, "description");
        const char *s = json_is_string(text) ? json_string_value(text) : "";
        if (hv_device_match(in->im->devices, s, HV_UNKNOWN)) {
            o.cells[HV__OFFER_CARD] = hv__piece_of(s);
        }
    }
    return o;
}

static bool is_offer(const struct hv__offer *o)
{
    const struct hv__piece *c = o->cells;
    bool price =
        c[HV__OFFER_PRICE].n + c[HV__OFFER_CENTS].n + c[HV__OFFER_EACH].n + c[HV__OFFER_SPOT].n > 0;
    return price && c[HV__OFFER_CARD].n + c[HV__OFFER_INSTANCE].n > 0;
}

/* The tree of a text that is JSON in a string, as aws pricing writes it; NULL: it is none. Owner:
 * json_decref. */
static json_t *inner_of(json_t *v)
{
    bool may_be = json_is_string(v) && json_string_value(v)[0] == '{';
    return may_be ? json_loads(json_string_value(v), 0, NULL) : NULL;
}

/* Puts trees in the place of the strings that hold them. */
static void unpack(json_t *v, int depth)
{
    for (size_t i = 0; i < json_array_size(v) && depth < MAX_DEPTH; i++) {
        json_t *inner = inner_of(json_array_get(v, i));
        if (inner) {
            (void)json_array_set_new(v, i, inner);
        }
        unpack(json_array_get(v, i), depth + 1);
    }
    for (void *it = json_object_iter(v); it && depth < MAX_DEPTH;
         it = json_object_iter_next(v, it)) {
        json_t *inner = inner_of(json_object_iter_value(it));
        if (inner) {
            (void)json_object_iter_set_new(v, it, inner);
        }
        unpack(json_object_iter_value(it), depth + 1);
    }
}

/* Adds the innermost objects that are offers. Returns their number, those left out counted in
 * `other`. */
static size_t walk(struct hv__in *in, json_t *v, int depth, size_t *other)
{
    size_t n = 0, i, before = *other;
    const char *key;
    json_t *x;
    if (depth > MAX_DEPTH) {
        return 0;
    }
    json_array_foreach(v, i, x)
    {
        n += walk(in, x, depth + 1, other);
    }
    json_object_foreach(v, key, x)
    {
        n += walk(in, x, depth + 1, other);
    }
    if (n > 0 || *other > before || !json_is_object(v)) {
        return n;
    }
    struct hv__offer o = offer_of(in, v);
    if (!is_offer(&o)) {
        return 0;
    }
    mark_used(in, v, 0);
    if (o.cells[HV__OFFER_CARD].n > 0 &&
        o.cells[HV__OFFER_CARD].p == json_string_value(json_object_get(v, "description"))) {
        (void)hv__get(in, v, "description");
    }
    bool good = hv__offer_add(in, &o);
    *other += !good;
    return good;
}

/* True where some object near the top is an offer; nothing is added. */
static bool has_offer(struct hv__in *in, json_t *v, int depth)
{
    enum { DEPTH = 4, LOOKED_AT = 3 };
    const char *key;
    json_t *x;
    size_t i, n = 0;
    json_t *inner = inner_of(v);
    if (inner) {
        bool is = depth < DEPTH && has_offer(in, inner, depth + 1);
        json_decref(inner);
        return is;
    }
    json_array_foreach(v, i, x)
    {
        if (i < LOOKED_AT && depth < DEPTH && has_offer(in, x, depth + 1)) {
            return true;
        }
    }
    json_object_foreach(v, key, x)
    {
        if (n++ < 64 && depth < DEPTH && has_offer(in, x, depth + 1)) {
            return true;
        }
    }
    if (!json_is_object(v)) {
        return false;
    }
    struct hv__offer o = offer_of(in, v);
    return is_offer(&o);
}

/* ---- the format ------------------------------------------------------------------------------ */

bool hv__is_cloud_prices(const struct hv__in *in)
{
    struct hv__csv c = open_csv(in);
    struct hv__row r = {0};
    if (in->is_json && in->tree) {
        struct hv__in copy = *in;
        return has_offer(&copy, in->tree, 0);
    }
    if (in->tree || in->xml || !hv__csv_next(&c, &r)) {
        return false;
    }
    struct table t = read_titles(&r);
    return r.n > 1 && are_titles(&t);
}

enum hv_status hv__read_cloud_prices(struct hv__in *in, struct hv_err *err)
{
    size_t n = 0, other = 0, before = in->im->prices.n;
    if (in->is_json && in->tree) {
        unpack(in->tree, 0);
        n = walk(in, in->tree, 0, &other);
    } else if (!hv__is_cloud_prices(in)) {
        return hv_err_at(err, HV_EINPUT, in->name, 1, 0,
                         "the first line names no columns for a card or machine and for a price, "
                         "such as AcceleratorName and Price");
    } else {
        read_table(in, &n, &other);
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

/* The spot price of an offer, unless it is above the price on demand: lists mix zones and dates, so
 * that such a price is an error of the list. */
static double spot_of(struct hv_import *im, const struct hv__price *p)
{
    if (p->spot_usd_per_h > p->usd_per_h) {
        hv__note(im, HV_IMPORT_IGNORED,
                 "the spot price of %s, $%.4g, is above its price on demand, $%.4g: left out",
                 p->instance, p->spot_usd_per_h, p->usd_per_h);
        return HV_UNKNOWN;
    }
    return p->spot_usd_per_h;
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
    const struct hv_device_kind *k = hv__card_kind(im, c);
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
        n->spot_usd_per_h = spot_of(im, best);
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
    n->spot_usd_per_h = spot_of(im, p);
    c.card = p->card;
    c.by_hand = !p->sure;
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
