/**
 * Layouts that each tensor has been brought into so far, and what it costs to bring it into another
 * one. Paths between two layouts are looked for once per shape. For files of this room.
 */
#ifndef HV_SOLVER_SHARD_VERSIONS_H
#define HV_SOLVER_SHARD_VERSIONS_H

#include "solver/shard/graph.h"
#include "solver/shard/reshard.h"

struct hv_versions;

/** Tensors that no operator writes have their layout from the start. Owner: hv__versions_free. */
struct hv_versions *hv__versions_new(const struct hv_shard_graph *g,
                                     const struct hv_pricing *pricing);
void hv__versions_free(struct hv_versions *v);
/** A tensor has been made in this layout. */
void hv__versions_add(struct hv_versions *v, uint32_t tensor, const struct hv_layout *l);
/** Price of bringing a tensor into a layout from the cheapest one that it has; 1e300: no way. */
double hv__versions_price(struct hv_versions *v, uint32_t tensor, const struct hv_layout *l);
/** Price between two layouts of a shape; 1e300: no way. */
double hv__versions_between(struct hv_versions *v, const struct hv_shape *shape,
                            const struct hv_layout *from, const struct hv_layout *to);
double hv__versions_price_of(const struct hv_versions *v, const struct hv_exchange *x);
/** Brings a tensor into a layout: the path from the cheapest one; it lives as long as v. */
const struct hv_reshard *hv__versions_bring(struct hv_versions *v, uint32_t tensor,
                                            const struct hv_layout *l);
/** Leaves to every tensor that has its own layout only that one. */
void hv__versions_forget(struct hv_versions *v);
/** Atoms over which some version of a tensor is partial. */
uint32_t hv__versions_partial(const struct hv_versions *v, uint32_t tensor);
/** True where a search met its limit. */
bool hv__versions_cut(const struct hv_versions *v);

#endif
