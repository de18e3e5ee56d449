/* Data of the panels of the model screen: a hash of their content, and the blocks with values of
 * their own. */
#include <string.h>

#include "solver/base/rng.h"
#include "ui/screens/model/model_int.h"

uint64_t hv_model_version(const struct hv_model_screen *v, const char *part)
{
    const uint64_t of[] = {v->model_generation, v->job_generation, v->cluster_generation,
                           v->unfolded, (uint64_t)v->tp};
    return hv_hash(hv_hash(HV_HASH_START, part, strlen(part)), of, sizeof of);
}

void hv_model_layer_marks(struct hv_model_screen *v)
{
    const json_t *list = hv_session_get(v->session, "model.layer_list");
    size_t n = hv_session_model(v->session)->model->n_blocks;
    v->own.n = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *e = json_array_get(list, i), *repeat = json_object_get(e, "repeat");
        json_int_t k = json_is_integer(repeat) ? json_integer_value(repeat) : 1;
        bool own = json_object_size(e) > (repeat != NULL ? 1 : 0);
        for (; k > 0 && v->own.n < n; k--) {
            hv_vec_push(&v->own, own);
        }
    }
}

bool hv_model_layer_is_own(const struct hv_model_screen *v, const struct hv_layer_row *row)
{
    for (size_t i = row->from; i < row->to && i < v->own.n; i++) {
        if (v->own.items[i]) {
            return true;
        }
    }
    return false;
}
