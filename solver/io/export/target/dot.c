/* The graph of stages for Graphviz: a cluster per replica entry, a node per stage. */
#include "solver/base/units.h"
#include "solver/io/export/target/inside.h"

/** Text inside a quoted string of DOT. */
static void add_text(struct hv_str *out, const char *text)
{
    struct hv_str clean = {0};
    hv_text_addf(&clean, "%s", text);
    for (const char *c = hv_str_cstr(&clean); *c != '\0'; c++) {
        hv_str_adds(out, *c == '"' || *c == '\\' ? "\\" : "");
        hv_str_addc(out, *c);
    }
    hv_str_free(&clean);
}

static void add_node(const struct hv__exporting *x, size_t i, size_t k, struct hv_str *out)
{
    const struct hv_plan *p = x->s->plan;
    const struct hv_stage *s = &p->replicas[i].stages[k];
    struct hv_str address = {0};
    hv_address_format(p->cluster, s->devices, s->n_devices, " ", &address);
    hv_str_addf(out, "    r%zus%zu [label=\"stage %zu\\n", i, k, k);
    add_text(out, hv_str_cstr(&address));
    for (size_t c = 0; c < s->n_ranges; c++) {
        hv_str_addf(out, "%s%g to %g", c > 0 ? ", " : "\\nlayers ", s->ranges[c].from2 / 2.0,
                    s->ranges[c].to2 / 2.0);
    }
    hv_str_addf(out, "\\ntp %d, cp %d, dp %d\"];\n", s->tp.degree, s->cp.degree, s->dp);
    hv_str_free(&address);
}

static void add_edges(const struct hv_replica *r, size_t i, size_t k, struct hv_str *out)
{
    const struct hv_stage *s = &r->stages[k];
    if (s->n_after < 0 && k > 0) {
        hv_str_addf(out, "    r%zus%zu -> r%zus%zu;\n", i, k - 1, i, k);
    }
    for (int e = 0; e < s->n_after; e++) {
        hv_str_addf(out, "    r%zus%d -> r%zus%zu;\n", i, s->after[e], i, k);
    }
}

enum hv_status hv__export_dot(struct hv__exporting *x)
{
    const struct hv_plan *p = x->s->plan;
    struct hv_str *out = hv__export_file(x, "plan.dot");
    hv__export_heading(x, "//", out);
    hv_str_adds(out, "digraph plan {\n  rankdir=LR;\n  node [shape=box];\n");
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        hv_str_addf(out, "  subgraph cluster_%zu {\n    label=\"%d x %lld micro-batches\";\n", i,
                    r->count, (long long)r->micro_batches);
        for (size_t k = 0; k < r->n_stages; k++) {
            add_node(x, i, k, out);
        }
        for (size_t k = 0; k < r->n_stages; k++) {
            add_edges(r, i, k, out);
        }
        hv_str_adds(out, "  }\n");
    }
    hv_str_adds(out, "}\n");
    return HV_OK;
}
