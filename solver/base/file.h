/** Files: whole reads with a size limit, atomic writes, and the location of hetviz's own data. */
#ifndef HV_SOLVER_BASE_FILE_H
#define HV_SOLVER_BASE_FILE_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** Largest input file that is read (bytes). */
#define HV_FILE_LIMIT ((size_t)256 << 20)

/**
 * Reads a whole file (`-` = standard input) into `out` (appended).
 * Errors: HV_EIO naming the path and the system's reason (missing, no permission, a directory);
 * HV_ELIMIT above HV_FILE_LIMIT.
 */
enum hv_status hv_file_read(const char *path, struct hv_str *out, struct hv_err *err) HV_NODISCARD;
/**
 * As hv_file_read, but only a regular file is read, and never standard input: anything else that
 * the path or a link leads to (a pipe, a device, a folder) is an error at once, also where opening
 * it would wait. For files that the program finds by itself or runs.
 */
enum hv_status hv_file_read_regular(const char *path, struct hv_str *out,
                                    struct hv_err *err) HV_NODISCARD;
/**
 * The error of a call that makes file descriptors or a process and failed with `why` (errno): with
 * too few descriptors their number and what to do. `what` says what cannot be done. Returns HV_EIO.
 */
enum hv_status hv_descriptors_error(struct hv_err *err, const char *what, int why);
/**
 * Moves the two descriptors of a pipe or socket pair above the standard ones (0 to 2), which they
 * get where the program was started without some of these, and closes them on exec. On failure both
 * are closed and −1, and errno says why.
 */
bool hv_descriptors_lift(int pair[2]) HV_NODISCARD;
/** "a pipe", "a device", … for the st_mode of something that is no regular file. */
const char *hv_file_kind(unsigned mode);
/**
 * Writes a whole file or nothing: temporary file beside it, fsync, rename (`-` = standard output).
 * A symbolic link is followed; mode of an existing file is kept. The old file survives any failure.
 */
enum hv_status hv_file_write(const char *path, const char *bytes, size_t n,
                             struct hv_err *err) HV_NODISCARD;
/**
 * As hv_file_write, but does not wait for the disk: readers see the old file or the new one, a loss
 * of power may leave it empty. For caches and the user's last position, which are written again.
 */
enum hv_status hv_file_write_soon(const char *path, const char *bytes, size_t n,
                                  struct hv_err *err) HV_NODISCARD;
/**
 * Removes the temporary files that killed programs left in a folder: files of this user with the
 * name that hv_file_write gives them, on which no program holds a lock. Others stay.
 */
void hv_file_sweep(const char *folder);
/** Creates a directory and its parents (mode 0700 for new ones). */
enum hv_status hv_file_mkdirs(const char *path, struct hv_err *err) HV_NODISCARD;

/**
 * Path of one of hetviz's own data files: `hv_data_path(&s, "share/devices/nvidia.json")`. Searched
 * in $HETVIZ_ROOT, then beside the program (source tree: build/… is inside the root), then in
 * PREFIX/share/hetviz (installed: `share/x` lies at PREFIX/share/hetviz/x). Errors: HV_EIO when it
 * is not found.
 */
enum hv_status hv_data_path(struct hv_str *out, const char *name, struct hv_err *err) HV_NODISCARD;

/** Path of another hetviz program in the folder of the running one; false when there is none. */
bool hv_program_beside(struct hv_str *out, const char *name);

/** $XDG_STATE_HOME/hetviz, $XDG_DATA_HOME/hetviz or $XDG_CACHE_HOME/hetviz with the usual fallbacks
 * in $HOME. */
enum hv_user_dir { HV_DIR_STATE, HV_DIR_DATA, HV_DIR_CACHE };
/** Appends the folder's path (not created). Errors: HV_EIO when neither the variable nor HOME is
 * set. */
enum hv_status hv_user_dir(struct hv_str *out, enum hv_user_dir which,
                           struct hv_err *err) HV_NODISCARD;

#endif
