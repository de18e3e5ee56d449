/** Wrapped text in what is left of a panel. */
#include "ui/screens/strategies/pen.h"

#include <string.h>

/* Columns of a label. */
#define LABEL_W 10

void hv_pen_skip(struct hv_pen *p, int lines)
{
    lines = lines > p->r.h ? p->r.h : lines;
    p->r.y += lines;
    p->r.h -= lines;
}

/** As hv_pen_put, `indent` columns from the left. */
static void put_wrapped(struct hv_pen *p, int indent, const char *text, int most, unsigned style)
{
    struct hv_str line = {0};
    int w = p->r.w - indent;
    for (int i = 0; i < most && *text != '\0' && p->r.h > 0 && w > 1; i++) {
        size_t n = hv_text_wrap(text, w);
        hv_str_clear(&line);
        hv_str_add(&line, text, i + 1 == most ? strcspn(text, "\n") : n);
        hv_grid_put_field(p->g, (struct hv_rect){p->r.x + indent, p->r.y, w, 1}, HV_LEFT,
                          hv_str_cstr(&line), style);
        hv_pen_skip(p, 1);
        text += n;
        text += *text == ' ' || *text == '\n';
    }
    hv_str_free(&line);
}

void hv_pen_put(struct hv_pen *p, const char *text, int most, unsigned style)
{
    put_wrapped(p, 0, text, most, style);
}

void hv_pen_put_labelled(struct hv_pen *p, const char *label, const char *text, int most)
{
    struct hv_str all = {0};
    if (text[0] == '\0' || p->r.h < 1) {
        return;
    }
    if (p->g->plain != NULL) { /* one line of words */
        hv_str_addf(&all, "%s %s", label, text);
        put_wrapped(p, 0, hv_str_cstr(&all), most, HV_STYLE_TEXT);
        hv_str_free(&all);
        return;
    }
    (void)hv_grid_put(p->g, p->r.x, p->r.y, p->r.w, label, HV_STYLE_HEADER);
    put_wrapped(p, LABEL_W, text, most, HV_STYLE_TEXT);
}
