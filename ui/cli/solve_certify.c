/*
 * Verification by lp_solve for `hetviz solve`, in a child process that isolates crashes and hangs.
 * Not here: the program that is solved (solver/optim/chain/certify.c).
 */
#include "solver/optim/chain/certify.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/solve_int.h"
#include "ui/process/fork.h"

#include <math.h>

/* Time limit (s) of each of the two solves without --certify. */
#define MOMENT_S 0.2
/* Time limit (s) with --certify but without a time limit of its own. */
#define PATIENCE_S 1.0

/** Input of the child process. */
struct opinion {
    const struct hv_partition *p;
    const struct hv_partition_result *r;
    double limit_s;
};

/** The outcome as one letter, then the sentence. */
static void ask_lp_solve(void *ctx, struct hv_str *out)
{
    const struct opinion *o = ctx;
    struct hv_str text = {0};
    enum hv_certify_outcome outcome = hv_certify_chain(o->p, o->r, o->limit_s, &text);

    hv_str_addc(out, (char)('0' + (int)outcome));
    hv_str_add(out, hv_str_cstr(&text), text.n);
    hv_str_free(&text);
}

void hv__solve_certify(const struct hv_partition *p, const struct hv_partition_result *r,
                       const struct hv__solve_ask *ask, struct hv__solve_answer *out)
{
    struct opinion o = {p, r, ask->certify ? PATIENCE_S : MOMENT_S};
    struct hv_str text = {0};

    if (!hv_certify_applies(p)) {
        return;
    }
    hv_interrupt_relax(); /* from here on a signal kills the child instead */
    if (ask->time_limit_s > 0) {
        o.limit_s = ask->certify ? ask->time_limit_s : fmin(o.limit_s, ask->time_limit_s);
    }
    const struct hv_apart apart = {.work = ask_lp_solve,
                                   .ctx = &o,
                                   .limit_s =
                                       2 * o.limit_s + 0.5, /* lp_solve checks its own time limit */
                                   .cancel = hv_interrupted};
    enum hv_apart_end end = hv_apart_run(&apart, &text);
    hv_str_adds(&out->certificate, "; ");
    switch (end) {
    case HV_APART_DONE:
        hv_str_adds(&out->certificate, hv_str_cstr(&text) + (text.n > 0));
        if (text.n > 0 && text.p[0] == '0' + (int)HV_CERTIFY_CONTRADICTS) {
            out->proven = false;
        }
        break;
    case HV_APART_LATE:
        hv_str_adds(&out->certificate, "lp_solve hung and was killed");
        break;
    case HV_APART_CANCELLED:
        hv_str_adds(&out->certificate, "lp_solve was interrupted");
        break;
    case HV_APART_DIED:
        hv_str_adds(&out->certificate, "lp_solve crashed, in a process of its own");
        break;
    }
    hv_str_free(&text);
}
