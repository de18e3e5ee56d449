/** Signals of the curses terminal: a self-pipe for the ordinary ones, a safe restore for fatal
 * ones. */
#ifndef HV_UI_TERM_TERM_SIGNALS_H
#define HV_UI_TERM_TERM_SIGNALS_H

#include <stddef.h>
#include <termios.h>

/** Largest reset string. */
#define HV_RESET_MAX 256

/**
 * Installs handlers and the die hook. `reset` (at most HV_RESET_MAX bytes) and `saved` are what a
 * dying program writes to file `fd`. Returns the read end of the self-pipe, or -1.
 */
int hv_signals_open(int fd, const char *reset, size_t n, const struct termios *saved);
/** Puts the former handlers back. */
void hv_signals_close(void);
/** Next signal number from the pipe, 0 when there is none. */
int hv_signals_next(void);
/** Stops the process as SIGTSTP would, and returns when it is continued. */
void hv_signals_stop(void);
/** Sets whether the program holds the screen and must restore it on a crash. */
void hv_signals_arm(int armed);

#endif
