/*
 * Kubernetes nodes as `kubectl get nodes -o json|yaml` gives them: a List, a NodeList, a Node alone
 * or YAML documents one after the other. Labels of GPU feature discovery name the card, capacity
 * gives the number. Sources: Kubernetes API (Node v1), k8s-device-plugin's gpu-feature-discovery,
 * GKE and EKS node labels.
 */
#include "solver/io/import/draft/readers.h"
#include "solver/io/import/text/words.h"
#include <string.h>

/* Members that are read, for the report. */
static const char *const used[] = {"kind",
                                   "*items[].kind",
                                   "*metadata.name",
                                   "*metadata.labels.nvidia.com/gpu.product",
                                   "*metadata.labels.nvidia.com/gpu.replicas",
                                   "*metadata.labels.nvidia.com/gpu.memory",
                                   "*metadata.labels.nvidia.com/gpu.count",
                                   "*metadata.labels.nvidia.com/gpu.compute.m*or",
                                   "*metadata.labels.cloud.google.com/gke-accelerator",
                                   "*metadata.labels.karpenter.k8s.aws/instance-gpu-name",
                                   "*metadata.labels.karpenter.k8s.aws/instance-gpu-memory",
                                   "*metadata.labels.gpu.nvidia.com/class",
                                   "*metadata.labels.k8s.amazonaws.com/accelerator",
                                   "*metadata.labels.accelerator",
                                   "*metadata.labels.amd.com/gpu.product-name",
                                   "*metadata.labels.*kubernetes.io/instance-type",
                                   "*metadata.labels.*kubernetes.io/zone",
                                   "*metadata.labels.topology.kubernetes.io/region",
                                   "*status.capacity.nvidia.com/*",
                                   "*status.capacity.cpu",
                                   "*status.capacity.memory",
                                   "*status.capacity.amd.com/gpu",
                                   "*status.capacity.habana.ai/gaudi",
                                   "*status.capacity.gpu.intel.com/i915",
                                   "*status.capacity.google.com/tpu",
                                   "*status.capacity.aws.amazon.com/neuron",
                                   "*status.capacity.huawei.com/Ascend910",
                                   "*status.allocatable.nvidia.com/gpu*",
                                   "*spec.unschedulable",
                                   "*spec.taints[].key",
                                   "*spec.taints[].effect",
                                   "*status.conditions[].type",
                                   "*status.conditions[].status",
                                   NULL};

/* The list of nodes: `items`, a list of documents, or the node itself. */
static json_t *items_of(json_t *tree, bool *single)
{
    json_t *items = json_is_array(tree) ? tree : json_object_get(tree, "items");
    *single = !json_is_array(items);
    return *single ? tree : items;
}

static const char *text_at(json_t *v, const char *a, const char *b)
{
    v = json_object_get(v, a);
    v = b ? json_object_get(v, b) : v;
    return json_is_string(v) ? json_string_value(v) : "";
}

static bool is_node(json_t *v)
{
    return strcmp(text_at(v, "kind", NULL), "Node") == 0 ||
           (json_object_get(json_object_get(v, "status"), "capacity") &&
            json_object_get(v, "metadata"));
}

bool hv__is_k8s_nodes(const struct hv__in *in)
{
    bool single;
    json_t *items = items_of(in->tree, &single);
    const char *kind = text_at(in->tree, "kind", NULL);
    if (single) {
        return json_is_object(items) && is_node(items);
    }
    return strcmp(kind, "NodeList") == 0 || is_node(json_array_get(items, 0)) ||
           (json_array_size(items) == 0 && strcmp(kind, "List") == 0);
}

/* A quantity: "8", 8, "8k", "16367668Ki"; "0" counts as none. */
static double quantity(json_t *v)
{
    if (json_is_number(v)) {
        return json_number_value(v);
    }
    return json_is_string(v) ? hv_or(hv__bytes(hv__piece_of(json_string_value(v)), 1), 0) : 0;
}

/* A resource of a node: its capacity, whether in use or not. */
static double resource(json_t *node, const char *key)
{
    json_t *status = json_object_get(node, "status");
    json_t *v = json_object_get(json_object_get(status, "capacity"), key);
    v = v ? v : json_object_get(json_object_get(status, "allocatable"), key);
    return fmin(quantity(v), 100000);
}

/* Memory of the host, or HV_UNKNOWN. */
static double memory_of(json_t *node)
{
    double bytes = quantity(
        json_object_get(json_object_get(json_object_get(node, "status"), "capacity"), "memory"));
    return bytes > 0 ? bytes : HV_UNKNOWN;
}

static const char *label(json_t *node, const char *key)
{
    return text_at(json_object_get(json_object_get(node, "metadata"), "labels"), key, NULL);
}

