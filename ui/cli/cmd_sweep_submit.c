/**
 * `hetviz sweep submit`: a sweep for an engine that starts programs on many machines. Slurm gets an
 * array of jobs, GNU parallel a command line.
 */
#include "ui/cli/cmd_sweep.h"
#include "ui/cli/sweep/kept.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "ui/cli/print.h"

#define SCRIPT "sweep.sbatch"

extern char **environ;

/** A word that a shell takes as it is. */
static void quote(const char *text, struct hv_str *out)
{
    hv_str_addc(out, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            hv_str_adds(out, "'\\''");
        } else {
            hv_str_addc(out, *text);
        }
    }
    hv_str_addc(out, '\'');
}

/** Path of this program. */
static void add_program(struct hv_str *out)
{
    struct hv_str path = {0};
    quote(hv_program_beside(&path, "hetviz") ? hv_str_cstr(&path) : "hetviz", out);
    hv_str_free(&path);
}

/** The folder as an absolute path, since jobs start elsewhere. Errors: HV_EIO. */
static enum hv_status whole_path(const char *folder, struct hv_str *out, struct hv_err *err)
{
    char *real = realpath(folder, NULL);
    if (real == NULL) {
        return hv_err_set(err, HV_EIO, "%s: %s", folder, strerror(errno));
    }
    hv_str_adds(out, real);
    free(real);
    return HV_OK;
}

struct submission {
    const char *folder; /**< absolute */
    size_t n_shards, retries, jobs;
};

/** Several attempts, since memory may run out or a file system be away for a while; wrong usage (2)
 * fails every time. */
static void add_script(const struct submission *sub, struct hv_str *out)
{
    hv_str_addf(out,
                "#!/bin/sh\n"
                "#SBATCH --job-name=hetviz-sweep\n"
                "#SBATCH --array=1-%zu\n"
                "#SBATCH --ntasks=1\n"
                "#SBATCH --cpus-per-task=%zu\n"
                "#SBATCH --requeue\n"
                "#SBATCH --open-mode=append\n"
                "# A shard goes on where it was: a requeued job repeats nothing.\n"
                "try=1\n"
                "while :; do\n    ",
                sub->n_shards, sub->jobs);
    add_program(out);
    hv_str_adds(out, " sweep run --quiet --out ");
    quote(sub->folder, out);
    hv_str_addf(out,
                " --shard \"$SLURM_ARRAY_TASK_ID/%zu\" --jobs \"${SLURM_CPUS_PER_TASK:-1}\"\n"
                "    rc=$?\n"
                "    if [ \"$rc\" -eq 0 ] || [ \"$rc\" -eq 2 ] || [ \"$try\" -ge %zu ]; then exit "
                "\"$rc\"; fi\n"
                "    try=$((try + 1))\n"
                "    sleep 5\n"
                "done\n",
                sub->n_shards, sub->retries);
}

static void add_parallel(const struct submission *sub, struct hv_str *out)
{
    hv_str_adds(out, "seq ");
    hv_str_addf(out, "%zu | parallel --joblog ", sub->n_shards);
    struct hv_str log = {0};
    hv_cli_sweep_path(sub->folder, "parallel.log", &log);
    quote(hv_str_cstr(&log), out);
    hv_str_addf(out, " --resume-failed --retries %zu ", sub->retries);
    add_program(out);
    hv_str_adds(out, " sweep run --quiet --out ");
    /* parallel gives the words to a shell of the host once more */
    struct hv_str once = {0};
    quote(sub->folder, &once);
    quote(hv_str_cstr(&once), out);
    hv_str_addf(out, " --shard {}/%zu --jobs %zu\n", sub->n_shards, sub->jobs);
    hv_str_free(&once);
    hv_str_free(&log);
}

/** Runs sbatch on the script; its words go to standard output. */
static enum hv_status run_sbatch(const struct submission *sub, const char *script,
                                 struct hv_err *err)
{
    struct hv_str output = {0}, file = {0};
    pid_t pid = -1;
    int state = 0;

