/*
 * Slurm's texts: `scontrol show node` (one line or many per node), slurm.conf's NodeName lines, and
 * sinfo with any columns: columns are identified by the header, or without one by their values. A
 * node listed once per partition counts once. Sources: scontrol(1), sinfo(1), slurm.conf(5).
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/scheduler/slurm.h"
#include <ctype.h>
#include <string.h>

#define MAX_FIELDS 64
/* Shorter names ("2u4n01") are ordinary host names. */
#define LEAST_GLUED 9

/* One node, or a list of equal nodes, as read from a line. */
struct entry {
    struct hv__piece nodes, gres, state, features, cpus;
    double count; /* nodes where no names are given; 0 */
    unsigned line;
};

/* State of the callback for each host of an entry. */
struct sink {
    struct hv__in *in;
    const struct entry *e;
    size_t *n;
};

static void fill(struct hv__in *in, struct hv__node *n, const struct entry *e)
{
    if (hv__cards(n) == 0) {
        (void)hv__gres_add(in, e->line, n, e->gres, e->features);
    }
    n->drained = n->drained || hv__slurm_out(e->state);
    n->cpus = hv_or(n->cpus, hv__plain_number(e->cpus));
}

static bool add_host(void *ctx, const char *name, size_t n)
{
    struct sink *s = ctx;
    struct hv__node *node = hv__node_named(s->in->im, name, n);
    if (node) {
        fill(s->in, node, s->e);
        (*s->n)++;
    }
    return node != NULL;
}

static void add_entry(struct hv__in *in, const struct entry *e, size_t *n)
{
    struct sink s = {in, e, n};
    if (e->nodes.n > 0) {
        if (!hv__is(e->nodes, "DEFAULT")) {
            (void)hv__hosts(e->nodes, HV__MAX_NODES, add_host, &s);
        }
        return;
    }
    struct hv__node *node = hv__node_add(in->im);
    if (node && e->count >= 1) {
        node->name = "node";
        node->count = (uint32_t)fmin(e->count, HV__MAX_NODES);
        fill(in, node, e);
        (*n)++;
    }
}

/* ---- Key=Value --------------------------------------------------------------------------------
 */

/* The value of a key at the start of a word; ends at the next blank. */
static struct hv__piece value_of(struct hv__piece record, const char *key)
{
    size_t len = strlen(key);
    for (struct hv__piece s = record; s.n > len;) {
        const char *at = hv__find(s, key);
        if (!at) {
            break;
        }
        bool start = at == record.p || isspace((unsigned char)at[-1]);
        s.n -= (size_t)(at - s.p) + len;
        s.p = at + len;
        if (start && s.n > 0 && s.p[0] == '=') {
            struct hv__piece rest = {s.p + 1, s.n - 1};
            return rest.n > 0 && isspace((unsigned char)rest.p[0]) ? (struct hv__piece){rest.p, 0}
                                                                   : hv__next_word(&rest);
        }
    }
    return (struct hv__piece){record.p, 0};
}

/* The keys of a record in the report: a key begins a word and ends at '='. */
static void tell_record(struct hv__in *in, struct hv__piece record, unsigned line)
{
    static const char *const used[] = {"NodeName",       "Gres",    "State",
                                       "ActiveFeatures", "CPUTot",  "AvailableFeatures",
                                       "Feature",        "CfgTRES", NULL};
    for (struct hv__piece w = hv__next_word(&record); w.n > 0; w = hv__next_word(&record)) {
        struct hv__piece value = w, key = hv__before(&value, '=');
        bool known = false;
        for (size_t i = 0; used[i]; i++) {
            known = known || hv__is(key, used[i]);
        }
        if (key.n > 0 && key.n < w.n && isalpha((unsigned char)key.p[0])) {
            hv__member(in, known, line, hv__copy(&in->im->arena, key),
                       hv__copy(&in->im->arena, value));
        }
    }
}

