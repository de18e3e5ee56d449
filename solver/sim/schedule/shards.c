/* Gathers and scatters of sharded chunks, planned on the order of a schedule. */
#include "solver/sim/schedule/shards.h"

#include "solver/base/vec.h"

#include <stdlib.h>

/* none: no operation, or no task */
#define NONE SIZE_MAX

/* A chunk of a rank. */
struct chunk {
    int32_t stage;
    uint8_t pipe;
    size_t next;                  /* position of its next operation at or after the present one */
    bool held;                    /* gathered */
    bool seen;                    /* looked at while the window moves */
    bool wanted;                  /* in the window */
    size_t gather;                /* its latest gather among `tasks` */
    size_t first_back, last_back; /* backward passes whose gradients wait: the first of them, and
                                     the end of the last; first NONE: there are none */
};

struct planned {
    struct hv_shard_task task;
    size_t number; /* in order of planning */
};

struct rank {
    struct hv_shard_rule rule;
    const struct hv_op *ops;
    size_t n, first; /* operations; those of the ranks before */
    size_t *later;   /* [n] position of the next operation on the same chunk; n: none */
    int32_t *at;     /* [n] chunk of each operation */
    struct chunk *chunks;
    size_t n_chunks;
    HV_VEC(struct planned) tasks;
};

static int32_t chunk_of(struct rank *r, const struct hv_op *op)
{
    int32_t stage = r->rule.whole ? -1 : op->stage;
    for (size_t c = 0; c < r->n_chunks; c++) {
        if (r->chunks[c].stage == stage) {
            return (int32_t)c;
        }
    }
    r->chunks[r->n_chunks] = (struct chunk){.stage = stage, .pipe = op->pipe, .first_back = NONE};
    return (int32_t)r->n_chunks++;
}

/* Finds the chunks, and for each operation the next one on its chunk. */
static void read_order(struct rank *r)
{
    for (size_t i = 0; i < r->n; i++) {
        bool same = i > 0 && r->ops[i].stage == r->ops[i - 1].stage;
        r->at[i] = same ? r->at[i - 1] : chunk_of(r, &r->ops[i]);
    }
    for (size_t c = 0; c < r->n_chunks; c++) {
        r->chunks[c].next = r->n;
    }
    for (size_t i = r->n; i-- > 0;) {
        struct chunk *c = &r->chunks[r->at[i]];
        r->later[i] = c->next;
        c->next = i;
    }
}

static bool is_pair(const struct rank *r, size_t i)
{
    return i + 1 < r->n && r->ops[i].group >= 0 && r->ops[i].group == r->ops[i + 1].group;
}

static void add_task(struct rank *r, struct hv_shard_task task)
{
    struct planned p = {task, r->tasks.n};
    hv_vec_push(&r->tasks, p);
}

/* Scatters the gradients of a chunk that wait, behind its last backward pass. */
static void scatter(struct rank *r, struct chunk *c)
{
    if (c->first_back != NONE) {
        add_task(r, (struct hv_shard_task){c->stage, c->pipe, true, r->first + c->last_back,
                                           r->first + c->first_back});
    }
    c->first_back = NONE;
}

/* Gives up a chunk before operation i. */
static void give_up(struct rank *r, struct chunk *c, size_t i)
{
    r->tasks.items[c->gather].task.other = r->first + i;
    if (r->rule.each) {
        scatter(r, c);
    }
}

/* The chunk not looked at that is used first, or -1. */
static int32_t first_used(const struct rank *r)
{
    int32_t best = -1;
    for (size_t c = 0; c < r->n_chunks; c++) {
        const struct chunk *x = &r->chunks[c];
        if (!x->seen && x->next < r->n && (best < 0 || x->next < r->chunks[best].next)) {
            best = (int32_t)c;
        }
    }
    return best;
}

/* Lets a chunk enter the window that was moved before operation i. */
static void enter(struct rank *r, struct chunk *c, size_t i)
{
    c->wanted = true;
    if (!c->held) {
        c->held = true;
        c->gather = r->tasks.n;
        add_task(r, (struct hv_shard_task){c->stage, c->pipe, false, r->first + i, 0});
    }
}

/* Finds the window before operation i: chunks are gathered in the order in which they are used,
 * both chunks of a pair together. */
static void find_window(struct rank *r, size_t i)
{
    size_t last = r->n; /* position of the last chunk that entered */
    for (int32_t n = 0, looked = 0;; looked++) {
        int32_t c = first_used(r);
        bool pair = c >= 0 && n > 0 && r->chunks[c].next == last + 1 && is_pair(r, last);
        if (c < 0 || (n >= r->rule.window && !pair)) {
            break;
        }
        struct chunk *x = &r->chunks[c];
        x->seen = true;
        if (x->held || looked < r->rule.ahead || pair) {
            last = x->next;
            enter(r, x, i);
            n++;
        }
    }
}

/* Moves the window to operation i. */
static void move_window(struct rank *r, size_t i)
{
    for (size_t c = 0; c < r->n_chunks; c++) {
        r->chunks[c].seen = r->chunks[c].wanted = false;
    }
    find_window(r, i);
    for (size_t c = 0; c < r->n_chunks; c++) {
        struct chunk *x = &r->chunks[c];
        bool kept = x->wanted || (r->rule.keeps && x->next < r->n);
        if (x->held && !kept) {
            x->held = false;
            give_up(r, x, i);
        }
    }
}

