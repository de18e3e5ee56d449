/** `hetviz sweep`: finds the action and checks that it takes the options given. */
#include "ui/cli/cmd_sweep.h"
#include "ui/cli/cli.h"

#include <string.h>

struct action {
    const char *word;
    enum hv_status (*run)(struct hv_args *args, struct hv_err *err);
    const char *options; /**< separated by spaces */
};

static const struct action actions[] = {
#define X(name, options) {#name, hv_cli_sweep_##name, options},
    HV_SWEEP_ACTION_MAP(X)
#undef X
};

/** True for a word of the list, and for the options of every action. */
static bool takes(const struct action *a, const char *option)
{
    static const char *const always[] = {"out", "quiet"};
    size_t n = strlen(option);
    for (size_t i = 0; i < HV_COUNT(always); i++) {
        if (strcmp(option, always[i]) == 0) {
            return true;
        }
    }
    for (const char *at = a->options; (at = strstr(at, option)) != NULL; at += n) {
        if ((at == a->options || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0')) {
            return true;
        }
    }
    return false;
}

static enum hv_status find(const char *word, const struct action **out, struct hv_err *err)
{
    const char *words[HV_COUNT(actions)];
    for (size_t i = 0; i < HV_COUNT(actions); i++) {
        words[i] = actions[i].word;
        if (strcmp(word, actions[i].word) == 0) {
            *out = &actions[i];
            return HV_OK;
        }
    }
    const char *near = hv_suggest(word, words, HV_COUNT(words));
    return hv_err_set(err, HV_EUSAGE,
                      "sweep: expected plan, run, submit, merge or show, found \"%.80s\"%s%s%s",
                      word, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                      near != NULL ? "?" : "");
}

enum hv_status hv_cli_sweep(struct hv_args *args, struct hv_err *err)
{
    const struct action *action = NULL;
    enum hv_status st = find(args->positional[0], &action, err);
    for (size_t i = 0; i < args->n_values && st == HV_OK; i++) {
        if (!takes(action, args->values[i].opt->name)) {
            st = hv_err_set(err, HV_EUSAGE, "sweep %s: the option --%s belongs to other actions",
                            action->word, args->values[i].opt->name);
        }
    }
    return st == HV_OK ? action->run(args, err) : st;
}