static void read_record(struct hv__in *in, struct hv__piece record, unsigned line, size_t *n)
{
    struct entry e = {.nodes = value_of(record, "NodeName"),
                      .gres = value_of(record, "Gres"),
                      .state = value_of(record, "State"),
                      .features = value_of(record, "ActiveFeatures"),
                      .cpus = value_of(record, "CPUTot"),
                      .line = line};
    if (e.features.n == 0) {
        e.features = value_of(record, "AvailableFeatures");
    }
    if (e.features.n == 0) {
        e.features = value_of(record, "Feature");
    }
    if (!hv__is_gres(e.gres)) {
        struct hv__piece tres = value_of(record, "CfgTRES");
        e.gres = hv__find(tres, "gres/gpu") ? tres : e.gres;
    }
    struct hv__piece version = value_of(record, "Version");
    if (version.n > 0) {
        hv__raw(in, "slurm_version", hv__copy(&in->im->arena, version));
    }
    tell_record(in, record, line);
    add_entry(in, &e, n);
}

/* Records begin at NodeName= at the start of a line. */
static void read_records(struct hv__in *in, size_t *n)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    const char *start = NULL;
    unsigned at = 0;
    for (bool more = true; more;) {
        more = hv__next_line(&l);
        struct hv__piece s = more ? hv__strip(l.piece) : (struct hv__piece){in->text + in->n, 0};
        bool ends = !more || hv__starts(s, "NodeName=") || hv__starts(s, "PartitionName=");
        if (start && ends) {
            read_record(in, (struct hv__piece){start, (size_t)(s.p - start)}, at, n);
            start = NULL;
        }
        if (more && hv__starts(s, "NodeName=")) {
            start = s.p;
            at = l.line;
        }
    }
}

/* ---- tables -----------------------------------------------------------------------------------
 */

/* Columns of sinfo that are used: titles of -o and -O. */
enum column { NODES_LIST, NODES_COUNT, GRES, STATE, FEATURES, COLUMN_N };
static const struct {
    const char *title;
    enum column column;
} titles[] = {
    {"NODELIST", NODES_LIST},
    {"HOSTNAMES", NODES_LIST},
    {"NODE_NAME", NODES_LIST},
    {"HOSTNAME", NODES_LIST},
    {"NODEHOST", NODES_LIST},
    {"NODES", NODES_COUNT},
    {"GRES", GRES},
    {"STATE", STATE},
    {"STATECOMPACT", STATE},
    {"STATELONG", STATE},
    {"FEATURES", FEATURES},
    {"AVAIL_FEATURES", FEATURES},
    {"ACTIVE_FEATURES", FEATURES},
    {"FEATURES_ACT", FEATURES},
};

struct table {
    int at[COLUMN_N];
    size_t start[MAX_FIELDS]; /* of the titles, for values with blanks or none */
    size_t n;
    char separator; /* | or comma between fields; a blank: words */
};

static size_t split(struct hv__piece line, char separator, struct hv__piece out[MAX_FIELDS])
{
    size_t n = 0;
    bool words = separator == ' ';
    while (n < MAX_FIELDS) {
        struct hv__piece w = words ? hv__next_word(&line) : hv__strip(hv__before(&line, separator));
        if (w.n == 0 && (words || line.n == 0)) {
            break;
        }
        out[n++] = w;
    }
    return n;
}

/* Separator of the fields of a line: a bar where there is one, a comma where there is no blank. */
static char separator_of(struct hv__piece line)
{
    line = hv__strip(line);
    if (memchr(line.p, '|', line.n)) {
        return '|';
    }
    bool blank = memchr(line.p, ' ', line.n) || memchr(line.p, '\t', line.n);
    return !blank && memchr(line.p, ',', line.n) ? ',' : ' ';
}

static bool read_titles(struct hv__piece line, struct table *t)
{
    struct hv__piece words[MAX_FIELDS];
    bool any = false;
    *t = (struct table){.separator = separator_of(line)};
    memset(t->at, -1, sizeof t->at);
    t->n = split(line, t->separator, words);
    for (size_t i = 0; i < t->n; i++) {
        t->start[i] = (size_t)(words[i].p - line.p);
        for (size_t k = 0; k < HV_COUNT(titles); k++) {
            if (hv__like(words[i], titles[k].title) && t->at[titles[k].column] < 0) {
                t->at[titles[k].column] = (int)i;
                any = any || titles[k].column != NODES_COUNT;
            }
        }
    }
    return any && (t->at[NODES_LIST] >= 0 || t->at[NODES_COUNT] >= 0);
}

