/** The glossary: the table of terms, and how it is printed. */
#include "ui/command/glossary.h"
#include "ui/command/paragraph.h"

#include <string.h>
#include <strings.h>

/* Alphabetical; a test holds the order. */
static const struct hv_term terms[] = {
    {"approximated", NULL,
     "A property of the plan that the simulator prices by data volume only, or not at all. `hetviz "
     "eval` lists the approximated properties of a plan."},
    {"bound", "lower bound",
     "An iteration time that no plan for this cluster, model and job can beat. It counts the "
     "arithmetic at the best measured rates, the communication and memory that every plan needs, "
     "and the time to fill and drain a pipeline. `hetviz bound` prints it with its parts."},
    {"bubble", "pipeline bubble",
     "The share of time in which the used devices are idle because they wait for another stage or "
     "for a slower replica, without computing or communicating."},
    {"claimed", NULL,
     "The figure that the formula of the published system predicts for its plan. Tables show it "
     "beside the simulated figure and never instead of it; `leaves out` lists what the formula "
     "does not count."},
    {"context parallel", "cp",
     "Each sequence is split along its length over several devices. Attention exchanges keys and "
     "values, or heads, between them."},
    {"critical path", NULL,
     "The chain of dependent operations whose durations add up to the iteration time. A faster "
     "operation outside of this chain does not shorten the iteration."},
    {"data parallel", "dp",
     "Several devices or pipelines hold the same layers and each processes a part of the batch. "
     "Their gradients are summed in every iteration (all-reduce)."},
    {"exact", NULL,
     "An exact plan computes the same weights as training on one device: every gradient of the "
     "global batch is used once, with current weights, and no token is dropped. Plans that are not "
     "exact rank behind exact plans."},
    {"expert parallel", "ep",
     "The experts of a mixture-of-experts layer are spread over devices. Two all-to-all operations "
     "send the tokens to their experts and back."},
    {"exposed", NULL,
     "Exposed communication is the part of the communication time that does not overlap with "
     "computation, so that the device waits. Breakdowns count exposed time only; their parts add "
     "up to the iteration time."},
    {"gap", "optimality gap",
     "The distance between the iteration time of a plan and the lower bound: iteration time / "
     "bound - 1. A gap of 4 % means that the plan takes at most 4 % longer than the best possible "
     "plan, because the best plan cannot be faster than the bound."},
    {"global batch", NULL,
     "The sequences whose gradients are combined into one update of the weights."},
    {"iteration", "step, s/iter",
     "One update of the weights: the forward and backward passes of all micro-batches, gradient "
     "communication and the optimizer step. The iteration time ends with the last operation on any "
     "device."},
    {"layout", NULL,
     "The short form of a plan: schedule tp/pp/dp. `zb-h2 1/16/1-2` is the schedule zb-h2 with "
     "tensor-parallel degree 1, 16 pipeline stages and a data-parallel degree of 1 in some stages "
     "and 2 in others. A range means that stages or replicas differ."},
    {"MFU", "model FLOP/s utilization",
     "The arithmetic that the model needs, without recomputation, divided by the arithmetic that "
     "the used devices could do at their peak rates in the iteration time."},
    {"micro-batch", NULL,
     "The sequences that pass through a pipeline together. The batch of a replica is split into "
     "micro-batches."},
    {"pipeline parallel", "pp",
     "The layers are split into consecutive stages on different devices. Micro-batches pass "
     "through the stages one after the other."},
    {"plan", NULL,
     "A complete description of how a job runs on a cluster: the devices and layers of each stage, "
     "the batch of each replica, parallel degrees, schedule, recomputation, sharding and "
     "communication. The simulator computes its time and memory."},
    {"proven", NULL,
     "The optimum was verified independently of the solver that found it: by enumeration, by an "
     "exact algorithm, or by a bound that was computed from duals with every rounding to the safe "
     "side (or in rational numbers) and equals the value of the answer. An answer of lp_solve "
     "alone "
     "is never called proven."},
    {"recompute", "activation checkpointing",
     "Activations are discarded after the forward pass and computed again before the backward "
     "pass. This needs less memory and more arithmetic."},
    {"replica", NULL,
     "One complete copy of the model: a pipeline with its own devices and micro-batches. The "
     "replicas of a plan may differ from each other."},
    {"schedule", NULL,
     "The order in which each stage runs the forward and backward passes of its micro-batches, "
     "such as "
     "1f1b or zb-h1. `hetviz help schedules` lists them."},
    {"sequence parallel", NULL,
     "Norms and dropout between tensor-parallel operators are split along the sequence, so that "
     "each device stores only a part of their activations."},
    {"simulated", NULL,
     "The figure that the simulator of hetviz computes for a plan. All plans are simulated in the "
     "same way, so simulated figures of different strategies can be compared."},
    {"stage", "pipeline stage",
     "Consecutive layers of the model together with the devices that hold them."},
    {"stale", "not exact",
     "A stale plan uses gradients that were computed with older weights, as in asynchronous "
     "pipelines and with parameter servers. Its iteration time is the steady-state time for one "
     "global batch."},
    {"tensor parallel", "tp",
     "Each matrix of a layer is split over several devices, which exchange partial results inside "
     "of every layer."},
    {"virtual chunk", "chunk",
     "One of several groups of layers that a device holds in an interleaved schedule. A pipeline "
     "with v virtual chunks per rank passes each device v times."},
    {"ZeRO", "sharding of states, FSDP",
     "Each data-parallel device stores only a part of the optimizer states (stage 1), also of the "
     "gradients (stage 2) and also of the weights (stage 3). The devices gather the missing parts "
     "when they need them."},
};

const struct hv_term *hv_glossary(size_t *n)
{
    *n = sizeof terms / sizeof terms[0];
    return terms;
}

/** True where `name` is one of the items of a comma-separated list. */
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

void hv_glossary_describe(struct hv_str *out, const struct hv_term *term)
{
    hv_str_adds(out, term->name);
    if (term->also != NULL) {
        hv_str_addf(out, " (%s)", term->also);
    }
    hv_str_addc(out, '\n');
    hv_paragraph_add(out, term->text);
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
