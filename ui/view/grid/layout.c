/* Layout: rectangles from sizes. Pure functions; nothing is remembered. */
#include "ui/view/grid/layout.h"

static int part_min(const struct hv_split *p)
{
    return p->fixed > 0 ? p->fixed : p->min > 0 ? p->min : 0;
}

void hv_layout_split(struct hv_rect r, enum hv_axis axis, const struct hv_split *parts, size_t n,
                     struct hv_rect *out)
{
    int total = axis == HV_ROWS ? r.h : r.w, at = 0;
    if (total < 0) {
        total = 0;
    }
    size_t kept = 0;
    int mins = 0, flex = 0;
    while (kept < n && mins + part_min(&parts[kept]) <= total) {
        mins += part_min(&parts[kept]);
        if (parts[kept].fixed <= 0) {
            flex += parts[kept].flex > 0 ? parts[kept].flex : 0;
        }
        kept++;
    }
    if (kept == 0 && n > 0) {
        kept = 1;
    }
    int spare = total > mins ? total - mins : 0, given = 0, seen = 0;
    for (size_t i = 0; i < n; i++) {
        int size = i < kept ? part_min(&parts[i]) : 0;
        if (i < kept && parts[i].fixed <= 0 && parts[i].flex > 0) {
            seen += parts[i].flex;
            int upto = (int)((long long)spare * seen / flex);
            size += upto - given;
            given = upto;
        }
        if (size > total - at || (i + 1 == kept && (flex == 0 || kept < n))) {
            size = total - at;
        }
        out[i] = axis == HV_ROWS ? (struct hv_rect){r.x, r.y + at, r.w > 0 ? r.w : 0, size}
                                 : (struct hv_rect){r.x + at, r.y, size, r.h > 0 ? r.h : 0};
        at += size;
    }
}

struct hv_frame hv_layout_frame(int w, int h)
{
    struct hv_frame f = {0};
    if (w < HV_FLOOR_W || h < HV_FLOOR_H) {
        f.tiny = true;
        f.body = (struct hv_rect){0, 0, w > 0 ? w : 0, h > 0 ? h : 0};
        return f;
    }
    f.tabs = (struct hv_rect){0, 0, w, 1};
    f.body = (struct hv_rect){0, 1, w, h - 3};
    f.status = (struct hv_rect){0, h - 2, w, 1};
    f.keybar = (struct hv_rect){0, h - 1, w, 1};
    return f;
}

int hv_layout_columns(int w)
{
    return w >= HV_THREE_W ? 3 : w >= HV_FULL_W ? 2 : 1;
}

bool hv_layout_stacked(struct hv_rect body)
{
    return body.w < HV_FULL_W || body.h < HV_FULL_H - 3;
}

void hv_layout_panels(struct hv_rect body, enum hv_axis axis, const struct hv_split *parts,
                      size_t n, size_t focused, struct hv_rect *out)
{
    if (!hv_layout_stacked(body)) {
        hv_layout_split(body, axis, parts, n, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = i == focused ? body : (struct hv_rect){.x = body.x, .y = body.y};
    }
}
