/**
 * The file that a path means, and how its content is replaced: links are followed, mode and owner
 * are kept, a file that may not be written is refused. Shared by file.h and save/save.h, which
 * decide when the new content takes the place of the old one.
 */
#ifndef HV_SOLVER_BASE_TARGET_H
#define HV_SOLVER_BASE_TARGET_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** The file that a path means. Owner: hv_target_free. */
struct hv_target {
    char *path;   /**< without symbolic links in its last part */
    char *folder; /**< the folder of `path` */
    bool exists;  /**< there is such a file */
    bool is_folder;
    bool special; /**< it is a device or a pipe: its content cannot be replaced */
    mode_t mode;  /**< of the file where it exists, else of a new file */
    uid_t owner;  /**< of the file where it exists */
    gid_t group;
};

/**
 * Finds the file that `path` means, whether it may be written or not. False with errno set (a loop
 * of links, a folder that may not be read); `out` is then empty.
 */
bool hv_target_locate(struct hv_target *out, const char *path);
/**
 * Refuses a folder, and a file without write permission, because a rename would bypass its
 * protection. Errors: HV_EIO.
 */
enum hv_status hv_target_check(const struct hv_target *t, struct hv_err *err) HV_NODISCARD;
void hv_target_free(struct hv_target *t);
/**
 * Writes the new content of `t` into an open file beside it, with the mode and, where permitted,
 * the owner of the old one. `durable`: waits until it is on the disk. False with errno set.
 */
bool hv_target_fill(const struct hv_target *t, int fd, const char *bytes, size_t n, bool durable);

/** Writes all bytes; a closed reading end gives EPIPE instead of a signal. False with errno set. */
bool hv_fd_write(int fd, const char *bytes, size_t n);
/** Waits until renames inside a folder are on the disk, where the file system can do that. */
void hv_folder_sync(const char *folder);
/** Appends the folder of a path: "." for a plain name. */
void hv_folder_of(const char *path, struct hv_str *out);
/** HV_EIO with "cannot DOING: " and the reason in errno. */
enum hv_status hv_io_error(struct hv_err *err, const char *path, const char *doing);

#endif
