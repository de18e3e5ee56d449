/** The curses terminal, shared by its two files: the only header that includes curses. */
#ifndef HV_UI_TERM_TERM_CURSES_INT_H
#define HV_UI_TERM_TERM_CURSES_INT_H

#include "ui/term/term.h"

#define NCURSES_NOMACROS 1
#include <curses.h>
#include <termios.h>

/** The terminal while it is taken. */
struct hv_term {
    SCREEN *screen;
    WINDOW *input; /* a pad: reading from it never refreshes the screen */
    struct termios saved;
    struct hv_cell *shown;
    int w, h, signal_fd;
    unsigned dead;
    bool ascii, mouse, pressed;
    attr_t attrs[HV_STYLE_N];
    short pairs[HV_STYLE_N];
    short backs[HV_STYLE_N]; /**< background of each style, -1 = the terminal's */
    short edges[HV_STYLE_N][HV_STYLE_N]; /**< pairs of two backgrounds, made when first needed */
    short n_pairs;
    bool color;
};

/** One key or click if there is one, none otherwise. Esc directly followed by a character is Alt;
 * sequences that nobody knows are skipped. */
struct hv_event hv__term_read_key(struct hv_term *t);
/** No event. */
static inline struct hv_event hv__term_no_event(void)
{
    return (struct hv_event){.type = HV_EV_NONE};
}

#endif
