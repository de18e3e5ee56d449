/** Functions shared by the readers of launch configurations: they fill a job and the options of the
 * strategy `manual`, which describe the user's present layout. */
#ifndef HV_SOLVER_IO_IMPORT_DRAFT_LAYOUT_H
#define HV_SOLVER_IO_IMPORT_DRAFT_LAYOUT_H

#include "solver/io/import/draft/draft.h"
#include "solver/io/import/text/words.h"

/** Figures of a launch as given by the source; HV_UNKNOWN where it gives none. */
struct hv__launch {
    double tp, pp, dp, cp, ep, chunks, zero;
    double micro_batch, accumulation, global_batch; /**< micro_batch: per data-parallel rank */
    double sequence, ranks;
    double shard_group; /**< data-parallel ranks that share one copy of the sharded states */
    const char *precision, *optimizer, *recompute, *schedule; /**< hetviz's names, or NULL */
    const char *stages;  /**< layers of each stage, "20,20,24"; NULL: equal */
    const char *offload; /**< what lies in the host's memory: "optimizer,weights"; NULL: nothing */
    const char
        *overlap; /**< "no": gradients are reduced after the backward passes; NULL: not said */
    bool sequence_parallel;
    unsigned line; /**< position of the latest note */
};

/** Everything unknown. */
struct hv__launch hv__launch_unknown(void);
/** Completes missing figures (ranks = dp · tp · pp · cp, batch = micro · steps · dp), notes them,
 * and fills job and layout. */
void hv__launch_take(struct hv__in *in, struct hv__launch *l);
/** hetviz's name of a precision ("bf16-mixed", "fp16", "no"), or NULL. */
const char *hv__precision_word(const char *text);
/** hetviz's name of an optimizer ("AdamW", "FusedAdam", "lion"), or NULL. */
const char *hv__optimizer_word(const char *text);

#endif
