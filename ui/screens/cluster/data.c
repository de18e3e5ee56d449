/* Updates the cluster screen from the documents. */
#include "ui/screens/cluster/cluster_int.h"

void hv_cluster_sync(struct hv_cluster_screen *v, const struct hv_session *s)
{
    uint64_t cluster = hv_session_generation(s, HV_DOC_CLUSTER);
    uint64_t job = hv_session_generation(s, HV_DOC_JOB);
    v->session = s;
    if (v->synced && cluster == v->cluster_generation && job == v->job_generation) {
        return;
    }
    v->synced = true;
    v->cluster_generation = cluster;
    v->job_generation = job;
    size_t n = hv_cluster_shown(v)->n_groups, kept = 0;
    v->link_row = v->link_row < n ? v->link_row : n - 1;
    v->link_column = v->link_column < n ? v->link_column : n - 1;
    for (size_t i = 0; i < v->marks.n; i++) {
        for (size_t g = 0; g < n; g++) {
            if (hv_cluster_group_id(&hv_cluster_shown(v)->groups[g]) == v->marks.items[i]) {
                v->marks.items[kept++] = v->marks.items[i];
                break;
            }
        }
    }
    v->marks.n = kept;
    hv_cluster_reorder(v);
    hv_cluster_form_fill(v);
    hv_str_clear(&v->totals);
    hv_cluster_totals(v, &v->totals);
}
