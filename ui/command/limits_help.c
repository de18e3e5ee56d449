#include "ui/command/limits_help.h"

/** "; schedules: 1f1b interleaved"; nothing where there is no limit. */
static void add_words(struct hv_str *out, const char *what, const char *list)
{
    if (list != NULL) {
        hv_str_addf(out, "; %s: %s", what, list[0] != '\0' ? list : "none");
    }
}

void hv_limits_add(const struct hv_says_limits *can, const char *verb, struct hv_str *out)
{
    size_t n = 0;
    for (int i = 0; i < HV_SAYS_SCHEDULE; i++) {
        if ((can->says & HV_SAYS_BIT(i)) == 0) {
            hv_str_addf(out, "%s%s%s", n == 0 ? "; cannot " : ", ", n == 0 ? verb : "",
                        n == 0 ? ": " : "");
            hv_str_adds(out, hv_says_text((enum hv_says)i));
            n++;
        }
    }
    add_words(out, "schedules", can->schedules);
    add_words(out, "ZeRO beside stages", can->zero);
    add_words(out, "ZeRO without stages", can->zero_alone);
    add_words(out, "context parallelism", can->cp);
    add_words(out, "and without stages", can->cp_alone);
    add_words(out, "recomputation", can->recompute);
    add_words(out, "in the host's memory", can->offload);
    for (int i = HV_SAYS_SCHEDULE; i < HV_SAYS_N; i++) {
        if ((can->only_sharded & HV_SAYS_BIT(i)) != 0) {
            hv_str_addf(out, "; %s only where ZeRO shards", hv_says_name((enum hv_says)i));
        }
    }
}
