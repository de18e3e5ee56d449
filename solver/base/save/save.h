/**
 * A save of several files of a folder: all are replaced or none, also when the program is killed.
 *
 * The order is: a journal in the folder that names the files, the new contents beside the old ones,
 * a link to each old content, the word "commit" in the journal, the renames, the end of the
 * journal. Each step is on the disk before the next one begins. A journal without "commit" means
 * that no file has been replaced. The next program that opens the folder finishes a committed save
 * (or undoes it where a rename fails) and removes what the others left.
 *
 * A lock on the journal keeps two programs from saving into one folder at the same time, and tells
 * a save in progress from one that was killed.
 */
#ifndef HV_SOLVER_BASE_SAVE_SAVE_H
#define HV_SOLVER_BASE_SAVE_SAVE_H

#include "solver/base/status.h"
#include <stddef.h>

/** One save. Owner: hv_save_free. */
struct hv_save;

/**
 * Begins a save into an existing folder: waits for another program that is saving there (at most a
 * minute), finishes a save that was interrupted, and keeps others from saving until hv_save_free.
 * Errors: HV_EIO; `*out` is then NULL.
 */
enum hv_status hv_save_begin(struct hv_save **out, const char *folder,
                             struct hv_err *err) HV_NODISCARD;
/** Adds a file by its name inside the folder ("plans/a.json"); a link is followed. The bytes are
 * borrowed until hv_save_free. */
void hv_save_add(struct hv_save *s, const char *name, const char *bytes, size_t n);
/** Adds a file to remove after all others were replaced. Whether that succeeds is not part of the
 * save. */
void hv_save_remove(struct hv_save *s, const char *name);
/** Adds a folder that is created for the files in it, when it is missing. */
void hv_save_folder(struct hv_save *s, const char *name);
/**
 * Replaces all files, or none. Errors: HV_EIO with the first file that could not be written; the
 * text says that the old files are unchanged or, where they cannot be put back, that the next
 * program that opens the folder tries again.
 */
enum hv_status hv_save_commit(struct hv_save *s, struct hv_err *err) HV_NODISCARD;
/** Ends the save and its lock; without hv_save_commit nothing was changed. NULL is allowed. */
void hv_save_free(struct hv_save *s);

/**
 * Finishes or undoes a save into this folder that was interrupted, and waits for one in progress.
 * Nothing happens, at the cost of one system call, in a folder without a journal. The names in a
 * journal are not trusted: files outside the folder are not removed. Errors: HV_EIO where a
 * committed save can be neither finished nor undone, such as in a folder without write permission.
 */
enum hv_status hv_save_recover(const char *folder, struct hv_err *err) HV_NODISCARD;
/** hv_save_recover for the folder of a file and the folder around that: a document, or a plan in
 * the folder of plans, may belong to a workspace. "-" is no file. */
enum hv_status hv_save_recover_beside(const char *path, struct hv_err *err) HV_NODISCARD;

#endif
