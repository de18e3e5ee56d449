/** Ctrl-C and friends while a command runs: a flag instead of death, so that the best so far is
 * still printed. */
#ifndef HV_UI_CLI_INTERRUPT_H
#define HV_UI_CLI_INTERRUPT_H

#include <stdbool.h>

/** From now on SIGINT and SIGTERM set the flag; a second one ends the program as usual. */
void hv_interrupt_catch(void);
/** Has one arrived? The argument is ignored: it makes this a cancel function. */
bool hv_interrupted(void *ctx);

#endif
