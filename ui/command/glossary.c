/** The glossary: the table of terms, and how it is printed. */
#include "ui/command/glossary.h"

#include <string.h>
#include <strings.h>

/** Columns of the printed text, and of the indentation below a name. */
#define WIDTH  78
#define INDENT 4

/* Alphabetical; a test holds the order. */
static const struct hv_term terms[] = {
    {"approximated", NULL,
     "A knob of the plan that the simulator prices by volume only, or not at all. Each verdict "
     "names "
     "the knobs of its plan that are approximated."},
    {"bound", "lower bound",
     "No plan for this cluster, model and job can have a shorter iteration than the bound. It "
     "counts "
     "arithmetic at the best measured rates, the communication and the memory that no plan avoids, "
     "and "
     "the time to fill and drain a pipeline. `hetviz bound` prints it with its parts."},
    {"bubble", "pipeline bubble",
     "Share of the used devices' time in which they compute nothing and communicate nothing "
     "because "
     "they wait for another stage or for a slower replica."},
    {"claimed", NULL,
     "What the published system's own formula predicts for its plan. It stands beside the "
     "simulated "
     "figure and never replaces it; `leaves out` names what the formula does not count."},
    {"context parallel", "cp",
     "One sequence is cut into parts along its length, each on another device; attention exchanges "
     "keys and values or heads."},
    {"critical path", NULL,
     "The chain of operations, each waiting for the one before, whose durations add up to the "
     "iteration "
     "time. Making any other operation faster does not make the iteration shorter."},
    {"data parallel", "dp",
     "Several devices or pipelines hold the same layers and share the batch; their gradients are "
     "summed in every iteration."},
    {"exact", NULL,
     "The plan computes the same weights as training on one device would: every gradient of the "
     "global "
     "batch is used once, with current weights, and no token is dropped. Plans that are not exact "
     "are "
     "ranked behind those that are."},
    {"expert parallel", "ep",
     "The experts of a mixture-of-experts layer are spread over devices; tokens travel to their "
     "experts "
     "and back by two all-to-all exchanges."},
    {"exposed", NULL,
     "Time of a transfer that no computation hides: the device waits for it. Breakdowns count "
     "exposed "
     "time only, so that their parts add up to the iteration."},
    {"gap", "optimality gap",
     "How much longer the plan takes than the bound: iteration / bound - 1. A gap of 4 % says that "
     "the "
     "plan takes at most 4 % longer than the best plan there is, which lies somewhere between the "
     "bound "
     "and this plan."},
    {"global batch", NULL, "Sequences whose gradients make one update of the weights."},
    {"iteration", "step, s/iter",
     "One update of the weights: all micro-batches forward and backward, gradient communication "
     "and "
     "the optimizer. Its time is the last end of any operation on any device."},
    {"layout", NULL,
     "A plan in short: schedule tp/pp/dp. `zb-h2 1/16/1-2` is the schedule zb-h2 with "
     "tensor-parallel "
     "degree 1, 16 pipeline stages and a data-parallel degree of 1 on some stages and 2 on others; "
     "a "
     "range says that stages or replicas differ."},
    {"MFU", "model FLOP/s utilization",
     "The arithmetic that the model needs, without recomputation, divided by what all used devices "
     "could "
     "do at their peak rates in the iteration time."},
    {"micro-batch", NULL, "Sequences that enter a pipeline together."},
    {"pipeline parallel", "pp",
     "The layers are cut into consecutive stages on different devices; micro-batches pass through "
     "them one after the other."},
    {"plan", NULL,
     "Which devices form which stages, how many layers and samples each gets, degrees, schedule, "
     "recomputation, sharding and communication: all that the simulator judges."},
    {"proven", NULL,
     "The optimizer's answer was checked without trusting the solver that found it: by "
     "enumeration, by a "
     "dual certificate or by an exact algorithm."},
    {"recompute", "activation checkpointing",
     "Activations are dropped after the forward pass and computed again before the backward pass: "
     "less "
     "memory for more arithmetic."},
    {"replica", NULL,
     "One complete copy of the model as a pipeline of its own, with its own micro-batches. "
     "Replicas of a "
     "plan may be unlike each other."},
    {"schedule", NULL,
     "The order in which each stage runs the forward and backward passes of its micro-batches, "
     "such as "
     "1f1b or zb-h1. `hetviz help schedules` lists them."},
    {"sequence parallel", NULL,
     "Norms and dropout between tensor-parallel parts are cut along the sequence, so that no "
     "device keeps "
     "them whole."},
    {"simulated", NULL,
     "What the simulator here computes for a plan. Every plan, whoever made it, is judged by the "
     "same "
     "simulator, so simulated figures can be compared."},
    {"stage", "pipeline stage", "Consecutive layers of the model and the devices that hold them."},
    {"stale", "not exact",
     "The plan uses gradients of older weights, as asynchronous pipelines and parameter servers "
     "do. Its "
     "iteration time is the steady time for one global batch."},
    {"tensor parallel", "tp",
     "Each matrix of a layer is cut over several devices, which exchange partial results inside of "
     "every layer."},
    {"virtual chunk", "chunk",
     "One of several groups of layers that the same device holds in an interleaved schedule."},
    {"ZeRO", "sharding of states, FSDP",
     "Data-parallel devices keep only a part each of the optimizer states (stage 1), also of the "
     "gradients "
     "(stage 2), also of the weights (stage 3), and gather what they need."},
};

const struct hv_term *hv_glossary(size_t *n)
{
    *n = sizeof terms / sizeof terms[0];
    return terms;
}

/** Is `name` one of the words of a list separated by commas? */
static bool listed(const char *list, const char *name)
{
    size_t len = strlen(name);
    while (list != NULL) {
        list += strspn(list, " ");
        if (strncasecmp(list, name, len) == 0 && (list[len] == ',' || list[len] == '\0')) {
            return true;
        }
        list = strchr(list, ',');
        list = list != NULL ? list + 1 : NULL;
    }
    return false;
}

const struct hv_term *hv_glossary_find(const char *name)
{
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        if (listed(terms[i].name, name) || listed(terms[i].also, name)) {
            return &terms[i];
        }
    }
    return NULL;
}

/** Appends words, indented, in lines of at most WIDTH columns. The texts are ASCII. */
static void add_wrapped(struct hv_str *out, const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (column > 0 && column + 1 + len > WIDTH) {
            hv_str_addc(out, '\n');
            column = 0;
        }
        hv_str_addf(out, "%*s%.*s", column == 0 ? INDENT : 1, "", (int)len, text);
        column += (column == 0 ? INDENT : 1) + len;
        text += len;
        text += strspn(text, " ");
    }
    hv_str_addc(out, '\n');
}

void hv_glossary_describe(struct hv_str *out, const struct hv_term *term)
{
    hv_str_adds(out, term->name);
    if (term->also != NULL) {
        hv_str_addf(out, " (%s)", term->also);
    }
    hv_str_addc(out, '\n');
    add_wrapped(out, term->text);
}

void hv_glossary_list(struct hv_str *out)
{
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        hv_glossary_describe(out, &terms[i]);
    }
}

void hv_glossary_man(struct hv_str *out, void (*escape)(struct hv_str *out, const char *text))
{
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        hv_str_adds(out, ".TP\n.B ");
        escape(out, terms[i].name);
        hv_str_addc(out, '\n');
        escape(out, terms[i].text);
        hv_str_addc(out, '\n');
    }
}
