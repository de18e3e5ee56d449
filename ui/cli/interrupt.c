/** The only mutable state of the command line: a flag that a signal handler may set. */
#include "ui/cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t arrived;

static void on_signal(int signo)
{
    arrived = signo;
}

void hv_interrupt_catch(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&a.sa_mask);
    (void)sigaction(SIGINT, &a, NULL);
    (void)sigaction(SIGTERM, &a, NULL);
}

bool hv_interrupted(void *ctx)
{
    (void)ctx;
    return arrived != 0;
}
