/*
 * nvidia-smi topo -m (and -mp): the matrix of links between cards. Columns are identified by their
 * names, cells by their order: blanks or tabs between them, missing tails and colour codes do not
 * matter. NV# counts links, not bandwidth. Source: the legend at the end of the output.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>

#define MAX_COLUMNS 512

/* Type of each column: 'G' a card, 'N' a network card, '?' something else. */
struct columns {
    char kind[MAX_COLUMNS];
    size_t n, cards, nics;
};

static bool numbered(struct hv__piece w, const char *start)
{
    size_t n = strlen(start);
    if (!hv__starts(w, start) || w.n == n) {
        return false;
    }
    for (size_t i = n; i < w.n; i++) {
        if (!isdigit((unsigned char)w.p[i])) {
            return false;
        }
    }
    return true;
}

static bool is_nic(struct hv__piece w)
{
    static const char *const starts[] = {"NIC",  "mlx",  "ib",    "bnxt", "efa",
                                         "rdma", "roce", "irdma", "hfi",  "rocep"};
    for (size_t i = 0; i < HV_COUNT(starts); i++) {
        if (hv__starts(w, starts[i]) && isdigit((unsigned char)w.p[w.n - 1])) {
            return true;
        }
    }
    return false;
}

static bool is_cell(struct hv__piece w)
{
    static const char *const cells[] = {"X",   "PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "OK",
                                        "CNS", "CNR", "GNS", "TNS", "NS",   "DR",  "N/A", "U"};
    if (numbered(w, "NV")) {
        return true;
    }
    for (size_t i = 0; i < HV_COUNT(cells); i++) {
        if (hv__is(w, cells[i])) {
            return true;
        }
    }
    return false;
}

/* Reads a header: a card's name first, and no cell of a row behind it. */
static bool read_header(struct hv__piece line, struct columns *c)
{
    struct hv__piece rest = line, w = hv__next_word(&rest);
    *c = (struct columns){.n = 0};
    if (!numbered(w, "GPU")) {
        return false;
    }
    for (; w.n > 0 && c->n < MAX_COLUMNS; w = hv__next_word(&rest)) {
        if (hv__is(w, "CPU") || hv__is(w, "NUMA")) {
            break;
        }
        if (is_cell(w)) {
            return false;
        }
        bool card = numbered(w, "GPU"), nic = is_nic(w);
        c->kind[c->n++] = card ? 'G' : nic ? 'N' : '?';
        c->cards += card;
        c->nics += nic;
    }
    return true;
}

static bool find_header(const struct hv__in *in, struct hv__lines *l, struct columns *c)
{
    *l = (struct hv__lines){.rest = in->text, .left = in->n};
    while (hv__next_line(l)) {
        if (read_header(l->piece, c)) {
            return true;
        }
    }
    return false;
}

bool hv__is_nvidia_smi_topo(const struct hv__in *in)
{
    struct hv__lines l;
    struct columns c;
    return !in->tree && !in->xml && find_header(in, &l, &c) && hv__next_line(&l) &&
           numbered(hv__next_word(&l.piece), "GPU");
}

/* The cells of one card's row. False: it is another kind of row, or has too few cells. */
static bool read_row(struct hv__in *in, const struct hv__lines *l, const struct columns *c,
                     uint8_t *nv, size_t worst[2])
{
    struct hv__piece rest = l->piece, w = hv__next_word(&rest);
    size_t row = 0, at = 0;
    if (!numbered(w, "GPU")) {
        return false;
    }
    row = (size_t)hv__plain_number((struct hv__piece){w.p + 3, w.n - 3});
    for (size_t i = 0; i < c->n; i++) {
        struct hv__piece cell = hv__next_word(&rest);
        if (cell.n == 0 || !is_cell(cell)) {
            hv__guessed(in, l->line,
                        "%zu cells where the header has %zu: the rest is taken for PCIe", i, c->n);
            break;
        }
        if (c->kind[i] != 'G') {
            continue;
        }
        if (row < c->cards && numbered(cell, "NV")) {
            double links = hv__plain_number((struct hv__piece){cell.p + 2, cell.n - 2});
            nv[row * c->cards + at] = (uint8_t)fmin(links, 200);
        }
        worst[0] += hv__is(cell, "SYS") || hv__is(cell, "NODE") || hv__is(cell, "SOC");
        worst[1] += hv__is(cell, "PHB");
        at++;
    }
    return true;
}

static void note_columns(struct hv__in *in, unsigned line, const struct columns *c)
{
    hv__understood(in, line, "%zu card%s", c->cards, c->cards == 1 ? "" : "s");
    if (c->nics > 0) {
        hv__understood(in, line, "%zu network card%s", c->nics, c->nics == 1 ? "" : "s");
    }
    static const char *const others[] = {"CPU Affinity", "NUMA Affinity", "GPU NUMA ID"};
    for (size_t i = 0; i < HV_COUNT(others); i++) {
        if (hv__find((struct hv__piece){in->text, in->n}, others[i])) {
            hv__member(in, false, line, others[i], NULL);
        }
    }
    hv__ignored(in, line, "which CPU and which network card is next to which card");
}

enum hv_status hv__read_nvidia_smi_topo(struct hv__in *in, struct hv_err *err)
{
    struct hv__lines l;
    struct columns c;
    size_t rows = 0, worst[2] = {0, 0};
    if (!find_header(in, &l, &c)) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "there is no matrix of GPU0 … in it; on Linux `nvidia-smi topo -m` writes "
                         "one (Windows has none)");
    }
    uint8_t *nv = hv_arena_new(&in->im->arena, uint8_t, c.cards * c.cards + 1);
    note_columns(in, l.line, &c);
    while (hv__next_line(&l) && rows < c.cards) {
        rows += read_row(in, &l, &c, nv, worst);
    }
    if (rows < c.cards) {
        hv__guessed(in, l.line, "%zu rows for %zu cards: the rest is taken for PCIe", rows,
                    c.cards);
    }
    if (worst[0] + worst[1] > 0) {
        hv__guessed(in, 0,
                    "%zu of the pairs meet at the CPU: PCIe at the cards' own speed is "
                    "assumed between them",
                    (worst[0] + worst[1]) / 2);
    }
    struct hv__links *links = &hv__node_here(in->im)->links;
    for (size_t i = 0; i < c.cards * c.cards; i++) { /* both directions hold the same value */
        uint8_t other = nv[i % c.cards * c.cards + i / c.cards];
        nv[i] = nv[i] > other ? nv[i] : other;
    }
    links->nv = nv;
    links->n = (uint32_t)c.cards;
    links->n_nics = c.nics > 0 ? (uint32_t)c.nics : links->n_nics;
    return HV_OK;
}
