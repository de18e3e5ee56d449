/** The only mutable state of the command line: a flag that a signal handler may set. */
#include "ui/cli/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "solver/base/status.h"

/* A signal that follows this soon is the same Ctrl-C sent twice: to this process and to its group.
 */
#define SAME_KEY_S 0.3

static volatile sig_atomic_t arrived, insists;
static struct timespec first_at; /* written and read by the handler alone */

/** Only async-signal-safe calls. A second, later signal ends the program as usual. */
static void on_signal(int signo)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (arrived == 0) {
        arrived = signo;
        first_at = now;
        if (insists) {
            (void)alarm(1);
        }
        return;
    }
    double passed_s =
        (double)(now.tv_sec - first_at.tv_sec) + 1e-9 * (double)(now.tv_nsec - first_at.tv_nsec);
    if (passed_s > SAME_KEY_S) {
        (void)signal(signo, SIG_DFL);
        (void)raise(signo);
    }
}

/** Only async-signal-safe calls. */
static void on_alarm(int signo)
{
    static const char text[] =
        "hetviz: stopped during a long operation that cannot be interrupted; no result\n";
    (void)signo;
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    _exit(hv_status_exit_code(HV_ESTOPPED));
}

void hv_interrupt_catch(void)
{
    struct sigaction a = {.sa_handler = on_signal};
    (void)sigemptyset(&a.sa_mask);
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
}

void hv_interrupt_insist(double limit_s)
{
    struct sigaction a = {.sa_handler = on_alarm};
    (void)sigemptyset(&a.sa_mask);
    (void)sigaction(SIGALRM, &a, NULL);
    insists = 1;
    if (limit_s > 0 && limit_s < 1e8) {
        double end_s = limit_s + 1;
        time_t whole_s = (time_t)end_s;
        struct itimerval timer = {
            .it_value = {.tv_sec = whole_s,
                         .tv_usec = (suseconds_t)((end_s - (double)whole_s) * 1e6)}};
        (void)setitimer(ITIMER_REAL, &timer, NULL);
    }
}

void hv_interrupt_relax(void)
{
    insists = 0;
    (void)alarm(0);
}

bool hv_interrupted(void *ctx)
{
    (void)ctx;
    return arrived != 0;
}
