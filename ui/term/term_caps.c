/*
 * Capabilities of a terminal, from its description (terminfo), and the styles of a theme on it. Not
 * for cells (term_out.c).
 */
#include "ui/term/term_out_int.h"

#include "solver/base/arena.h"
#include <stdlib.h>
#include <string.h>

#define NCURSES_NOMACROS 1
#include <curses.h>
/* last: it defines short words as macros */
#include <term.h>

/* Bits of `ncv`. */
enum { NCV_UNDERLINE = 2, NCV_REVERSE = 4, NCV_DIM = 16, NCV_BOLD = 32 };

void hv__caps_add(struct hv_str *out, const char *capability)
{
    if (capability) {
        hv_str_adds(out, capability);
    }
}

void hv__caps_add_1(struct hv_str *out, const char *capability, int a)
{
    hv__caps_add(out, capability ? tiparm(capability, a) : NULL);
}

void hv__caps_add_2(struct hv_str *out, const char *capability, int a, int b)
{
    hv__caps_add(out, capability ? tiparm(capability, a, b) : NULL);
}

/* A capability without its padding, which only terminals of wire and relays needed. */
static char *capability(const char *name)
{
    struct hv_str out = {0};
    const char *s = tigetstr(name);
    if (!s || s == (const char *)-1) {
        return NULL;
    }
    while (*s) {
        const char *end = s[0] == '$' && s[1] == '<' ? strchr(s, '>') : NULL;
        if (end) {
            s = end + 1;
        } else {
            hv_str_addc(&out, *s++);
        }
    }
    return out.p;
}

static bool is_text(const char *have, const char *want)
{
    return have && strcmp(have, want) == 0;
}

/* True where the capability is missing or equals the sequence of ECMA-48. */
static bool is_usual(const char *have, const char *want)
{
    return !have || strcmp(have, want) == 0;
}

/* True where colours have the sequences of ECMA-48: tested with one colour of each part of the
 * palette. */
static bool has_ansi_colours(const struct hv_out_caps *c)
{
    static const struct {
        int colour;
        const char *fore, *back;
    } parts[] = {{1, "\033[31m", "\033[41m"},
                 {9, "\033[91m", "\033[101m"},
                 {208, "\033[38;5;208m", "\033[48;5;208m"}};
    bool all = is_text(c->colours, "\033[39;49m") && c->fore && c->back;
    for (size_t i = 0; all && i < HV_COUNT(parts); i++) {
        if (parts[i].colour < tigetnum("colors")) {
            all = strcmp(tiparm(c->fore, parts[i].colour), parts[i].fore) == 0 &&
                  strcmp(tiparm(c->back, parts[i].colour), parts[i].back) == 0;
        }
    }
    return all;
}

static void read_caps(struct hv_out_caps *c)
{
    *c = (struct hv_out_caps){.move = capability("cup"),
                              .fore = capability("setaf"),
                              .back = capability("setab"),
                              .clear = capability("clear"),
                              .clear_line = capability("el"),
                              .hide = capability("civis"),
                              .show = capability("cnorm"),
                              .plain = capability("sgr0"),
                              .colours = capability("op"),
                              .bold = capability("bold"),
                              .dim = capability("dim"),
                              .reverse = capability("rev"),
                              .underline = capability("smul"),
                              .keys_off = capability("rmkx"),
                              .leave = capability("rmcup"),
                              .wraps_late = tigetflag("xenl") > 0 || tigetflag("am") <= 0};
    int ncv = tigetnum("ncv");
    if (ncv > 0) {
        c->no_colour_attrs =
            (ncv & NCV_UNDERLINE ? HV_ATTR_UNDERLINE : 0) | (ncv & NCV_DIM ? HV_ATTR_DIM : 0) |
            (ncv & NCV_REVERSE ? HV_ATTR_REVERSE : 0) | (ncv & NCV_BOLD ? HV_ATTR_BOLD : 0);
    }
    char *right = capability("cuf");
    c->ansi_move = is_text(c->move, "\033[%i%p1%d;%p2%dH") && is_text(right, "\033[%p1%dC");
    free(right);
    c->ansi_pen = c->plain && strstr(c->plain, "\033[m") && is_usual(c->bold, "\033[1m") &&
                  is_usual(c->dim, "\033[2m") && is_usual(c->reverse, "\033[7m") &&
                  is_usual(c->underline, "\033[4m") && (!c->fore || has_ansi_colours(c));
}

/* Attributes without a capability are left out. */
static unsigned known_attrs(const struct hv_out_caps *c, unsigned attrs)
{
    return attrs & ((c->bold ? HV_ATTR_BOLD : 0u) | (c->dim ? HV_ATTR_DIM : 0u) |
                    (c->reverse ? HV_ATTR_REVERSE : 0u) | (c->underline ? HV_ATTR_UNDERLINE : 0u));
}

/* One pen per style; 8 colours get bold for the bright ones. */
static struct hv_pen pen_for(const struct hv_out_caps *c, const struct hv_style_look *k, int n)
{
    unsigned attrs = n > 0 ? k->attr : k->mono;
    struct hv_pen p = {.fg = -1, .bg = -1};
    if (n > 0) {
        p.fg = n >= 256 ? k->fg : k->fg16;
        p.bg = n >= 256 ? k->bg : k->bg16;
    }
    if (n < 16 && p.fg >= 8) {
        p.fg = (int16_t)(p.fg - 8);
        attrs |= HV_ATTR_BOLD;
    }
    if (n < 16 && p.bg >= 8) {
        p.bg = (int16_t)(p.bg - 8);
    }
    if (n > 0 && !c->colours) { /* the terminal's own colours cannot be restored */
        p.fg = p.fg < 0 ? COLOR_WHITE : p.fg;
        p.bg = p.bg < 0 ? COLOR_BLACK : p.bg;
    }
    p.attrs = (uint8_t)known_attrs(c, attrs);
    return p;
}

void hv__out_look(struct hv_out *o, const struct hv_theme *theme, bool colour)
{
    int n = colour && o->caps.fore && o->caps.back ? tigetnum("colors") : 0;
    for (int i = 0; i < (int)HV_STYLE_N; i++) {
        o->pens[i] = pen_for(&o->caps, &theme->looks[i], n >= 8 ? n : 0);
    }
}

void hv__out_open(struct hv_out *o, const struct hv_theme *theme, bool colour)
{
    *o = (struct hv_out){.x = -1, .cursor = -1};
    read_caps(&o->caps);
    hv__out_look(o, theme, colour);
}

void hv__out_close(struct hv_out *o)
{
    struct hv_out_caps *c = &o->caps;
    char *all[] = {c->move, c->fore,    c->back,      c->clear,    c->clear_line,
                   c->hide, c->show,    c->plain,     c->colours,  c->bold,
                   c->dim,  c->reverse, c->underline, c->keys_off, c->leave};
    for (size_t i = 0; i < HV_COUNT(all); i++) {
        free(all[i]);
    }
    free(o->shown);
    hv_str_free(&o->bytes);
    *o = (struct hv_out){0};
}
