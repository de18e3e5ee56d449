/* Summaries of measured traces (hetviz.trace/1): checks only, because no other structure is built
 * from them. */
#include "solver/io/own/trace_file.h"
#include "solver/io/own/doc/keys.h"
#include <string.h>

#define MOST 1e18

/* Members of an object: numbers are no less than 0, the others are texts or flags. */
static enum hv_status check_members(const struct hv_jp *p, enum hv_keys keys, struct hv_err *err)
{
    enum hv_status st = hv_keys_check(p, keys, err);
    for (void *it = json_object_iter(p->v); st == HV_OK && it;
         it = json_object_iter_next(p->v, it)) {
        struct hv_jp at = hv_jp_get(p, json_object_iter_key(it));
        double x;
        if (json_is_number(at.v)) {
            st = hv_jp_number(&at, 0, MOST, &x, err);
        }
    }
    return st;
}

static enum hv_status check_list(const struct hv_jp *root, const char *key, enum hv_keys keys,
                                 struct hv_err *err)
{
    struct hv_jp list = hv_jp_get(root, key);
    size_t n = 0;
    enum hv_status st = hv_jp_none(&list) ? HV_OK : hv_jp_array(&list, &n, err);
    for (size_t i = 0; st == HV_OK && i < n; i++) {
        struct hv_jp at = hv_jp_at(&list, i);
        st = check_members(&at, keys, err);
    }
    return st;
}

enum hv_status hv_trace_check(const struct hv_json *json, struct hv_err *err)
{
    static const struct {
        const char *key;
        enum hv_keys keys;
    } lists[] = {{"devices", HV_KEYS_TRACE_DEVICE},         {"streams", HV_KEYS_TRACE_STREAM},
                 {"kernels", HV_KEYS_TRACE_KERNEL},         {"operations", HV_KEYS_TRACE_KERNEL},
                 {"collectives", HV_KEYS_TRACE_COLLECTIVE}, {"steps", HV_KEYS_TRACE_STEP}};
    struct hv_jp root = hv_jp_root(json);
    enum hv_status st = hv_jp_format(&root, "hetviz.trace/1", err);
    st = st ? st : check_members(&root, HV_KEYS_TRACE, err);
    for (size_t i = 0; st == HV_OK && i < HV_COUNT(lists); i++) {
        st = check_list(&root, lists[i].key, lists[i].keys, err);
    }
    return st;
}
