/** Wrapping of paragraphs at blanks. */
#include "ui/command/paragraph.h"

#include <string.h>

void hv_paragraph_add(struct hv_str *out, const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (column > 0 && column + 1 + len > HV_PARAGRAPH_COLUMNS) {
            hv_str_addc(out, '\n');
            column = 0;
        }
        size_t gap = column == 0 ? HV_PARAGRAPH_INDENT : 1;
        hv_str_addf(out, "%*s%.*s", (int)gap, "", (int)len, text);
        column += gap + len;
        text += len;
        text += strspn(text, " ");
    }
    hv_str_addc(out, '\n');
}
