/*
 * nvidia-smi --query-gpu=… --format=csv: one row per card. Without a header the columns are
 * identified by their values. Source: nvidia-smi --help-query-gpu.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/machine/smi.h"
#include "solver/io/import/text/words.h"
#include <string.h>

/* Columns that are used. */
enum column {
    NAME,
    MEMORY,
    FREE,
    USED,
    GENERATION,
    LANES,
    COMPUTE,
    POWER,
    MIG,
    UUID,
    BUS,
    DRIVER,
    INDEX,
    COLUMN_N
};
static const struct {
    const char *name; /* of the query, without unit */
    enum column column;
} columns[] = {
    {"name", NAME},
    {"gpu_name", NAME},
    {"memory.total", MEMORY},
    {"memory.free", FREE},
    {"memory.used", USED},
    {"pcie.link.gen.max", GENERATION},
    {"pcie.link.width.max", LANES},
    {"compute_cap", COMPUTE},
    {"power.default_limit", POWER},
    {"power.limit", POWER},
    {"mig.mode.current", MIG},
    {"uuid", UUID},
    {"gpu_uuid", UUID},
    {"pci.bus_id", BUS},
    {"gpu_bus_id", BUS},
    {"driver_version", DRIVER},
    {"index", INDEX},
};

/* Other names of the query that identify a header. */
static const char *const others[] = {
    "uuid",       "index",           "timestamp",       "driver_version",
    "pci.bus_id", "utilization.gpu", "temperature.gpu", "pstate",
    "count"};

/* "memory.total [MiB]" without its unit: values have a unit of their own, or are in MiB. */
static struct hv__piece title(struct hv__piece field)
{
    return hv__strip(hv__before(&field, '['));
}

static int column_of(struct hv__piece field)
{
    struct hv__piece name = title(field);
    for (size_t i = 0; i < HV_COUNT(columns); i++) {
        if (hv__like(name, columns[i].name)) {
            return (int)columns[i].column;
        }
    }
    return -1;
}

static bool is_header(const struct hv__row *r)
{
    size_t known = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct hv__piece name = title(r->fields[i]);
        known += column_of(r->fields[i]) >= 0;
        for (size_t k = 0; k < HV_COUNT(others); k++) {
            known += hv__like(name, others[k]);
        }
    }
    return known > 0;
}

static bool is_card_name(struct hv__piece s)
{
    static const char *const words[] = {"NVIDIA", "Tesla", "GeForce", "Quadro",
                                        "RTX",    "GTX",   "TITAN"};
    for (size_t i = 0; i < HV_COUNT(words); i++) {
        if (hv__starts(s, words[i])) {
            return true;
        }
    }
    return false;
}

/* Identifies the columns from a row of values: a card's name, the first amount of memory. */
static bool guess_columns(const struct hv__row *r, int at[COLUMN_N])
{
    for (int i = 0; i < (int)r->n; i++) {
        struct hv__piece s = r->fields[i], rest;
        double x;
        if (at[NAME] < 0 && is_card_name(s)) {
            at[NAME] = i;
        } else if (at[MEMORY] < 0 && hv__number(s, &x, &rest) && hv__is(rest, "MiB")) {
            at[MEMORY] = i;
        } else if (at[MEMORY] < 0 && at[NAME] >= 0 && hv__plain_number(s) > 900 &&
                   hv__plain_number(s) < 1e6) {
            at[MEMORY] = i; /* nounits */
        }
    }
    return at[NAME] >= 0;
}

static struct hv__csv open_csv(const struct hv__in *in)
{
    struct hv__csv c = {.arena = &in->im->arena, .rest = in->text, .left = in->n, .separator = ','};
    return c;
}

bool hv__is_nvidia_smi_csv(const struct hv__in *in)
{
    struct hv__csv c = open_csv(in);
    struct hv__row r = {0};
    int at[COLUMN_N];
    memset(at, -1, sizeof at);
    if (in->tree || in->xml) {
        return false;
    }
    while (hv__csv_next(&c, &r) && r.n == 1 && r.fields[0].n == 0) {
        continue; /* empty lines */
    }
    if (r.n == 0) {
        return false;
    }
    if (is_header(&r)) {
        for (size_t i = 0; i < r.n; i++) {
            int k = column_of(r.fields[i]);
            if (k == NAME || k == MEMORY) {
                return r.n > 1 || k == NAME;
            }
        }
        return hv__find_like(r.fields[0], "gpu") != NULL;
    }
    return guess_columns(&r, at) && r.fields[0].n < 60;
}

