/*
 * Outputs of nccl-tests. The row layouts differ by version and collective, so columns are counted
 * from the end of each row, where time, algbw and busbw are given twice, out-of-place first. Tags
 * of mpirun and srun before lines, log lines and errors between them do not matter. Source:
 * nccl-tests README and doc/PERFORMANCE.md.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>

#define MAX_ROWS  4096
#define MAX_WORDS 24

/* One row: bytes, and the out-of-place figures. */
struct row {
    double bytes, time_s, algbw, busbw;
};

struct run {
    struct row rows[MAX_ROWS];
    size_t n, ranks, hosts, bad;
    char collective[32];
    unsigned line;
};

/* Removes a prefix such as "[1,0]<stdout>:" or "0: " from a line. */
static struct hv__piece untag(struct hv__piece s)
{
    s = hv__strip(s);
    for (int k = 0; k < 3; k++) {
        size_t i = 0;
        if (s.n > 0 && s.p[0] == '[') {
            while (i < s.n && s.p[i] != ']') {
                i++;
            }
            i += i < s.n;
            while (i < s.n && s.p[i] != ':' && s.p[i] != ' ') {
                i++;
            }
            i += i < s.n && s.p[i] == ':';
        } else {
            while (i < s.n && isdigit((unsigned char)s.p[i])) {
                i++;
            }
            if (i == 0 || i + 1 >= s.n || s.p[i] != ':' || s.p[i + 1] != ' ') {
                break;
            }
            i++;
        }
        s = hv__strip((struct hv__piece){s.p + i, s.n - i});
    }
    return s;
}

static bool is_title_row(struct hv__piece s)
{
    return hv__find(s, "busbw") && hv__find(s, "algbw") && hv__find(s, "size");
}

/* The columns in the report. */
static void tell_titles(struct hv__in *in, struct hv__piece s, unsigned line)
{
    static const char *const used[] = {"size", "type", "time", "algbw", "busbw"};
    for (struct hv__piece w = hv__next_word(&s); w.n > 0; w = hv__next_word(&s)) {
        bool known = false;
        for (size_t i = 0; i < HV_COUNT(used); i++) {
            known = known || hv__is(w, used[i]);
        }
        if (!hv__is(w, "#")) {
            hv__member(in, known, line, hv__copy(&in->im->arena, w), NULL);
        }
    }
}

bool hv__is_nccl_tests(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    while (hv__next_line(&l)) {
        struct hv__piece s = untag(l.piece);
        if (is_title_row(s) || hv__starts(s, "# nThread ") ||
            hv__starts(s, "# nccl-tests version")) {
            return true;
        }
    }
    return false;
}

/* "#  Rank  0 Group  0 Pid 1 on HOST device  0 [0000:19:00] NVIDIA H100 80GB HBM3". */
static bool read_device(struct hv__in *in, struct run *r, struct hv__piece s, unsigned line)
{
    struct hv__card c = hv__card_unknown();
    const char *on = hv__find(s, " on "), *bracket = hv__find(s, "] ");
    if (!hv__starts(s, "#") || !hv__find(s, "Rank ") || !hv__find(s, " device ") || !on ||
        !bracket) {
        return false;
    }
    struct hv__piece rest = {on + 4, (size_t)(s.p + s.n - on - 4)}, host = hv__next_word(&rest);
    struct hv__piece card =
        hv__strip((struct hv__piece){bracket + 2, (size_t)(s.p + s.n - bracket - 2)});
    bool here = hv__is(host, "localhost");
    struct hv__node *n = here ? hv__node_here(in->im) : hv__node_named(in->im, host.p, host.n);
    if (!n) {
        return false;
    }
    c.card = hv__copy(&in->im->arena, card);
    c.line = line;
    r->hosts += hv__cards(n) == 0;
    r->ranks++;
    hv__card_add(n, &c);
    return true;
}

/* The collective follows from the name of the program: "all_reduce_perf", "alltoall_perf_mpi". */
static void read_command(struct run *r, struct hv__piece s)
{
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter", "alltoall",
                                        "broadcast",  "sendrecv",   "reduce",         "gather",
                                        "scatter",    "hypercube"};
    for (size_t i = 0; i < HV_COUNT(names) && !r->collective[0]; i++) {
        char program[40];
        (void)strcpy(program, names[i]);
        (void)strcat(program, "_perf");
        if (hv__find(s, program)) {
            (void)strcpy(r->collective, names[i]);
        }
    }
}

