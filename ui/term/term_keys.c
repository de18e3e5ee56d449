/*
 * Bytes to events. The grammar is that of ECMA-48 (CSI, SS3, control strings) with the key codes of
 * VT220 and xterm; other key sequences come from the terminal description.
 */
#include "ui/term/term_keys.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "solver/base/attr.h"

#define ESC 27
/* Parameters of a sequence that are looked at. */
#define PARAMS_MAX 4

/* Result of one decoding step: an event (or none) and the bytes consumed; 0 bytes: more input
 * needed. */
struct taken {
    size_t n;
    struct hv_event ev;
};

static struct taken took(size_t n)
{
    return (struct taken){.n = n};
}

static struct taken took_key(size_t n, enum hv_key_code code, unsigned mods, uint32_t cp)
{
    struct hv_key k = {.code = code, .mods = (uint8_t)mods, .cp = cp};
    return (struct taken){n, hv_event_key(k)};
}

void hv__keys_learn(struct hv_key_input *in, const char *text, struct hv_key key)
{
    size_t n = text ? strlen(text) : 0;
    if (n < 2 || n > HV_KEYS_TEXT || text[0] != ESC || in->n_more == HV_KEYS_MORE) {
        return;
    }
    struct hv_key_text *row = &in->more[in->n_more++];
    memcpy(row->text, text, n + 1);
    row->key = key;
}

unsigned char *hv__keys_room(struct hv_key_input *in, size_t *n)
{
    memmove(in->bytes, in->bytes + in->from, in->n - in->from);
    in->n -= in->from;
    in->from = 0;
    *n = HV_KEYS_ROOM - in->n;
    return in->bytes + in->n;
}

void hv__keys_took(struct hv_key_input *in, size_t n)
{
    in->n += n;
}

bool hv__keys_waiting(const struct hv_key_input *in)
{
    return in->from < in->n || in->in_string;
}

/* A byte below 32, or 127. */
static struct taken control_key(unsigned char c)
{
    if (c == '\r' || c == '\n') {
        return took_key(1, HV_KEY_ENTER, 0, 0);
    }
    if (c == '\t') {
        return took_key(1, HV_KEY_TAB, 0, 0);
    }
    if (c == 8 || c == 127) {
        return took_key(1, HV_KEY_BACKSPACE, 0, 0);
    }
    if (c == 0) {
        return took_key(1, HV_KEY_CHAR, HV_MOD_CTRL, ' ');
    }
    return took_key(1, HV_KEY_CHAR, HV_MOD_CTRL,
                    c < ESC ? (uint32_t)c - 1 + 'a' : (uint32_t)c + 64);
}

/* One character of the locale; invalid bytes are skipped one by one. */
static struct taken character(const unsigned char *s, size_t n, unsigned mods)
{
    wchar_t wide = 0;
    mbstate_t state = {0};
    if (s[0] < 0x80) {
        return took_key(1, HV_KEY_CHAR, mods, s[0]);
    }
    size_t k = mbrtowc(&wide, (const char *)s, n, &state);
    if (k == (size_t)-2) {
        return took(0);
    }
    if (k == (size_t)-1 || k == 0) {
        return took(1);
    }
    return took_key(k, HV_KEY_CHAR, mods, (uint32_t)wide);
}

/* ---- mouse ---- */

/* A report of xterm: button and modifiers in one number, place from 0. */
static struct hv_event mouse_event(struct hv_key_input *in, unsigned code, int x, int y, bool up)
{
    enum { SHIFT = 4, CTRL = 16, MOTION = 32, WHEEL = 64, BUTTON = 3 };
    struct hv_event ev = {.type = HV_EV_MOUSE, .x = x, .y = y};
    ev.key.mods = (uint8_t)((code & SHIFT ? HV_MOD_SHIFT : 0) | (code & CTRL ? HV_MOD_CTRL : 0));
    if (!in->mouse || x < 0 || y < 0) {
        return (struct hv_event){.type = HV_EV_NONE};
    }
    if (code & WHEEL) {
        ev.mouse = code & 1 ? HV_MOUSE_WHEEL_DOWN : HV_MOUSE_WHEEL_UP;
    } else if (code & MOTION) {
        ev.mouse = HV_MOUSE_DRAG;
    } else if (up || (code & BUTTON) == BUTTON) {
        ev.mouse = HV_MOUSE_RELEASE;
    } else {
        ev.mouse = HV_MOUSE_PRESS;
    }
    bool wanted = code & WHEEL                 ? (code & BUTTON) < 2 && !up
                  : ev.mouse == HV_MOUSE_PRESS ? (code & BUTTON) == 0
                                               : in->pressed;
    if (ev.mouse == HV_MOUSE_PRESS || ev.mouse == HV_MOUSE_RELEASE) {
        in->pressed = ev.mouse == HV_MOUSE_PRESS && (code & BUTTON) == 0;
    }
    return wanted ? ev : (struct hv_event){.type = HV_EV_NONE};
}

/* ---- sequences ---- */

