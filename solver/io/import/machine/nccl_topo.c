/*
 * NCCL's topology files (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): the inside of a node as a tree of
 * CPUs, PCI devices, cards and network cards. Source: NCCL user guide, and graph/xml.cc for the
 * names of the attributes.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include <stdlib.h>
#include <string.h>

/* Attributes that are read, for the report. */
static const char *const used[] = {"*pci@busid",      "*pci@class",      "*pci@device",
                                   "*pci@link_speed", "*pci@link_width", "*gpu@sm",
                                   "*nvlink@target",  "*nvlink@count",   "*nvlink@tclass",
                                   "*net@name",       "*net@speed",      NULL};

bool hv__is_nccl_topo_xml(const struct hv__in *in)
{
    return in->xml && strcmp(in->xml->name, "system") == 0 &&
           (hv__xml_child(in->xml, "cpu") || hv__xml_attribute(in->xml, "version"));
}

/* Results of a walk through the tree. */
struct found {
    struct hv__in *in;
    struct hv__node *node;
    size_t cards, nics, classless;
    double nic_bytes_per_s;
    const char *bus[256]; /* of the cards */
    const struct hv__xml *gpu[256];
};

static double attribute_number(const struct hv__xml *e, const char *name)
{
    const char *s = hv__xml_attribute(e, name);
    double x;
    return s && hv__number(hv__piece_of(s), &x, NULL) ? x : HV_UNKNOWN;
}

/* "16 GT/s" or "16.0 GT/s PCIe": PCIe generation by its rate. */
static double pcie_of(const struct hv__xml *pci)
{
    static const double rates[] = {2.5, 5, 8, 16, 32, 64};
    double rate = attribute_number(pci, "link_speed"), generation = HV_UNKNOWN;
    for (size_t i = 0; i < HV_COUNT(rates); i++) {
        if (hv_known(rate) && fabs(rate - rates[i]) < 0.3) {
            generation = (double)i + 1;
        }
    }
    return hv__pcie_bytes_per_s(generation, attribute_number(pci, "link_width"));
}

static unsigned hex_attribute(const struct hv__xml *e, const char *name)
{
    const char *s = hv__xml_attribute(e, name);
    return s ? (unsigned)strtoul(s, NULL, 16) : 0;
}

static void add_card(struct found *f, const struct hv__xml *pci, const struct hv__xml *gpu)
{
    struct hv__card c = hv__card_unknown();
    const char *bus = hv__xml_attribute(pci, "busid");
    double sm = attribute_number(gpu, "sm");
    c.card = hv__pci_card(hex_attribute(pci, "device"));
    c.line = pci->line;
    c.compute = sm;
    c.pcie_bytes_per_s = pcie_of(pci);
    if (c.card) {
        hv__understood(f->in, pci->line, "card %s", c.card);
    } else if (sm == 80 || sm == 90 || sm == 70 || sm == 100) {
        c.card = sm == 70   ? "V100-SXM2-32GB"
                 : sm == 80 ? "A100-SXM-80GB"
                 : sm == 90 ? "H100-SXM-80GB"
                            : "B200-SXM-180GB";
        c.by_hand = true;
        hv__guessed(f->in, pci->line, "a card of compute capability %.1f is taken as %s", sm / 10,
                    c.card);
    }
    if (f->cards < HV_COUNT(f->bus)) {
        f->bus[f->cards] = bus ? bus : "";
        f->gpu[f->cards] = gpu;
    }
    f->cards++;
    hv__identity_add(f->in, &f->node->id.buses, bus ? bus : "");
    hv__card_add(f->node, &c);
}

static void add_net(struct found *f, const struct hv__xml *net)
{
    double mbit = attribute_number(net, "speed");
    f->nics++;
    if (mbit > 0) {
        f->nic_bytes_per_s = hv_or(f->nic_bytes_per_s, 0) + mbit * 1e6 / 8;
        hv__understood(f->in, net->line, "network card %s, %.4g Gbit/s",
                       hv__xml_attribute(net, "name") ? hv__xml_attribute(net, "name") : "",
                       mbit / 1e3);
    }
}

