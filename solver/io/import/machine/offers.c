/*
 * Offers of price lists: the meaning of titles and members, and one offer from its cells. Lists of
 * clouds and of those who compare them use many words for the same columns. Sources: SkyPilot's
 * catalogue, cloud-gpus.csv and serverless-gpus.csv, gpuhunt; the price APIs of AWS (spot price
 * history, price list), Azure (retail prices), Google Cloud (SKUs), Lambda, RunPod and Vast.
 */
#include "solver/io/import/machine/prices.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_TITLE 40

/* Titles without separators, in small letters. */
static const struct {
    const char *title;
    enum hv__offer_column column;
} titles[] = {
    {"cloud", HV__OFFER_CLOUD},
    {"vendor", HV__OFFER_CLOUD},
    {"provider", HV__OFFER_CLOUD},
    {"providername", HV__OFFER_CLOUD},
    {"cloudprovider", HV__OFFER_CLOUD},
    {"instancetype", HV__OFFER_INSTANCE},
    {"name", HV__OFFER_INSTANCE},
    {"instance", HV__OFFER_INSTANCE},
    {"instancename", HV__OFFER_INSTANCE},
    {"machinetype", HV__OFFER_INSTANCE},
    {"machine", HV__OFFER_INSTANCE},
    {"armskuname", HV__OFFER_INSTANCE},
    {"vmsize", HV__OFFER_INSTANCE},
    {"apiname", HV__OFFER_INSTANCE},
    {"acceleratorname", HV__OFFER_CARD},
    {"accelerator", HV__OFFER_CARD},
    {"acceleratortype", HV__OFFER_CARD},
    {"gputype", HV__OFFER_CARD},
    {"gpu", HV__OFFER_CARD},
    {"gpuname", HV__OFFER_CARD},
    {"gpumodel", HV__OFFER_CARD},
    {"gpudescription", HV__OFFER_CARD},
    {"displayname", HV__OFFER_CARD},
    {"acceleratorcount", HV__OFFER_CARDS},
    {"accelerators", HV__OFFER_CARDS},
    {"gpus", HV__OFFER_CARDS},
    {"gpucount", HV__OFFER_CARDS},
    {"numgpus", HV__OFFER_CARDS},
    {"numberofgpus", HV__OFFER_CARDS},
    {"gpuram", HV__OFFER_MEMORY},
    {"gpumemory", HV__OFFER_MEMORY},
    {"gpumemorygb", HV__OFFER_MEMORY},
    {"gpumemorygib", HV__OFFER_MEMORY},
    {"vram", HV__OFFER_MEMORY},
    {"memoryingb", HV__OFFER_MEMORY},
    {"gpuinfo", HV__OFFER_INFO},
    {"price", HV__OFFER_PRICE},
    {"ondemand", HV__OFFER_PRICE},
    {"ondemandprice", HV__OFFER_PRICE},
    {"ondemandusd", HV__OFFER_PRICE},
    {"ondemandusdperhour", HV__OFFER_PRICE},
    {"perhour", HV__OFFER_PRICE},
    {"hourly", HV__OFFER_PRICE},
    {"hourlyprice", HV__OFFER_PRICE},
    {"hourlycost", HV__OFFER_PRICE},
    {"priceperhour", HV__OFFER_PRICE},
    {"pricehour", HV__OFFER_PRICE},
    {"priceusd", HV__OFFER_PRICE},
    {"priceusdperhour", HV__OFFER_PRICE},
    {"usdperhour", HV__OFFER_PRICE},
    {"costperhour", HV__OFFER_PRICE},
    {"retailprice", HV__OFFER_PRICE},
    {"secureprice", HV__OFFER_PRICE},
    {"communityprice", HV__OFFER_PRICE},
    {"dphtotal", HV__OFFER_PRICE},
    {"linuxondemandcost", HV__OFFER_PRICE},
    {"usd", HV__OFFER_PRICE},
    {"pricecentsperhour", HV__OFFER_CENTS},
    {"pergpu", HV__OFFER_EACH},
    {"pricepergpu", HV__OFFER_EACH},
    {"pergpuhour", HV__OFFER_EACH},
    {"priceperaccelerator", HV__OFFER_EACH},
    {"unitprice", HV__OFFER_EACH},
    {"spot", HV__OFFER_SPOT},
    {"spotprice", HV__OFFER_SPOT},
    {"spotusd", HV__OFFER_SPOT},
    {"spotusdperhour", HV__OFFER_SPOT},
    {"spotpriceperhour", HV__OFFER_SPOT},
    {"spotavg", HV__OFFER_SPOT},
    {"preemptible", HV__OFFER_SPOT},
    {"preemptibleprice", HV__OFFER_SPOT},
    {"interruptible", HV__OFFER_SPOT},
    {"minbid", HV__OFFER_SPOT},
    {"availabilityzone", HV__OFFER_ZONE},
    {"zone", HV__OFFER_ZONE},
    {"region", HV__OFFER_REGION},
    {"regionname", HV__OFFER_REGION},
    {"regioncode", HV__OFFER_REGION},
    {"location", HV__OFFER_REGION},
    {"armregionname", HV__OFFER_REGION},
    {"metername", HV__OFFER_USE},
    {"usagetype", HV__OFFER_USE},
    {"pricingmodel", HV__OFFER_USE},
    {"skuname", HV__OFFER_USE},
    {"type", HV__OFFER_TYPE},
    {"pricetype", HV__OFFER_TYPE},
    {"purchaseoption", HV__OFFER_TYPE},
    {"operatingsystem", HV__OFFER_SYSTEM},
    {"productdescription", HV__OFFER_SYSTEM},
    {"productname", HV__OFFER_SYSTEM},
    {"currency", HV__OFFER_CURRENCY},
    {"currencycode", HV__OFFER_CURRENCY},
};

