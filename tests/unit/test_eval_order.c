/** A verdict does not depend on how the same cluster is written: order of node groups, a group
 * written as two, names. The bound is the same to the last digit. With a number as argument that
 * many worlds are tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/eval_fixture.h"
#include "tests/random_world.h"

enum { PLANS_PER_WORLD = 12, WORLDS = 60 };

/** Another way to write the same cluster. */
enum rewrite { REVERSED, ROTATED, SPLIT, RENAMED, REWRITES };
static const char *const rewrite_names[] = {"groups reversed", "groups rotated",
                                            "a group of two nodes written as two groups",
                                            "groups and zones renamed"};

/** Address prefixes that a rewrite changes. */
struct prefixes {
    char old[4][16], new[4][16];
    int n;
};

static void add_prefix(struct prefixes *p, const char *old, const char *new)
{
    (void)snprintf(p->old[p->n], sizeof p->old[0], "%s", old);
    (void)snprintf(p->new[p->n++], sizeof p->new[0], "%s", new);
}

/** Replaces every OLD in the text. */
static void replace_all(struct hv_str *t, const char *old, const char *new)
{
    struct hv_str out = {0};
    const char *text = hv_str_cstr(t);
    for (const char *at; (at = strstr(text, old)) != NULL; text = at + strlen(old)) {
        hv_str_add(&out, text, (size_t)(at - text));
        hv_str_adds(&out, new);
    }
    hv_str_adds(&out, text);
    hv_str_free(t);
    *t = out;
}

/** The group of two nodes that SPLIT writes as two; NULL where there is none. A link domain over
 * both nodes cannot be written so. */
static json_t *group_of_two(json_t *nodes)
{
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        json_t *g = json_array_get(nodes, i);
        if (json_integer_value(json_object_get(g, "count")) == 2 &&
            json_object_get(g, "domain_nodes") == NULL) {
            return g;
        }
    }
    return NULL;
}

/** Puts the last of three groups in zones into a zone of its own, whose links to the others are
 * unlike: the order in which a ring meets zones counts only then. */
static void add_third_zone(struct hv_str *cluster)
{
    json_t *root = json_loads(hv_str_cstr(cluster), 0, NULL),
           *nodes = json_object_get(root, "nodes");
    json_t *links = json_object_get(json_object_get(root, "network"), "links");

    if (json_array_size(nodes) == 3 && links != NULL) {
        json_object_set_new(json_array_get(nodes, 2), "zone", json_string("north"));
        json_array_append_new(links, json_pack("{s[ss]sfsi}", "between", "east", "north",
                                               "bandwidth_GBps", 0.5, "latency_us", 700));
        json_array_append_new(links, json_pack("{s[ss]sfsi}", "between", "west", "north",
                                               "bandwidth_GBps", 9.0, "latency_us", 50));
        char *text = json_dumps(root, JSON_COMPACT);
        hv_str_clear(cluster);
        hv_str_adds(cluster, text);
        free(text);
    }
    json_decref(root);
}

/** The zone's name under RENAMED: the order of names is the reverse. */
static json_t *other_zone(const json_t *zone)
{
    const char *name = json_string_value(zone);
    return json_string(strcmp(name, "east") == 0    ? "zeta"
                       : strcmp(name, "north") == 0 ? "my"
                                                    : "b");
}

/** Other names for groups and zones. */
static void rename_all(json_t *root, struct prefixes *p)
{
    json_t *nodes = json_object_get(root, "nodes");
    json_t *links = json_object_get(json_object_get(root, "network"), "links");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        json_t *g = json_array_get(nodes, i), *zone = json_object_get(g, "zone");
        char old[12], new[16];
        (void)snprintf(old, sizeof old, "%s[", json_string_value(json_object_get(g, "name")));
        (void)snprintf(new, sizeof new, "%c%s", 'Z' - (int)i, old);
        add_prefix(p, old, new);
        json_object_set_new(g, "name", json_stringn(new, strlen(new) - 1));
        if (zone != NULL) {
            json_object_set_new(g, "zone", other_zone(zone));
        }
    }
    for (size_t i = 0; i < json_array_size(links); i++) {
        json_t *ends = json_object_get(json_array_get(links, i), "between");
        json_array_set_new(ends, 0, other_zone(json_array_get(ends, 0)));
        json_array_set_new(ends, 1, other_zone(json_array_get(ends, 1)));
    }
}

