/** The only mutable state of the command line: a flag that a signal handler may set. */
#include "ui/cli/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <unistd.h>

#include "solver/base/status.h"

static volatile sig_atomic_t arrived, insists;

static void on_signal(int signo)
{
    arrived = signo;
    if (insists) {
        (void)alarm(1);
    }
}

/** Only async-signal-safe calls. */
static void on_alarm(int signo)
{
    static const char text[] = "hetviz: stopped inside one long call of the strategy, which "
                               "never looked at the clock; nothing to show\n";
    (void)signo;
    ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
    (void)n;
    _exit(hv_status_exit_code(HV_ESTOPPED));
}

void hv_interrupt_catch(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
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
