/** Why a row has no plan, or what is wrong with its plan, in words. */
#ifndef HV_UI_SESSION_ROW_PLAN_TROUBLE_H
#define HV_UI_SESSION_ROW_PLAN_TROUBLE_H

#include "ui/session/row/judged.h"
#include "ui/session/row/row.h"

/** Appends why a row has no plan, or what is wrong with it: "2 violations: s5 needs …"; nothing
 * when all is well. `verdict` is the row's, NULL when it was not judged. O(1). */
void hv_plan_trouble(const struct hv_row *row, const struct hv_verdict *verdict,
                     struct hv_str *out);

#endif
