/**
 * Keys and events: events of a terminal, key names, and the map from keys to actions.
 *
 * Names: "a", "^S" (control), "M-x" (alt), "F5", "<Space>", "<Enter>", "Shift-Tab", "<Up>", "<lt>".
 * The brackets of named keys are optional where a name has more than one letter.
 * Keys file: `bind <view|*> <key> <action|:command>  # note`; `unbind` is `bind v key none`.
 */
#ifndef HV_UI_VIEW_KEYS_KEYS_H
#define HV_UI_VIEW_KEYS_KEYS_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include "solver/base/vec.h"
#include "ui/view/keys/action.h"
#include <stdint.h>

/* clang-format off */
/** Named keys: constant, name. HV_KEY_CHAR carries its code point in `cp`. */
#define HV_KEY_MAP(X)                                                                              \
    X(NONE, "None") X(CHAR, "Char") X(ENTER, "Enter") X(ESC, "Esc") X(TAB, "Tab")                  \
    X(BACKSPACE, "Backspace") X(DELETE, "Delete") X(INSERT, "Insert") X(UP, "Up") X(DOWN, "Down")  \
    X(LEFT, "Left") X(RIGHT, "Right") X(HOME, "Home") X(END, "End") X(PGUP, "PgUp")                \
    X(PGDN, "PgDn") X(F1, "F1") X(F2, "F2") X(F3, "F3") X(F4, "F4") X(F5, "F5") X(F6, "F6")        \
    X(F7, "F7") X(F8, "F8") X(F9, "F9") X(F10, "F10") X(F11, "F11") X(F12, "F12")
/* clang-format on */

/** Key codes. */
enum hv_key_code {
#define X(id, name) HV_KEY_##id,
    HV_KEY_MAP(X)
#undef X
        HV_KEY_N
};

/** Modifier bits. Control characters are HV_KEY_CHAR with the lower-case letter and HV_MOD_CTRL. */
enum hv_mod { HV_MOD_SHIFT = 1, HV_MOD_CTRL = 2, HV_MOD_ALT = 4 };

/** A key press. */
struct hv_key {
    enum hv_key_code code;
    uint8_t mods;
    uint32_t cp; /**< code point for HV_KEY_CHAR, else 0 */
};

/** Kinds of mouse events. */
enum hv_mouse_kind {
    HV_MOUSE_PRESS,
    HV_MOUSE_RELEASE,
    HV_MOUSE_DRAG,
    HV_MOUSE_WHEEL_UP,
    HV_MOUSE_WHEEL_DOWN
};

/** Kinds of events. */
enum hv_event_type {
    HV_EV_NONE,    /**< timeout passed */
    HV_EV_KEY,     /**< `key` */
    HV_EV_MOUSE,   /**< `mouse`, `x`, `y`, `key.mods` */
    HV_EV_RESIZE,  /**< `w`, `h` */
    HV_EV_FD,      /**< `fd` became readable */
    HV_EV_PASTING, /**< a character of pasted text: `key.cp`; what it does when typed does not count
                    */
    HV_EV_PASTE,   /**< the pasted text is complete: `text`, which the application fills in */
    HV_EV_REDRAW,  /**< the terminal needs everything again (resume) */
    HV_EV_QUIT     /**< a signal, or the terminal is gone: the program has to end; `signo` or 0 */
};

/** One event. */
struct hv_event {
    enum hv_event_type type;
    struct hv_key key;
    enum hv_mouse_kind mouse;
    int x, y, w, h, fd, signo;
    const char *text; /**< of HV_EV_PASTE, one line; valid for the call */
};

/** Event of a key. */
struct hv_event hv_event_key(struct hv_key k);
/** Event of a new size. */
struct hv_event hv_event_resize(int w, int h);
/** True when both are the same key. */
bool hv_key_same(struct hv_key a, struct hv_key b);
/** Reads one key name of n bytes. Errors: HV_EINPUT naming the nearest known key. */
enum hv_status hv_key_parse(const char *name, size_t n, struct hv_key *out,
                            struct hv_err *err) HV_NODISCARD;
/** Writes the key's name ("^S", "<Space>", "F5", "j"); parse gives the same key back. Returns buf.
 */
const char *hv_key_name(struct hv_key k, char *buf, size_t cap);
/**
 * Reads the next key of a script such as `jj<Enter>^S`: `<…>` is a named key, `^X` control, all
 * else stands for itself. Advances *text; returns false at the end or with `err` set when it is
 * bad.
 */
bool hv_keys_next(const char **text, struct hv_key *out, struct hv_err *err);

/** One binding. `command` (owned by the map) is NULL unless the key runs a `:` command. */
struct hv_bind {
    char view[24]; /**< "*" = everywhere */
    struct hv_key key;
    enum hv_action action;
    char *command;
};

/** The key map. Owner: whoever owns the struct calls hv_keymap_free. */
struct hv_keymap {
    HV_VEC(struct hv_bind) binds;
};

/** The bindings of the action table. */
void hv_keymap_default(struct hv_keymap *m);
/** Frees it. */
void hv_keymap_free(struct hv_keymap *m);
/** The binding of a key: the view's own, then "*"; NULL when there is none. O(bindings). */
const struct hv_bind *hv_keymap_find(const struct hv_keymap *m, const char *view, struct hv_key k);
/** First key of an action in a view (own bindings first); false when it has none. */
bool hv_keymap_key_of(const struct hv_keymap *m, const char *view, enum hv_action a,
                      struct hv_key *out);
/** Appends all keys of an action in a view, separated by blanks. */
void hv_keymap_keys_of(const struct hv_keymap *m, const char *view, enum hv_action a,
                       struct hv_str *out);
/**
 * Adds the bindings of a keys file's text (later ones win). Good lines are taken even when others
 * are bad; the first bad one is reported. Errors: HV_EINPUT with file:line:col.
 */
enum hv_status hv_keymap_parse(struct hv_keymap *m, const char *text, size_t n, const char *name,
                               struct hv_err *err) HV_NODISCARD;
/** As hv_keymap_parse from a path. Errors: also HV_EIO. */
enum hv_status hv_keymap_read(struct hv_keymap *m, const char *path,
                              struct hv_err *err) HV_NODISCARD;

#endif
