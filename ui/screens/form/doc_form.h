/**
 * A form over members of the session's documents: shows the value at a key path (or its default),
 * checks the typed value, writes it as one undo step, and opens a list where there are many
 * choices. Numbers are read as people type them (ui/command/typed.h).
 */
#ifndef HV_UI_SCREENS_FORM_DOC_FORM_H
#define HV_UI_SCREENS_FORM_DOC_FORM_H

#include "solver/base/vec.h"
#include "ui/session/session.h"
#include "ui/view/app/app.h"
#include "ui/view/widget/widgets.h"

/** Most rows of a form. */
#define HV_DOC_FORM_MAX 48

/** Type of a row's value in the file. */
enum hv_doc_value {
    HV_DOC_WORD,    /**< a string */
    HV_DOC_NUMBER,  /**< a number */
    HV_DOC_WHOLE,   /**< a whole number */
    HV_DOC_CHOICE,  /**< one of `choices`, a string */
    HV_DOC_BOOL,    /**< true or false, shown as yes or no */
    HV_DOC_JSON,    /**< anything, as JSON */
    HV_DOC_LABEL,   /**< a heading, no value */
    HV_DOC_DERIVED, /**< follows from others: cannot be edited */
    HV_DOC_VALUE_N
};

/** One row. Strings are borrowed for as long as the form lives, except in hv_doc_form_add. */
struct hv_doc_row {
    const char *name, *path; /**< label; key path below the base */
    const char *unit, *help; /**< may be NULL */
    enum hv_doc_value value;
    bool optional; /**< may be emptied: the member is removed, its default applies */
    const char *const *choices;
    size_t n_choices;
    double min, max; /**< of numbers */
};

/** Value that counts when the member is absent, or of a derived row, of a base, appended to out. */
typedef void hv_doc_fallback(const void *ctx, const struct hv_session *s,
                             const struct hv_doc_row *row, size_t base, struct hv_str *out);
/** A few words beside a choice in the list, appended to out. */
typedef void hv_doc_describe(const void *ctx, const struct hv_session *s, const char *choice,
                             struct hv_str *out);

/** Accessors of values without a key path. `get` borrows, NULL = not given; `set` takes over the
 * value, null = the member goes. */
struct hv_doc_store {
    const json_t *(*get)(const void *ctx, const struct hv_session *s, const struct hv_doc_row *row);
    enum hv_status (*set)(const void *ctx, struct hv_session *s, const struct hv_doc_row *row,
                          json_t *value, struct hv_err *err);
};

/** The list of choices laid over the form. */
struct hv_doc_pick {
    bool open;
    char word[64]; /**< only choices with this text are shown */
    size_t cursor; /**< among those shown */
};

/** A form. `{0}` is closed and empty. Owner: hv_doc_form_free. */
struct hv_doc_form {
    bool open;
    struct hv_form form; /**< its fields are `fields` */
    struct hv_field fields[HV_DOC_FORM_MAX];
    struct hv_doc_row rows[HV_DOC_FORM_MAX];
    char names[HV_DOC_FORM_MAX][32], paths[HV_DOC_FORM_MAX][112], units[HV_DOC_FORM_MAX][32];
    char title[64];
    HV_VEC(char *) bases; /**< what is edited: "cluster.nodes[1]"; "" = rows have whole paths */
    struct hv_doc_pick pick;
    const char *const *shape;         /**< two paths of the cluster that "2x8" sets, or NULL */
    hv_doc_fallback *fallback;        /**< may be NULL */
    hv_doc_describe *describe;        /**< may be NULL */
    const struct hv_doc_store *store; /**< NULL = key paths below the bases */
    const void *ctx;                  /**< for all of them */
};

/** Frees what it holds; empty and usable again. */
void hv_doc_form_free(struct hv_doc_form *f);
/** Forgets rows and bases, keeps the cursor when the form is open. */
void hv_doc_form_clear(struct hv_doc_form *f);
/** Adds something to edit. All bases are written; a value that they do not share is shown as mixed.
 */
void hv_doc_form_base(struct hv_doc_form *f, const char *base);
/** Adds a row; name and path are copied. Rows beyond HV_DOC_FORM_MAX are left out. */
void hv_doc_form_add(struct hv_doc_form *f, const struct hv_doc_row *row);
/** Reads all values again (the documents changed). O(rows). */
void hv_doc_form_load(struct hv_doc_form *f, const struct hv_session *s);
/** Draws rows, help and, when open, the list of choices. */
void hv_doc_form_draw(const struct hv_doc_form *f, const struct hv_session *s, struct hv_grid *g,
                      struct hv_rect r, bool focused);
/**
 * Feeds a key or a mouse event; r is where the form was drawn. Changes go to the session at once,
 * an error is shown and the old value kept. Returns flags of hv_app; Esc outside a field closes.
 */
unsigned hv_doc_form_event(struct hv_doc_form *f, struct hv_app *app, struct hv_session *s,
                           const struct hv_event *ev, struct hv_rect r);
/** The keys that count in the field being typed or in the open list; NULL when neither is. */
const struct hv_key_hint *hv_doc_form_hints(const struct hv_doc_form *f);

/* ---- the list (doc_pick.c) */

/** Opens the list at the value of the row under the cursor. */
void hv_doc_pick_open(struct hv_doc_form *f);
/** Draws the list. */
void hv_doc_pick_draw(const struct hv_doc_form *f, const struct hv_session *s, struct hv_grid *g,
                      struct hv_rect r);
/** Feeds a key; the choice picked, or NULL. Closes itself on Enter and Esc. */
const char *hv_doc_pick_key(struct hv_doc_form *f, struct hv_key k);

#endif
