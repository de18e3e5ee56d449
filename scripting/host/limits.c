/*
 * The limits of a Lua state: allocator with a byte cap, count hook with a budget of instructions
 * and a deadline.
 */
#include "scripting/host/host_int.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_INSTRUCTIONS INT64_C(20000000000)
#define HOOK_EVERY           10000

#define BYTES_PER_INSTRUCTION 16
#define FAILURE_INSTRUCTIONS  100000

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct hv_host *hv__host(lua_State *L)
{
    struct hv_host *h;
    memcpy(&h, lua_getextraspace(L), sizeof h);
    return h;
}

double hv__elapsed_s(const struct hv_host *h)
{
    return now_s() - h->start_s;
}

/*
 * For a new object Lua passes its type in old_size; it does not count. Memory is charged to the
 * instruction budget: a loop of few instructions over large or failing allocations (each failure is
 * a full collection) ends as well.
 */
void *hv__limited_alloc(void *ud, void *p, size_t old_size, size_t new_size)
{
    struct hv_host *h = ud;

    if (p == NULL) {
        old_size = 0;
    }
    if (new_size == 0) {
        free(p);
        h->used_bytes -= old_size;
        return NULL;
    }
    if (new_size > old_size) {
        h->instructions_left -= (int64_t)((new_size - old_size) / BYTES_PER_INSTRUCTION);
        if (new_size - old_size > h->limits.memory_bytes - h->used_bytes) {
            h->instructions_left -= FAILURE_INSTRUCTIONS;
            return NULL;
        }
    }
    void *q = realloc(p, new_size);
    if (q != NULL) {
        h->used_bytes = h->used_bytes - old_size + new_size;
    }
    return q;
}

/** Decides whether the run has to end; sets the reason once. */
static void look_for_stop(struct hv_host *h)
{
    if (h->killed != NULL) {
        return;
    }
    if (h->instructions_left <= 0) {
        h->killed = "the instruction budget is used up (endless loop?)";
    } else if (h->limits.cancel != NULL && h->limits.cancel(h->limits.ctx)) {
        h->killed = "stopped";
        h->stopped = true;
    } else if (h->limits.deadline_s > 0 && hv__elapsed_s(h) > h->limits.deadline_s) {
        h->killed = "the time limit is reached";
        h->stopped = true;
    }
}

/*
 * Once the run has to end, the hook fires at every instruction: a plugin that catches the error
 * with pcall is killed at its next step. luaL_error gives no position inside a hook, so it is taken
 * from the hook's own record.
 */
static void count_hook(lua_State *L, lua_Debug *ar)
{
    struct hv_host *h = hv__host(L);

    if (h->killed == NULL) {
        h->instructions_left -= HOOK_EVERY;
        look_for_stop(h);
    }
    if (h->killed == NULL) {
        return;
    }
    lua_sethook(L, count_hook, LUA_MASKCOUNT, 1);
    if (lua_getinfo(L, "Sl", ar) != 0 && ar->currentline > 0) {
        lua_pushfstring(L, "%s:%d: %s", ar->short_src, ar->currentline, h->killed);
    } else {
        lua_pushstring(L, h->killed);
    }
    lua_error(L);
}

void hv__check_stop(lua_State *L)
{
    struct hv_host *h = hv__host(L);

    look_for_stop(h);
    if (h->killed != NULL) {
        lua_sethook(L, count_hook, LUA_MASKCOUNT, 1);
        luaL_error(L, "%s", h->killed);
    }
}

void hv__host_rearm(struct hv_host *h)
{
    h->instructions_left =
        h->limits.instructions > 0 ? h->limits.instructions : DEFAULT_INSTRUCTIONS;
    h->start_s = now_s();
    hv_rng_seed(&h->rng, h->limits.seed);
}

void hv__host_watch(lua_State *L)
{
    lua_sethook(L, count_hook, LUA_MASKCOUNT, hv__host(L)->killed != NULL ? 1 : HOOK_EVERY);
}