static bool is_data_type(struct hv__piece w)
{
    static const char *const types[] = {
        "int8",     "uint8",    "int32",    "uint32", "int64",  "uint64", "half", "float", "double",
        "bfloat16", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", "f16",    "f32",  "f64",   "bf16"};
    for (size_t i = 0; i < HV_COUNT(types); i++) {
        if (hv__is(w, types[i])) {
            return true;
        }
    }
    return false;
}

/* size count type [redop [root]] time algbw busbw wrong time algbw busbw wrong. */
static bool read_row(struct run *r, struct hv__piece s)
{
    struct hv__piece words[MAX_WORDS];
    size_t n = 0;
    for (struct hv__piece w = hv__next_word(&s); w.n > 0 && n < MAX_WORDS; w = hv__next_word(&s)) {
        words[n++] = w;
    }
    if (n < 8 || !is_data_type(words[2]) || !hv_known(hv__plain_number(words[0]))) {
        return false;
    }
    /* behind the type: the first three numbers that are followed by the check's word */
    size_t from = n >= 11 ? n - 8 : 3; /* 4 + 4 at the end; a run of one kind has only 4 */
    struct row x = {hv__plain_number(words[0]), hv__plain_number(words[from]) * HV_US,
                    hv__plain_number(words[from + 1]) * HV_GBPS,
                    from + 2 < n ? hv__plain_number(words[from + 2]) * HV_GBPS : HV_UNKNOWN};
    if (!(x.time_s > 0) || !hv_known(x.algbw) || !hv_known(x.busbw)) {
        return false;
    }
    if (r->n < MAX_ROWS) {
        r->rows[r->n++] = x;
    }
    return true;
}

/* The bandwidth is the best of the largest rows, where latency is negligible; the latency is the
 * least time beyond bytes / bandwidth of the rows from 4 KiB to 1 % of the largest. */
static bool fit(const struct run *r, double *latency_s, double *bytes_per_s)
{
    double most = 0, largest = 0, least = (double)INFINITY;
    for (size_t i = 0; i < r->n; i++) {
        largest = r->rows[i].bytes >= 4096 ? fmax(largest, r->rows[i].bytes) : largest;
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct row *p = &r->rows[i];
        most = p->bytes >= 4096 && p->bytes * 10 > largest ? fmax(most, p->algbw) : most;
    }
    for (size_t i = 0; i < r->n && most > 0; i++) {
        const struct row *p = &r->rows[i];
        bool small = p->bytes >= 4096 && p->bytes * 100 < largest;
        least = small ? fmin(least, fmax(p->time_s - p->bytes / most, 0)) : least;
    }
    *latency_s = isfinite(least) ? least : HV_UNKNOWN;
    *bytes_per_s = most;
    return most > 0;
}

/* Bus bandwidth per algorithm bandwidth, from the largest row. */
static double bus_factor(const struct run *r)
{
    double factor = HV_UNKNOWN, bytes = -1;
    for (size_t i = 0; i < r->n; i++) {
        const struct row *p = &r->rows[i];
        if (p->bytes > bytes && p->algbw > 0 && p->busbw > 0) {
            factor = p->busbw / p->algbw;
            bytes = p->bytes;
        }
    }
    return factor;
}

/* Output without its header: the number of ranks of an all-reduce follows from the ratio of the two
 * bandwidths. */
static void guess_ranks(struct hv__in *in, struct run *r, double factor)
{
    double n = factor > 1.001 && factor < 1.9999 ? round(2 / (2 - factor)) : 8;
    struct hv__node *node = hv__node_here(in->im);
    if (hv__cards(node) > 0 || in->im->nodes.n > 1) {
        r->ranks = (size_t)n;
        return;
    }
    struct hv__card c = hv__card_unknown();
    r->ranks = (size_t)fmin(fmax(n, 2), 100000);
    c.count = r->ranks <= 8 ? (uint32_t)r->ranks : 8;
    node->count = (uint32_t)((r->ranks + 7) / 8);
    r->hosts = node->count;
    hv__card_add(node, &c);
    hv__guessed(in, 0,
                "the list of devices is missing: the bandwidths fit %zu ranks, %u nodes of %u",
                r->ranks, node->count, c.count);
}

static const char *unit_text(const struct run *r)
{
    return r->collective[0] ? r->collective : "the collective";
}

/* Stores the fit: for the links inside the node, or for the network cards. */
static void apply(struct hv__in *in, struct run *r)
{
    double latency = HV_UNKNOWN, rate = HV_UNKNOWN, factor = bus_factor(r);
    if (!fit(r, &latency, &rate) || !hv_known(factor)) {
        hv__guessed(in, 0, "no row has 4 KiB or more, so the link cannot be measured");
        return;
    }
    double bus = rate * factor, steps = 2 * fmax((double)r->ranks - 1, 1);
    bool inside = r->hosts <= 1;
    hv__understood(in, r->line,
                   "%s of %zu ranks on %zu nodes: bus bandwidth %.4g GB/s, start %.3g us",
                   unit_text(r), r->ranks, r->hosts, bus / HV_GBPS, latency / HV_US);
    for (size_t i = 0; i < in->im->nodes.n; i++) {
        struct hv__links *l = &in->im->nodes.items[i].links;
        if (inside) {
            l->device_bytes_per_s = fmax(hv_or(l->device_bytes_per_s, 0), bus);
            l->device_latency_s = hv_known(latency) ? latency / steps : HV_UNKNOWN;
        } else {
            l->nic_bytes_per_s = fmax(hv_or(l->nic_bytes_per_s, 0), bus);
            l->nic_is_sum = true;
            l->nic_latency_s = hv_known(latency) ? latency / steps : HV_UNKNOWN;
        }
    }
    hv__guessed(in, 0,
                inside ? "the bus bandwidth is taken as the bandwidth from one device to its peers"
                       : "the bus bandwidth is taken as the bandwidth of a node's network: inside "
                         "the node the catalogue's figures are used");
}

enum hv_status hv__read_nccl_tests(struct hv__in *in, struct hv_err *err)
{
    struct run *r = hv_arena_new(&in->im->arena, struct run, 1);
    struct hv__lines l = {.rest = in->text, .left = in->n};
    size_t other = 0;
    while (hv__next_line(&l)) {
        struct hv__piece s = untag(l.piece);
        if (s.n == 0 || read_device(in, r, s, l.line)) {
            continue;
        }
        if (is_title_row(s)) {
            r->line = l.line;
            tell_titles(in, s, l.line);
        } else if (!read_row(r, s)) {
            read_command(r, s);
            other += s.p[0] != '#';
        }
    }
    if (other > 0) {
        hv__ignored(in, 0, "%zu lines of logs and launchers", other);
    }
    if (r->n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "there is no row of measurements in it: the run failed before the first "
                         "one; look at its errors and run it again");
    }
    if (r->ranks == 0) {
        guess_ranks(in, r, bus_factor(r));
    }
    apply(in, r);
    return HV_OK;
}
