/*
 * nvidia-smi's human-readable outputs: -q (indented keys and values), -L (one card a line) and
 * nvlink -s (links of each card). Source: nvidia-smi(1).
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/machine/smi.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>

/* ---- nvidia-smi -q ----------------------------------------------------------------------------
 */

bool hv__is_nvidia_smi_q_text(const struct hv__in *in)
{
    struct hv__piece s = {in->text, in->n < 4096 ? in->n : 4096};
    return !in->tree && !in->xml &&
           (hv__find(s, "NVSMI LOG") || (hv__find(s, "Product Name  ") && hv__find(s, "\nGPU ")));
}

/* A card of the text under construction, and the current section. */
struct q_state {
    struct hv__card c;
    char section[4][64]; /* by depth of four blanks */
    double generation, lanes;
    size_t slices, n;
    bool open, mig;
};

static void close_card(struct hv__in *in, struct q_state *q)
{
    if (!q->open) {
        return;
    }
    q->open = false;
    q->c.pcie_bytes_per_s = hv__pcie_bytes_per_s(q->generation, q->lanes);
    if (q->c.card && hv__smi_lost(q->c.card)) {
        hv__ignored(in, q->c.line, "card %zu does not answer (%s)", q->n, q->c.card);
        return;
    }
    hv__understood(in, q->c.line, "card %s, %.4g GiB", q->c.card ? q->c.card : "without a name",
                   q->c.memory_bytes / HV_GIB);
    hv__smi_mig(in, q->c.line, q->c.card ? q->c.card : "the card", q->slices);
    hv__card_add(hv__node_here(in->im), &q->c);
    q->n++;
}

static void open_card(struct q_state *q, unsigned line)
{
    q->c = hv__card_unknown();
    q->c.line = line;
    q->generation = q->lanes = HV_UNKNOWN;
    q->slices = 0;
    q->mig = false;
    q->open = true;
    memset(q->section, 0, sizeof q->section);
}

static bool in_section(const struct q_state *q, size_t depth, const char *name)
{
    return depth > 0 && depth <= HV_COUNT(q->section) &&
           strncmp(q->section[depth - 1], name, strlen(name)) == 0;
}

/* One "key : value" of a card at a depth (blanks / 4); false: not used. */
static bool take_value(struct hv__in *in, struct q_state *q, size_t depth, struct hv__piece key,
                       const char *value)
{
    struct hv__card *c = &q->c;
    if (depth == 1 && hv__is(key, "Product Name") && hv__smi_says(value)) {
        c->card = value;
    } else if (depth == 1 && hv__is(key, "Product Architecture") && hv__smi_says(value)) {
        c->arch = value;
    } else if (depth == 2 && in_section(q, 2, "FB Memory Usage") && hv__is(key, "Total")) {
        c->memory_bytes = hv__smi_bytes(value);
    } else if (depth == 4 && in_section(q, 4, "PCIe Generation") && hv__is(key, "Max")) {
        q->generation = hv__smi_number(value);
    } else if (depth == 4 && in_section(q, 4, "Link Width") && hv__is(key, "Max")) {
        q->lanes = hv__smi_number(value);
    } else if (hv__is(key, "Default Power Limit") && !hv_known(c->tdp_w)) {
        c->tdp_w = hv__smi_number(value);
    } else {
        bool uuid = hv__is(key, "GPU UUID");
        if (uuid) {
            hv__identity_add(in, &hv__node_here(in->im)->id.uuids, value);
        }
        if (uuid || hv__is(key, "VBIOS Version")) {
            hv__raw(in, hv_arena_printf(&in->im->arena, "gpu%zu/%.*s", q->n, (int)key.n, key.p),
                    value);
        }
        return uuid;
    }
    return true;
}

