/** A workspace's place; for place.c and save.c only. */
#ifndef HV_UI_SESSION_STORE_PLACE_INT_H
#define HV_UI_SESSION_STORE_PLACE_INT_H

#include "ui/session/store/place.h"

/** Attributes of a file, to detect later writes by other programs. */
struct hv__stamp {
    bool known;
    uint64_t file, bytes;
    int64_t changed_s, changed_ns;
};

/** Location of the workspace, and the attributes of its file. */
struct hv__place {
    struct hv_workspace workspace;
    struct hv__stamp stamp; /**< of the workspace's file when it was read or saved */
    bool overwrite;         /**< the user was warned of the change: overwrite the file */
    char *path;             /**< folder or file; NULL = none yet */
    char *name;
};

/** Stores the present attributes of the workspace's file. */
void hv__place_stamp(struct hv__place *p);
/** Fails once where another program wrote the file since it was read. Errors: HV_EIO. */
enum hv_status hv__place_check_unchanged(struct hv__place *p, struct hv_err *err) HV_NODISCARD;

#endif
