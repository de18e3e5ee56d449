/**
 * Work in a child process behind the walls of jail.h. All code of plugins runs in such a child, or
 * in a worker (worker/worker.c): a crash or a call that never returns costs the child only.
 *
 * The child is a fork, so it has everything that this process has loaded, and shares no memory with
 * it. It answers in lines. Its standard input and output are /dev/null, all other files of this
 * process but standard error are closed in it; SIGINT and SIGTERM, which a terminal or a program
 * such as timeout(1) sends to the whole process group, are for the parent.
 */
#ifndef HV_SCRIPTING_HOST_CELL_H
#define HV_SCRIPTING_HOST_CELL_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** The side of the child. */
struct hv__cell_inside {
    int fd;                  /**< for hv__cell_write */
    const atomic_bool *stop; /**< the parent asks for the end */
};
/** What the child does. Everything is borrowed. */
struct hv__cell_work {
    /** Runs in the child; the child ends when it returns. */
    void (*run)(void *ctx, struct hv__cell_inside *inside);
    void *ctx;
    double limit_s; /**< wall seconds after which the child is ended; ≤ 0 = no limit */
    double cpu_s;   /**< the child's own limit: hv_lock_process */
    /** Called about ten times a second in the parent, and after each signal; true asks the child
     * for its end. May be NULL. */
    bool (*cancel)(void *cancel_ctx);
    void *cancel_ctx;
};

/** A child and its output that is not used yet. Owner: hv__cell_end. */
struct hv__cell {
    struct hv__cell_work work;
    pid_t pid; /**< 0: it has been waited for */
    int fd;    /**< −1: closed */
    atomic_bool *stop;
    struct hv_str text;
    size_t at;
    double end_s;                  /**< clock at which the time limit is over; 0 = none */
    bool asked, late;              /**< asked for its end; over the limit */
    double asked_s, asked_child_s; /**< clock and CPU time of the child at that moment */
};

/** What was heard of a child. */
enum hv__heard {
    HV__CELL_LINE,     /**< a line */
    HV__CELL_END,      /**< it has ended, or closed its output */
    HV__CELL_LATE,     /**< over its time limit; it did not end by itself and was killed */
    HV__CELL_CANCELLED /**< `cancel` was true; it did not end by itself and was killed */
};

/** Starts a child. Errors: HV_EIO with what the system lacks (file descriptors, processes). */
enum hv_status hv__cell_start(struct hv__cell *c, const struct hv__cell_work *work,
                              struct hv_err *err) HV_NODISCARD;
/**
 * Waits for the next line (without its line feed; borrowed until the next call). A child that is
 * cancelled, or late, may still end by itself: it is killed after a second in which it computed, or
 * after a minute.
 */
enum hv__heard hv__cell_next(struct hv__cell *c, const char **line, size_t *n);
/** Starts the time limit anew. */
void hv__cell_rewind(struct hv__cell *c);
/** Ends the child where it still runs, waits for it and frees everything. Returns the status of
 * waitpid(2). */
int hv__cell_end(struct hv__cell *c);
/** "it ended by signal 11 (Segmentation fault)", or with which status. */
void hv__cell_describe(int status, struct hv_str *out);

/** In the child: writes a line and its line feed. */
void hv__cell_write(const struct hv__cell_inside *inside, const char *line, size_t n);
/** In the child: true where the parent asks for its end. `inside` is a struct hv__cell_inside; it
 * has the type of the cancel functions. */
bool hv__cell_is_asked(void *inside);

#endif
