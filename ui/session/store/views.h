/**
 * What screens keep of a workspace between sessions (folding, filter): a small file in the state
 * folder. A broken or missing file is not an error, and neither is a failure to write it.
 */
#ifndef HV_UI_SESSION_STORE_VIEWS_H
#define HV_UI_SESSION_STORE_VIEWS_H

#include "solver/base/str.h"
#include <jansson.h>
#include <stdbool.h>

/** Appends the path of a file of the state folder (NULL: the user's own), "/last.json"; `make`: the
 * folder is made. False where there is no such folder. */
bool hv__state_file(const char *state_dir, const char *name, bool make, struct hv_str *out);
/** The tree of a file of the state folder when it has that format, else NULL. Owner: json_decref.
 */
json_t *hv__state_read(const char *state_dir, const char *name, const char *format);
/** Writes it where it differs from what is there. */
void hv__state_write(const char *state_dir, const char *name, const json_t *root);

/** What a screen kept of the workspace with that absolute path, or NULL. Owner: json_decref. */
json_t *hv__views_get(const char *state_dir, const char *workspace, const char *screen);
/** Keeps it (borrowed); of the workspaces the last hundred stay. */
void hv__views_put(const char *state_dir, const char *workspace, const char *screen, json_t *kept);

#endif
