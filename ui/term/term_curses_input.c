/*
 * Input of the terminal: reads all available bytes, and the keys of its description. Decoding is in
 * term_keys.c; waiting and signals are in term_curses.c.
 */
#include "ui/term/term_curses_int.h"

#include <errno.h>
#include <unistd.h>

/* last: it defines short words as macros */
#include <term.h>

void hv__term_learn_keys(struct hv_key_input *in)
{
    static const struct {
        const char *name;
        enum hv_key_code code;
        unsigned mods;
    } rows[] = {{"kcuu1", HV_KEY_UP, 0},
                {"kcud1", HV_KEY_DOWN, 0},
                {"kcub1", HV_KEY_LEFT, 0},
                {"kcuf1", HV_KEY_RIGHT, 0},
                {"khome", HV_KEY_HOME, 0},
                {"kend", HV_KEY_END, 0},
                {"kpp", HV_KEY_PGUP, 0},
                {"knp", HV_KEY_PGDN, 0},
                {"kich1", HV_KEY_INSERT, 0},
                {"kdch1", HV_KEY_DELETE, 0},
                {"kbs", HV_KEY_BACKSPACE, 0},
                {"kent", HV_KEY_ENTER, 0},
                {"kcbt", HV_KEY_TAB, HV_MOD_SHIFT},
                {"kLFT", HV_KEY_LEFT, HV_MOD_SHIFT},
                {"kRIT", HV_KEY_RIGHT, HV_MOD_SHIFT},
                {"kri", HV_KEY_UP, HV_MOD_SHIFT},
                {"kind", HV_KEY_DOWN, HV_MOD_SHIFT},
                {"kf1", HV_KEY_F1, 0},
                {"kf2", HV_KEY_F2, 0},
                {"kf3", HV_KEY_F3, 0},
                {"kf4", HV_KEY_F4, 0},
                {"kf5", HV_KEY_F5, 0},
                {"kf6", HV_KEY_F6, 0},
                {"kf7", HV_KEY_F7, 0},
                {"kf8", HV_KEY_F8, 0},
                {"kf9", HV_KEY_F9, 0},
                {"kf10", HV_KEY_F10, 0},
                {"kf11", HV_KEY_F11, 0},
                {"kf12", HV_KEY_F12, 0}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        const char *text = tigetstr(rows[i].name);
        struct hv_key key = {.code = rows[i].code, .mods = (uint8_t)rows[i].mods};
        hv__keys_learn(in, text == (const char *)-1 ? NULL : text, key);
    }
}

bool hv__term_read(struct hv_term *t)
{
    size_t room = 0;
    unsigned char *to = hv__keys_room(&t->keys, &room);
    ssize_t n = read(STDIN_FILENO, to, room);
    if (n < 0) {
        return errno == EINTR || errno == EAGAIN;
    }
    hv__keys_took(&t->keys, (size_t)n);
    return n > 0;
}
