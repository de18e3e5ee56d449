/** Runs the programs that list this machine's devices. Not for reading their output
 * (solver/io/import). */
#include "ui/session/import/local.h"

#include "solver/base/vec.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_S 10 /* nvidia-smi takes seconds where no process keeps the driver awake */

extern char **environ;

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/** Reads until the end, too many bytes, or the time is up. False: cut short. */
static bool drain(int fd, struct hv_str *out)
{
    double until = now_s() + ANSWER_S;
    char buf[65536];
    while (out->n < HV_IMPORT_MAX_BYTES) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        double left = until - now_s();
        if (left <= 0 || poll(&p, 1, (int)(left * 1000) + 1) == 0) {
            return false;
        }
        ssize_t n = read(fd, buf, sizeof buf);
        if (n == 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        hv_str_add(out, buf, n > 0 ? (size_t)n : 0);
    }
    return false;
}

/** Runs a program with its standard output read; false when it is not there or fails. */
static bool ask(char *const argv[], struct hv_str *out)
{
    int ends[2], status = 0;
    pid_t pid = -1;
    posix_spawn_file_actions_t files;
    if (pipe(ends) != 0) {
        return false;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addclose(&files, ends[1]);
    int rc = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)close(ends[1]);
    bool whole = rc == 0 && drain(ends[0], out);
    (void)close(ends[0]);
    if (rc != 0) {
        return false;
    }
    if (!whole) {
        (void)kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        continue;
    }
    return whole && WIFEXITED(status) && WEXITSTATUS(status) == 0 && out->n > 0;
}

/** The first line of a small file of /sys, as a hexadecimal number; 0 when there is none. */
static unsigned long sys_number(const char *device, const char *name)
{
    char path[512], text[32] = "";
    (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%.200s/%s", device, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return n > 0 ? strtoul(text, NULL, 16) : 0;
}

/** Writes the cards on the PCI bus in the topology format of NCCL, for the reader of that
 * format. */
static size_t pci_topology(struct hv_str *out)
{
    size_t n = 0;
    DIR *d = opendir("/sys/bus/pci/devices");
    hv_str_adds(out, "<system version=\"1\"><cpu numaid=\"0\">");
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        unsigned long cls = sys_number(e->d_name, "class") >> 8;
        unsigned long vendor = sys_number(e->d_name, "vendor");
        if ((cls == 0x0302 || cls == 0x0300) && vendor == 0x10de) {
            hv_str_addf(out,
                        "<pci busid=\"%s\" class=\"0x%lx00\" vendor=\"0x%lx\" device=\"0x%lx\"/>",
                        e->d_name, cls, vendor, sys_number(e->d_name, "device"));
            n++;
        }
    }
    hv_str_adds(out, "</cpu></system>");
    if (d) {
        (void)closedir(d);
    }
    return n;
}

enum hv_status hv_import_local(struct hv_import *im, struct hv_err *err)
{
    static char smi[] = "nvidia-smi", q[] = "-q", x[] = "-x", topo[] = "topo", m[] = "-m";
    char *const cards[] = {smi, q, x, NULL}, *const links[] = {smi, topo, m, NULL};
    struct hv_str text = {0};
    enum hv_status st = HV_OK;
    if (ask(cards, &text)) {
        st = hv_import_text(im, hv_import_format_find("nvidia_smi_xml"), "nvidia-smi -q -x",
                            hv_str_cstr(&text), text.n, err);
        hv_str_clear(&text);
        if (st == HV_OK && ask(links, &text)) {
            /* a machine with one card, or a virtual one, has no matrix: not an error */
            struct hv_err none = {0};
            (void)!hv_import_text(im, hv_import_format_find("nvidia_smi_topo"),
                                  "nvidia-smi topo -m", hv_str_cstr(&text), text.n, &none);
        }
    } else {
        hv_str_clear(&text);
        st = pci_topology(&text) > 0
                 ? hv_import_text(im, hv_import_format_find("nccl_topo_xml"), "/sys/bus/pci",
                                  hv_str_cstr(&text), text.n, err)
                 : hv_err_set(err, HV_ENO,
                              "this machine has no NVIDIA GPU: nvidia-smi gives no answer and no "
                              "PCI device is one; run this on a machine with GPUs");
    }
    hv_str_free(&text);
    return st;
}
