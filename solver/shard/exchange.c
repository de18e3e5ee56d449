/** Exchanges and their bytes. */
#include "solver/shard/reshard.h"

const char *hv_exchange_name(enum hv_exchange_kind k)
{
    static const char *const names[HV_EXCHANGE_N] = {
#define X(c, name) [c] = name,
        HV_EXCHANGE_MAP(X)
#undef X
    };
    return names[k];
}

double hv_price(const struct hv_pricing *p, const struct hv_exchange *x)
{
    return p != NULL && p->price != NULL ? p->price(p->ctx, x) : x->sent_bytes;
}

struct hv_exchange hv_exchange_make(enum hv_exchange_kind kind, uint32_t atoms, int64_t group,
                                    double local_bytes)
{
    double n = (double)group, share = (n - 1) / n;
    const double factor[HV_EXCHANGE_N] = {
        [HV_EXCHANGE_GATHER] = n - 1,     [HV_EXCHANGE_ALL_TO_ALL] = share,
        [HV_EXCHANGE_REDUCE] = 2 * share, [HV_EXCHANGE_REDUCE_SCATTER] = share,
        [HV_EXCHANGE_PERMUTE] = 1,        [HV_EXCHANGE_HALO] = 1,
    };
    return (struct hv_exchange){kind, atoms, group, local_bytes, factor[kind] * local_bytes};
}
