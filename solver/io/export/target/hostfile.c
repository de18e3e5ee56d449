/* Hosts and their ranks for launchers: "HOST slots=N" of DeepSpeed and mpirun, and Open MPI's rank
 * file, which holds for any order. */
#include "solver/io/export/target/inside.h"

static void add_host(void *ctx, const struct hv__export_rank *first, size_t n)
{
    hv_str_addf(ctx, "%s slots=%zu\n", first->host, n);
}

void hv__export_host_file(struct hv__exporting *x, const char *name)
{
    hv__export_each_host(x, add_host, hv__export_file(x, name));
    if (!x->by_node) {
        hv__export_note(x, "ranks do not go node by node, equally many on each: a launcher that "
                           "numbers them by host file gives them other places than ranks.csv");
    }
}

enum hv_status hv__export_hostfile(struct hv__exporting *x)
{
    hv__export_host_file(x, "hostfile");
    struct hv_str *out = hv__export_file(x, "rankfile");
    for (size_t i = 0; i < x->n_ranks; i++) {
        hv_str_addf(out, "rank %zu=%s slot=%u\n", i, x->ranks[i].host, x->ranks[i].slot);
    }
    hv__export_ranks_file(x);
    return HV_OK;
}