/** Writes the cluster another way. False where that way is the same. */
static bool rewrite(const char *cluster, enum rewrite how, struct hv_str *out, struct prefixes *p)
{
    json_t *root = json_loads(cluster, 0, NULL), *nodes = json_object_get(root, "nodes");
    size_t n = json_array_size(nodes);
    json_t *list = json_array(), *two = group_of_two(nodes);
    bool differs = how == SPLIT ? two != NULL : how == RENAMED || n > 1;

    *p = (struct prefixes){0};
    if (how == RENAMED) {
        rename_all(root, p);
    }
    for (size_t i = 0; i < n; i++) {
        json_array_append(list, json_array_get(nodes, how == REVERSED  ? n - 1 - i
                                                      : how == ROTATED ? (i + 1) % n
                                                                       : i));
    }
    if (how == SPLIT && two != NULL) {
        const char *name = json_string_value(json_object_get(two, "name"));
        char old[12], new[16];
        (void)snprintf(old, sizeof old, "%s[1].", name);
        (void)snprintf(new, sizeof new, "%s2[0].", name);
        add_prefix(p, old, new);
        json_object_set_new(two, "count", json_integer(1));
        json_t *second = json_deep_copy(two);
        json_object_set_new(second, "name", json_sprintf("%s2", name));
        json_array_append_new(list, second);
    }
    json_object_set_new(root, "nodes", list);
    char *text = json_dumps(root, JSON_COMPACT);
    hv_str_adds(out, text);
    free(text);
    json_decref(root);
    return differs;
}

/** Are both the same but for the last digits? The judge takes sums in another order. */
static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-12 * fabs(a);
}

struct figures {
    double iteration_s, bound_s;
    size_t n_findings;
};

static struct figures figures_of(struct world *w, const char *plan)
{
    struct hv_arena a = {0};
    struct hv_verdict v = judge(w, &a, false, plan);
    struct figures f = {v.metrics.iteration_s, v.metrics.bound_s, v.findings.n};
    hv_arena_free(&a);
    return f;
}

/** Plans of one random world under all rewrites; counts comparisons and those that differ. */
static void try_world(struct hv_rng *r, int *n, int *n_bad)
{
    struct hv_str cluster = {0}, model = {0}, job = {0};
    struct places p;
    struct world w;

    random_cluster(r, &cluster, &p);
    if (often(r, 5)) {
        add_third_zone(&cluster);
    }
    random_model(r, &model, &p);
    int batch = random_job(r, &job);
    open_world(&w, hv_str_cstr(&cluster), hv_str_cstr(&model), hv_str_cstr(&job));
    for (int how = 0; how < REWRITES; how++) {
        struct hv_str other = {0};
        struct world w2;
        struct prefixes changed;
        if (!rewrite(hv_str_cstr(&cluster), (enum rewrite)how, &other, &changed)) {
            hv_str_free(&other);
            continue;
        }
        open_world(&w2, hv_str_cstr(&other), hv_str_cstr(&model), hv_str_cstr(&job));
        for (int i = 0; i < PLANS_PER_WORLD; i++) {
            struct hv_str t = {0}, t2 = {0};
            if (random_plan(r, &t, &p, batch)) {
                hv_str_adds(&t2, hv_str_cstr(&t));
                for (int k = 0; k < changed.n; k++) {
                    replace_all(&t2, changed.old[k], changed.new[k]);
                }
                struct figures a = figures_of(&w, hv_str_cstr(&t));
                struct figures b = figures_of(&w2, hv_str_cstr(&t2));
                ++*n;
                bool same_bound = a.bound_s == b.bound_s || (isnan(a.bound_s) && isnan(b.bound_s));
                if (!same(a.iteration_s, b.iteration_s) || !same_bound ||
                    a.n_findings != b.n_findings) {
                    ++*n_bad;
                    printf("%s: iteration %.15g, then %.15g; bound %.15g, then %.15g; "
                           "findings %zu, then %zu\n%s\n%s\n%s\n%s\n",
                           rewrite_names[how], a.iteration_s, b.iteration_s, a.bound_s, b.bound_s,
                           a.n_findings, b.n_findings, hv_str_cstr(&cluster), hv_str_cstr(&model),
                           hv_str_cstr(&job), hv_str_cstr(&t));
                }
            }
            hv_str_free(&t);
            hv_str_free(&t2);
        }
        close_world(&w2);
        hv_str_free(&other);
    }
    close_world(&w);
    hv_str_free(&cluster);
    hv_str_free(&model);
    hv_str_free(&job);
}

static int worlds = WORLDS;

static void the_same_cluster_written_otherwise(void **state)
{
    struct hv_rng r;
    int n = 0, n_bad = 0;
    (void)state;

    hv_rng_seed(&r, 11);
    for (int i = 0; i < worlds; i++) {
        try_world(&r, &n, &n_bad);
    }
    print_message("%d comparisons\n", n);
    assert_true(n > 300);
    assert_int_equal(n_bad, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_cluster_written_otherwise)};
    if (argc > 1) {
        worlds = atoi(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
