/** The terminal front end: opens a workspace, runs the screens on a terminal until the user leaves.
 */
#ifndef HV_UI_TERM_TUI_H
#define HV_UI_TERM_TUI_H

#include <stdbool.h>

/** Is there a workspace (folder or file) of that name? */
bool hv_tui_is_workspace(const char *path);
/**
 * Runs the front end with the options of hv_front_options, and `--term memory` for tests.
 * Returns the exit code; the terminal is restored on every way out.
 */
int hv_tui_main(int argc, char **argv);

/** Name and version of the terminal library ("ncurses 6.4.20221231"). */
const char *hv_tui_library(void);

#endif
