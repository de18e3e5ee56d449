/**
 * The Lua host: one Lua state with limits on memory, instructions and time, and globals from which
 * nothing outside can be reached. Lua itself is hidden behind this header: no other room includes
 * it.
 *
 * A host is made for one run (or one look at a plugin's metadata) and thrown away. The same chunk,
 * input and seed give the same bytes: `pairs` and `next` go in sorted order, `math.random` is ours,
 * `tostring` shows no address, there is no clock. Thread: one host per thread.
 */
#ifndef HV_SCRIPTING_HOST_HOST_H
#define HV_SCRIPTING_HOST_HOST_H

#include "solver/base/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lua_State;
struct hv_str;
/** A host. Owner: hv_host_free. */
struct hv_host;

/** Limits of a host; a field that is 0 takes the default named. */
struct hv_host_limits {
    size_t memory_bytes;  /**< of everything Lua holds (256 MiB) */
    int64_t instructions; /**< of the virtual machine (20e9) */
    double deadline_s;    /**< wall seconds from hv_host_new on (none) */
    uint64_t seed;        /**< of math.random and hv.random */
    /** Asked about every 10 000 instructions and at every hv call; true ends the run. May be NULL.
     */
    bool (*cancel)(void *ctx);
    /** Receives one line of hv.log or print. May be NULL. */
    void (*log)(void *ctx, const char *text);
    void *ctx;
    /** Adds the functions of `hv` to the table at the top of the stack (hv_api_open); NULL: `hv` is
     * empty. */
    void (*open_api)(struct lua_State *L);
    /** Appends a hint for the author of the line that failed with `message`, or nothing. NULL: no
     * hints. */
    void (*hint)(const struct hv_host *h, const char *message, struct hv_str *out);
};

/** A new host with its sandbox. Errors: HV_ELIMIT when the memory limit is too small. */
enum hv_status hv_host_new(struct hv_host **out, const struct hv_host_limits *limits,
                           struct hv_err *err) HV_NODISCARD;
/** Frees it; NULL is fine. */
void hv_host_free(struct hv_host *h);

/** Traceback of the last error, "" when there was none. Borrowed until the next call. */
const char *hv_host_traceback(const struct hv_host *h);
/** Bytes that Lua holds now. */
size_t hv_host_used_bytes(const struct hv_host *h);

/** The version of Lua ("5.4.4"). */
const char *hv_lua_library(void);

#endif