/* The columns in the report. */
static void tell_titles(struct hv__in *in, struct hv__piece line, unsigned at)
{
    struct hv__piece words[MAX_FIELDS];
    size_t n = split(line, separator_of(line), words);
    for (size_t i = 0; i < n; i++) {
        bool used = false;
        for (size_t k = 0; k < HV_COUNT(titles); k++) {
            used = used || hv__like(words[i], titles[k].title);
        }
        hv__member(in, used, at, hv__copy(&in->im->arena, words[i]), NULL);
    }
}

/* The field of a column: by number when the row has as many words, else by where its title is. */
static struct hv__piece field(const struct table *t, struct hv__piece line, enum column c)
{
    struct hv__piece words[MAX_FIELDS], none = {line.p, 0};
    if (t->at[c] < 0) {
        return none;
    }
    size_t n = split(line, t->separator, words), at = (size_t)t->at[c];
    if (n == t->n || t->separator != ' ') {
        return at < n ? words[at] : none;
    }
    size_t from = t->start[at], to = at + 1 < t->n ? t->start[at + 1] : line.n;
    from = from < line.n ? from : line.n;
    to = to < line.n ? to : line.n;
    return hv__strip((struct hv__piece){line.p + from, to - from});
}

/* Reads a row without header: columns are identified by their values. */
static bool guess_row(struct hv__piece line, struct entry *e)
{
    static const char *const states[] = {"idle", "mix",   "alloc", "down", "drain", "drng",
                                         "comp", "maint", "resv",  "fail", "plnd",  "unk",
                                         "pow",  "boot",  "inval", "futr"};
    struct hv__piece words[MAX_FIELDS];
    size_t n = split(line, memchr(line.p, '|', line.n) ? '|' : ' ', words);
    for (size_t i = 0; i < n; i++) {
        if (e->gres.n == 0 && hv__is_gres(words[i])) {
            e->gres = words[i];
        }
        for (size_t k = 0; k < HV_COUNT(states) && i > 0 && e->state.n == 0; k++) {
            e->state = hv__starts(words[i], states[k]) ? words[i] : e->state;
        }
    }
    if (n == 0) {
        return false;
    }
    e->count = hv__plain_number(words[0]);
    if (!hv_known(e->count)) {
        e->count = 0;
        e->nodes = words[0];
    }
    return n > 1 || e->gres.n > 0;
}

/* "name,feature,feature": lists of features, as sites print them. */
static bool feature_row(struct hv__in *in, struct hv__piece line, struct entry *e)
{
    struct hv__piece rest = hv__strip(line), name = hv__before(&rest, ',');
    *e = (struct entry){.nodes = name,
                        .features = rest,
                        .line = e->line,
                        .gres = {line.p, 0},
                        .state = {line.p, 0},
                        .cpus = {line.p, 0}};
    for (struct hv__piece f = rest; f.n > 0;) {
        if (hv__like(hv__before(&f, ','), "gpu")) {
            e->gres = hv__piece_of("gpu:1");
            hv__guessed(in, 0, "nodes with the feature \"gpu\" are listed with one card");
        }
    }
    return name.n > 0 && rest.n > 0;
}

/* True where lines are lists of features: no blanks, commas, and "gpu" in one of them. */
static bool is_feature_list(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    bool gpu = false;
    while (hv__next_line(&l)) {
        struct hv__piece s = hv__strip(l.piece), rest = s;
        if (s.n == 0) {
            continue;
        }
        if (memchr(s.p, ' ', s.n) || !memchr(s.p, ',', s.n) || memchr(s.p, ':', s.n) ||
            memchr(s.p, '"', s.n) || !isalnum((unsigned char)s.p[0])) {
            return false;
        }
        (void)hv__before(&rest, ',');
        gpu = gpu || hv__find(rest, ",gpu,") || hv__starts(rest, "gpu,");
    }
    return gpu;
}

/* True where a name looks like values of adjacent fixed-width columns without a blank between them:
 * alternating digits and letters, beginning with digits ("28o0740r730": CPUs, host, model). */
