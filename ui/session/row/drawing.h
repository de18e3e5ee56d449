/** States of a timeline that a thread makes. */
#ifndef HV_UI_SESSION_ROW_DRAWING_H
#define HV_UI_SESSION_ROW_DRAWING_H

/** What a timeline is waiting for: nothing, a thread that makes it, or the user, who stopped it. */
enum hv_drawing { HV_DRAWING_NONE, HV_DRAWING_RUNS, HV_DRAWING_STOPPED };

#endif
