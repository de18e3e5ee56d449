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
    struct hv__piece nodes, gres, state, features, cpus, memory, partitions;
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
    n->memory_bytes = hv_or(n->memory_bytes, hv__bytes(e->memory, HV_MIB));
    hv__slurm_partitions(in, n, e->partitions);
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

/* The value of a key at the start of a word, without quotation marks; ends at the next blank. Keys
 * are written in any case. */
static struct hv__piece value_of(struct hv__piece record, const char *key)
{
    size_t len = strlen(key);
    for (struct hv__piece s = record; s.n > len;) {
        const char *at = hv__find_like(s, key);
        if (!at) {
            break;
        }
        bool start = at == record.p || isspace((unsigned char)at[-1]);
        s.n -= (size_t)(at - s.p) + len;
        s.p = at + len;
        if (start && s.n > 0 && s.p[0] == '=') {
            struct hv__piece rest = {s.p + 1, s.n - 1};
            return rest.n > 0 && isspace((unsigned char)rest.p[0])
                       ? (struct hv__piece){rest.p, 0}
                       : hv__unquote(hv__next_word(&rest));
        }
    }
    return (struct hv__piece){record.p, 0};
}

/* Keys that are read of the records of nodes, of gres.conf and of partitions; NULL-terminated. */
static const char *const node_keys[] = {
    "NodeName", "Gres",       "State",      "ActiveFeatures", "AvailableFeatures",
    "Features", "Feature",    "CPUTot",     "CPUs",           "Procs",
    "CfgTRES",  "RealMemory", "Partitions", "Name",           "Type",
    "File",     "Count",      NULL};
static const char *const partition_keys[] = {"PartitionName", "Nodes", "TRES", "TotalNodes", NULL};
static const char *const no_keys[] = {NULL};

/* The keys of a record in the report: a key begins a word and ends at '='. */
static void tell_record(struct hv__in *in, struct hv__piece record, unsigned line,
                        const char *const *used)
{
    for (struct hv__piece w = hv__next_word(&record); w.n > 0; w = hv__next_word(&record)) {
        struct hv__piece value = w, key = hv__before(&value, '=');
        bool known = false;
        for (size_t i = 0; used[i]; i++) {
            known = known || hv__like(key, used[i]);
        }
        if (key.n > 0 && key.n < w.n && isalpha((unsigned char)key.p[0])) {
            hv__member(in, known, line, hv__copy(&in->im->arena, key),
                       hv__copy(&in->im->arena, value));
        }
    }
}

/* The value of the first key that the record has. */
static struct hv__piece first_of(struct hv__piece record, const char *const keys[], size_t n)
{
    struct hv__piece v = {record.p, 0};
    for (size_t i = 0; i < n && v.n == 0; i++) {
        v = value_of(record, keys[i]);
    }
    return v;
}

static bool count_host(void *ctx, const char *name, size_t n)
{
    (void)name;
    (void)n;
    (*(size_t *)ctx)++;
    return true;
}

/* A line of gres.conf: "Name=gpu Type=a100 File=/dev/nvidia[0-7]" is gpu:a100:8. */
static struct hv__piece gres_conf(struct hv__in *in, struct hv__piece record)
{
    struct hv__piece type = value_of(record, "Type"), file = value_of(record, "File");
    double count = hv__plain_number(value_of(record, "Count"));
    size_t files = 0;
    if (!hv__like(value_of(record, "Name"), "gpu")) {
        return (struct hv__piece){record.p, 0};
    }
    if (file.n > 0) {
        (void)hv__hosts(file, HV__MAX_NODES, count_host, &files);
    }
    count = hv_or(count, files > 0 ? (double)files : 1);
    return hv__piece_of(hv_arena_printf(&in->im->arena, "gpu:%.*s%s%.0f", (int)type.n, type.p,
                                        type.n > 0 ? ":" : "", count));
}

/* One record; values that it lacks are those of `defaults` (NodeName=DEFAULT), which may be NULL.
 */
