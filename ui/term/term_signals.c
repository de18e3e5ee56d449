/*
 * Signals. Handlers only write one byte to a pipe; the handler of fatal signals writes a prebuilt
 * string, sets the line discipline back and lets the signal kill the program.
 */
#include "ui/term/term_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "solver/base/attr.h"
#include "solver/base/status.h"

static const int ordinary[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};
static const int fatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};

static struct {
    struct sigaction old_ordinary[HV_COUNT(ordinary)], old_fatal[HV_COUNT(fatal)];
    struct termios saved;
    char reset[HV_RESET_MAX];
    size_t n_reset;
    int fd, pipe[2];
    volatile sig_atomic_t armed;
    bool is_open, has_exit;
} self = {.pipe = {-1, -1}};

/* room to report a stack overflow from */
static char alternate_stack[64 * 1024];

static void on_ordinary(int signo)
{
    int saved_errno = errno;
    unsigned char byte = (unsigned char)signo;
    ssize_t n = write(self.pipe[1], &byte, 1);
    (void)n;
    errno = saved_errno;
}

/* Only async-signal-safe calls. */
static void restore(void)
{
    if (!self.armed) {
        return;
    }
    self.armed = 0;
    ssize_t n = write(self.fd, self.reset, self.n_reset);
    (void)n;
    (void)tcsetattr(self.fd, TCSANOW, &self.saved);
}

static void on_fatal(int signo)
{
    restore();
    (void)signal(signo, SIG_DFL);
    (void)raise(signo);
}

static void set_handler(int signo, void (*fn)(int), int flags, struct sigaction *old)
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = fn;
    sa.sa_flags = flags;
    (void)sigemptyset(&sa.sa_mask);
    (void)sigaction(signo, &sa, old);
}

static bool open_pipe(void)
{
    if (pipe(self.pipe) != 0) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(self.pipe[i], F_SETFL, O_NONBLOCK);
        (void)fcntl(self.pipe[i], F_SETFD, FD_CLOEXEC);
    }
    return true;
}

int hv_signals_open(int fd, const char *reset, size_t n, const struct termios *saved)
{
    if (!open_pipe()) {
        return -1;
    }
    self.fd = fd;
    self.n_reset = n < HV_RESET_MAX ? n : HV_RESET_MAX;
    memcpy(self.reset, reset, self.n_reset);
    self.saved = *saved;
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    (void)sigaltstack(&stack, NULL);
    for (size_t i = 0; i < HV_COUNT(ordinary); i++) {
        set_handler(ordinary[i], on_ordinary, SA_RESTART, &self.old_ordinary[i]);
    }
    for (size_t i = 0; i < HV_COUNT(fatal); i++) {
        set_handler(fatal[i], on_fatal, SA_ONSTACK, &self.old_fatal[i]);
    }
    hv_die_hook(restore);
    if (!self.has_exit) {
        self.has_exit = atexit(restore) == 0;
    }
    self.is_open = true;
    return self.pipe[0];
}

void hv_signals_close(void)
{
    if (!self.is_open) {
        return;
    }
    for (size_t i = 0; i < HV_COUNT(ordinary); i++) {
        (void)sigaction(ordinary[i], &self.old_ordinary[i], NULL);
    }
    for (size_t i = 0; i < HV_COUNT(fatal); i++) {
        (void)sigaction(fatal[i], &self.old_fatal[i], NULL);
    }
    hv_die_hook(NULL);
    self.armed = 0;
    self.is_open = false;
    (void)close(self.pipe[0]);
    (void)close(self.pipe[1]);
    self.pipe[0] = self.pipe[1] = -1;
}

int hv_signals_next(void)
{
    unsigned char byte;
    return read(self.pipe[0], &byte, 1) == 1 ? byte : 0;
}

void hv_signals_stop(void)
{
    struct sigaction mine;
    set_handler(SIGTSTP, SIG_DFL, 0, &mine);
    (void)raise(SIGTSTP);
    (void)sigaction(SIGTSTP, &mine, NULL);
}

void hv_signals_arm(int armed)
{
    self.armed = armed;
}
