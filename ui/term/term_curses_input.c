/*
 * What curses reads, as events: keys, Alt, mouse; odd sequences are skipped. Not for waiting nor
 * for signals (term_curses.c).
 */
#include "ui/term/term_curses_int.h"

#include <wchar.h>

/* Longest sequence that is skipped. */
#define SEQUENCE_MAX 4096

static struct hv_event key_event(enum hv_key_code code, unsigned mods, uint32_t cp)
{
    return hv_event_key((struct hv_key){.code = code, .mods = (uint8_t)mods, .cp = cp});
}

static struct hv_event mouse_event(struct hv_term *t)
{
    MEVENT m;
    struct hv_event ev = {.type = HV_EV_MOUSE};
    if (getmouse(&m) != OK)
        return hv__term_no_event();
    ev.x = m.x;
    ev.y = m.y;
    ev.key.mods = (uint8_t)((m.bstate & BUTTON_SHIFT ? HV_MOD_SHIFT : 0) |
                            (m.bstate & BUTTON_CTRL ? HV_MOD_CTRL : 0));
    if (m.bstate & BUTTON1_PRESSED)
        ev.mouse = HV_MOUSE_PRESS;
    else if (m.bstate & BUTTON1_RELEASED)
        ev.mouse = HV_MOUSE_RELEASE;
    else if (m.bstate & BUTTON4_PRESSED)
        ev.mouse = HV_MOUSE_WHEEL_UP;
    else if (m.bstate & BUTTON5_PRESSED)
        ev.mouse = HV_MOUSE_WHEEL_DOWN;
    else if (t->pressed)
        ev.mouse = HV_MOUSE_DRAG;
    else
        return hv__term_no_event();
    if (ev.mouse == HV_MOUSE_PRESS || ev.mouse == HV_MOUSE_RELEASE)
        t->pressed = ev.mouse == HV_MOUSE_PRESS;
    return ev;
}

static struct hv_event function_key(struct hv_term *t, wint_t c)
{
    static const struct {
        int curses;
        enum hv_key_code code;
        unsigned mods;
    } map[] = {{KEY_UP, HV_KEY_UP, 0},
               {KEY_DOWN, HV_KEY_DOWN, 0},
               {KEY_LEFT, HV_KEY_LEFT, 0},
               {KEY_RIGHT, HV_KEY_RIGHT, 0},
               {KEY_SLEFT, HV_KEY_LEFT, HV_MOD_SHIFT},
               {KEY_SRIGHT, HV_KEY_RIGHT, HV_MOD_SHIFT},
               {KEY_SR, HV_KEY_UP, HV_MOD_SHIFT},
               {KEY_SF, HV_KEY_DOWN, HV_MOD_SHIFT},
               {KEY_HOME, HV_KEY_HOME, 0},
               {KEY_END, HV_KEY_END, 0},
               {KEY_PPAGE, HV_KEY_PGUP, 0},
               {KEY_NPAGE, HV_KEY_PGDN, 0},
               {KEY_IC, HV_KEY_INSERT, 0},
               {KEY_DC, HV_KEY_DELETE, 0},
               {KEY_BACKSPACE, HV_KEY_BACKSPACE, 0},
               {KEY_ENTER, HV_KEY_ENTER, 0},
               {KEY_BTAB, HV_KEY_TAB, HV_MOD_SHIFT}};
    if (c == KEY_MOUSE)
        return mouse_event(t);
    if (c >= (wint_t)KEY_F(1) && c <= (wint_t)KEY_F(12))
        return key_event((enum hv_key_code)((unsigned)HV_KEY_F1 + (c - (wint_t)KEY_F(1))), 0, 0);
    for (size_t i = 0; i < HV_COUNT(map); i++)
        if ((wint_t)map[i].curses == c)
            return key_event(map[i].code, map[i].mods, 0);
    return hv__term_no_event();
}

static struct hv_event char_key(wint_t c)
{
    if (c == '\r' || c == '\n')
        return key_event(HV_KEY_ENTER, 0, 0);
    if (c == '\t')
        return key_event(HV_KEY_TAB, 0, 0);
    if (c == 8 || c == 127)
        return key_event(HV_KEY_BACKSPACE, 0, 0);
    if (c == 27)
        return key_event(HV_KEY_ESC, 0, 0);
    if (c == 0)
        return key_event(HV_KEY_CHAR, HV_MOD_CTRL, ' ');
    if (c < 27)
        return key_event(HV_KEY_CHAR, HV_MOD_CTRL, c - 1 + 'a');
    if (c < 32)
        return key_event(HV_KEY_CHAR, HV_MOD_CTRL, c + 64);
    return key_event(HV_KEY_CHAR, 0, c);
}

/* Takes characters up to the end of a control string (BEL, ST), or what there is of it. */
static void skip_string(struct hv_term *t)
{
    wint_t c = 0;
    for (int n = 0; n < SEQUENCE_MAX && wget_wch(t->input, &c) == OK && c != 7; n++) {
        if (c == 27) {
            (void)wget_wch(t->input, &c); /* the backslash of ST */
            return;
        }
    }
}

/*
 * What follows Esc and an introducer that ncurses does not know: answers and reports that nobody
 * asked for must not act as keys. False when nothing follows: somebody pressed Alt.
 */
static bool skip_sequence(struct hv_term *t, wint_t introducer)
{
    wint_t c = 0;
    if (introducer == 0 || wcschr(L"[O]P_^X", (wchar_t)introducer) == NULL ||
        wget_wch(t->input, &c) != OK)
        return false;
    if (introducer == 'O')
        return true;
    if (introducer != '[') {
        (void)unget_wch((wchar_t)c);
        skip_string(t);
        return true;
    }
    bool is_mouse = c == 'M'; /* three bytes more, of a mouse that is not listened to */
    for (int n = 0; n < SEQUENCE_MAX && c >= 0x20 && c < 0x40; n++)
        if (wget_wch(t->input, &c) != OK)
            break;
    for (int n = 0; is_mouse && n < 3; n++)
        (void)wget_wch(t->input, &c);
    return true;
}

/* The key that Esc and a character make; none when they begin a sequence that was skipped. */
static struct hv_event escape_key(struct hv_term *t)
{
    wint_t next = 0;
    struct hv_event ev = char_key(27);
    int more = wget_wch(t->input, &next);
    if (more == OK && next >= 32 && next != 127) {
        if (skip_sequence(t, next))
            return hv__term_no_event();
        ev = char_key(next);
        ev.key.mods |= HV_MOD_ALT;
    } else if (more == OK) {
        (void)unget_wch((wchar_t)next);
    } else if (more == KEY_CODE_YES) {
        (void)ungetch((int)next);
    }
    return ev;
}

/* One key if there is one; Esc directly followed by a character is Alt. */
struct hv_event hv__term_read_key(struct hv_term *t)
{
    for (;;) {
        wint_t c = 0;
        int kind = wget_wch(t->input, &c);
        if (kind == ERR)
            return hv__term_no_event();
        t->dead = 0;
        struct hv_event ev = kind == KEY_CODE_YES ? function_key(t, c)
                             : c == 27            ? escape_key(t)
                                                  : char_key(c);
        if (ev.type != HV_EV_NONE || kind != OK)
            return ev;
    }
}