/* Reading one node. */
struct at {
    struct hv__in *in;
    json_t *v;
    struct hv__node *n;
    unsigned line;
    const char *name;
};

/* Slices of mixed strategy: nvidia.com/mig-3g.20gb: "2". */
static double add_slices(const struct at *a, const char *product)
{
    json_t *capacity = json_object_get(json_object_get(a->v, "status"), "capacity");
    double sum = 0;
    for (void *it = json_object_iter(capacity); it; it = json_object_iter_next(capacity, it)) {
        const char *key = json_object_iter_key(it), start[] = "nvidia.com/mig-";
        double n = fmin(quantity(json_object_iter_value(it)), 100000), frac;
        struct hv__card c = hv__card_unknown();
        if (strncmp(key, start, strlen(start)) != 0 || n < 1 ||
            !hv__slice_of(key + strlen(start), &frac, &c.memory_bytes)) {
            continue;
        }
        c.card = *product ? hv_arena_strdup(&a->in->im->arena, product) : NULL;
        c.slice = hv_arena_strdup(&a->in->im->arena, key + strlen(start));
        c.count = (uint32_t)n;
        hv__understood(a->in, a->line, "%.0f MIG slices %s", n, c.slice);
        hv__card_add(a->n, &c);
        sum += n;
    }
    return sum;
}

/* The product name without the suffix of shared cards; *slice: the MIG profile in it, or NULL. */
static const char *product_of(const struct at *a, bool *shared, const char **slice)
{
    char *s = hv_arena_strdup(&a->in->im->arena, label(a->v, "nvidia.com/gpu.product"));
    char *end = strstr(s, "-SHARED"), *mig = strstr(s, "-MIG-");
    *shared = end != NULL;
    *slice = NULL;
    if (end) {
        *end = '\0';
    }
    if (mig) {
        *mig = '\0';
        *slice = mig + 5;
    }
    return s;
}

/* Number of replicas that the device plugin reports per card. */
static double replicas(const struct at *a)
{
    double r = hv__plain_number(hv__piece_of(label(a->v, "nvidia.com/gpu.replicas")));
    return hv_known(r) && r > 1 ? r : 1;
}

static void add_cards(const struct at *a, double capacity)
{
    bool shared;
    const char *slice, *product = product_of(a, &shared, &slice);
    struct hv__card c = hv__card_unknown();
    double memory = hv__plain_number(hv__piece_of(label(a->v, "nvidia.com/gpu.memory")));
    double count = hv__plain_number(hv__piece_of(label(a->v, "nvidia.com/gpu.count"))), frac;
    double major = hv__plain_number(hv__piece_of(label(a->v, "nvidia.com/gpu.compute.major")));
    double minor = hv__plain_number(hv__piece_of(label(a->v, "nvidia.com/gpu.compute.minor")));
    const char *gke = label(a->v, "cloud.google.com/gke-accelerator");
    const char *aws = label(a->v, "karpenter.k8s.aws/instance-gpu-name");
    const char *names[] = {product,
                           gke,
                           aws,
                           label(a->v, "gpu.nvidia.com/class"),
                           label(a->v, "k8s.amazonaws.com/accelerator"),
                           label(a->v, "accelerator")};
    for (size_t i = 0; i < HV_COUNT(names) && !c.card; i++) {
        c.card = *names[i] ? hv_arena_strdup(&a->in->im->arena, names[i]) : NULL;
        c.by_hand = c.card && i > 0; /* the first is the driver's name */
    }
    memory =
        hv_or(memory,
              hv__plain_number(hv__piece_of(label(a->v, "karpenter.k8s.aws/instance-gpu-memory"))));
    c.memory_bytes = memory > 0 ? memory * HV_MIB : HV_UNKNOWN;
    c.compute = major * 10 + hv_or(minor, 0);
    c.line = a->line;
    double n = capacity / replicas(a);
    if (replicas(a) > 1 || (shared && hv_known(count) && count < capacity)) {
        n = hv_known(count) && count >= 1 && count <= capacity ? count : n;
        hv__understood(a->in, a->line, "%s: %.0f shared GPUs are %.0f cards", a->name, capacity, n);
    }
    c.slice = slice && hv__slice_of(slice, &frac, &memory) ? slice : NULL;
    c.count = (uint32_t)fmax(ceil(n), 1);
    if (!c.card) {
        hv__guessed(a->in, a->line, "%s: no label names its card", a->name);
    }
    hv__card_add(a->n, &c);
}

