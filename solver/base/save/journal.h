/** The journal of a save: the file that names what is being replaced, and its lock. For save.c. */
#ifndef HV_SOLVER_BASE_SAVE_JOURNAL_H
#define HV_SOLVER_BASE_SAVE_JOURNAL_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include "solver/base/vec.h"
#include <stdbool.h>

/** Name of the journal inside the folder. */
#define HV__SAVE_JOURNAL ".hetviz-save"

/** What the next program has to do: remove temporary files, replace all files, put all back. */
enum hv__save_stage { HV__SAVE_CLEAN, HV__SAVE_COMMIT, HV__SAVE_UNDO };

/** A file that is replaced. */
struct hv__save_entry {
    char *name;        /**< inside the folder */
    bool made;         /**< there was no such file before */
    const char *bytes; /**< the new content, in the program that saves; NULL when read back */
    size_t n;
};

/** Names inside the folder; each is on the heap. */
struct hv__save_names {
    char **items;
    size_t n, cap;
};

/** A journal. Owner: hv__save_journal_free. */
struct hv__save_journal {
    char *folder;
    int fd;         /**< the journal, locked; -1 = none */
    bool read_only; /**< it may be read only */
    bool gone;      /**< its file was removed */
    enum hv__save_stage stage;
    char token[17]; /**< of the names of temporary files */
    HV_VEC(struct hv__save_entry) files;
    struct hv__save_names removed; /**< files to remove after the replacement */
    struct hv__save_names folders; /**< folders that did not exist before */
};

/**
 * Opens the journal of a folder and waits for its lock; `make`: creates it when there is none,
 * otherwise fd stays -1. Errors: HV_EIO, also when another program holds the lock for a minute.
 */
enum hv_status hv__save_journal_open(struct hv__save_journal *j, const char *folder, bool make,
                                     struct hv_err *err) HV_NODISCARD;
/**
 * Reads what a killed program wrote. An incomplete text in the stage HV__SAVE_CLEAN is an empty
 * journal, because no other file is made before the text is complete. Errors: HV_EIO, HV_EINPUT.
 */
enum hv_status hv__save_journal_read(struct hv__save_journal *j, struct hv_err *err) HV_NODISCARD;
/** Writes the names, in the stage HV__SAVE_CLEAN. False with errno set. */
bool hv__save_journal_write(struct hv__save_journal *j);
/** Enters a stage; overwrites bytes, so that a full disk cannot prevent it. False with errno set.
 */
bool hv__save_journal_enter(struct hv__save_journal *j, enum hv__save_stage stage);
/** Removes the file; the lock ends with hv__save_journal_free. */
void hv__save_journal_remove(struct hv__save_journal *j);
/** Closes it; the file stays where it was not removed. */
void hv__save_journal_free(struct hv__save_journal *j);

#endif