static struct entry entry_of(struct hv__in *in, struct hv__piece record, unsigned line,
                             const struct entry *defaults)
{
    static const char *const features[] = {"ActiveFeatures", "AvailableFeatures", "Features",
                                           "Feature"};
    static const char *const cpus[] = {"CPUTot", "CPUs", "Procs"};
    struct entry e = {.nodes = value_of(record, "NodeName"),
                      .gres = value_of(record, "Gres"),
                      .state = value_of(record, "State"),
                      .features = first_of(record, features, HV_COUNT(features)),
                      .cpus = first_of(record, cpus, HV_COUNT(cpus)),
                      .memory = value_of(record, "RealMemory"),
                      .partitions = value_of(record, "Partitions"),
                      .line = line};
    if (!hv__is_gres(e.gres)) {
        struct hv__piece tres = value_of(record, "CfgTRES");
        e.gres = hv__find(tres, "gres/gpu") ? tres : e.gres;
    }
    if (e.gres.n == 0) {
        e.gres = gres_conf(in, record);
    }
    if (defaults) {
        e.gres = e.gres.n > 0 ? e.gres : defaults->gres;
        e.features = e.features.n > 0 ? e.features : defaults->features;
        e.cpus = e.cpus.n > 0 ? e.cpus : defaults->cpus;
        e.memory = e.memory.n > 0 ? e.memory : defaults->memory;
    }
    return e;
}

/* Callback for the hosts of a partition. */
struct partition {
    struct hv__in *in;
    struct hv__piece name, gres; /* gres: of one node; empty: not known */
    unsigned line;
    bool alone; /* the file has no records of nodes: the partitions tell what there is */
    size_t *n;
};

static bool add_partition_host(void *ctx, const char *name, size_t n)
{
    struct partition *p = ctx;
    struct hv__node *node = hv__node_find(p->in->im, name, n);
    if (!node && p->alone) {
        node = hv__node_named(p->in->im, name, n);
        *p->n += node != NULL;
    }
    if (node) {
        hv__slurm_partitions(p->in, node, p->name);
        if (p->alone && hv__cards(node) == 0 && p->gres.n > 0) {
            (void)hv__gres_add(p->in, p->line, node, p->gres, (struct hv__piece){name, 0});
        }
    }
    return true;
}

/* The GPUs of one node from the sum over a partition: "gres/gpu:p100=154" of 154 nodes. Empty where
 * they do not come out even, as then not every node has them. */
static struct hv__piece gres_per_node(struct hv__in *in, struct hv__piece record, unsigned line)
{
    struct hv__piece rest = value_of(record, "TRES"), type = {"", 0}, none = {"", 0};
    double nodes = hv__plain_number(value_of(record, "TotalNodes")), gpus = 0;
    while (rest.n > 0) {
        struct hv__piece value = hv__before(&rest, ','), key = hv__before(&value, '=');
        if (hv__is(key, "gres/gpu") || hv__starts(key, "gres/gpu:")) {
            bool typed = key.n > strlen("gres/gpu:");
            gpus = typed || type.n == 0 ? hv_or(hv__plain_number(value), 0) : gpus;
            type = typed ? (struct hv__piece){key.p + 9, key.n - 9} : type;
        }
    }
    double each = gpus / nodes;
    if (!(each >= 1) || fabs(each - round(each)) > 1e-9) {
        return none;
    }
    hv__guessed(in, line, "%.0f GPUs on the %.0f nodes of a partition are %.0f each", gpus, nodes,
                each);
    return hv__piece_of(hv_arena_printf(&in->im->arena, "gpu:%.*s%s%.0f", (int)type.n, type.p,
                                        type.n > 0 ? ":" : "", each));
}

/* "PartitionName=gpu Nodes=a[1-4]": the nodes are those before it, or of other partitions. */
static void read_partition(struct hv__in *in, struct hv__piece record, unsigned line, bool alone,
                           size_t *n)
{
    struct partition p = {in, value_of(record, "PartitionName"), {"", 0}, line, alone, n};
    struct hv__piece nodes = value_of(record, "Nodes");
    if (hv__is(p.name, "DEFAULT") || nodes.n == 0 || hv__is(nodes, "(null)")) {
        return;
    }
    if (hv__is(nodes, "ALL")) {
        for (size_t i = 0; i < in->im->nodes.n; i++) {
            struct hv__node *node = &in->im->nodes.items[i];
            if (node->name) {
                hv__slurm_partitions(in, node, p.name);
            }
        }
        return;
    }
    if (alone) {
        p.gres = gres_per_node(in, record, line);
    }
    (void)hv__hosts(nodes, HV__MAX_NODES, add_partition_host, &p);
}