/* A sequence that begins with Esc and '[': parameters, then the byte that names the function. */
struct sequence {
    unsigned params[PARAMS_MAX];
    size_t n_params, n; /* n = bytes of the whole */
    unsigned char mark, final;
};

/* False where the sequence is incomplete. An invalid byte ends it. */
static bool read_sequence(const unsigned char *s, size_t n, struct sequence *q)
{
    size_t i = 2;
    *q = (struct sequence){0};
    if (i < n && s[i] >= '<' && s[i] <= '?') {
        q->mark = s[i++];
    }
    for (; i < n && s[i] >= 0x20 && s[i] < 0x40; i++) {
        bool digit = s[i] >= '0' && s[i] <= '9';
        if (digit && q->n_params == 0) {
            q->n_params = 1;
        }
        if (s[i] == ';' && q->n_params < PARAMS_MAX) {
            q->n_params += q->n_params == 0 ? 2 : 1;
        }
        unsigned *p = q->n_params > 0 ? &q->params[q->n_params - 1] : NULL;
        if (digit && p && *p < 100000) {
            *p = *p * 10 + (s[i] - '0');
        }
    }
    if (i == n) {
        return false;
    }
    q->final = s[i];
    q->n = i + (s[i] >= 0x40 && s[i] < 0x7f);
    return true;
}

/* Numbers before '~', and letters, of the keys of a VT220 and of xterm. */
static enum hv_key_code numbered_key(unsigned number)
{
    static const enum hv_key_code codes[] = {
        [1] = HV_KEY_HOME, [2] = HV_KEY_INSERT, [3] = HV_KEY_DELETE, [4] = HV_KEY_END,
        [5] = HV_KEY_PGUP, [6] = HV_KEY_PGDN,   [7] = HV_KEY_HOME,   [8] = HV_KEY_END,
        [11] = HV_KEY_F1,  [12] = HV_KEY_F2,    [13] = HV_KEY_F3,    [14] = HV_KEY_F4,
        [15] = HV_KEY_F5,  [17] = HV_KEY_F6,    [18] = HV_KEY_F7,    [19] = HV_KEY_F8,
        [20] = HV_KEY_F9,  [21] = HV_KEY_F10,   [23] = HV_KEY_F11,   [24] = HV_KEY_F12};
    return number < HV_COUNT(codes) ? codes[number] : HV_KEY_NONE;
}

static enum hv_key_code lettered_key(unsigned char letter)
{
    static const struct {
        unsigned char letter;
        enum hv_key_code code;
    } rows[] = {{'A', HV_KEY_UP},  {'B', HV_KEY_DOWN}, {'C', HV_KEY_RIGHT}, {'D', HV_KEY_LEFT},
                {'F', HV_KEY_END}, {'H', HV_KEY_HOME}, {'P', HV_KEY_F1},    {'Q', HV_KEY_F2},
                {'R', HV_KEY_F3},  {'S', HV_KEY_F4},   {'M', HV_KEY_ENTER}, {'Z', HV_KEY_TAB}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].letter == letter) {
            return rows[i].code;
        }
    }
    return HV_KEY_NONE;
}

/* The second parameter less one: bits of Shift, Alt, Ctrl. */
static unsigned modifiers(const struct sequence *q)
{
    unsigned bits = q->n_params > 1 && q->params[1] > 0 ? q->params[1] - 1 : 0;
    return (bits & 1 ? (unsigned)HV_MOD_SHIFT : 0) | (bits & 2 ? (unsigned)HV_MOD_ALT : 0) |
           (bits & 4 ? (unsigned)HV_MOD_CTRL : 0);
}

enum { PASTE_BEGINS = 200, PASTE_ENDS = 201 };

/* Esc and '[' and what follows. */
static struct taken control_sequence(struct hv_key_input *in, const unsigned char *s, size_t n)
{
    struct sequence q;
    if (!read_sequence(s, n, &q)) {
        return took(0);
    }
    if (q.mark == '<' && (q.final == 'M' || q.final == 'm') && q.n_params == 3) {
        return (struct taken){q.n, mouse_event(in, q.params[0], (int)q.params[1] - 1,
                                               (int)q.params[2] - 1, q.final == 'm')};
    }
    if (q.final == 'M' && q.mark == 0 && q.n == 3) { /* the old report: three bytes more */
        if (n < 6) {
            return took(0);
        }
        return (struct taken){
            6, mouse_event(in, (unsigned)(s[3] - 32) & 255u, s[4] - 33, s[5] - 33, false)};
    }
    if (q.mark != 0) {
        return took(q.n);
    }
    if (q.final == '~' && (q.params[0] == PASTE_BEGINS || q.params[0] == PASTE_ENDS)) {
        bool ends = in->pasting && q.params[0] == PASTE_ENDS;
        in->pasting = q.params[0] == PASTE_BEGINS;
        return (struct taken){q.n, {.type = ends ? HV_EV_PASTE : HV_EV_NONE}};
    }
    enum hv_key_code code = q.final == '~' && q.n_params > 0   ? numbered_key(q.params[0])
                            : q.final == 'M' || q.final == '~' ? HV_KEY_NONE
                                                               : lettered_key(q.final);
    if (code == HV_KEY_NONE) {
        return took(q.n);
    }
    unsigned mods = modifiers(&q) | (q.final == 'Z' ? (unsigned)HV_MOD_SHIFT : 0);
    return took_key(q.n, code, mods, 0);
}

