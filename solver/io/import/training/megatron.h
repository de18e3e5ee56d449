/** Settings of Megatron-LM: collected by the readers of its arguments and YAML, used by the same
 * code. */
#ifndef HV_SOLVER_IO_IMPORT_TRAINING_MEGATRON_H
#define HV_SOLVER_IO_IMPORT_TRAINING_MEGATRON_H

#include "solver/io/import/draft/layout.h"

/** One setting; the last one of a name counts. */
struct hv__setting {
    const char *name;  /**< without leading dashes, words joined by '-' */
    const char *value; /**< "" for a flag, "false" for one that is off */
    unsigned line;
    bool used;
};

/** All settings of a file. Owner: the reader, which frees them (megatron_args.c). */
struct hv__settings {
    struct hv__setting *items;
    size_t n, cap;
};

/** Makes model, job and layout from them. */
enum hv_status hv__megatron_take(struct hv__in *in, struct hv__settings *s,
                                 struct hv_err *err) HV_NODISCARD;
/** Model of the settings, or NULL when figures are missing (noted). Owner: caller. */
json_t *hv__megatron_model(struct hv__in *in, struct hv__settings *s);
/** Looks a setting up and marks it used; NULL when it is absent or its value is unknown ("?",
 * "$X"). */
const struct hv__setting *hv__setting(struct hv__settings *s, const char *name);
/** Number of a setting, or HV_UNKNOWN; true where the flag is on. */
double hv__setting_number(struct hv__settings *s, const char *name);
bool hv__setting_on(struct hv__settings *s, const char *name);

#endif
