/** Lanes of activations that leave their rank and come back: one for each lane of moves that has
 * any. */
#include "solver/eval/timeline/timeline_int.h"

/** Where an offload goes, as text: "host", "a[7].0"; NULL: to another rank. */
static const char *place_of(const struct hv__painter *p, const struct hv__move_lane *x)
{
    if (x->to == NULL) {
        return NULL;
    }
    struct hv_str s = {0};
    if (x->to->to_host) {
        hv_str_adds(&s, "host");
    } else {
        hv_address_format(hv_cost_cluster(p->l->k), x->to->devices, x->to->n_devices, ",", &s);
    }
    const char *text = hv_arena_strdup(p->l->arena, hv_str_cstr(&s));
    hv_str_free(&s);
    return text;
}

/** The link of a lane, and what one move of it carries. */
static struct hv_timeline_link *add_link(struct hv__painter *p, const struct hv__pipeline *pl,
                                         size_t rank_at, int32_t lane)
{
    const struct hv__move_lane *x = &pl->moving.lanes[lane];
    const struct hv__sending *s = &pl->hops.sendings[pl->hops.sending_of[pl->pipe->n_hops + lane]];
    size_t n_hops = p->t->n_hops++;
    size_t keeper = x->to != NULL ? x->rank : x->keeper;
    size_t from = x->back ? keeper : x->rank, to = x->back ? x->rank : keeper;
    p->t->hops[n_hops] = (struct hv_timeline_hop){
        .i_link = p->t->n_links, .seconds = s->cost.bytes_s + s->cost.latency_s, .bytes = x->bytes};
    struct hv_timeline_link *k = &p->t->links[p->t->n_links++];
    *k = (struct hv_timeline_link){
        .from_row = rank_at + from, .to_row = rank_at + to, .beside = true};
    k->place = place_of(p, x);
    k->from_place = k->place != NULL && x->back;
    if (k->place != NULL) {
        k->name = hv_arena_printf(p->l->arena, "  %s%c%s", hv__rank_name(p->l, pl, x->rank),
                                  x->back ? '<' : '>', k->place);
    } else {
        k->name = hv_arena_printf(p->l->arena, "  %s>%s", hv__rank_name(p->l, pl, from),
                                  hv__rank_name(p->l, pl, to));
    }
    return k;
}

/** Draws one move. */
static void paint_move(struct hv__painter *p, const struct hv__pipeline *pl, size_t i,
                       const struct hv__node_facts *facts)
{
    const struct hv_link_move *m = &pl->moving.moves[i];
    const struct hv_link_moved *t = &pl->moving.moved[i];
    int32_t of = m->back ? m->gates : m->node;
    const struct hv_op *op = &pl->schedule->ops[hv_pipe_first_op(pl->pipe, of)];
    double slack_s = HV_UNKNOWN;
    bool critical = false;
    if (m->gates >= 0) {
        double start_s = pl->run.node_start_s[m->gates];
        critical =
            facts->critical[m->gates] && hv_pipe_is_held(&pl->run, m->gates) && t->end_s >= start_s;
        slack_s = fmax(0, start_s - t->end_s) + facts->slack_s[m->gates];
    }
    int32_t id =
        hv__paint_op(p, (struct hv_timeline_op){.stage = op->stage,
                                                .micro_batch = op->mb,
                                                .slice = op->slice,
                                                .paired = (int32_t)p->t->n_hops - 1,
                                                .kind = m->back ? HV_SPAN_RETURN : HV_SPAN_LEAVE,
                                                .critical = critical,
                                                .slack_s = slack_s});
    hv__paint_span(p, t->start_s, t->end_s, id);
}

enum hv_status hv__paint_moves(struct hv__painter *p, size_t i_pipeline,
                               const struct hv__node_facts *facts, struct hv_err *err)
{
    const struct hv__pipeline *pl = &p->l->pipelines.items[i_pipeline];
    enum hv_status st = HV_OK;
    for (int32_t lane = 0; st == HV_OK && lane < pl->moving.n_lanes; lane++) {
        if (pl->hops.sending_of[pl->pipe->n_hops + lane] < 0) {
            continue;
        }
        struct hv_timeline_link *k = add_link(p, pl, p->l->pipelines.rank_at[i_pipeline], lane);
        p->n_spans = 0;
        for (size_t i = 0; i < pl->moving.n; i++) {
            if (pl->moving.moves[i].lane == lane) {
                paint_move(p, pl, i, facts);
            }
        }
        st = hv__paint_lane(p, k->name, HV_RESOURCE_LINK, &k->lane, err);
    }
    return st;
}
