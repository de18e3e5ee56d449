/** `hetviz help knobs`: the table of knobs of solver/eval as text. */
#include "solver/eval/knobs.h"
#include "ui/command/help.h"
#include "ui/command/paragraph.h"

#include <string.h>

/** True where row i is the first of its knob. */
static bool begins_knob(const struct hv_knob *rows, size_t i)
{
    return i == 0 || rows[i].object != rows[i - 1].object ||
           strcmp(rows[i].key, rows[i - 1].key) != 0;
}

void hv_knob_list(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_knob *rows = hv_knobs(&n);
    hv_str_adds(out, "What the simulator does with each key of a plan and of a job. A verdict "
                     "lists\nthe values of its plan that are approximated.\n\n");
    for (size_t i = 0; i < n; i++) {
        bool full = rows[i].text == NULL;
        if (begins_knob(rows, i)) {
            hv_str_addf(out, "%s%s%s\n", hv_knob_prefix(rows[i].object), rows[i].key,
                        full ? ": simulated" : "");
        }
        if (!full) {
            struct hv_str text = {0};
            hv_str_addf(&text, "%s: %s: %s", rows[i].when,
                        rows[i].applies != NULL ? "approximated" : "refused", rows[i].text);
            hv_paragraph_add(out, hv_str_cstr(&text));
            hv_str_free(&text);
        }
    }
}