int hv__offer_column(struct hv__piece title)
{
    char plain[MAX_TITLE];
    size_t n = 0;
    for (size_t i = 0; i < title.n; i++) {
        char c = title.p[i];
        if (c == '(' || c == '[') {
            break; /* a unit: "Price (USD/h)" */
        }
        if (isalnum((unsigned char)c) && n + 1 < sizeof plain) {
            plain[n++] = (char)tolower((unsigned char)c);
        }
    }
    plain[n] = '\0';
    for (size_t i = 0; i < HV_COUNT(titles); i++) {
        if (strcmp(plain, titles[i].title) == 0) {
            return (int)titles[i].column;
        }
    }
    return -1;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* "$40.97", "1,234.5", "2.5 USD": a positive amount, or HV_UNKNOWN. */
static double amount(struct hv__piece s)
{
    char plain[32];
    size_t n = 0;
    double x;
    for (size_t i = 0; i < s.n && n + 1 < sizeof plain; i++) {
        if (s.p[i] != ',' && s.p[i] != '$') {
            plain[n++] = s.p[i];
        }
    }
    struct hv__piece text = hv__strip((struct hv__piece){plain, n});
    return hv__number(text, &x, NULL) && x > 0 && x < 1e6 ? x : HV_UNKNOWN;
}

static bool is_yes(struct hv__piece s)
{
    return hv__like(s, "true") || hv__like(s, "yes");
}

/* Memory of one card: lists give that of one, or of all of them, in GB or in MB. */
static double card_bytes(const struct hv_import *im, const char *card, struct hv__piece text,
                         double cards)
{
    double gib = amount(text), all;
    gib = gib >= 1000 ? gib / 1024 : gib;
    all = gib / cards * HV_GIB;
    const struct hv_device_kind *k = hv_device_match(im->devices, card, gib * HV_GIB);
    bool one = k && fabs(gib * HV_GIB / k->memory_bytes - 1) < 0.15;
    return one ? gib * HV_GIB : all;
}

/* "…'MemoryInfo': {'SizeInMiB': 81920}…": SkyPilot's description of the cards. */
static double info_bytes(struct hv__piece info)
{
    static const char key[] = "SizeInMiB";
    const char *at = hv__find(info, key);
    double mib;
    if (!at) {
        return HV_UNKNOWN;
    }
    at += strlen(key);
    while (at < info.p + info.n && !isdigit((unsigned char)*at)) {
        at++;
    }
    struct hv__piece rest = {at, (size_t)(info.p + info.n - at)};
    return hv__number(rest, &mib, NULL) && mib > 0 ? mib * HV_MIB : HV_UNKNOWN;
}

/* True for what no plan uses: reservations, Windows, other currencies. */
static bool is_other(const struct hv__offer *o)
{
    static const char *const words[] = {"reserv", "commit", "low priority", "savings"};
    const struct hv__piece *c = o->cells;
    struct hv__piece money = c[HV__OFFER_CURRENCY];
    for (size_t i = 0; i < HV_COUNT(words); i++) {
        if (hv__find_like(c[HV__OFFER_USE], words[i]) ||
            hv__find_like(c[HV__OFFER_TYPE], words[i])) {
            return true;
        }
    }
    return hv__find_like(c[HV__OFFER_SYSTEM], "windows") ||
           (money.n > 0 && !hv__like(money, "usd"));
}

/* True where the price is for a machine that may be taken away. */
static bool is_spot(const struct hv__offer *o)
{
    static const char *const words[] = {"spot", "preempt", "interruptible"};
    const struct hv__piece *c = o->cells;
    bool is = is_yes(c[HV__OFFER_SPOT]);
    for (size_t i = 0; i < HV_COUNT(words); i++) {
        is = is || hv__find_like(c[HV__OFFER_USE], words[i]) ||
             hv__find_like(c[HV__OFFER_TYPE], words[i]);
    }
    return is;
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

/* The cards of an offer: those of its machine where that is known, else what the list says. */
static bool read_cards(struct hv__in *in, const struct hv__offer *o, struct hv__price *p)
{
    const struct hv__piece *c = o->cells;
    struct hv_arena *a = &in->im->arena;
    struct hv__piece card = c[HV__OFFER_CARD];
    double count = amount(c[HV__OFFER_CARDS]);
    if (card.n > 0 && hv_known(hv__plain_number(card))) { /* "GPU": 8 */
        count = hv_or(count, hv__plain_number(card));
        card.n = 0;
    }
    const char *known = NULL;
    double machine = HV_UNKNOWN;
    if (hv__instance_cards(a, p->instance, &known, &machine) &&
        hv_device_match(in->im->devices, known, HV_UNKNOWN)) {
        const struct hv_device_kind *said =
            card.n > 0 ? hv_device_match(in->im->devices, hv__copy(a, card), HV_UNKNOWN) : NULL;
        const struct hv_device_kind *own = hv_device_match(in->im->devices, known, HV_UNKNOWN);
        bool agrees = card.n == 0 || (said && strcmp(said->arch, own->arch) == 0);
        p->card = agrees ? known : hv__copy(a, card);
        p->sure = agrees && hv_device_find(in->im->devices, known) != NULL;
        count = hv_or(count, machine);
    } else {
        p->card = hv__copy(a, card);
    }
    p->cards = hv_or(count, 1);
    if (!p->sure && *p->card) {
        p->card_bytes = c[HV__OFFER_MEMORY].n > 0
                            ? card_bytes(in->im, p->card, c[HV__OFFER_MEMORY], p->cards)
                            : hv_or(info_bytes(c[HV__OFFER_INFO]), hv__memory_in_name(p->card));
    }
    return *p->card != '\0' && p->cards >= 0.5;
}

static bool read_prices(const struct hv__offer *o, struct hv__price *p)
{
    const struct hv__piece *c = o->cells;
    p->usd_per_h = amount(c[HV__OFFER_PRICE]);
    p->usd_per_h = hv_or(p->usd_per_h, amount(c[HV__OFFER_CENTS]) / 100);
    p->usd_per_h = hv_or(p->usd_per_h, amount(c[HV__OFFER_EACH]) * p->cards);
    p->spot_usd_per_h = amount(c[HV__OFFER_SPOT]);
    if (is_spot(o) && hv_known(p->usd_per_h)) {
        p->spot_usd_per_h = p->usd_per_h;
        p->usd_per_h = HV_UNKNOWN;
    }
    return hv_known(p->usd_per_h) || hv_known(p->spot_usd_per_h);
}

bool hv__offer_add(struct hv__in *in, const struct hv__offer *o)
{
    const struct hv__piece *c = o->cells;
    struct hv_arena *a = &in->im->arena;
    struct hv__piece zone = c[HV__OFFER_REGION].n > 0 ? c[HV__OFFER_REGION] : c[HV__OFFER_ZONE];
    struct hv__price p = {.line = o->line,
                          .card_bytes = HV_UNKNOWN,
                          .instance = hv__copy(a, c[HV__OFFER_INSTANCE]),
                          .cloud = hv__copy(a, c[HV__OFFER_CLOUD]),
                          .zone = hv__copy(a, zone)};
    if (is_other(o) || !read_cards(in, o, &p) || !read_prices(o, &p)) {
        return false;
    }
    /* GCP prices cards and machines apart: a card without a machine is offered alone */
    if (*p.instance == '\0') {
        p.instance = hv_arena_printf(a, "%s-x%.0f", p.card, p.cards);
        if (*p.cloud == '\0') {
            hv__guessed(
                in, 0,
                "rows without a machine give the price of the cards alone: the machine costs more");
        }
    }
    keep(in->im, &p);
    return true;
}
