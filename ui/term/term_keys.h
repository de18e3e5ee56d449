/**
 * Bytes to events: what keys and mouse of a terminal send, decoded from a buffer that is filled
 * with whatever there is. A flood of keys costs one read for a thousand of them. Reads nothing by
 * itself and uses no clock; unknown sequences are skipped, they must not act as keys.
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

/** A key as this terminal sends it. */
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
    bool in_string; /**< inside a control string that began in bytes which are gone */
    bool mouse;     /**< mouse reports are events, else they are skipped */
    bool pressed;   /**< a button is down */
};

/** Adds what the terminal sends for a key, unless it is empty, too long or no sequence. */
void hv__keys_learn(struct hv_key_input *in, const char *text, struct hv_key key);
/** Where bytes may be put, and how many; hv__keys_took is told how many were written. */
unsigned char *hv__keys_room(struct hv_key_input *in, size_t *n);
void hv__keys_took(struct hv_key_input *in, size_t n);
/** True when there is the beginning of something: a sequence, or somebody pressed Esc. */
bool hv__keys_waiting(const struct hv_key_input *in);
/**
 * The next event, HV_EV_NONE when there is none yet. `late` = nothing followed for a while: what
 * waits is all there is, so Esc is Esc, and Esc with a character is Alt. O(bytes consumed).
 */
struct hv_event hv__keys_next(struct hv_key_input *in, bool late);

#endif
