/*
 * #SBATCH lines of a job script: the requested nodes and GPUs, component by component when the job
 * is heterogeneous. Source: sbatch(1), heterogeneous jobs.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/scheduler/slurm.h"
#include <ctype.h>
#include <string.h>

/* Request of one component. */
struct ask {
    double nodes, gpus, tasks, per_node, per_task;
    struct hv__piece gres, features, type, partition;
    unsigned line;
    bool any;
};

static struct ask nothing(void)
{
    return (struct ask){.nodes = HV_UNKNOWN,
                        .gpus = HV_UNKNOWN,
                        .tasks = HV_UNKNOWN,
                        .per_node = HV_UNKNOWN,
                        .per_task = HV_UNKNOWN,
                        .gres = {"", 0},
                        .features = {"", 0},
                        .type = {"", 0},
                        .partition = {"", 0}};
}

bool hv__is_sbatch(const struct hv__in *in)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    while (!in->tree && !in->xml && hv__next_line(&l)) {
        if (hv__starts(hv__strip(l.piece), "#SBATCH ")) {
            return true;
        }
    }
    return false;
}

/* "--nodes=2-4" is at least two. */
static double least(struct hv__piece v)
{
    return hv__plain_number(hv__before(&v, '-'));
}

/* "8", "h100:8": a number with or without a type, as gres. */
static struct hv__piece as_gres(struct hv__in *in, struct hv__piece v)
{
    return hv__piece_of(hv_arena_printf(&in->im->arena, "gpu:%.*s", (int)v.n, v.p));
}

/* "8" or "h100:8": the number, and the type where there is one. */
static void take_count(struct ask *a, struct hv__piece v, double *count)
{
    struct hv__piece rest = v, head = hv__before(&rest, ':');
    *count = hv__plain_number(rest.n > 0 ? rest : head);
    a->type = rest.n > 0 ? head : a->type;
}

static bool take(struct hv__in *in, struct ask *a, struct hv__piece key, struct hv__piece v)
{
    if (hv__is(key, "--nodes") || hv__is(key, "-N")) {
        a->nodes = least(v);
    } else if (hv__is(key, "--gres")) {
        a->gres = v;
    } else if (hv__is(key, "--gpus-per-node")) {
        a->gres = as_gres(in, v);
    } else if (hv__is(key, "--gpus") || hv__is(key, "-G")) {
        take_count(a, v, &a->gpus);
    } else if (hv__is(key, "--ntasks") || hv__is(key, "-n")) {
        a->tasks = hv__plain_number(v);
    } else if (hv__is(key, "--ntasks-per-node")) {
        a->per_node = hv__plain_number(v);
    } else if (hv__is(key, "--gpus-per-task")) {
        take_count(a, v, &a->per_task);
    } else if (hv__is(key, "--constraint") || hv__is(key, "-C")) {
        a->features = v;
    } else if (hv__is(key, "--partition") || hv__is(key, "-p")) {
        a->partition = v;
    } else if (hv__is(key, "--job-name") || hv__is(key, "-J")) {
        hv__raw(in, "job_name", hv__copy(&in->im->arena, v));
    } else {
        return false;
    }
    return true;
}

/* Makes the node group of a component. */
static bool finish(struct hv__in *in, struct ask *a, size_t component)
{
    if (!a->any) {
        return false;
    }
    double nodes = hv_or(a->nodes, 1), per_node = HV_UNKNOWN;
    if (!hv_known(a->gpus)) {
        a->gpus = a->per_task * hv_or(a->tasks, hv_or(a->per_node, 1) * nodes);
    }
    if (a->features.n == 0) { /* sites name partitions after their cards */
        a->features = a->partition;
    }
    struct hv__node *n = hv__node_add(in->im);
    if (!n || (a->gres.n == 0 && !hv_known(a->gpus))) {
        in->im->nodes.n -= n != NULL;
        return false;
    }
    n->name = hv_arena_printf(&in->im->arena, component > 0 ? "part%zu" : "job", component);
    n->count = (uint32_t)fmax(1, fmin(nodes, HV__MAX_NODES));
    n->partitions = a->partition.n > 0 ? hv__copy(&in->im->arena, a->partition) : NULL;
    if (!hv_known(a->nodes)) {
        hv__guessed(in, a->line, "the number of nodes is not given: 1 is assumed");
    }
    if (a->gres.n > 0) {
        (void)hv__gres_add(in, a->line, n, a->gres, a->features);
    } else {
        struct hv__card c = hv__card_unknown();
        per_node = ceil(a->gpus / n->count);
        c.count = (uint32_t)fmax(1, fmin(per_node, 100000));
        c.card = a->type.n > 0 ? hv__copy(&in->im->arena, a->type) : NULL;
        c.features = a->features.n > 0 ? hv__copy(&in->im->arena, a->features) : NULL;
        c.by_hand = true;
        hv__guessed(in, a->line, "%.0f GPUs on %u nodes are %u each", a->gpus, n->count, c.count);
        hv__card_add(n, &c);
    }
    hv__understood(in, a->line, "%u nodes with %u GPUs", n->count, hv__cards(n));
    return hv__cards(n) > 0;
}

/* The options of one line: "--nodes=2", "-N 2", several of them; a # ends it. */
static void read_options(struct hv__in *in, struct ask *a, struct hv__piece s, unsigned line)
{
    for (struct hv__piece w = hv__next_word(&s); w.n > 0 && w.p[0] != '#'; w = hv__next_word(&s)) {
        struct hv__piece v = w, key = hv__before(&v, '=');
        bool letter = w.n > 2 && w.p[0] == '-' && w.p[1] != '-';
        if (letter) {
            key = (struct hv__piece){w.p, 2};
            v = (struct hv__piece){w.p + 2 + (w.p[2] == '='), w.n - 2 - (w.p[2] == '=')};
        } else if (key.n == w.n) {
            struct hv__piece ahead = s, next = hv__next_word(&ahead);
            if (next.n > 0 && next.p[0] != '-' && next.p[0] != '#') {
                v = next;
                s = ahead;
            }
        }
        bool used = take(in, a, key, hv__unquote(v));
        a->any = a->any || used;
        a->line = used ? line : a->line;
        if (w.p[0] == '-') {
            struct hv_arena *to = &in->im->arena;
            bool valued = v.p != w.p && v.n > 0;
            hv__member(in, used, line, hv__copy(to, key),
                       valued ? hv__copy(to, hv__unquote(v)) : NULL);
        }
    }
}

enum hv_status hv__read_sbatch(struct hv__in *in, struct hv_err *err)
{
    struct hv__lines l = {.rest = in->text, .left = in->n};
    struct ask a = nothing();
    size_t component = 0, n = 0;
    while (hv__next_line(&l)) {
        struct hv__piece s = hv__strip(l.piece);
        if (!hv__starts(s, "#SBATCH")) {
            continue;
        }
        s.p += 7;
        s.n -= 7;
        struct hv__piece word = s;
        word = hv__next_word(&word);
        if (hv__is(word, "hetjob") || hv__is(word, "packjob")) {
            n += finish(in, &a, ++component);
            a = nothing();
        } else {
            read_options(in, &a, s, l.line);
        }
    }
    n += finish(in, &a, component > 0 ? component + 1 : 0);
    if (n > 0) {
        hv__guessed(in, 0, "the catalogue's links of the cards are used");
        return HV_OK;
    }
    return hv_err_at(err, HV_ENO, in->name, 0, 0,
                     "the script requests no GPUs: it has neither --gres=gpu:…, --gpus-per-node "
                     "nor --gpus; import the nodes it runs on instead (scontrol show node)");
}
