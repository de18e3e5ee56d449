/* Streams of the ranks of a group: collectives over some of them, in the order in which they come.
 */
#include "solver/cost/network/streams.h"

#include <math.h>
#include <stdlib.h>

#include "solver/base/arena.h"

struct hv_streams hv_streams_open(const struct hv_cluster *c, const uint32_t *devices, size_t n,
                                  size_t stride)
{
    struct hv_streams x = {n, hv_xcalloc(n + 1, sizeof *x.free_s),
                           hv_xcalloc(n + 1, sizeof *x.house), hv_xcalloc(n + 1, sizeof *x.takes)};
    for (size_t r = 0; r < n; r++) {
        x.house[r] = hv_cluster_domain_of(c, hv_cluster_node_of(c, devices[r * stride]));
    }
    return x;
}

/* Marks the ranks whose streams a collective takes. */
static void mark(struct hv_streams *x, const bool *on)
{
    bool far = false;
    size_t first = 0;
    while (first + 1 < x->n && !on[first]) {
        first++;
    }
    for (size_t r = first; r < x->n; r++) {
        far = far || (on[r] && x->house[r] != x->house[first]);
    }
    for (size_t r = 0; r < x->n; r++) {
        x->takes[r] = on[r];
        for (size_t k = 0; far && !x->takes[r] && k < x->n; k++) {
            x->takes[r] = on[k] && x->house[k] == x->house[r];
        }
    }
}

void hv_streams_play(struct hv_streams *x, const bool *on, double time_s)
{
    double from_s = 0;
    mark(x, on);
    for (size_t r = 0; r < x->n; r++) {
        from_s = x->takes[r] ? fmax(from_s, x->free_s[r]) : from_s;
    }
    for (size_t r = 0; r < x->n; r++) {
        x->free_s[r] = x->takes[r] ? from_s + time_s : x->free_s[r];
    }
}

double hv_streams_end_s(const struct hv_streams *x)
{
    double end_s = 0;
    for (size_t r = 0; r < x->n; r++) {
        end_s = fmax(end_s, x->free_s[r]);
    }
    return end_s;
}

void hv_streams_close(struct hv_streams *x)
{
    free(x->free_s);
    free(x->house);
    free(x->takes);
}
