/** Wrapped text of help pages. */
#ifndef HV_UI_COMMAND_PARAGRAPH_H
#define HV_UI_COMMAND_PARAGRAPH_H

#include "solver/base/str.h"

/** Columns of help pages made of names with paragraphs below, and the indentation of these. */
enum { HV_PARAGRAPH_COLUMNS = 78, HV_PARAGRAPH_INDENT = 4 };

/** Appends the words of a text in indented lines that end before HV_PARAGRAPH_COLUMNS; a longer
 * word has a line of its own. The text is ASCII. */
void hv_paragraph_add(struct hv_str *out, const char *text);

#endif
