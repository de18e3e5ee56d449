/**
 * Bytes to events: input of keys and mouse, decoded from a buffer that the caller fills with all
 * available bytes, so that many keys need one read. Does no reads itself and uses no clock; unknown
 * sequences are skipped and never act as keys.
 */
#ifndef HV_UI_TERM_TERM_KEYS_H
#define HV_UI_TERM_TERM_KEYS_H

#include "ui/view/keys/keys.h"
#include <stdbool.h>
#include <stddef.h>

/** Room for bytes that are not decoded yet. */
#define HV_KEYS_ROOM 8192
/** Longest text of a key, and most keys that a terminal's description adds. */
#define HV_KEYS_TEXT 15
#define HV_KEYS_MORE 40

/** The sequence of a key on this terminal. */
struct hv_key_text {
    char text[HV_KEYS_TEXT + 1];
    struct hv_key key;
};

/** A decoder. `{0}` decodes the sequences common to today's terminals. Nothing to free. */
struct hv_key_input {
    unsigned char bytes[HV_KEYS_ROOM];
    size_t from, n;                        /**< bytes[from..n) wait */
    struct hv_key_text more[HV_KEYS_MORE]; /**< from the terminal's description */
    size_t n_more;
    bool in_string; /**< inside a control string whose beginning was consumed */
    bool mouse;     /**< mouse reports are events, else they are skipped */
    bool pressed;   /**< a button is down */
    bool pasting;   /**< between the marks of pasted text (bracketed paste of xterm) */
};

/** Adds the sequence of a key, unless it is empty, too long or not a sequence. */
void hv__keys_learn(struct hv_key_input *in, const char *text, struct hv_key key);
/** Free space of the buffer and its size; the caller passes the number of bytes written to
 * hv__keys_took. */
unsigned char *hv__keys_room(struct hv_key_input *in, size_t *n);
void hv__keys_took(struct hv_key_input *in, size_t n);
/** True where the buffer holds an incomplete sequence or a single Esc. */
bool hv__keys_waiting(const struct hv_key_input *in);
/**
 * The next event, HV_EV_NONE when there is none yet. `late`: the time for the rest of a sequence
 * has passed, so Esc is the key Esc, and Esc with a character is Alt. O(bytes consumed).
 */
struct hv_event hv__keys_next(struct hv_key_input *in, bool late);

#endif
