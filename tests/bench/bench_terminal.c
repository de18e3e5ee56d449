/*
 * Benchmark of programs on a terminal: `bench_terminal RUNS PROGRAM ARG… [-- PROGRAM ARG…]…`. Each
 * run starts every program once on a terminal of 120×40, so that what else the machine does meets
 * all alike; ratios between programs count. Printed per program: first frame (to the last byte
 * before a silence), a key (down and up, to the last byte of its answer), a flood of keys written
 * at once, wake-ups while nothing happens, and the end by `q`. A program that draws nothing,
 * answers no key or does not end is named instead of measured. Judges nothing.
 *
 * `bench_terminal gantt RUNS PROGRAM ARG…` opens the Gantt (key 5) of what it is given on a
 * terminal of 200×60: first content, keys while it is drawn, all drawn; then zooms in and pans.
 */
#define _DEFAULT_SOURCE /* forkpty, wait4 */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GANTT_HEIGHT = 60, GANTT_WIDTH = 200, PANS = 200 };
enum { PROGRAMS = 8, RUNS = 51, KEYS = 60, FLOOD = 2000, HEIGHT = 40, WIDTH = 120 };
/* silence that ends a frame, and the answer to a key */
enum {
    FRAME_QUIET_MS = 40,
    KEY_QUIET_MS = 4,
    FLOOD_QUIET_MS = 100,
    IDLE_MS = 500,
    LIMIT_MS = 5000
};

/* One program under measurement. */
struct subject {
    char **argv;
    double first_ms[RUNS], cpu_ms[RUNS], flood_ms[RUNS], quit_ms[RUNS], key_ms[RUNS * KEYS];
    size_t n_runs, n_keys, key_bytes, flood_bytes;
    double key_cpu_ms;
    long wakeups;
    const char *failure; /* why it cannot be measured; NULL = it can */
};

/* One that runs. */
struct session {
    pid_t pid;
    int master;
    double begin_ms;
    bool cursor_keys; /* it asked for the application's cursor keys */
};

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Processor time of a process so far; Linux numbers its clock by its id. */
static double cpu_ms(pid_t pid)
{
    struct timespec t = {0};
    clockid_t id = 0;
    return clock_getcpuclockid(pid, &id) == 0 && clock_gettime(id, &t) == 0
               ? (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6
               : 0;
}

static long wakeups_of(pid_t pid)
{
    char path[64], line[128];
    long n = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "voluntary_ctxt_switches: %ld", &n);
    }
    if (f) {
        fclose(f);
    }
    return n;
}

/* Reads until nothing came for `quiet_ms`; time of the last byte, or `from_ms` when none came. */
static double read_all(struct session *s, int first_ms, int quiet_ms, double from_ms, size_t *bytes)
{
    static char buf[1 << 16];
    struct pollfd p = {.fd = s->master, .events = POLLIN};
    double last = from_ms;
    for (int wait = first_ms; poll(&p, 1, wait) > 0; wait = quiet_ms) {
        ssize_t n = read(s->master, buf, sizeof buf - 1);
        if (n <= 0) {
            break;
        }
        last = now_ms();
        *bytes += (size_t)n;
        buf[n] = '\0';
        s->cursor_keys = s->cursor_keys || strstr(buf, "\033[?1h");
    }
    return last;
}

/* The child waits for a byte, so that making it is not measured. */
static struct session begin(char **argv, struct winsize size)
{
    struct session s = {0};
    int go[2];
    char byte = 0;
    if (pipe(go) != 0) {
        exit(1);
    }
    s.pid = forkpty(&s.master, NULL, NULL, &size);
    if (s.pid == 0) {
        close(go[1]);
        (void)!read(go[0], &byte, 1);
        close(go[0]);
        execvp(argv[0], argv);
        _exit(127);
    }
    close(go[0]);
    usleep(2000);
    s.begin_ms = now_ms();
    (void)!write(go[1], &byte, 1);
    close(go[1]);
    return s;
}

static void press_keys(struct subject *u, struct session *s)
{
    double before = cpu_ms(s->pid);
    for (int i = 0; i < KEYS; i++) {
        char key[] = {'\033', s->cursor_keys ? 'O' : '[', i < KEYS / 2 ? 'B' : 'A'};
        size_t bytes = 0;
        double at = now_ms();
        (void)!write(s->master, key, sizeof key);
        double last = read_all(s, 200, KEY_QUIET_MS, at, &bytes);
        if (bytes > 0) {
            u->key_ms[u->n_keys++] = last - at;
        }
        u->key_bytes += bytes;
    }
    u->key_cpu_ms += (cpu_ms(s->pid) - before) / KEYS;
}

