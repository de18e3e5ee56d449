/*
 * Benchmark of whole processes: `bench_process [--screen TEXT] RUNS LABEL PROGRAM ARG…` runs a
 * program and prints the median wall time and the largest resident set (with its children's). With
 * --screen the program gets a terminal of 80×24 of its own, the time is that until TEXT was drawn,
 * and the program is then ended; where it was not drawn, that is said and nothing is measured (exit
 * status 1). Judges nothing.
 */
#define _DEFAULT_SOURCE /* wait4, forkpty */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RUNS = 101, SCREEN_LIMIT_MS = 5000, SEEN_CAP = 1 << 16, NOT_DRAWN = 124 };

struct sample {
    double wall_s;
    long rss_kib;
    int code;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_wall(const void *a, const void *b)
{
    double x = ((const struct sample *)a)->wall_s, y = ((const struct sample *)b)->wall_s;
    return (x > y) - (x < y);
}

static void run_child(char **argv)
{
    execv(argv[0], argv);
    _exit(127);
}

/* The program without a terminal; what it prints is thrown away. */
static struct sample run_plain(char **argv)
{
    struct sample s = {0};
    struct rusage use;
    int status = 0;
    double start = now_s();
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        run_child(argv);
    }
    wait4(pid, &status, 0, &use);
    s.wall_s = now_s() - start;
    s.rss_kib = use.ru_maxrss;
    s.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return s;
}

/* The program on a terminal, until `text` was drawn: escape sequences may stand between words, not
 * inside them. */
static struct sample run_on_screen(char **argv, const char *text)
{
    static char seen[SEEN_CAP];
    struct sample s = {.code = NOT_DRAWN};
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    struct rusage use;
    size_t n = 0;
    int master = -1, status = 0;
    double start = now_s();
    pid_t pid = forkpty(&master, NULL, NULL, &size);
    if (pid == 0) {
        run_child(argv);
    }
    struct pollfd p = {.fd = master, .events = POLLIN};
    while (n + 1 < sizeof seen && poll(&p, 1, SCREEN_LIMIT_MS) > 0) {
        ssize_t got = read(master, seen + n, sizeof seen - 1 - n);
        if (got <= 0) {
            break;
        }
        n += (size_t)got;
        seen[n] = '\0';
        if (strstr(seen, text)) {
            s.code = 0;
            break;
        }
    }
    s.wall_s = now_s() - start;
    kill(pid, SIGTERM);
    while (read(master, seen, sizeof seen) > 0)
        ;
    close(master);
    wait4(pid, &status, 0, &use);
    s.rss_kib = use.ru_maxrss;
    return s;
}

int main(int argc, char **argv)
{
    const char *text = NULL;
    if (argc > 2 && strcmp(argv[1], "--screen") == 0) {
        text = argv[2];
        argc -= 2;
        argv += 2;
    }
    int runs = argc > 3 ? atoi(argv[1]) : 0;
    if (runs < 1 || runs > MAX_RUNS) {
        fprintf(stderr, "usage: bench_process [--screen TEXT] RUNS LABEL PROGRAM ARG...\n");
        return 2;
    }
    struct sample samples[MAX_RUNS];
    long rss_kib = 0;
    int code = 0;
    for (int i = 0; i < runs; i++) {
        samples[i] = text ? run_on_screen(argv + 3, text) : run_plain(argv + 3);
        rss_kib = samples[i].rss_kib > rss_kib ? samples[i].rss_kib : rss_kib;
        code = samples[i].code ? samples[i].code : code;
    }
    if (text && code == NOT_DRAWN) {
        printf("  %-48s not measured: '%s' was not drawn within %d s\n", argv[2], text,
               SCREEN_LIMIT_MS / 1000);
        return 1;
    }
    qsort(samples, (size_t)runs, sizeof *samples, by_wall);
    printf("  %-48s %9.1f ms %8.1f MB", argv[2], samples[runs / 2].wall_s * 1e3,
           (double)rss_kib * 1024 / 1e6);
    if (code != 0) {
        printf("   (exit %d)", code);
    }
    printf("\n");
    return 0;
}