static bool is_glued(struct hv__piece name)
{
    size_t turns = 0;
    for (size_t i = 0; i < name.n; i++) {
        bool digit = isdigit((unsigned char)name.p[i]) != 0;
        if (!digit && !isalpha((unsigned char)name.p[i])) {
            return false;
        }
        turns += i == 0 || digit != (isdigit((unsigned char)name.p[i - 1]) != 0);
    }
    return turns >= 5 && name.n >= LEAST_GLUED && isdigit((unsigned char)name.p[0]);
}

/* Reads a row below a header. */
static bool titled_row(const struct table *t, struct hv__piece line, struct entry *e)
{
    e->nodes = field(t, line, NODES_LIST);
    e->gres = field(t, line, GRES);
    e->state = field(t, line, STATE);
    e->features = field(t, line, FEATURES);
    e->count = hv_or(hv__plain_number(field(t, line, NODES_COUNT)), 0);
    return e->nodes.n > 0 || e->count > 0;
}

static void note_glued(struct hv__in *in, unsigned line, struct hv__piece nodes)
{
    hv__guessed(
        in, line,
        "\"%.*s\" looks like columns without a space between them, so names of nodes may be "
        "wrong: `sinfo -N -o \"%%N|%%G|%%T|%%f\"` separates them",
        (int)(nodes.n < 40 ? nodes.n : 40), nodes.p);
}

static void read_table(struct hv__in *in, size_t *n)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    struct table t = {.n = 0};
    bool headed = false, glued = false, features = is_feature_list(in);
    while (hv__next_line(&l)) {
        struct entry e = {.line = l.line};
        struct hv__piece none = {l.piece.p, 0};
        e.nodes = e.gres = e.state = e.features = e.cpus = none;
        bool good;
        if (hv__strip(l.piece).n == 0) {
            continue;
        }
        struct table found;
        if (read_titles(l.piece, &found)) {
            t = found;
            headed = true;
            hv__understood(in, l.line, "a table with a header");
            tell_titles(in, l.piece, l.line);
            continue;
        }
        if (features) {
            good = feature_row(in, l.piece, &e);
        } else if (headed) {
            good = titled_row(&t, l.piece, &e);
        } else {
            good = guess_row(l.piece, &e);
        }
        if (good && !glued && is_glued(e.nodes)) {
            glued = true;
            note_glued(in, l.line, e.nodes);
        }
        if (good) {
            add_entry(in, &e, n);
        } else {
            hv__ignored(in, l.line, "a line that does not describe a node");
        }
    }
    if (!headed) {
        hv__guessed(in, 0, "there is no header: the columns were recognised by their contents");
    }
}

/* ---- the format -------------------------------------------------------------------------------
 */

static bool has_records(const struct hv__in *in)
{
    struct hv__piece all = {in->text, in->n};
    const char *at = hv__find(all, "NodeName=");
    return at && (at == in->text || isspace((unsigned char)at[-1]));
}

bool hv__is_slurm(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    struct table t;
    if (in->tree || in->xml) {
        return false;
    }
    if (has_records(in)) {
        return true;
    }
    while (hv__next_line(&l) && l.line < 100) {
        struct hv__piece rest = l.piece;
        if (l.line < 10 && read_titles(l.piece, &t) && t.n > 1) {
            return true;
        }
        for (struct hv__piece w = hv__next_word(&rest); w.n > 0; w = hv__next_word(&rest)) {
            if (hv__starts(w, "gpu:") || hv__starts(w, "gres/gpu") || hv__starts(w, "mig:")) {
                return l.piece.p[0] != '#';
            }
        }
    }
    return is_feature_list(in);
}

enum hv_status hv__read_slurm(struct hv__in *in, struct hv_err *err)
{
    size_t n = 0;
    if (has_records(in)) {
        read_records(in, &n);
    } else {
        read_table(in, &n);
    }
    if (n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "there is no node in it; `scontrol show node` or `sinfo -N -O "
                         "NodeList:30,Gres:80,StateLong` lists them");
    }
    hv__understood(in, 0, "%zu lines or names of nodes", n);
    hv__guessed(in, 0, "Slurm gives no links: the catalogue's links of the cards are used");
    return HV_OK;
}
