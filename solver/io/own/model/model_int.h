/** Internals of the model reader, shared by its files only. */
#ifndef HV_SOLVER_IO_OWN_MODEL_MODEL_INT_H
#define HV_SOLVER_IO_OWN_MODEL_MODEL_INT_H

#include "solver/base/json/json.h"
#include "solver/workload/model.h"

#define HV_MAX_LAYERS   100000
#define HV_MAX_WIDTH    100000000 /**< hidden, ffn, vocab, sequence */
#define HV_MAX_HEADS    1000000
#define HV_MAX_EXPERTS  1000000
#define HV_MAX_OPS      1000000
#define HV_MAX_MODULES  1000
#define HV_MODULE_DEPTH 8
#define HV_MAX_EXTRA    1e15 /**< weights beside the figures of a block */
#define HV_MAX_BYTES    1e18

/** `kind: transformer`. */
enum hv_status hv__transformer_read(const struct hv_jp *p, struct hv_model *m,
                                    struct hv_err *err) HV_NODISCARD;
/** `kind: layers`. */
enum hv_status hv__layers_read(const struct hv_jp *p, struct hv_model *m,
                               struct hv_err *err) HV_NODISCARD;
/** Keys of a measured layer whose times may differ by device. */
#define HV__PIECES 3
extern const char *const hv__piece_keys[HV__PIECES];
/** The pieces of a measured layer; the devices of the model are known. */
enum hv_status hv__pieces_read(const struct hv_jp *layer, struct hv_model *m,
                               struct hv_measured_layer *l, struct hv_err *err) HV_NODISCARD;
/** `kind: graph`. */
enum hv_status hv__graph_read(const struct hv_jp *p, struct hv_model *m,
                              struct hv_err *err) HV_NODISCARD;
/** True where this object looks like a Hugging Face config.json. */
bool hv__hf_looks_like(const struct hv_jp *p);
/** Reads a Hugging Face config.json. */
enum hv_status hv__hf_read(const struct hv_jp *p, struct hv_model *m,
                           struct hv_err *err) HV_NODISCARD;
/** Reads a whole number into `io`; absent or null leaves it unchanged. */
static inline enum hv_status hv__read_int(const struct hv_jp *p, const char *key, int64_t lo,
                                          int64_t hi, int *io, struct hv_err *err)
{
    int64_t x = *io;
    enum hv_status st = hv_jp_opt_int(p, key, lo, hi, &x, err);
    *io = (int)x;
    return st;
}

/** Shape rules of one block: kv_heads divide heads, top_k within experts. Errors are reported at
 * `p`. */
enum hv_status hv__block_check(const struct hv_jp *p, const struct hv_block *b,
                               struct hv_err *err) HV_NODISCARD;

/** Number of a named operator or module. */
struct hv__name_index {
    const char *name;
    uint32_t at;
};
/** Sorts by name, as hv__edges_read needs them. */
void hv__names_sort(struct hv__name_index *names, size_t n);
/** Reads `edges` between the n named; a cycle is an error. O(edges log n). */
enum hv_status hv__edges_read(const struct hv_jp *root, struct hv_model *m,
                              const struct hv__name_index *names, size_t n,
                              struct hv_err *err) HV_NODISCARD;

#endif
