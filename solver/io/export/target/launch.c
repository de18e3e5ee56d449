/*
 * launch.sh: one run on every host starts a process per rank of that host, with the variables that
 * torch.distributed's env:// reads. It holds for any rank order, while torchrun numbers ranks node
 * by node; where both agree, the line for torchrun is in it too.
 */
#include "solver/io/export/target/inside.h"

#define PORT 29500 /* of torchrun's rendezvous by default */

static void add_usage(const struct hv__exporting *x, const char *program, const char *args_file,
                      struct hv_str *out)
{
    hv_str_addf(out,
                "# Run once on every host: srun --ntasks-per-node=1 launch.sh [PROGRAM...], or by "
                "ssh.\n# PROGRAM: %s\n",
                program);
    if (x->by_node) {
        hv_str_addf(out,
                    "# Ranks go node by node, so this is the same, with N from 0 in the order "
                    "below:\n# torchrun --nnodes=%zu --nproc-per-node=%zu --node-rank=N "
                    "--master-addr=%s --master-port=%d PROGRAM%s%s%s\n",
                    x->n_hosts, x->per_host, x->ranks[0].host, PORT,
                    args_file != NULL ? " $(cat " : "", args_file != NULL ? args_file : "",
                    args_file != NULL ? ")" : "");
    } else {
        hv_str_adds(out,
                    "# Ranks do not go node by node, so torchrun would number them otherwise.\n");
    }
}

void hv__export_launch(struct hv__exporting *x, const char *program, const char *args_file)
{
    struct hv_str *out = hv__export_file(x, "launch.sh");
    x->out->files.items[x->out->files.n - 1].is_program = true;
    hv_str_adds(out, "#!/usr/bin/env bash\n");
    hv__export_heading(x, "#", out);
    add_usage(x, program, args_file, out);
    hv_str_addf(out,
                "set -euo pipefail\n"
                "host=${HETVIZ_HOST:-$(hostname -s)}\n"
                "if [ -n \"${HETVIZ_HOSTS:-}\" ]; then\n"
                "    read -r -a hosts <<<\"$HETVIZ_HOSTS\"\n"
                "    host=${hosts[SLURM_PROCID]}\n"
                "fi\n"
                "program=(\"$@\")\n"
                "if [ $# -eq 0 ]; then program=(%s); fi\n"
                "args=()\n",
                program);
    if (args_file != NULL) {
        hv_str_addf(out,
                    "here=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\n"
                    "read -r -d '' -a args <\"$here/%s\" || true\n",
                    args_file);
    }
    hv_str_adds(out, "case $host in\n");
    hv__export_host_cases(x, out);
    hv_str_addf(
        out,
        "*) echo \"no rank of the plan is on $host (HETVIZ_HOST sets the name)\" >&2; exit 1 "
        ";;\n"
        "esac\n"
        "export WORLD_SIZE=%zu LOCAL_WORLD_SIZE=${#ranks[@]}\n"
        "export MASTER_ADDR=${MASTER_ADDR:-'%s'} MASTER_PORT=${MASTER_PORT:-%d}\n"
        "CUDA_VISIBLE_DEVICES=$(IFS=,; echo \"${gpus[*]}\")\n"
        "export CUDA_VISIBLE_DEVICES\n"
        "started=()\n"
        "for i in \"${!ranks[@]}\"; do\n"
        "    RANK=${ranks[i]} LOCAL_RANK=$i \"${program[@]}\" ${args[@]+\"${args[@]}\"} &\n"
        "    started+=($!)\n"
        "done\n"
        "for p in \"${started[@]}\"; do wait \"$p\"; done\n",
        x->n_ranks, x->ranks[0].host, PORT);
}
