/*
 * Slurm: a heterogeneous job with one component per group of nodes, and one `srun` over all of
 * them, which gives one space of ranks. One task per node starts the ranks of its host by
 * launch.sh. Source: slurm.schedmd.com/heterogeneous_jobs.html.
 */
#include <ctype.h>

#include "solver/io/export/target/inside.h"

/** Nodes of one group that the plan uses, in rank order. */
struct component {
    uint32_t group;
    size_t nodes, most_ranks;
};

struct components {
    struct hv__exporting *x;
    HV_VEC(struct component) items;
    bool listed; /**< the cluster names the hosts */
};

static uint32_t group_of(const struct hv__exporting *x, const struct hv__export_rank *r)
{
    return hv_cluster_device(x->s->plan->cluster, r->device).group;
}

static void take_host(void *ctx, const struct hv__export_rank *first, size_t n)
{
    struct components *c = ctx;
    uint32_t group = group_of(c->x, first);
    for (size_t i = 0; i < c->items.n; i++) {
        struct component *k = &c->items.items[i];
        if (k->group == group) {
            k->nodes++;
            k->most_ranks = n > k->most_ranks ? n : k->most_ranks;
            return;
        }
    }
    hv_vec_push(&c->items, (struct component){group, 1, n});
}

/** Adds the hosts of one component. */
struct host_list {
    struct components *all;
    uint32_t group;
    const char *between;
    bool quoted;
    struct hv_str *out;
    size_t n;
};

static void add_host(void *ctx, const struct hv__export_rank *first, size_t n)
{
    struct host_list *l = ctx;
    (void)n;
    if (group_of(l->all->x, first) == l->group) {
        hv_str_addf(l->out, "%s%s%s%s", l->n > 0 ? l->between : "", l->quoted ? "'" : "",
                    first->host, l->quoted ? "'" : "");
        l->n++;
    }
}

static void add_hosts(struct components *c, uint32_t group, const char *between, bool quoted,
                      struct hv_str *out)
{
    struct host_list l = {c, group, between, quoted, out, 0};
    hv__export_each_host(c->x, add_host, &l);
}

/** Slurm's type of a card as sites usually name it: "a100" of A100-SXM-80GB. */
static void add_type(const char *kind, struct hv_str *out)
{
    for (const char *c = kind; isalnum((unsigned char)*c); c++) {
        hv_str_addc(out, (char)tolower((unsigned char)*c));
    }
}

static void add_component(struct components *c, size_t i, struct hv_str *out)
{
    const struct component *k = &c->items.items[i];
    const struct hv_node_group *g = &c->x->s->plan->cluster->groups[k->group];
    if (i > 0) {
        hv_str_adds(out, "#SBATCH hetjob\n");
    }
    hv_str_addf(out, "#SBATCH --nodes=%zu --ntasks-per-node=1 --gres=gpu:", k->nodes);
    add_type(hv_node_kind_at(g, 0)->name, out);
    hv_str_addf(out, ":%u\n", g->n_devices);
    if (c->listed) {
        hv_str_adds(out, "#SBATCH --nodelist=");
        add_hosts(c, k->group, ",", false, out);
        hv_str_adds(out, "\n");
    }
}

static void add_start(struct components *c, struct hv_str *out)
{
    size_t n = c->items.n;
    hv_str_adds(out, "set -euo pipefail\n"
                     "here=${SLURM_SUBMIT_DIR:-$(pwd)}\n");
    if (c->listed) {
        hv_str_addf(out, "MASTER_ADDR='%s'\n", c->x->ranks[0].host);
    } else {
        hv_str_addf(out, "MASTER_ADDR=$(scontrol show hostnames \"$%s\" | head -n 1)\n",
                    n > 1 ? "SLURM_JOB_NODELIST_HET_GROUP_0" : "SLURM_JOB_NODELIST");
    }
    hv_str_adds(out, "export MASTER_ADDR\n"
                     "# NCCL_SOCKET_IFNAME and NCCL_IB_HCA: those of your site\n"
                     "export NCCL_DEBUG=${NCCL_DEBUG:-WARN}\n");
    if (!c->listed) {
        hv_str_adds(out, "# node number N of the job is host N of the plan\nhosts=(");
        for (size_t i = 0; i < n; i++) {
            hv_str_adds(out, i > 0 ? " " : "");
            add_hosts(c, c->items.items[i].group, " ", true, out);
        }
        hv_str_adds(out, ")\nexport HETVIZ_HOSTS=\"${hosts[*]}\"\n");
    }
    hv_str_adds(out, "srun ");
    if (n > 1) {
        hv_str_addf(out, "--het-group=0-%zu ", n - 1);
    }
    hv_str_adds(out, "--label bash \"$here/launch.sh\" \"$@\"\n");
}

enum hv_status hv__export_slurm(struct hv__exporting *x)
{
    struct components c = {.x = x, .listed = !x->hosts_assumed};
    hv__export_each_host(x, take_host, &c);
    struct hv_str *out = hv__export_file(x, "job.sbatch");
    x->out->files.items[x->out->files.n - 1].is_program = true;
    hv_str_adds(out, "#!/usr/bin/env bash\n");
    for (size_t i = 0; i < c.items.n; i++) {
        if (i == 0) {
            hv_str_adds(out, "#SBATCH --job-name=hetviz-plan\n");
        }
        add_component(&c, i, out);
    }
    hv__export_heading(x, "#", out);
    hv_str_adds(out, "# sbatch job.sbatch PROGRAM..., in the folder of these files\n");
    add_start(&c, out);
    hv__export_note(x, "the types of --gres are guessed from the device kinds; sinfo -o %%G shows "
                       "those of your site");
    hv__export_launch(x, "python train.py", NULL);
    hv__export_ranks_file(x);
    hv_vec_free(&c.items);
    return HV_OK;
}
