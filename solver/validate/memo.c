/* Stores times at the points of a fit, so that derivatives evaluate only the rows that depend on
 * the changed parameter. */
#include "solver/validate/memo.h"

#include <string.h>

void hv__memo_init(struct hv__memo *m, size_t n_params, size_t n_rows, struct hv_arena *arena)
{
    *m = (struct hv__memo){.n_params = n_params, .n_rows = n_rows};
    for (size_t i = 0; i < HV__MEMO_POINTS; i++) {
        m->points[i] = (struct hv__memo_point){.x = hv_arena_new(arena, double, n_params + 1),
                                               .value = hv_arena_new(arena, double, n_rows + 1),
                                               .known = hv_arena_new(arena, bool, n_rows + 1)};
    }
}

struct hv__memo_point *hv__memo_near(struct hv__memo *m, const double *x, int *param)
{
    struct hv__memo_point *found = NULL;
    for (size_t i = 0; i < m->n_points; i++) {
        int differs = -1;
        size_t many = 0;
        for (size_t k = 0; k < m->n_params && many < 2; k++) {
            if (m->points[i].x[k] != x[k]) {
                differs = (int)k;
                many++;
            }
        }
        if (many == 0 || (many == 1 && found == NULL)) {
            found = &m->points[i];
            *param = differs;
        }
        if (many == 0) {
            break;
        }
    }
    return found;
}

struct hv__memo_point *hv__memo_add(struct hv__memo *m, const double *x)
{
    struct hv__memo_point *p = &m->points[m->next];
    m->next = m->next + 1 < HV__MEMO_POINTS ? m->next + 1 : 1;
    m->n_points += m->n_points < HV__MEMO_POINTS;
    memcpy(p->x, x, m->n_params * sizeof *x);
    memset(p->known, 0, m->n_rows * sizeof *p->known);
    return p;
}

bool hv__memo_holds(const struct hv__memo *m, const struct hv__memo_point *near, int param,
                    size_t row)
{
    return near->known[row] &&
           (param < 0 || (m->moves != NULL && !m->moves[row * m->n_params + (size_t)param]));
}