/* Names a key in the report, behind the sections that it lies in. */
static void tell_key(struct hv__in *in, const struct q_state *q, size_t depth, struct hv__piece key,
                     const char *value, bool used, unsigned line)
{
    struct hv_str path = {0};
    for (size_t i = 1; i < depth && i < HV_COUNT(q->section); i++) {
        if (q->section[i][0] != '\0') {
            hv_str_addf(&path, "%s.", q->section[i]);
        }
    }
    hv_str_add(&path, key.p, key.n);
    hv__member(in, used, line, hv_str_cstr(&path), value);
    hv_str_free(&path);
}

static void take_line(struct hv__in *in, struct q_state *q, struct hv__piece line, unsigned at)
{
    size_t blanks = 0;
    while (blanks < line.n && line.p[blanks] == ' ') {
        blanks++;
    }
    size_t depth = blanks / 4;
    const char *colon = hv__find(line, " : ");
    if (hv__starts(line, "GPU ") && line.n > 4 && isxdigit((unsigned char)line.p[4])) {
        close_card(in, q);
        open_card(q, at);
        return;
    }
    struct hv__piece key =
        hv__strip(colon ? (struct hv__piece){line.p, (size_t)(colon - line.p)} : line);
    const char *value =
        colon ? hv__copy(&in->im->arena, hv__strip((struct hv__piece){
                                             colon + 3, (size_t)(line.p + line.n - colon - 3)}))
              : "";
    if (!q->open) {
        if (hv__is(key, "Driver Version")) {
            hv__node_here(in->im)->id.driver = hv__smi_says(value) ? value : NULL;
        }
        if (hv__is(key, "Driver Version") || hv__is(key, "CUDA Version")) {
            hv__raw(in, hv__copy(&in->im->arena, key), value);
        }
        if (colon) {
            hv__member(in, hv__is(key, "Driver Version"), at, hv__copy(&in->im->arena, key), value);
        }
        return;
    }
    if (depth == 1) {
        q->mig = hv__is(key, "MIG Device");
        q->slices += q->mig && !colon;
    } else if (depth >= 2 && hv__is(key, "GPU Instance ID")) {
        q->slices++;
    }
    if (!colon && depth + 1 <= HV_COUNT(q->section) && key.n > 0) {
        size_t n = key.n < 63 ? key.n : 63;
        memcpy(q->section[depth], key.p, n);
        q->section[depth][n] = '\0';
    } else if (colon) {
        bool used = !q->mig && take_value(in, q, depth, key, value);
        tell_key(in, q, depth, key, value, used, at);
    }
}

enum hv_status hv__read_nvidia_smi_q_text(struct hv__in *in, struct hv_err *err)
{
    struct q_state q = {0};
    struct hv__lines l = {.rest = in->text, .left = in->n};
    while (hv__next_line(&l)) {
        take_line(in, &q, l.piece, l.line);
    }
    close_card(in, &q);
    if (q.n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "there is no card in it; run nvidia-smi -q where the GPUs are");
    }
    return HV_OK;
}

/* ---- nvidia-smi -L and nvlink -s --------------------------------------------------------------
 */

/* "GPU 0: NVIDIA H200 (UUID: GPU-…)": returns the name, and the UUID, empty where there is none. */
static bool card_line(struct hv__piece line, struct hv__piece *name, struct hv__piece *uuid)
{
    struct hv__piece s = hv__strip(line);
    if (!hv__starts(s, "GPU ") || s.n < 6 || !isdigit((unsigned char)s.p[4])) {
        return false;
    }
    (void)hv__before(&s, ':');
    const char *end = hv__find(s, "(UUID");
    *uuid = (struct hv__piece){s.p, 0};
    if (end) {
        struct hv__piece rest = {end, (size_t)(s.p + s.n - end)};
        (void)hv__before(&rest, ':');
        *uuid = hv__strip(hv__before(&rest, ')'));
        s.n = (size_t)(end - s.p);
    }
    *name = hv__strip(s);
    return name->n > 0;
}

