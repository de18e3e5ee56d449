/* A timeline as lines of words. Draws nothing. */
#include "ui/view/grid/plain.h"

#include "solver/base/units.h"
#include "ui/view/gantt/gantt_int.h"

/* Most operations listed per lane. */
#define PLAIN_OPS 400

static void add_op(struct hv_str *line, const struct hv_gantt_span *s)
{
    static const char letters[] = {
#define X(id, letter, fill, style, name) letter,
        HV_GANTT_KIND_MAP(X)
#undef X
    };
    hv_str_addc(line, letters[s->kind]);
    if (s->micro_batch >= 0) {
        hv_str_addf(line, "%d", (int)s->micro_batch);
    }
}

static void add_ops(struct hv_str *line, const struct hv_gantt_source *src, size_t lane)
{
    struct hv_gantt_span s;
    size_t n = 0;
    bool more = src->next(src->ctx, lane, -1, &s);
    for (; more && n < PLAIN_OPS; n++) {
        hv_str_addc(line, ' ');
        add_op(line, &s);
        more = src->next(src->ctx, lane, s.start_s, &s);
    }
    if (more) {
        hv_str_adds(line, " and more");
    }
    if (n == 0) {
        hv_str_adds(line, " nothing");
    }
}

static void add_lane(struct hv_str *line, const struct hv_gantt_source *src, size_t lane)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    struct hv_gantt_lane l;
    src->lane(src->ctx, lane, &l);
    hv_str_addf(line, "%zu %s", lane + 1, l.name);
    if (l.sublabel != NULL) {
        hv_str_addf(line, "; %s", l.sublabel);
    }
    if (src->memory_max_bytes != NULL) {
        double most = src->memory_max_bytes(src->ctx, lane, 0, src->end_s);
        double limit = src->memory_limit_bytes(src->ctx, lane);
        hv_str_addf(line, "; memory %s", hv_fmt_bytes(a, sizeof a, most));
        if (hv_known(limit)) {
            hv_str_addf(line, " of %s", hv_fmt_bytes(b, sizeof b, limit));
        }
    }
    hv_str_adds(line, "; order:");
    add_ops(line, src, lane);
}

void hv_plain_gantt(struct hv_grid *g, const struct hv_gantt_state *st,
                    const struct hv_gantt_source *src)
{
    char a[HV_FMT_CAP];
    struct hv_str line = {0};
    hv_str_addf(g->plain->out, "%zu lanes; the iteration ends at %s\n", src->n_lanes,
                hv_fmt_seconds(a, sizeof a, src->end_s));
    for (size_t i = 0; i < src->n_lanes && i < HV_PLAIN_ROWS; i++) {
        hv_str_clear(&line);
        if (i == st->lane) {
            hv_str_adds(&line, "> ");
        }
        add_lane(&line, src, i);
        hv_plain_line(g, hv_str_cstr(&line));
    }
    hv_str_adds(g->plain->out, "letters: f forward, b backward, w weight gradient, r recompute, "
                               "c communication, o other; the number is the micro-batch\n");
    hv_str_free(&line);
}
