/** Why a row has no plan, or what is wrong with its plan, in words. */
#include "ui/session/row/plan_trouble.h"

void hv_plan_trouble(const struct hv_row *row, const struct hv_verdict *verdict, struct hv_str *out)
{
    if (verdict != NULL && verdict->findings.n > 0) {
        size_t n = verdict->findings.n;
        hv_str_addf(out, "%zu violation%s: %s", n, n == 1 ? "" : "s",
                    verdict->findings.items[0].text);
    } else if (row->reason[0] != '\0') {
        hv_str_adds(out, row->reason);
    } else if (row->plan != NULL && verdict == NULL) {
        hv_str_adds(out, "cannot be simulated with the current workspace");
    }
}