static bool has_card_line(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    struct hv__piece name, uuid;
    while (hv__next_line(&l) && l.line < 50) {
        if (card_line(l.piece, &name, &uuid) && hv__find(l.piece, "UUID")) {
            return true;
        }
    }
    return false;
}

bool hv__is_nvidia_smi_nvlink(const struct hv__in *in)
{
    struct hv__piece s = {in->text, in->n};
    return !in->tree && !in->xml && has_card_line(in) &&
           (hv__find(s, "Link 0:") || hv__find_like(s, "nvlink"));
}

bool hv__is_nvidia_smi_list(const struct hv__in *in)
{
    return !in->tree && !in->xml && has_card_line(in);
}

enum hv_status hv__read_nvidia_smi_list(struct hv__in *in, struct hv_err *err)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    struct hv__node *here = hv__node_here(in->im);
    size_t n = 0, slices = 0;
    while (hv__next_line(&l)) {
        struct hv__piece name, uuid, s = hv__strip(l.piece);
        struct hv__card c = hv__card_unknown();
        if (card_line(l.piece, &name, &uuid)) {
            c.card = hv__copy(&in->im->arena, name);
            c.line = l.line;
            hv__understood(in, l.line, "card %s", c.card);
            hv__identity_add(in, &here->id.uuids, hv__copy(&in->im->arena, uuid));
            hv__card_add(here, &c);
            n++;
        } else if (hv__starts(s, "MIG ")) {
            slices++;
        } else if (s.n > 0) {
            hv__ignored(in, l.line, "%.*s", (int)(s.n < 80 ? s.n : 80), s.p);
        }
    }
    hv__smi_mig(in, 0, "the cards", slices);
    if (n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "there is no card in it; run nvidia-smi -L where the GPUs are");
    }
    hv__guessed(in, 0, "memory is the catalogue's, since the list has none");
    return HV_OK;
}

/* "Link 3: 26.562 GB/s"; false when it is another line, or the link is off. */
static bool link_line(struct hv__piece line, double *bytes_per_s)
{
    struct hv__piece s = hv__strip(line), rest;
    if (!hv__starts(s, "Link ")) {
        return false;
    }
    (void)hv__before(&s, ':');
    if (!hv__number(s, bytes_per_s, &rest) || !hv__starts(rest, "GB/s")) {
        return false;
    }
    *bytes_per_s *= HV_GBPS;
    return true;
}

enum hv_status hv__read_nvidia_smi_nvlink(struct hv__in *in, struct hv_err *err)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    struct hv__node *here = hv__node_here(in->im);
    size_t n = 0;
    int links = 0, least = 0;
    double rate = HV_UNKNOWN;
    while (hv__next_line(&l)) {
        struct hv__piece name, uuid, s = hv__strip(l.piece);
        struct hv__card c = hv__card_unknown();
        double x;
        if (card_line(l.piece, &name, &uuid)) {
            least = n == 0 || links >= least ? (n <= 1 ? links : least) : links;
            links = 0;
            n++;
            c.card = hv__copy(&in->im->arena, name);
            c.line = l.line;
            hv__identity_add(in, &here->id.uuids, hv__copy(&in->im->arena, uuid));
            hv__card_add(here, &c);
        } else if (link_line(l.piece, &x)) {
            links++;
            rate = x;
        } else if (s.n > 0) {
            hv__ignored(in, l.line, "%.*s", (int)(s.n < 100 ? s.n : 100), s.p);
        }
    }
    least = n <= 1 || links < least ? links : least;
    if (n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "there is no card in it; run nvidia-smi nvlink -s where the GPUs are");
    }
    here->links.nvlinks = least;
    here->links.nvlink_bytes_per_s = rate;
    if (least > 0) {
        hv__understood(in, 0, "%d NVLinks per card, %.4g GB/s each way and link", least,
                       rate / HV_GBPS);
    } else {
        hv__guessed(in, 0, "no NVLink is active: links inside the node are the catalogue's PCIe");
    }
    return HV_OK;
}
