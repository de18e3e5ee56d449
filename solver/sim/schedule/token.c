/*
 * Tokens of operations: "F2.5", "BW0.3", "F1.0.2", "{F1.2|BW0.3}". Text only; check.c checks
 * whether an order is valid.
 */
#include "solver/sim/schedule/schedule.h"
#include <stdio.h>
#include <string.h>

static const char *const kind_names[HV_OP_KIND_N] = {
    [HV_OP_F] = "F", [HV_OP_B] = "B", [HV_OP_W] = "W", [HV_OP_BW] = "BW", [HV_OP_R] = "R"};

static const char *op_kind_name(enum hv_op_kind kind)
{
    return (unsigned)kind < HV_OP_KIND_N ? kind_names[kind] : "?";
}

const char *hv_op_format(const struct hv_op *op, char *buf, size_t cap)
{
    const char *k = op_kind_name((enum hv_op_kind)op->kind);
    if (op->slice < 0) {
        snprintf(buf, cap, "%s%d.%d", k, op->stage, op->mb);
    } else {
        snprintf(buf, cap, "%s%d.%d.%d", k, op->stage, op->mb, op->slice);
    }
    return buf;
}

size_t hv_schedule_add_token(const struct hv_schedule *s, size_t i_op, struct hv_str *out)
{
    char buf[HV_OP_TOKEN_CAP];
    const struct hv_op *op = &s->ops[i_op];
    if (op->group < 0) {
        hv_str_adds(out, hv_op_format(op, buf, sizeof buf));
        return 1;
    }
    hv_str_addf(out, "{%s|", hv_op_format(op, buf, sizeof buf));
    hv_str_addf(out, "%s}", hv_op_format(op + 1, buf, sizeof buf));
    return 2;
}

/* reads a number below `limit`; *at moves behind it */
static bool read_number(const char **at, int64_t limit, int64_t *out)
{
    int64_t x = 0;
    const char *p = *at;
    if (*p < '0' || *p > '9') {
        return false;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        x = x * 10 + (*p - '0');
        if (x >= limit) {
            return false;
        }
    }
    *at = p;
    *out = x;
    return true;
}

static bool read_kind(const char **at, uint8_t *out)
{
    const char *p = *at;
    if (p[0] == 'B' && p[1] == 'W') {
        *at = p + 2;
        *out = HV_OP_BW;
        return true;
    }
    const char *letters = "FBW R"; /* position = enum hv_op_kind; BW has no letter of its own */
    const char *hit = *p != '\0' && *p != ' ' ? strchr(letters, *p) : NULL;
    if (!hit) {
        return false;
    }
    *at = p + 1;
    *out = (uint8_t)(hit - letters);
    return true;
}

static bool read_op(const char **at, int32_t group, struct hv_op *out)
{
    int64_t stage, mb, slice = -1;
    *out = (struct hv_op){.group = group};
    if (!read_kind(at, &out->kind) ||
        !read_number(at, (int64_t)HV_SCHEDULE_RANKS_MAX * HV_SCHEDULE_CHUNKS_MAX, &stage) ||
        **at != '.') {
        return false;
    }
    ++*at;
    if (!read_number(at, HV_SCHEDULE_MB_MAX, &mb)) {
        return false;
    }
    if (**at == '.') {
        ++*at;
        if (!read_number(at, HV_SCHEDULE_SLICES_MAX, &slice)) {
            return false;
        }
    }
    out->stage = (int32_t)stage;
    out->mb = (int32_t)mb;
    out->slice = (int16_t)slice;
    return true;
}

enum hv_status hv_op_parse(const char *token, int32_t group, struct hv_op out[2], size_t *n_out,
                           struct hv_err *err)
{
    const char *p = token;
    bool ok;
    if (*p == '{') {
        p++;
        ok = read_op(&p, group, &out[0]) && *p++ == '|' && read_op(&p, group, &out[1]) &&
             *p++ == '}';
        *n_out = 2;
    } else {
        ok = read_op(&p, -1, &out[0]);
        *n_out = 1;
    }
    if (!ok || *p != '\0') {
        return hv_err_set(err, HV_EINPUT,
                          "expected an operation such as F2.5 (kind F, B, W, BW or R, then "
                          "stage.micro-batch[.slice]) or an overlapped pair {F1.2|BW0.3}, "
                          "found \"%.40s\"",
                          token);
    }
    return HV_OK;
}
