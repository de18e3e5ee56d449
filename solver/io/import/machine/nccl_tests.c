/*
 * Outputs of nccl-tests and rccl-tests. The row layouts differ by version and collective: time and
 * bandwidths are the three numbers behind the data type that fit the size, else the columns of the
 * titles above the rows. Time, algbw and busbw are given out-of-place, in-place or both. Log lines
 * and errors between the rows do not matter. JSON outputs have the same figures by name. Source:
 * nccl-tests README and doc/PERFORMANCE.md; rccl-tests README.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>
#include <strings.h>

#define MAX_ROWS  4096
#define MAX_WORDS 24

/* Columns that are used; the second ones are in-place. */
enum column { SIZE, TYPE, TIME, ALGBW, BUSBW, TIME_2, ALGBW_2, BUSBW_2, COLUMN_N };
static const char *const titles[COLUMN_N] = {"size",  "type", "time",  "algbw",
                                             "busbw", "time", "algbw", "busbw"};

/* One row: bytes, and the out-of-place figures. */
struct row {
    double bytes, time_s, algbw, busbw;
};

struct run {
    struct row rows[MAX_ROWS];
    size_t n, ranks, hosts, bad;
    int at[COLUMN_N]; /* of the last titles; -1: no such column */
    size_t columns;   /* of the last titles */
    bool commas;      /* between the columns */
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
    return hv__find_like(s, "busbw") && hv__find_like(s, "algbw") &&
           (hv__find_like(s, "size") || hv__find_like(s, "bytes"));
}

/* Splits a line at blanks, or at commas. */
static size_t split(struct hv__piece s, bool commas, struct hv__piece words[MAX_WORDS])
{
    size_t n = 0;
    while (s.n > 0 && n < MAX_WORDS) {
        struct hv__piece w = commas ? hv__strip(hv__before(&s, ',')) : hv__next_word(&s);
        if (w.n == 0 && !commas) {
            break;
        }
        words[n++] = w;
    }
    return n;
}

/* A title of a column, "bytes" being a size; COLUMN_N: of none that is used. */
static enum column column_of(struct hv__piece title)
{
    for (enum column c = SIZE; c <= BUSBW; c++) {
        if (hv__like(title, titles[c])) {
            return c;
        }
    }
    return hv__like(title, "bytes") ? SIZE : COLUMN_N;
}

static void read_titles(struct hv__in *in, struct run *r, struct hv__piece s, unsigned line)
{
    struct hv__piece words[MAX_WORDS];
    s.n -= s.n > 0 && s.p[0] == '#';
    s.p += s.p[0] == '#';
    r->commas = memchr(s.p, ',', s.n) != NULL;
    r->columns = split(s, r->commas, words);
    for (size_t i = 0; i < r->columns; i++) {
        if (words[i].n > 0) {
            hv__member(in, column_of(words[i]) < COLUMN_N, line, hv__copy(&in->im->arena, words[i]),
                       NULL);
        }
    }
    for (size_t c = 0; c < COLUMN_N; c++) {
        r->at[c] = -1;
        for (size_t i = 0; i < r->columns && r->at[c] < 0; i++) {
            bool taken = c >= TIME_2 && r->at[c - 3] >= (int)i;
            bool is = column_of(words[i]) == (c < TIME_2 ? c : c - 3);
            r->at[c] = is && !taken ? (int)i : -1;
        }
    }
}

static bool has_json_rows(json_t *v, int depth);

