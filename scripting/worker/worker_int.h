/** Internals of the worker: declarations shared by its kinds of job. */
#ifndef HV_SCRIPTING_WORKER_WORKER_INT_H
#define HV_SCRIPTING_WORKER_WORKER_INT_H

#include "scripting/worker/run.h"
#include "solver/base/json/json.h"

/** Lines from a pipe. {.fd = …} is ready; owner: hv_str_free of `text`. */
struct hv__lines {
    int fd;
    struct hv_str text; /**< read and not given out yet */
    size_t at;
};

/** The next line, without its line feed, or what is left at the end; *out is NULL when there is
 * nothing any more, else borrowed until the next call. Errors: HV_EIO, HV_ELIMIT. */
enum hv_status hv__lines_next(struct hv__lines *l, const char **out, size_t *n,
                              struct hv_err *err) HV_NODISCARD;
/** Writes a value as one line; a reader that is gone is no error. */
void hv__write_line(int fd, const json_t *line);

/** Reads `cluster`, `model` and `job` of a tree, each a document or the name of one; without `job`
 * the default. *in is {0} before. Owner: hv_inputs_free, also on failure. */
enum hv_status hv__job_inputs(const struct hv_jp *root, struct hv_inputs *in,
                              struct hv_err *err) HV_NODISCARD;

/**
 * A job of kind `lua`: reads lines {"eval": text}, answers each with {"event": "answer", "state":
 * "done|more|error", "text": what it printed and gave, "error": {"text", "file", "line"}?,
 * "commands": as hv_console_commands?}; ends with its input. The inputs and plugins are those of
 * the request. Returns the status of the whole.
 */
enum hv_status hv__worker_console(struct hv__lines *in, int out_fd,
                                  const struct hv_run_request *request,
                                  struct hv_err *err) HV_NODISCARD;

#endif