/* Steps over operation i of a node that ends before operation `end`. */
static void pass(struct rank *r, size_t i, size_t end)
{
    struct chunk *c = &r->chunks[r->at[i]];
    c->next = r->later[i];
    if (r->ops[i].kind == HV_OP_W || r->ops[i].kind == HV_OP_BW) {
        c->first_back = c->first_back == NONE ? i : c->first_back;
        c->last_back = end;
    }
}

static void walk(struct rank *r)
{
    for (size_t i = 0, end; i < r->n; i = end) {
        end = i + 1 + is_pair(r, i);
        move_window(r, i);
        for (size_t k = i; k < end; k++) {
            pass(r, k, end);
        }
    }
    for (size_t c = 0; c < r->n_chunks; c++) {
        if (r->chunks[c].held) {
            r->tasks.items[r->chunks[c].gather].task.other = r->first + r->n;
        }
        scatter(r, &r->chunks[c]);
    }
}

/* In the order of a stream: scatters first, which free memory for gathers. */
static int by_issue(const void *x, const void *y)
{
    const struct planned *a = x, *b = y;
    if (a->task.before != b->task.before) {
        return a->task.before < b->task.before ? -1 : 1;
    }
    if (a->task.scatter != b->task.scatter) {
        return a->task.scatter ? -1 : 1;
    }
    return (a->number > b->number) - (a->number < b->number);
}

/* Plans the stream of rank k into r->tasks. */
static void plan_rank(struct rank *r, const struct hv_schedule *s, int32_t k,
                      const struct hv_shard_rule *rule)
{
    r->rule = *rule;
    r->first = s->rank_at[k];
    r->ops = s->ops + r->first;
    r->n = s->rank_at[k + 1] - r->first;
    r->n_chunks = 0;
    r->tasks.n = 0;
    if (rule->window > 0) {
        read_order(r);
        walk(r);
        if (r->tasks.n > 1) {
            qsort(r->tasks.items, r->tasks.n, sizeof *r->tasks.items, by_issue);
        }
    }
}

static struct rank open_rank(const struct hv_schedule *s)
{
    size_t most = 0;
    for (int32_t k = 0; k < s->n_ranks; k++) {
        size_t n = s->rank_at[k + 1] - s->rank_at[k];
        most = n > most ? n : most;
    }
    return (struct rank){.later = hv_xcalloc(most + 1, sizeof(size_t)),
                         .at = hv_xcalloc(most + 1, sizeof(int32_t)),
                         .chunks = hv_xcalloc((size_t)s->n_stages + 1, sizeof(struct chunk))};
}

static void close_rank(struct rank *r)
{
    free(r->later);
    free(r->at);
    free(r->chunks);
    hv_vec_free(&r->tasks);
}

/* Which gather each operation of the rank waits for: the latest of its chunk. `from`: number of the
 * rank's first task. */
static void fill_needs(struct rank *r, size_t from, int64_t *needs)
{
    size_t task = 0;
    for (size_t i = 0; i < r->n; i++) {
        for (; task < r->tasks.n && r->tasks.items[task].task.before <= r->first + i; task++) {
            const struct hv_shard_task *t = &r->tasks.items[task].task;
            for (size_t c = 0; !t->scatter && c < r->n_chunks; c++) {
                if (r->chunks[c].stage == t->stage) {
                    r->chunks[c].gather = from + task;
                }
            }
        }
        needs[r->first + i] = r->rule.window > 0 ? (int64_t)r->chunks[r->at[i]].gather : -1;
    }
}

void hv_schedule_plan_shards(struct hv_arena *a, const struct hv_schedule *s,
                             const struct hv_shard_rule *rules, struct hv_shard_tasks *out)
{
    HV_VEC(struct hv_shard_task) all = {0};
    struct rank r = open_rank(s);
    size_t *task_at = hv_arena_new(a, size_t, (size_t)s->n_ranks + 1);
    int64_t *needs = hv_arena_new(a, int64_t, hv_schedule_n_ops(s) + 1);
    for (int32_t k = 0; k < s->n_ranks; k++) {
        plan_rank(&r, s, k, &rules[k]);
        fill_needs(&r, all.n, needs);
        for (size_t i = 0; i < r.tasks.n; i++) {
            hv_vec_push(&all, r.tasks.items[i].task);
        }
        task_at[k + 1] = all.n;
    }
    out->task_at = task_at;
    out->needs = needs;
    out->tasks = all.n > 0 ? hv_arena_copy(a, all.items, all.n, sizeof *all.items) : NULL;
    hv_vec_free(&all);
    close_rank(&r);
}

void hv_schedule_shards(const struct hv_schedule *s, int32_t window, int32_t *gathers,
                        int32_t *reductions)
{
    const struct hv_shard_rule rule = {.window = window, .ahead = window};
    struct rank r = open_rank(s);
    for (int32_t k = 0; k < s->n_ranks; k++) {
        plan_rank(&r, s, k, &rule);
        gathers[k] = reductions[k] = 0;
        for (size_t i = 0; i < r.tasks.n; i++) {
            *(r.tasks.items[i].task.scatter ? &reductions[k] : &gathers[k]) += 1;
        }
    }
    close_rank(&r);
}