bool hv__is_nccl_tests(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    if (in->is_json && in->tree) { /* "[1,0]<stdout>:" only looks like JSON */
        return has_json_rows(in->tree, 0);
    }
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
    r->hosts += n->read_in != in->im->files.n;
    n->cards.n = n->read_in != in->im->files.n ? 0 : n->cards.n; /* each log lists all of them */
    n->read_in = in->im->files.n;
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

/* "12.34", "1,048,576" or "12,34": a comma is a decimal one unless three digits follow. */
static double number(struct hv__piece s)
{
    char plain[48];
    size_t n = 0;
    for (size_t i = 0; i < s.n && n + 1 < sizeof plain; i++) {
        size_t digits = 0;
        while (s.p[i] == ',' && i + 1 + digits < s.n &&
               isdigit((unsigned char)s.p[i + 1 + digits])) {
            digits++;
        }
        if (s.p[i] != ',' || digits != 3) {
            plain[n++] = s.p[i] == ',' ? '.' : s.p[i];
        }
    }
    return hv__plain_number((struct hv__piece){plain, n});
}

/* The figures of the columns from `time` on; unknown ones stay so. */
static struct row figures(const struct hv__piece *words, size_t n, const int at[3])
{
    double x[3] = {HV_UNKNOWN, HV_UNKNOWN, HV_UNKNOWN};
    for (size_t i = 0; i < 3; i++) {
        if (at[i] >= 0 && (size_t)at[i] < n) {
            x[i] = number(words[at[i]]);
        }
    }
    return (struct row){HV_UNKNOWN, x[0] * HV_US, x[1] * HV_GBPS, x[2] * HV_GBPS};
}

static void keep_row(struct run *r, double bytes, struct row x)
{
    x.bytes = bytes;
    x.time_s = hv_or(x.time_s, bytes / x.algbw);
    if (r->n < MAX_ROWS) {
        r->rows[r->n++] = x;
    }
}

/* "8", "8M" or "1,048,576" bytes. */
static double size_of(struct hv__piece s)
{
    return hv_or(hv__bytes(s, 1), number(s));
}

/* True where the row has a rate: a test of zero bytes has none. */
static bool is_measured(double bytes, const struct row *x)
{
    return bytes >= 0 && hv_known(x->algbw) && hv_known(x->busbw) &&
           (x->time_s > 0 || (!hv_known(x->time_s) && x->algbw > 0));
}

/* size count type [redop [root]] time algbw busbw [wrong] [time algbw busbw wrong], below titles:
 * `shift` words are in front of the columns. */
static bool titled_row(struct run *r, const struct hv__piece *words, size_t n, int shift)
{
    double bytes = size_of(words[r->at[SIZE] + shift]);
    for (enum column c = TIME; c <= TIME_2; c += 3) {
        const int at[3] = {r->at[c] < 0 ? -1 : r->at[c] + shift, r->at[c + 1] + shift,
                           r->at[c + 2] + shift};
        struct row x = figures(words, n, at);
        if (r->at[c + 1] >= 0 && r->at[c + 2] >= 0 && is_measured(bytes, &x)) {
            keep_row(r, bytes, x);
            return true;
        }
    }
    return false;
}

/* The same by the figures, as some rows have fewer words than titles: behind the type are words and
 * a root, then three numbers of which the second is bytes by the first. */
static bool bare_row(struct run *r, const struct hv__piece *words, size_t n, size_t type)
{
    double bytes = type >= 2 ? size_of(words[type - 2]) : HV_UNKNOWN;
    for (size_t i = type + 1; hv_known(bytes) && i + 2 < n; i++) {
        const int at[3] = {(int)i, (int)i + 1, (int)i + 2};
        struct row x = figures(words, n, at);
        double rate = bytes / x.time_s, off = fabs(rate - x.algbw);
        if (is_measured(bytes, &x) && (off <= 0.03 * rate || off <= 0.02 * HV_GBPS)) {
            keep_row(r, bytes, x);
            return true;
        }
    }
    return false;
}

static bool read_row(struct run *r, struct hv__piece s)
{
    struct hv__piece words[MAX_WORDS];
    size_t n = split(s, r->commas, words), type = 0;
    while (type < n && !is_data_type(words[type])) {
        type++;
    }
    bool titled = r->columns > 0 && r->at[SIZE] >= 0 && r->at[ALGBW] >= 0;
    if (type < n) {
        return bare_row(r, words, n, type) ||
               (titled && r->at[TYPE] >= 0 && (int)type >= r->at[TYPE] &&
                titled_row(r, words, n, (int)type - r->at[TYPE]));
    }
    return titled && r->at[TYPE] < 0 && n >= r->columns && titled_row(r, words, n, 0);
}

/* ---- JSON -----------------------------------------------------------------------------------
 */

/* The key of a member by name, without regard to case and separators: alg_bw is algBw. NULL: none.
 */
static const char *key_of(json_t *o, const char *name)
{
    for (void *it = json_object_iter(o); it; it = json_object_iter_next(o, it)) {
        const char *key = json_object_iter_key(it), *at = name;
        for (; *key != '\0'; key++) {
            if (isalnum((unsigned char)*key)) {
                if (tolower((unsigned char)*key) != *at) {
                    break;
                }
                at++;
            }
        }
        if (*key == '\0' && *at == '\0') {
            return json_object_iter_key(it);
        }
    }
    return NULL;
}

static json_t *member(json_t *o, const char *name)
{
    const char *key = key_of(o, name);
    return key ? json_object_get(o, key) : NULL;
}

/* A number; it counts as read. */
static double number_at(struct hv__in *in, json_t *o, const char *name)
{
    const char *key = key_of(o, name);
    json_t *v = key ? hv__get(in, o, key) : NULL;
    return json_is_number(v)   ? json_number_value(v)
           : json_is_string(v) ? number(hv__piece_of(json_string_value(v)))
                               : HV_UNKNOWN;
}

/* The object with the figures of a row: the row itself, or the member for one way of running. */
static json_t *figures_at(json_t *row)
{
    json_t *x = member(row, "outofplace");
    x = member(x, "busbw") ? x : member(row, "inplace");
    return member(x, "busbw") ? x : row;
}

static bool is_json_row(json_t *v)
{
    return (member(v, "size") || member(v, "bytes")) && member(figures_at(v), "busbw") &&
           member(figures_at(v), "algbw");
}

/* Rows anywhere in the tree, down to a depth. */
static void walk_json(struct hv__in *in, struct run *r, json_t *v, int depth)
{
    json_t *x;
    size_t i;
    const char *key;
    if (json_is_object(v) && is_json_row(v)) {
        json_t *f = figures_at(v);
        double size = number_at(in, v, "size"), bytes = hv_or(size, number_at(in, v, "bytes"));
        struct row row = {bytes, number_at(in, f, "time") * HV_US,
                          number_at(in, f, "algbw") * HV_GBPS, number_at(in, f, "busbw") * HV_GBPS};
        if (is_measured(bytes, &row)) {
            keep_row(r, bytes, row);
        }
        return;
    }
    json_array_foreach(v, i, x)
    {
        if (depth < 6) {
            walk_json(in, r, x, depth + 1);
        }
    }
    json_object_foreach(v, key, x)
    {
        if (depth < 6) {
            if (strcasecmp(key, "nranks") == 0 || strcasecmp(key, "ranks") == 0) {
                double ranks = hv_or(json_number_value(hv__get(in, v, key)), 0);
                r->ranks = ranks >= 1 && ranks < 100000 ? (size_t)ranks : r->ranks;
            }
            walk_json(in, r, x, depth + 1);
        }
    }
}

/* True where some array near the top holds rows. */
static bool has_json_rows(json_t *v, int depth)
{
    json_t *x;
    const char *key;
    if (json_is_array(v)) {
        return is_json_row(json_array_get(v, 0));
    }
    json_object_foreach(v, key, x)
    {
        if (depth < 3 && has_json_rows(x, depth + 1)) {
            return true;
        }
    }
    return false;
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
    if (in->im->nodes.n > 0) {
        r->ranks = r->ranks > 0 ? r->ranks : (size_t)n;
        return;
    }
    struct hv__node *node = hv__node_here(in->im);
    struct hv__card c = hv__card_unknown();
    n = r->ranks > 0 ? (double)r->ranks : n;
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
static void apply(struct hv__in *in, struct run *r, bool listed)
{
    double latency = HV_UNKNOWN, rate = HV_UNKNOWN, factor = bus_factor(r);
    if (!fit(r, &latency, &rate) || !hv_known(factor)) {
        hv__guessed(in, 0, "no row has 4 KiB or more, so the link cannot be measured");
        return;
    }
    double bus = rate * factor, steps = 2 * fmax((double)r->ranks - 1, 1);
    bool inside = r->hosts <= 1;
    char start[64] = "start unknown, since only one size was measured";
    if (hv_known(latency)) {
        (void)snprintf(start, sizeof start, "start %.3g us", latency / HV_US);
    }
    hv__understood(in, r->line, "%s of %zu ranks on %zu nodes: bus bandwidth %.4g GB/s, %s",
                   unit_text(r), r->ranks, r->hosts, bus / HV_GBPS, start);
    for (size_t i = 0; i < in->im->nodes.n; i++) {
        struct hv__links *l = &in->im->nodes.items[i].links;
        if (listed && in->im->nodes.items[i].read_in != in->im->files.n) {
            continue; /* a log with its own list of hosts is about these */
        }
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
    if (in->is_json && in->tree) {
        walk_json(in, r, in->tree, 0);
        l.left = 0;
    }
    while (hv__next_line(&l)) {
        struct hv__piece s = untag(l.piece);
        if (s.n == 0 || read_device(in, r, s, l.line)) {
            continue;
        }
        if (is_title_row(s)) {
            r->line = l.line;
            read_titles(in, r, s, l.line);
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
    bool listed = r->hosts > 0;
    if (!listed) {
        guess_ranks(in, r, bus_factor(r));
    }
    apply(in, r, listed);
    return HV_OK;
}