static void read_record(struct hv__in *in, struct hv__piece record, unsigned line,
                        struct entry *defaults, size_t *n)
{
    struct entry e = entry_of(in, record, line, defaults);
    if (hv__like(e.nodes, "DEFAULT")) {
        *defaults = e;
        return;
    }
    struct hv__piece version = value_of(record, "Version");
    if (version.n > 0) {
        hv__raw(in, "slurm_version", hv__copy(&in->im->arena, version));
    }
    add_entry(in, &e, n);
}

static bool starts_like(struct hv__piece s, const char *with)
{
    size_t n = strlen(with);
    return s.n >= n && hv__like((struct hv__piece){s.p, n}, with);
}

/* True where a line begins a record of slurm.conf, gres.conf or scontrol. */
static bool begins_record(struct hv__piece s)
{
    return starts_like(s, "NodeName=") || starts_like(s, "PartitionName=") ||
           (starts_like(s, "Name=gpu") && hv__find_like(s, "File="));
}

/* True where a record of the text describes nodes. */
static bool has_node_records(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    while (hv__next_line(&l)) {
        struct hv__piece s = hv__strip(l.piece);
        if (begins_record(s) && !starts_like(s, "PartitionName=")) {
            return true;
        }
    }
    return false;
}

/* Records begin at NodeName= or PartitionName= at the start of a line; a comment ends one. */
static void read_records(struct hv__in *in, size_t *n)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    const char *start = NULL;
    unsigned at = 0;
    bool alone = !has_node_records(in);
    struct entry defaults = {.line = 0};
    defaults.nodes = defaults.gres = defaults.state = defaults.features = defaults.cpus =
        defaults.memory = defaults.partitions = (struct hv__piece){in->text, 0};
    for (bool more = true; more;) {
        more = hv__next_line(&l);
        struct hv__piece s = more ? hv__strip(l.piece) : (struct hv__piece){in->text + in->n, 0};
        bool begins = more && begins_record(s), comment = s.n > 0 && s.p[0] == '#';
        if (start && (!more || begins || comment)) {
            struct hv__piece record = {start, (size_t)(s.p - start)};
            if (starts_like(record, "PartitionName=")) {
                tell_record(in, record, at, partition_keys);
                read_partition(in, record, at, alone, n);
            } else {
                tell_record(in, record, at, node_keys);
                read_record(in, record, at, &defaults, n);
            }
            start = NULL;
        }
        if (more && !begins && !comment && !start) { /* settings of slurm.conf */
            tell_record(in, s, l.line, no_keys);
        }
        if (begins) {
            start = s.p;
            at = l.line;
        }
    }
}

/* ---- tables -----------------------------------------------------------------------------------
 */

/* Columns of sinfo that are used: titles of -o and -O. */
enum column { NODES_LIST, NODES_COUNT, GRES, STATE, FEATURES, PARTITION, MEMORY, CPUS, COLUMN_N };
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
    {"AVAIL_FE", FEATURES},
    {"PARTITION", PARTITION},
    {"MEMORY", MEMORY},
    {"CPUS", CPUS},
    {"HOSTLIST", NODES_LIST},
    {"NODENAME", NODES_LIST},
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
                any = any || (titles[k].column <= FEATURES && titles[k].column != NODES_COUNT);
            }
        }
    }
    return any && (t->at[NODES_LIST] >= 0 || t->at[NODES_COUNT] >= 0 || t->at[GRES] >= 0);
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

/* True where a word of a row without header may be the name of a partition. */
static bool may_be_partition(struct hv__piece w)
{
    return !hv_known(hv__plain_number(w)) && !hv__is(w, "(null)") && !hv__is(w, "N/A") &&
           !memchr(w.p, '/', w.n) && !memchr(w.p, ':', w.n) && !hv__is_slurm_state(w);
}

static bool has_digit(struct hv__piece w)
{
    for (size_t i = 0; i < w.n; i++) {
        if (isdigit((unsigned char)w.p[i])) {
            return true;
        }
    }
    return false;
}