    hv_str_addf(&output, "--output=%s/slurm-%%A-%%a.out", sub->folder);
    hv_str_adds(&file, script);
    char program[] = "sbatch";
    char *argv[] = {program, output.p, file.p, NULL};
    int rc = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    hv_str_free(&output);
    hv_str_free(&file);
    if (rc != 0) {
        return hv_err_set(err, HV_ENO, "sbatch cannot be started (%s); the script is %s",
                          strerror(rc), script);
    }
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
        continue;
    }
    return WIFEXITED(state) && WEXITSTATUS(state) == 0
               ? HV_OK
               : hv_err_set(err, HV_ENO, "sbatch did not take the script %s", script);
}

static enum hv_status submit_slurm(const struct hv_args *args, const struct submission *sub,
                                   struct hv_err *err)
{
    struct hv_str path = {0}, script = {0};
    add_script(sub, &script);
    hv_cli_sweep_path(sub->folder, SCRIPT, &path);
    enum hv_status st = hv_file_write(hv_str_cstr(&path), script.p, script.n, err);
    if (st == HV_OK && hv_args_has(args, "dry-run")) {
        struct hv_str said = {0};
        hv_text_addf(&said, "sbatch %s\n", hv_str_cstr(&path));
        st = hv_cli_print(&said, err);
        hv_str_free(&said);
    } else if (st == HV_OK) {
        st = run_sbatch(sub, hv_str_cstr(&path), err);
    }
    hv_str_free(&path);
    hv_str_free(&script);
    return st;
}

static enum hv_status submit(const struct hv_args *args, const struct submission *sub,
                             struct hv_err *err)
{
    if (strpbrk(sub->folder, "\n\r") != NULL) {
        return hv_err_set(err, HV_EUSAGE, "sweep submit: the name of the folder has a line end");
    }
    if (hv_args_has(args, "slurm")) {
        return submit_slurm(args, sub, err);
    }
    struct hv_str line = {0};
    add_parallel(sub, &line);
    enum hv_status st = hv_cli_print(&line, err);
    hv_str_free(&line);
    return st;
}

enum hv_status hv_cli_sweep_submit(struct hv_args *args, struct hv_err *err)
{
    const char *folder = hv_args_text(args, "out", NULL), *path = hv_cli_sweep_file(args);
    struct hv_sweep s = {0};
    struct hv_str whole = {0}, spec = {0};

    if (folder == NULL) {
        return hv_err_set(err, HV_EUSAGE,
                          "sweep submit: expected --out DIR, the folder of results");
    }
    if (hv_args_has(args, "slurm") == hv_args_has(args, "gnu-parallel")) {
        return hv_err_set(err, HV_EUSAGE, "sweep submit: expected --slurm or --gnu-parallel");
    }
    hv_cli_sweep_path(folder, HV_SWEEP_SPEC, &spec);
    enum hv_status st = hv_sweep_read(&s, path != NULL ? path : hv_str_cstr(&spec), err);
    st = st == HV_OK ? hv_cli_sweep_check(&s, err) : st;
    st = st == HV_OK ? hv_cli_sweep_keep(&s, folder, err) : st;
    st = st == HV_OK ? whole_path(folder, &whole, err) : st;
    if (st == HV_OK) {
        size_t asked = (size_t)hv_args_number(args, "shards", 16);
        struct submission sub = {.folder = hv_str_cstr(&whole),
                                 .n_shards = asked < s.n_cells ? asked : s.n_cells,
                                 .retries = (size_t)hv_args_number(args, "retries", 3),
                                 .jobs = (size_t)hv_args_number(args, "jobs", 1)};
        st = submit(args, &sub, err);
    }
    hv_str_free(&whole);
    hv_str_free(&spec);
    hv_sweep_free(&s);
    return st;
}
