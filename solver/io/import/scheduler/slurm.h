/** Generic resources and states, which all Slurm outputs have. */
#ifndef HV_SOLVER_IO_IMPORT_SCHEDULER_SLURM_H
#define HV_SOLVER_IO_IMPORT_SCHEDULER_SLURM_H

#include "solver/io/import/draft/draft.h"
#include "solver/io/import/text/words.h"

/** True where the text looks like generic resources with GPUs ("gpu:h100:8", "gres/gpu=4",
 * "mig:…"). */
bool hv__is_gres(struct hv__piece s);
/** Adds the GPUs of "gpu:a100:4(S:0-3),gpu:h100:2,nsight:1" (or "gres/gpu:h100=8,…"). A GPU without
 * a type has the kind named by `features`; a feature such as "25gbe", "100ge" or "ib-hdr" is the
 * node's network, the fastest of several. Returns the number of GPUs. Source: gres.conf(5). */
uint32_t hv__gres_add(struct hv__in *in, unsigned line, struct hv__node *n, struct hv__piece gres,
                      struct hv__piece features);
/** Adds the partitions of a list ("gpu,debug*") that the node does not have yet. */
void hv__slurm_partitions(struct hv__in *in, struct hv__node *n, struct hv__piece list);
/** True where a word is the state of a node, with or without flags ("idle", "mixed-", "down*"). */
bool hv__is_slurm_state(struct hv__piece word);
/** True where a node in this state is unavailable ("mixed+drain", "down*"). */
bool hv__slurm_out(struct hv__piece state);

#endif