/* "gpu|10|idle|…" (%P|%D|%T): a partition, which has no number in it, and a number of nodes. */
static bool is_partition_row(const struct hv__piece *words, size_t n)
{
    return n >= 3 && !has_digit(words[0]) && may_be_partition(words[0]) &&
           hv_known(hv__plain_number(words[1])) && hv__is_slurm_state(words[2]);
}

/* Reads a row without header: columns are identified by their values. */
static bool guess_row(struct hv__piece line, struct entry *e)
{
    struct hv__piece words[MAX_FIELDS];
    size_t n = split(line, memchr(line.p, '|', line.n) ? '|' : ' ', words);
    size_t at_state = 0;
    bool by_partition = is_partition_row(words, n);
    for (size_t i = by_partition; i < n; i++) {
        if (e->gres.n == 0 && hv__is_gres(words[i])) {
            e->gres = words[i];
        }
        bool better = e->state.n == 0 || hv__like(e->state, "unknown");
        if (i > 0 && better && hv__is_slurm_state(words[i])) {
            e->state = words[i];
            at_state = i;
        }
    }
    if (n == 0) {
        return false;
    }
    e->count = hv__plain_number(words[by_partition]);
    if (!hv_known(e->count)) {
        e->count = 0;
        e->nodes = words[0];
    }
    if (by_partition) {
        e->partitions = words[0];
    } else if (at_state > 0 && at_state + 1 < n && may_be_partition(words[at_state + 1])) {
        e->partitions = words[at_state + 1];
    } else if (e->count > 0 && e->gres.n > 0 && n > 2 && may_be_partition(words[1])) {
        e->partitions = words[1];
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
                        .cpus = {line.p, 0},
                        .memory = {line.p, 0},
                        .partitions = {line.p, 0}};
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
    e->partitions = field(t, line, PARTITION);
    e->memory = field(t, line, MEMORY);
    e->cpus = field(t, line, CPUS);
    e->count = hv_or(hv__plain_number(field(t, line, NODES_COUNT)), 0);
    if (t->at[NODES_LIST] < 0 && t->at[NODES_COUNT] < 0) {
        e->count = e->gres.n > 0; /* one node, as nothing counts them */
    }
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
        e.nodes = e.gres = e.state = e.features = e.cpus = e.memory = e.partitions = none;
        bool good;
        if (hv__strip(l.piece).n == 0) {
            continue;
        }
        struct table found;
        if (read_titles(l.piece, &found)) {
            t = found;
            headed = true;
            hv__understood(in, l.line, "a table with a header");
            if (t.at[NODES_LIST] < 0 && t.at[NODES_COUNT] < 0) {
                hv__guessed(in, l.line, "the table does not count nodes: one per line");
            }
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

/* True where the text has records of nodes, or of partitions with their nodes. */
static bool has_records(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    bool partition = false;
    while (hv__next_line(&l) && !partition) {
        partition = starts_like(hv__strip(l.piece), "PartitionName=");
    }
    struct hv__piece all = {in->text, in->n};
    return has_node_records(in) || (partition && value_of(all, "Nodes").n > 0);
}

/* True where every line has the state of a node behind its first word, as tables of sinfo do. */
static bool is_state_table(const struct hv__in *in)
{
    enum { LOOKED_AT = 50 };
    struct hv__lines l = {.rest = in->text, .left = in->n};
    size_t rows = 0;
    while (hv__next_line(&l) && rows < LOOKED_AT) {
        struct hv__piece words[MAX_FIELDS];
        size_t n = split(l.piece, separator_of(l.piece), words);
        bool state = false;
        for (size_t i = 1; i < n; i++) {
            state = state || hv__is_slurm_state(words[i]);
        }
        if (n > 0 && !state) {
            return false;
        }
        rows += n > 0;
    }
    return rows > 0;
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
    return is_feature_list(in) || is_state_table(in);
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
    hv__understood(in, 0, "%zu %s", n,
                   n == 1 ? "line or name of a node" : "lines or names of nodes");
    hv__guessed(in, 0, "Slurm gives no links: the catalogue's links of the cards are used");
    return HV_OK;
}
