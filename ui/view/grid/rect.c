/* Rectangles of cells. */
#include "ui/view/grid/grid.h"

struct hv_rect hv_rect_meet(struct hv_rect a, struct hv_rect b)
{
    int x0 = a.x > b.x ? a.x : b.x, y0 = a.y > b.y ? a.y : b.y;
    int ax = a.x + a.w, bx = b.x + b.w, ay = a.y + a.h, by = b.y + b.h;
    int x1 = ax < bx ? ax : bx, y1 = ay < by ? ay : by;
    if (x1 <= x0 || y1 <= y0) {
        return (struct hv_rect){.x = x0, .y = y0};
    }
    return (struct hv_rect){x0, y0, x1 - x0, y1 - y0};
}

bool hv_rect_has(struct hv_rect r, int x, int y)
{
    return x >= r.x && y >= r.y && x < r.x + r.w && y < r.y + r.h;
}

struct hv_rect hv_rect_inner(struct hv_rect r)
{
    struct hv_rect in = {r.x + 1, r.y + 1, r.w - 2, r.h - 2};
    if (in.w < 0) {
        in.w = 0;
    }
    if (in.h < 0) {
        in.h = 0;
    }
    return in;
}
