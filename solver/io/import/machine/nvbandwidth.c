/*
 * nvbandwidth's matrices (host to card, card to card) and the tables of perftest's ib_write_bw and
 * kin (one network card). Sources: nvbandwidth README; perftest README.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include <ctype.h>
#include <string.h>

static bool is_perftest(const struct hv__in *in)
{
    struct hv__piece s = {in->text, in->n};
    return hv__find(s, "#bytes") && (hv__find(s, "BW average") || hv__find(s, "t_typical"));
}

bool hv__is_nvbandwidth(const struct hv__in *in)
{
    struct hv__piece s = {in->text, in->n};
    return !in->tree && !in->xml &&
           (hv__find(s, "nvbandwidth Version") || hv__find(s, "_memcpy_ce.") ||
            hv__find(s, "_memcpy_sm.") || is_perftest(in));
}

/* ---- perftest ---------------------------------------------------------------------------------
 */

/* Bytes per second in one unit of the table: "BW average[MB/sec]" (1e6? 2^20 by default). */
static double perftest_unit(struct hv__piece title)
{
    if (hv__find(title, "Gb/sec")) {
        return 1e9 / 8;
    }
    return hv__find(title, "GB/sec") ? HV_GIB : HV_MIB;
}

static enum hv_status read_perftest(struct hv__in *in, struct hv_err *err)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    double unit = HV_UNKNOWN, most = 0;
    bool latency = false;
    double least_us = HV_UNKNOWN;
    while (hv__next_line(&l)) {
        struct hv__piece s = l.piece;
        if (hv__find(s, "#bytes")) {
            unit = perftest_unit(s);
            latency = hv__find(s, "t_typical") != NULL;
            continue;
        }
        double bytes = hv__plain_number(hv__next_word(&s)),
               count = hv__plain_number(hv__next_word(&s));
        double peak = hv__plain_number(hv__next_word(&s)),
               average = hv__plain_number(hv__next_word(&s));
        if (!hv_known(unit) || !(bytes > 0) || !hv_known(count) || !(peak > 0)) {
            continue;
        }
        if (latency) { /* t_min, t_max, t_typical */
            double typical = hv__plain_number(hv__next_word(&s));
            least_us = hv_known(least_us) ? least_us : hv_or(typical, peak);
        } else {
            most = fmax(most, hv_or(average, peak) * unit);
        }
    }
    struct hv__links *n = &hv__node_here(in->im)->links;
    if (hv_known(least_us)) {
        n->nic_latency_s = least_us * HV_US;
        hv__understood(in, 0, "latency of the network card: %.3g us", least_us);
    }
    if (most > 0) {
        n->nic_bytes_per_s = most;
        n->n_nics = n->n_nics ? n->n_nics : 1;
        hv__understood(in, 0, "one network card: %.4g GB/s", most / HV_GBPS);
        hv__ignored(in, 0, "addresses, queue pairs and message rates");
    }
    return most > 0 || hv_known(least_us)
               ? HV_OK
               : hv_err_at(err, HV_ENO, in->name, 0, 0, "there is no row of measurements in it");
}

/* ---- nvbandwidth ------------------------------------------------------------------------------
 */

/* Results of one test: its largest and mean cell. */
struct test {
    char name[64];
    double most, sum;
    size_t n, columns;
    bool in_matrix;
};

static void finish(struct hv__in *in, struct test *t, unsigned line)
{
    struct hv__links *l = &hv__node_here(in->im)->links;
    double mean = t->n > 0 ? t->sum / (double)t->n * HV_GBPS : HV_UNKNOWN;
    bool both = strstr(t->name, "bidirectional") != NULL;
    bool host = strncmp(t->name, "host_to_device_memcpy", 21) == 0 ||
                strncmp(t->name, "device_to_host_memcpy", 21) == 0;
    bool peer = strncmp(t->name, "device_to_device_memcpy", 23) == 0 ||
                strncmp(t->name, "one_to_all", 10) == 0;
    if (t->n == 0 || !*t->name) {
        t->n = 0;
        return;
    }
    if (host && !both) {
        l->host_bytes_per_s = fmin(hv_or(l->host_bytes_per_s, (double)INFINITY), mean);
        hv__understood(in, line, "%s: %.4g GB/s", t->name, mean / HV_GBPS);
    } else if (peer && !both) {
        l->device_bytes_per_s = fmax(hv_or(l->device_bytes_per_s, 0), mean);
        hv__understood(in, line, "%s: %.4g GB/s", t->name, mean / HV_GBPS);
    } else {
        hv__ignored(in, line, "%s", t->name);
    }
    t->n = 0;
}

/* " 0    369.36    269.33": a row of the matrix; N/A marks the diagonal. */
static void read_cells(struct test *t, struct hv__piece s)
{
    struct hv__piece first = hv__next_word(&s);
    if (!t->in_matrix || !hv_known(hv__plain_number(first))) {
        return;
    }
    for (struct hv__piece w = hv__next_word(&s); w.n > 0; w = hv__next_word(&s)) {
        double x = hv__plain_number(w);
        if (x > 0 && memchr(w.p, '.', w.n)) {
            t->sum += x;
            t->most = fmax(t->most, x);
            t->n++;
        }
    }
}

/* "Device 0: NVIDIA GH200 480GB (00000009:01:00)". */
static bool read_device(struct hv__in *in, struct hv__piece s, unsigned line)
{
    struct hv__card c = hv__card_unknown();
    if (!hv__starts(s, "Device ") || s.n < 9 || !isdigit((unsigned char)s.p[7])) {
        return false;
    }
    (void)hv__before(&s, ':');
    const char *end = hv__find(s, " (");
    struct hv__piece name = hv__strip(end ? (struct hv__piece){s.p, (size_t)(end - s.p)} : s);
    c.card = hv__copy(&in->im->arena, name);
    c.line = line;
    hv__card_add(hv__node_here(in->im), &c);
    return true;
}

enum hv_status hv__read_nvbandwidth(struct hv__in *in, struct hv_err *err)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    struct test t = {0};
    size_t tests = 0, devices = 0;
    if (is_perftest(in)) {
        return read_perftest(in, err);
    }
    while (hv__next_line(&l)) {
        struct hv__piece s = hv__strip(l.piece);
        if (hv__starts(s, "Running ")) {
            finish(in, &t, l.line);
            struct hv__piece rest = {s.p + 8, s.n - 8}, name = hv__before(&rest, '.');
            size_t n = name.n < sizeof t.name - 1 ? name.n : sizeof t.name - 1;
            t = (struct test){.n = 0};
            memcpy(t.name, name.p, n);
            tests++;
        } else if (hv__find(s, "bandwidth (GB/s)")) {
            t.in_matrix = true;
        } else if (hv__starts(s, "SUM ")) {
            t.in_matrix = false;
        } else if (!read_device(in, s, l.line)) {
            read_cells(&t, s);
        } else {
            devices++;
        }
    }
    finish(in, &t, l.line);
    if (tests == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "no test ran; read the errors in the file and run nvbandwidth again");
    }
    if (devices == 0) {
        hv__guessed(in, 0, "the list of devices is missing");
    }
    return HV_OK;
}