static const char *value(struct hv__in *in, const struct hv__row *r, const int at[COLUMN_N],
                         enum column c)
{
    bool there = at[c] >= 0 && (size_t)at[c] < r->n;
    const char *s = there ? hv__copy(&in->im->arena, r->fields[at[c]]) : "";
    return hv__smi_says(s) ? s : "";
}

static double number_or_unknown(const char *s)
{
    return *s ? hv__smi_number(s) : HV_UNKNOWN;
}

/* True where a row of a loop (-l) gives a card again: its UUID, or else its index, was there. */
static bool is_again(struct hv__in *in, const struct hv__row *r, const int at[COLUMN_N],
                     json_t *seen)
{
    const char *id = value(in, r, at, UUID);
    id = *id ? id : value(in, r, at, INDEX);
    if (!*id || json_object_get(seen, id)) {
        return *id != '\0';
    }
    json_object_set_new(seen, id, json_true());
    return false;
}

static bool read_card(struct hv__in *in, const struct hv__row *r, const int at[COLUMN_N])
{
    struct hv__card c = hv__card_unknown();
    const char *name = value(in, r, at, NAME), *total = value(in, r, at, MEMORY);
    double compute = number_or_unknown(value(in, r, at, COMPUTE));
    if (!*name || hv__smi_lost(name)) {
        hv__ignored(in, r->line, "a row without a card");
        return false;
    }
    c.card = name;
    c.line = r->line;
    c.memory_bytes =
        *total ? hv__smi_bytes(total)
               : hv__smi_bytes(value(in, r, at, FREE)) + hv__smi_bytes(value(in, r, at, USED));
    c.memory_bytes = c.memory_bytes > 0 ? c.memory_bytes : HV_UNKNOWN;
    if (!*total && hv_known(c.memory_bytes)) {
        hv__guessed(in, r->line, "memory.total is not in the table: used and free added up");
    }
    c.pcie_bytes_per_s = hv__pcie_bytes_per_s(number_or_unknown(value(in, r, at, GENERATION)),
                                              number_or_unknown(value(in, r, at, LANES)));
    c.compute = hv_known(compute) ? round(compute * 10) : HV_UNKNOWN;
    c.tdp_w = number_or_unknown(value(in, r, at, POWER));
    hv__understood(in, r->line, "card %s, %.4g GiB", name, c.memory_bytes / HV_GIB);
    if (hv__like(hv__piece_of(value(in, r, at, MIG)), "Enabled")) {
        hv__ignored(in, r->line, "MIG is on: the whole card is listed");
    }
    struct hv__node *here = hv__node_here(in->im);
    const char *driver = value(in, r, at, DRIVER);
    here->id.driver = *driver ? driver : here->id.driver;
    hv__identity_add(in, &here->id.uuids, value(in, r, at, UUID));
    hv__identity_add(in, &here->id.buses, value(in, r, at, BUS));
    hv__card_add(here, &c);
    return true;
}

/* Takes the first row: as a header, or as the first card. */
static bool read_head(struct hv__in *in, const struct hv__row *r, int at[COLUMN_N], size_t *cards)
{
    if (!is_header(r)) {
        if (!guess_columns(r, at)) {
            return false;
        }
        hv__guessed(in, r->line, "no header: the name is in column %d, the memory in column %d",
                    at[NAME] + 1, at[MEMORY] + 1);
        *cards += read_card(in, r, at);
        return true;
    }
    for (size_t i = 0; i < r->n; i++) {
        int k = column_of(r->fields[i]);
        if (k >= 0 && at[k] < 0) {
            at[k] = (int)i;
        }
        hv__member(in, k >= 0, r->line, hv__copy(&in->im->arena, title(r->fields[i])), NULL);
    }
    return at[NAME] >= 0;
}

enum hv_status hv__read_nvidia_smi_csv(struct hv__in *in, struct hv_err *err)
{
    struct hv__csv csv = open_csv(in);
    struct hv__row r = {0};
    int at[COLUMN_N];
    size_t n = 0;
    bool headed = false;
    json_t *seen = json_object();
    memset(at, -1, sizeof at);
    while (hv__csv_next(&csv, &r)) {
        if (r.n == 0 || (r.n == 1 && r.fields[0].n == 0) || (headed && is_header(&r))) {
            continue; /* empty lines, and headers again from a loop (-l) */
        }
        if (!headed) {
            headed = true;
            if (!read_head(in, &r, at, &n)) {
                json_decref(seen);
                return hv_err_at(err, HV_EINPUT, in->name, r.line, 0,
                                 "no column \"name\"; query at least "
                                 "--query-gpu=name,memory.total --format=csv");
            }
            continue;
        }
        n += !is_again(in, &r, at, seen) && read_card(in, &r, at);
    }
    json_decref(seen);
    if (n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0, "the table has no card in it");
    }
    return HV_OK;
}