/* Accelerators that are not NVIDIA's: the resource names the maker. */
static void add_others(const struct at *a)
{
    static const char *const resources[] = {"amd.com/gpu",           "habana.ai/gaudi",
                                            "gpu.intel.com/i915",    "google.com/tpu",
                                            "aws.amazon.com/neuron", "huawei.com/Ascend910"};
    const char *amd = label(a->v, "amd.com/gpu.product-name");
    for (size_t i = 0; i < HV_COUNT(resources); i++) {
        double n = resource(a->v, resources[i]);
        if (n >= 1) {
            struct hv__card c = hv__card_unknown();
            c.card = *amd && i == 0 ? hv_arena_strdup(&a->in->im->arena, amd) : resources[i];
            c.by_hand = true;
            c.count = (uint32_t)n;
            hv__card_add(a->n, &c);
        }
    }
}

static bool is_out(json_t *node)
{
    json_t *spec = json_object_get(node, "spec"), *t, *conditions;
    size_t i;
    if (json_is_true(json_object_get(spec, "unschedulable"))) {
        return true;
    }
    json_array_foreach(json_object_get(spec, "taints"), i, t)
    {
        const char *key = text_at(t, "key", NULL);
        if (strncmp(key, "node.kubernetes.io/", 19) == 0 &&
            strcmp(text_at(t, "effect", NULL), "PreferNoSchedule") != 0) {
            return true; /* not ready, unreachable, cordoned */
        }
    }
    conditions = json_object_get(json_object_get(node, "status"), "conditions");
    json_array_foreach(conditions, i, t)
    {
        if (strcmp(text_at(t, "type", NULL), "Ready") == 0) {
            return strcmp(text_at(t, "status", NULL), "True") != 0;
        }
    }
    return false;
}

static const char *first_label(json_t *node, const char *const keys[], size_t n)
{
    const char *s = "";
    for (size_t i = 0; i < n && !*s; i++) {
        s = label(node, keys[i]);
    }
    return s;
}

static bool read_node(struct hv__in *in, json_t *v)
{
    static const char *const zones[] = {"topology.kubernetes.io/zone",
                                        "failure-domain.beta.kubernetes.io/zone",
                                        "topology.kubernetes.io/region"};
    static const char *const types[] = {"node.kubernetes.io/instance-type",
                                        "beta.kubernetes.io/instance-type"};
    struct at a = {in, v, NULL, 0, text_at(v, "metadata", "name")};
    const char *zone = first_label(v, zones, HV_COUNT(zones));
    const char *type = first_label(v, types, HV_COUNT(types));
    size_t n = strlen(a.name);
    if (!is_node(v) && n == 0) {
        return false;
    }
    a.line = hv__line_of(in, json_object_get(json_object_get(v, "metadata"), "name"));
    a.n = n > 0 ? hv__node_named(in->im, a.name, n) : hv__node_add(in->im);
    if (!a.n) {
        return false;
    }
    double gpus = resource(v, "nvidia.com/gpu") + resource(v, "nvidia.com/gpu.shared");
    double slices = hv__cards(a.n) == 0 ? add_slices(&a, label(v, "nvidia.com/gpu.product")) : 0;
    if (gpus >= 1 && slices < 1) {
        add_cards(&a, gpus);
    } else if (gpus < 1 && slices < 1) {
        add_others(&a);
    }
    a.n->zone = *zone ? hv_arena_strdup(&in->im->arena, zone) : NULL;
    a.n->type = *type ? hv_arena_strdup(&in->im->arena, type) : NULL;
    a.n->cpus = resource(v, "cpu");
    a.n->memory_bytes = memory_of(v);
    a.n->drained = is_out(v);
    if (a.n->drained) {
        hv__understood(in, a.line, "%s takes no work: state drain", a.name);
    }
    return true;
}

enum hv_status hv__read_k8s_nodes(struct hv__in *in, struct hv_err *err)
{
    bool single;
    json_t *items = items_of(in->tree, &single), *v;
    size_t i, n = 0, other = 0;
    if (!in->tree) {
        return hv_err_at(err, HV_EINPUT, in->name, in->broken.line, in->broken.col, "%s",
                         in->broken.text[0] ? in->broken.text
                                            : "neither JSON nor YAML; `kubectl get nodes -o json`");
    }
    if (single) {
        n += read_node(in, items);
    } else {
        json_array_foreach(items, i, v)
        {
            bool good = read_node(in, v);
            n += good;
            other += !good;
        }
    }
    if (other > 0) {
        hv__ignored(in, 0, "%zu objects that are no nodes", other);
    }
    if (n == 0) {
        return hv_err_at(err, HV_ENO, in->name, 0, 0,
                         "there is no node in it; `kubectl get nodes -o json` lists them");
    }
    hv__understood(in, 0, "%zu nodes", n);
    hv__uses(in, used);
    hv__guessed(in, 0, "Kubernetes gives no links: the catalogue's links of the cards are used");
    return HV_OK;
}
