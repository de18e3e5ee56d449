/** How far back the undo journal goes. */
#ifndef HV_UI_SESSION_DOC_UNDO_LIMIT_H
#define HV_UI_SESSION_DOC_UNDO_LIMIT_H

/** Most steps that can be undone. */
#define HV_SESSION_UNDO_LIMIT 1000

#endif
