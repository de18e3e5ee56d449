/** The curses terminal, shared by its two files: the only header that includes curses. */
#ifndef HV_UI_TERM_TERM_CURSES_INT_H
#define HV_UI_TERM_TERM_CURSES_INT_H

#include "ui/term/term.h"
#include "ui/term/term_keys.h"
#include "ui/term/term_out.h"

#define NCURSES_NOMACROS 1
#include <curses.h>
#include <termios.h>

/** State of the open terminal. */
struct hv_term {
    SCREEN *screen;
    struct termios saved;
    struct hv_out out;
    struct hv_key_input keys;
    int w, h, signal_fd;
    bool ascii, mouse; /* mouse: reports are enabled */
    bool has_mouse;    /* the description has mouse support */
    bool colour;       /* cells have the colours of a theme */
    bool waits;        /* the beginning of a sequence is there, since … */
    int64_t since_ms;
    bool gone; /* writing failed for good */
};

/** Adds the keys of the current terminal's description. */
void hv__term_learn_keys(struct hv_key_input *in);
/** Reads all available bytes; false where the terminal is gone. */
bool hv__term_read(struct hv_term *t);
/** No event. */
static inline struct hv_event hv__term_no_event(void)
{
    return (struct hv_event){.type = HV_EV_NONE};
}

#endif