static void visit_pci(struct found *f, const struct hv__xml *pci)
{
    const char *class_text = hv__xml_attribute(pci, "class");
    unsigned cls = hex_attribute(pci, "class") >> 8;
    const struct hv__xml *gpu = hv__xml_child(pci, "gpu");
    bool leaf = !hv__xml_child(pci, "pci");
    if (gpu || ((cls == 0x0302 || cls == 0x0300) && leaf)) {
        add_card(f, pci, gpu);
    } else if (!hv__xml_child(pci, "nic") && (cls == 0x0207 || cls == 0x0200) && leaf) {
        f->nics++; /* a network controller without a speed in NCCL's file */
    }
    f->classless += !class_text && leaf && !gpu;
}

static void walk(struct found *f, const struct hv__xml *e)
{
    for (const struct hv__xml *c = e->first; c; c = c->next) {
        if (strcmp(c->name, "pci") == 0) {
            visit_pci(f, c);
        } else if (strcmp(c->name, "net") == 0) {
            add_net(f, c);
        }
        if (strcmp(c->name, "gpu") != 0) {
            walk(f, c);
        }
    }
}

/* NVLinks of the cards: to each other, or to switches (class 0x0680). */
static void read_nvlinks(struct found *f)
{
    size_t n = f->cards < HV_COUNT(f->bus) ? f->cards : HV_COUNT(f->bus);
    uint8_t *nv = hv_arena_new(&f->in->im->arena, uint8_t, n * n + 1);
    double to_switch = 0, any = 0;
    for (size_t i = 0; i < n; i++) {
        for (const struct hv__xml *l = hv__xml_child(f->gpu[i], "nvlink"); l;
             l = hv__xml_next(l, "nvlink")) {
            const char *target = hv__xml_attribute(l, "target");
            double count = hv_or(attribute_number(l, "count"), 1);
            size_t k = 0;
            while (k < n && (!target || strcmp(f->bus[k], target) != 0)) {
                k++;
            }
            if (k < n && k != i) {
                nv[i * n + k] = nv[k * n + i] = (uint8_t)fmin(count, 200);
            } else if ((hex_attribute(l, "tclass") >> 8) == 0x0680) {
                to_switch = fmax(to_switch, count);
            } else {
                hv__ignored(f->in, l->line, "%g NVLinks of a card to itself", count);
                count = 0;
            }
            any += count;
        }
    }
    for (size_t i = 0; to_switch > 0 && i < n * n; i++) {
        nv[i] = i / n == i % n ? 0 : (uint8_t)fmin(to_switch, 200);
    }
    if (any > 0 && n == f->cards) {
        f->node->links.nv = nv;
        f->node->links.n = (uint32_t)n;
        hv__understood(f->in, 0, to_switch > 0 ? "NVLinks to a switch" : "NVLinks between cards");
    }
}

/* Files that hold only addresses: assumes a number of cards of an unknown kind. */
static void guess_cards(struct found *f)
{
    struct hv__card c = hv__card_unknown();
    uint32_t n = 1;
    while (2 * (size_t)n <= f->classless) {
        n *= 2;
    }
    c.count = n;
    hv__guessed(f->in, f->in->xml->line,
                "no device gives its class: %u of the %zu are taken as cards of an unknown kind", n,
                f->classless);
    f->cards = n;
    hv__card_add(f->node, &c);
}

enum hv_status hv__read_nccl_topo_xml(struct hv__in *in, struct hv_err *err)
{
    if (!in->xml || strcmp(in->xml->name, "system") != 0) {
        return hv_err_at(err, HV_EINPUT, in->name, 0, 0,
                         "no <system>: NCCL writes its topology with NCCL_TOPO_DUMP_FILE=FILE");
    }
    struct found f = {.in = in, .node = hv__node_here(in->im), .nic_bytes_per_s = HV_UNKNOWN};
    walk(&f, in->xml);
    if (f.cards == 0 && f.classless > 1) {
        guess_cards(&f);
    } else if (f.cards > 0) {
        read_nvlinks(&f);
    }
    f.node->links.n_nics = (uint32_t)fmin((double)f.nics, 10000);
    if (hv_known(f.nic_bytes_per_s)) {
        f.node->links.nic_bytes_per_s = f.nic_bytes_per_s;
        f.node->links.nic_is_sum = true;
    }
    hv__uses(in, used);
    return f.cards > 0 ? HV_OK
                       : hv_err_at(err, HV_ENO, in->name, in->xml->line, 0,
                                   "there is no card in it; dump the topology where the GPUs are");
}
