/** What makes two plans different, in sentences. */
#ifndef HV_UI_SCREENS_FACTS_DIFFERENCES_H
#define HV_UI_SCREENS_FACTS_DIFFERENCES_H

#include "ui/screens/facts/plan_facts.h"

/**
 * Appends a line per difference of the second plan from the first: whether it fits, time and its
 * breakdown, devices, stages and layers, schedule and micro-batches, memory, cost; or that there is
 * none. O(devices used · log groups).
 */
void hv_plan_differences(const struct hv_plan_facts pair[2], struct hv_str *out);

#endif
