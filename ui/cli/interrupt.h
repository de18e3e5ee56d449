/** SIGINT and SIGTERM while a command runs set a flag, so that the best result so far is still
 * printed. */
#ifndef HV_UI_CLI_INTERRUPT_H
#define HV_UI_CLI_INTERRUPT_H

#include <stdbool.h>

/** From now on SIGINT and SIGTERM set the flag; a second one ends the program as usual. */
void hv_interrupt_catch(void);
/**
 * For commands that compute in this process: one call that never looks at the flag (lp_solve) must
 * not block the program for ever. A second after a signal, or after `limit_s` (> 0: the run's own
 * time limit) plus a second, the program ends with exit code 4 and a line on standard error.
 * hv_interrupt_relax cancels this.
 */
void hv_interrupt_insist(double limit_s);
/** Cancels hv_interrupt_insist once the run is over: nothing is ended by force any more. */
void hv_interrupt_relax(void);
/** True where a signal has arrived. The argument is ignored; it gives this the type of a cancel
 * function. */
bool hv_interrupted(void *ctx);

#endif
