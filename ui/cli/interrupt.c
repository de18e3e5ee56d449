/** The only mutable state of the command line: a flag that a signal handler may set. */
#include "ui/cli/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

/* A signal that follows this soon is the same Ctrl-C told twice: to us and to our group. */
#define SAME_KEY_S 0.3

static volatile sig_atomic_t arrived;
static struct timespec first_at; /* written and read by the handler alone */

static void on_signal(int signo)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (arrived == 0) {
        arrived = signo;
        first_at = now;
        return;
    }
    double passed_s =
        (double)(now.tv_sec - first_at.tv_sec) + 1e-9 * (double)(now.tv_nsec - first_at.tv_nsec);
    if (passed_s > SAME_KEY_S) {
        (void)signal(signo, SIG_DFL);
        (void)raise(signo);
    }
}

void hv_interrupt_catch(void)
{
    struct sigaction a = {.sa_handler = on_signal};
    (void)sigemptyset(&a.sa_mask);
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
}

bool hv_interrupted(void *ctx)
{
    (void)ctx;
    return arrived != 0;
}