/* Bytes of a control string up to its end (BEL or ST), or all there are. */
static size_t skip_string(struct hv_key_input *in, const unsigned char *s, size_t n)
{
    in->in_string = true;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == 7) {
            in->in_string = false;
            return i + 1;
        }
        if (s[i] == ESC && i + 1 == n) {
            return i; /* the backslash may follow */
        }
        if (s[i] == ESC) {
            in->in_string = false;
            return i + (s[i + 1] == '\\' ? 2 : 0);
        }
    }
    return n;
}

/* A key that the terminal's description names; `part`: the bytes are a prefix of such a key. */
static const struct hv_key_text *known_text(const struct hv_key_input *in, const unsigned char *s,
                                            size_t n, bool *part)
{
    *part = false;
    for (size_t i = 0; i < in->n_more; i++) {
        size_t k = strlen(in->more[i].text);
        if (memcmp(in->more[i].text, s, k < n ? k : n) != 0) {
            continue;
        }
        if (k <= n) {
            return &in->more[i];
        }
        *part = true;
    }
    return NULL;
}

/* Esc with something behind it. */
static struct taken escape(struct hv_key_input *in, const unsigned char *s, size_t n, bool late)
{
    bool part = false;
    const struct hv_key_text *row = known_text(in, s, n, &part);
    if (row) {
        return (struct taken){strlen(row->text), hv_event_key(row->key)};
    }
    if (part && !late) {
        return took(0);
    }
    if (n == 1 || s[1] < 32 || s[1] == 127) {
        return n == 1 && !late ? took(0) : took_key(1, HV_KEY_ESC, 0, 0);
    }
    struct taken t = {0};
    bool introduces = strchr("[O]P_^X", s[1]) != NULL && (n == 2 || s[2] >= 32);
    if (introduces && n > 2 && s[1] == '[') {
        t = control_sequence(in, s, n);
        return t.n == 0 && late ? took(n) : t;
    }
    if (introduces && n > 2 && s[1] == 'O') {
        enum hv_key_code code = lettered_key(s[2]);
        return code == HV_KEY_NONE ? took(3) : took_key(3, code, 0, 0);
    }
    if (introduces && n > 2) {
        return took(2 + skip_string(in, s + 2, n - 2));
    }
    if (!late && introduces) {
        return took(0);
    }
    t = character(s + 1, n - 1, HV_MOD_ALT);
    t.n += t.n > 0;
    return t.n == 0 && late ? took(n) : t;
}

/* Pasted text: only its end mark acts, all else is characters. A line end is one, Esc is none. A
 * single Esc, which no terminal pastes, ends text whose end mark was lost. */
static struct taken pasted(struct hv_key_input *in, const unsigned char *s, size_t n, bool late)
{
    static const char end[] = "\033[201~";
    size_t mark = sizeof end - 1;
    struct taken t;
    if (s[0] == ESC && memcmp(s, end, n < mark ? n : mark) == 0) {
        if (n >= mark || (n == 1 && late)) {
            in->pasting = false;
            return (struct taken){n < mark ? n : mark, {.type = HV_EV_PASTE}};
        }
        return took(0);
    }
    if (s[0] < 32 || s[0] == 127) {
        bool line_end = s[0] == '\r' || s[0] == '\n' || s[0] == '\t';
        t = line_end ? took_key(1, HV_KEY_CHAR, 0, s[0] == '\t' ? ' ' : '\n') : took(1);
    } else {
        t = character(s, n, 0);
    }
    t.ev.type = t.ev.type == HV_EV_KEY ? HV_EV_PASTING : t.ev.type;
    return t;
}

struct hv_event hv__keys_next(struct hv_key_input *in, bool late)
{
    while (in->from < in->n) {
        const unsigned char *s = in->bytes + in->from;
        size_t n = in->n - in->from;
        bool full = n == HV_KEYS_ROOM; /* no sequence is as long as that */
        struct taken t = {0};
        if (in->in_string) {
            t.n = skip_string(in, s, n);
        } else if (in->pasting) {
            t = pasted(in, s, n, late);
        } else if (s[0] == ESC) {
            t = escape(in, s, n, late || full);
        } else {
            t = s[0] < 32 || s[0] == 127 ? control_key(s[0]) : character(s, n, 0);
        }
        if (t.n == 0 && !late && !full) {
            break;
        }
        in->from += t.n > 0 ? t.n : 1;
        if (t.ev.type != HV_EV_NONE) {
            return t.ev;
        }
    }
    in->in_string = in->in_string && !late;
    return (struct hv_event){.type = HV_EV_NONE};
}
