/** The words that screens, tables and messages use, each with its definition: one table that
 * `hetviz help glossary`, `hetviz help WORD` and the manual page read. */
#ifndef HV_UI_COMMAND_GLOSSARY_H
#define HV_UI_COMMAND_GLOSSARY_H

#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** One word of the field as this program uses it. */
struct hv_term {
    const char *name; /**< as it is written on screens: "gap" */
    const char *also; /**< other names, separated by commas: "optimality gap"; NULL: none */
    const char
        *text; /**< definition in one or a few sentences, with the formula where one exists */
};

/** All terms in alphabetical order of their names; `n` receives their number. Static storage. */
const struct hv_term *hv_glossary(size_t *n);

/** The term of a name or of one of its other names; letters' case does not matter. NULL: none.
 * O(n). */
const struct hv_term *hv_glossary_find(const char *name);

/** Appends all terms, wrapped to 78 columns: the name, other names in parentheses, the definition.
 */
void hv_glossary_list(struct hv_str *out);

/** Appends one term as hv_glossary_list does. */
void hv_glossary_describe(struct hv_str *out, const struct hv_term *term);
/** Appends all terms as tagged paragraphs of a manual page; `escape` appends text as roff takes it.
 */
void hv_glossary_man(struct hv_str *out, void (*escape)(struct hv_str *out, const char *text));

#endif
