/** A workspace's place; for place.c and save.c only. */
#ifndef HV_UI_SESSION_STORE_PLACE_INT_H
#define HV_UI_SESSION_STORE_PLACE_INT_H

#include "ui/session/store/place.h"

/** What a file looked like, to see later whether another program wrote it. */
struct hv__stamp {
    bool known;
    uint64_t file, bytes;
    int64_t changed_s, changed_ns;
};

/** Where the workspace lies, and what its file looked like. */
struct hv__place {
    struct hv_workspace workspace;
    struct hv__stamp stamp; /**< of the workspace's file when it was read or saved */
    bool overwrite;         /**< the user was told that it changed: save it all the same */
    char *path;             /**< folder or file; NULL = none yet */
    char *name;
};

/** Remembers what the workspace's file looks like now. */
void hv__place_stamp(struct hv__place *p);
/** Refuses once to write over what another program wrote since it was read. Errors: HV_EIO. */
enum hv_status hv__place_check_unchanged(struct hv__place *p, struct hv_err *err) HV_NODISCARD;

#endif