static double flood(struct subject *u, struct session *s)
{
    char keys[3 * FLOOD];
    for (int i = 0; i < FLOOD; i++) {
        memcpy(keys + 3 * i, s->cursor_keys ? "\033OB" : "\033[B", 3);
    }
    double at = now_ms(), last = at;
    for (size_t sent = 0; sent < sizeof keys;) { /* more than a terminal takes at once */
        struct pollfd p = {.fd = s->master, .events = POLLIN | POLLOUT};
        if (poll(&p, 1, LIMIT_MS) <= 0) {
            break;
        }
        size_t left = sizeof keys - sent;
        ssize_t n =
            p.revents & POLLOUT ? write(s->master, keys + sent, left < 1024 ? left : 1024) : 0;
        if (n < 0) {
            break;
        }
        sent += (size_t)n;
        last = read_all(s, 0, 0, last, &u->flood_bytes);
    }
    return read_all(s, FLOOD_QUIET_MS, FLOOD_QUIET_MS, last, &u->flood_bytes) - at;
}

static void run_once(struct subject *u)
{
    struct session s = begin(u->argv, (struct winsize){.ws_row = HEIGHT, .ws_col = WIDTH});
    size_t bytes = 0, r = u->n_runs++;
    u->first_ms[r] = read_all(&s, LIMIT_MS, FRAME_QUIET_MS, s.begin_ms, &bytes) - s.begin_ms;
    if (bytes == 0) {
        u->failure = "it drew nothing";
    }
    u->cpu_ms[r] = cpu_ms(s.pid);
    press_keys(u, &s);
    u->flood_ms[r] = flood(u, &s);
    long before = wakeups_of(s.pid);
    (void)read_all(&s, IDLE_MS, IDLE_MS, 0, &bytes);
    u->wakeups += wakeups_of(s.pid) - before;
    double at = now_ms();
    (void)!write(s.master, "q", 1);
    bool ended = false;
    while (!ended && now_ms() - at < LIMIT_MS) {
        ended = waitpid(s.pid, NULL, WNOHANG) != 0;
        if (!ended) {
            (void)read_all(&s, 1, 0, 0, &bytes);
        }
    }
    if (!ended) {
        u->failure = "q did not end it";
    }
    u->quit_ms[r] = now_ms() - at;
    if (!ended) {
        (void)kill(s.pid, SIGKILL);
        (void)waitpid(s.pid, NULL, 0);
    }
    close(s.master);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that a share of all stays below. */
static double share(double *v, size_t n, double frac)
{
    qsort(v, n, sizeof *v, by_size);
    return n > 0 ? v[(size_t)(frac * (double)(n - 1) + 0.5)] : 0;
}

static void report(struct subject *u)
{
    const char *slash = strrchr(u->argv[0], '/');
    double runs = (double)u->n_runs, keys = u->n_keys > 0 ? (double)u->n_keys : 1;
    const char *name = slash ? slash + 1 : u->argv[0];
    if (u->failure || u->n_keys == 0) {
        printf("  %-8s not measured: %s\n", name, u->failure ? u->failure : "it answered no key");
        return;
    }
    printf("  %-8s %7.2f %7.2f %7.2f | %6.3f %6.3f %6.3f %6.0f | %7.1f %8.0f | %5.1f | %6.2f\n",
           name, share(u->first_ms, u->n_runs, 0), share(u->first_ms, u->n_runs, 0.5),
           share(u->cpu_ms, u->n_runs, 0.5), share(u->key_ms, u->n_keys, 0.5),
           share(u->key_ms, u->n_keys, 0.99), u->key_cpu_ms / runs, (double)u->key_bytes / keys,
           share(u->flood_ms, u->n_runs, 0.5), (double)u->flood_bytes / runs,
           (double)u->wakeups / runs, share(u->quit_ms, u->n_runs, 0.5));
}

/* What a Gantt's opening takes. */
struct opening {
    double first_ms[RUNS], drawn_ms[RUNS], loading_ms[RUNS * KEYS], pan_ms[RUNS * PANS];
    size_t n_runs, n_loading, n_pans, n_unseen;
};

/* Writes a key and reads the answer: time to its last byte, negative when there was none. */
static double press(struct session *s, const char *key, size_t *bytes)
{
    double at = now_ms();
    size_t before = *bytes;
    (void)!write(s->master, key, strlen(key));
    double last = read_all(s, 200, KEY_QUIET_MS, at, bytes);
    return *bytes > before ? last - at : -1;
}

/* Keys while the timeline is made go between screens: a whole frame each. Progress in between is
 * counted with the key it comes with. */
static void open_gantt(struct opening *o, char **argv)
{
    struct session s = begin(argv, (struct winsize){.ws_row = GANTT_HEIGHT, .ws_col = GANTT_WIDTH});
    size_t bytes = 0;
    (void)read_all(&s, LIMIT_MS, FRAME_QUIET_MS, 0, &bytes);
    double at = now_ms();
    double first_ms = press(&s, "5", &bytes);
    o->n_unseen += bytes == 0 || first_ms < 0;
    o->first_ms[o->n_runs] = first_ms;
    for (int i = 0; i < 10; i++) {
        o->loading_ms[o->n_loading++] = press(&s, i % 2 ? "5" : "8", &bytes);
    }
    o->drawn_ms[o->n_runs++] =
        read_all(&s, FLOOD_QUIET_MS, 2 * FLOOD_QUIET_MS, now_ms(), &bytes) - at;
    for (int i = 0; i < 12; i++) {
        (void)press(&s, "+", &bytes);
    }
    for (int i = 0; i < PANS; i++) {
        double ms = press(&s, i < PANS / 2 ? "L" : "H", &bytes);
        if (ms >= 0) {
            o->pan_ms[o->n_pans++] = ms;
        }
    }
    (void)kill(s.pid, SIGKILL);
    (void)waitpid(s.pid, NULL, 0);
    close(s.master);
}

static int bench_gantt(int runs, char **argv)
{
    static struct opening o;
    for (int r = 0; r < runs; r++) {
        open_gantt(&o, argv);
    }
    if (o.n_unseen > 0) {
        printf("  not measured: in %zu of %zu runs the Gantt was not drawn\n", o.n_unseen,
               o.n_runs);
        return 1;
    }
    printf("  opening, ms: first content %.2f, all drawn %.0f (medians of %zu)\n",
           share(o.first_ms, o.n_runs, 0.5), share(o.drawn_ms, o.n_runs, 0.5), o.n_runs);
    printf("  keys while it is drawn, ms: p50 %.2f, worst %.2f\n",
           share(o.loading_ms, o.n_loading, 0.5), share(o.loading_ms, o.n_loading, 1));
    printf("  pan at %dx%d, ms: p50 %.2f, p99 %.2f, worst %.2f (%zu keys)\n", GANTT_WIDTH,
           GANTT_HEIGHT, share(o.pan_ms, o.n_pans, 0.5), share(o.pan_ms, o.n_pans, 0.99),
           share(o.pan_ms, o.n_pans, 1), o.n_pans);
    return 0;
}

int main(int argc, char **argv)
{
    bool gantt = argc > 1 && strcmp(argv[1], "gantt") == 0;
    static struct subject subjects[PROGRAMS];
    argc -= gantt;
    argv += gantt;
    int runs = argc > 2 ? atoi(argv[1]) : 0;
    size_t n = 0;
    if (runs < 1 || runs > RUNS) {
        fprintf(stderr,
                "usage: bench_terminal [gantt] RUNS PROGRAM ARG... [-- PROGRAM ARG...]...\n");
        return 2;
    }
    if (gantt) {
        return bench_gantt(runs, argv + 2);
    }
    subjects[n++].argv = argv + 2;
    for (int i = 2; i < argc && n < PROGRAMS; i++) {
        if (strcmp(argv[i], "--") == 0) {
            argv[i] = NULL;
            subjects[n++].argv = argv + i + 1;
        }
    }
    for (int r = 0; r < runs; r++) {
        for (size_t i = 0; i < n; i++) {
            run_once(&subjects[i]);
        }
    }
    printf(
        "  ms       first: least, median, cpu | key: p50    p99    cpu  bytes | flood %5d  bytes "
        "| wakes |   quit\n",
        FLOOD);
    for (size_t i = 0; i < n; i++) {
        report(&subjects[i]);
    }
    return 0;
}
