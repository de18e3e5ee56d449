/** Splits the text of a Chrome trace into its events while it arrives, so that memory does not grow
 * with the text. */
#ifndef HV_SOLVER_IO_IMPORT_TRACE_SCAN_H
#define HV_SOLVER_IO_IMPORT_TRACE_SCAN_H

#include "solver/base/str.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/** Called with each event, which is freed afterwards. */
typedef void hv__event_fn(void *ctx, json_t *event);

/** A text being split. Begin with `{.each = …, .ctx = …}`; end with hv__scan_free. */
struct hv__scan {
    hv__event_fn *each;
    void *ctx;
    struct hv_str head;   /**< the text without its events */
    struct hv_str item;   /**< the event that is being read */
    char key[32];         /**< the last text at the top level */
    size_t n_key;         /**< its bytes */
    size_t bad;           /**< events that are no JSON, or too long */
    int depth, events_at; /**< open brackets; those around an event, 0: not among the events */
    bool in_string, escaped, in_item, is_list;
};

/** Takes the next bytes of the text. O(n). */
void hv__scan_feed(struct hv__scan *s, const char *bytes, size_t n);
/** The members beside the events as an object, or NULL where they are not whole or too long. Owner:
 * json_decref. */
json_t *hv__scan_head(const struct hv__scan *s);
/** True where the text ended before its last bracket. */
bool hv__scan_is_cut(const struct hv__scan *s);
/** Frees it. */
void hv__scan_free(struct hv__scan *s);

#endif
