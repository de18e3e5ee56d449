/** What a strategy's own formula says beside the simulation, as text. */
#include "ui/cli/claim_text.h"
#include "solver/base/units.h"

#include <math.h>
#include <string.h>

/** Claims that are off by less than this share need no words. */
#define CLOSE_FRAC 0.1

void hv_cli_claim_text(const struct hv_claim *c, struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    bool time = hv_known(c->iteration_s);

    if (!time && !hv_known(c->tokens_per_s)) {
        return;
    }
    hv_str_addf(out, "claimed        %s%s",
                time ? hv_fmt_seconds(buf, sizeof buf, c->iteration_s)
                     : hv_fmt_count(buf, sizeof buf, c->tokens_per_s),
                time ? "" : " tokens/s");
    if (c->formula != NULL) {
        hv_str_adds(out, " by ");
        hv_text_clean(out, c->formula, strlen(c->formula));
    }
    hv_str_addc(out, '\n');
    if (c->leaves_out != NULL) {
        hv_str_adds(out, "  leaves out   ");
        hv_text_clean(out, c->leaves_out, strlen(c->leaves_out));
        hv_str_addc(out, '\n');
    }
}

void hv_cli_claim_note(const char *strategy, const json_t *plan, struct hv_str *out)
{
    const json_t *claim = json_object_get(plan, "claimed");
    const char *words = json_string_value(json_object_get(claim, "leaves_out"));
    double said = json_number_value(json_object_get(claim, "iteration_s"));
    double is =
        json_number_value(json_object_get(json_object_get(plan, "simulated"), "iteration_s"));
    char a[HV_FMT_CAP], b[HV_FMT_CAP];

    if (words == NULL || !(said > 0) || !(is > 0) || fabs(is / said - 1) <= CLOSE_FRAC) {
        return;
    }
    hv_str_addf(out, "%s claims %s, %s are simulated: its formula leaves out ", strategy,
                hv_fmt_seconds(a, sizeof a, said), hv_fmt_seconds(b, sizeof b, is));
    hv_text_clean(out, words, strlen(words));
    hv_str_addc(out, '\n');
}
