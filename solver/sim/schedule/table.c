/*
 * The table of schedules: names, text, options and generators. Everything that lists or explains
 * schedules (help, completion, plans, manual) reads it from here.
 */
#include "solver/sim/schedule/schedule_int.h"
#include <string.h>

static const char *const gpipe_backward[] = {"reverse", "forward", NULL};
static const char *const gpipe_recompute[] = {"none", "full", "except-last", NULL};
static const char *const zb_v_variant[] = {"order", "heuristic", NULL};
static const char *const v_adaptive_decide[] = {"auto", "slots", "times", NULL};
static const char *const chimera_mode[] = {"direct", "doubling", "halving", NULL};
static const char *const dynapipe_placement[] = {"looped", "zigzag", NULL};
static const char *const dapple_early[] = {"pa", "pb", NULL};

/* clang-format off */
static const struct hv_schedule_option gpipe_options[] = {
    {"backward", HV_SCHEDULE_CHOICE, 0, 0, 1, gpipe_backward, "order of the backwards: from the last micro-batch, or from the first"},
    {"recompute", HV_SCHEDULE_CHOICE, 0, 0, 2, gpipe_recompute, "recompute before each backward; except-last: no recompute where the forward has just run"},
};
static const struct hv_schedule_option dapple_options[] = {
    {"early", HV_SCHEDULE_CHOICE, 0, 0, 1, dapple_early, "forwards ahead on rank r: pa = p - r, pb = 2(p - r) - 1 (hides communication)"},
};
static const struct hv_schedule_option interleaved_options[] = {
    {"group", HV_SCHEDULE_INT, 0, 0, HV_SCHEDULE_MB_MAX, NULL, "micro-batches per group and chunk; 0 = p, or an equal share of m where p does not divide it"},
};
static const struct hv_schedule_option group_options[] = {
    {"group", HV_SCHEDULE_INT, 0, 0, HV_SCHEDULE_MB_MAX, NULL, "micro-batches of one building block; 0 = half the ranks"},
};
static const struct hv_schedule_option slices_options[] = {
    {"slices", HV_SCHEDULE_INT, 2, 1, HV_SCHEDULE_SLICES_MAX, NULL, "token slices of one sequence"},
};
static const struct hv_schedule_option terapipe_options[] = {
    {"slices", HV_SCHEDULE_INT, 4, 1, HV_SCHEDULE_SLICES_MAX, NULL, "token slices of one sequence"},
};
static const struct hv_schedule_option zb_v_options[] = {
    {"variant", HV_SCHEDULE_CHOICE, 0, 0, 1, zb_v_variant, "order: fixed, best for f = b = w; heuristic: greedy by cost"},
};
static const struct hv_schedule_option v_adaptive_options[] = {
    {"memory", HV_SCHEDULE_INT, 0, 0, 2 * HV_SCHEDULE_RANKS_MAX, NULL, "chunk activations (half a rank's) of one micro-batch that a rank may hold; 0 = 2p, those of 1F1B"},
    {"decide", HV_SCHEDULE_CHOICE, 0, 0, 2, v_adaptive_decide, "durations that the search compares: slots of equal length (as published) or the real times; auto = times where those of every stage are known, as in a plan"},
};
static const struct hv_schedule_option chimera_options[] = {
    {"pipes", HV_SCHEDULE_INT, 2, 2, 254, NULL, "pipelines, half of them in each direction; even and a divisor of p"},
    {"mode", HV_SCHEDULE_CHOICE, 0, 0, 2, chimera_mode, "beyond p micro-batches: direct = units one after the other, doubling = forwards of two micro-batches, halving = backwards of halves"},
};
static const struct hv_schedule_option hanayo_options[] = {
    {"waves", HV_SCHEDULE_INT, 0, 0, HV_SCHEDULE_CHUNKS_MAX / 2, NULL, "waves over the ranks, two chunks each; 0 = v/2"},
};
static const struct hv_schedule_option dynapipe_options[] = {
    {"placement", HV_SCHEDULE_CHOICE, 0, 0, 1, dynapipe_placement, "chunks go round the ranks in the same direction, or in alternating directions"},
};
static const struct hv_schedule_option tessel_options[] = {
    {"memory", HV_SCHEDULE_INT, 0, 0, HV_SCHEDULE_MB_MAX, NULL, "micro-batches that a rank may hold; 0 = p, as 1F1B"},
    {"repetend", HV_SCHEDULE_INT, 0, 0, 63, NULL, "most micro-batches in one repetend; 0 = p"},
};
static const struct hv_schedule_option zb_list_options[] = {
    {"memory", HV_SCHEDULE_INT, 0, 0, HV_SCHEDULE_MB_MAX, NULL, "micro-batches that a rank may hold; 0 = p, as 1F1B"},
};
static const struct hv_schedule_option distmm_options[] = {
    {"barrier", HV_SCHEDULE_INT, 0, 0, HV_SCHEDULE_MB_MAX, NULL, "micro-batches whose forwards the loss needs together; 0 = all m"},
};
static const struct hv_schedule_option autopipe_options[] = {
    {"sliced", HV_SCHEDULE_INT, 0, 0, HV_SCHEDULE_MB_MAX, NULL, "micro-batches whose forwards come in halves; 0 = p - 1, those of the first rank's warm-up"},
};
static const struct hv_schedule_option hetpipe_options[] = {
    {"in_flight", HV_SCHEDULE_INT, 0, 0, HV_SCHEDULE_RANKS_MAX, NULL, "minibatches of one virtual worker at the same time (N_m); 0 = p"},
    {"staleness", HV_SCHEDULE_INT, 0, 0, 1 << 20, NULL, "clock distance D between virtual workers, for previews; in a plan sync.staleness sets it"},
};

#define OPTIONS(a) (a), HV_COUNT(a)
#define NO_OPTIONS NULL, 0

static const struct hv_schedule_row rows[] = {
    {"gpipe", "all forwards, then all backwards", "GPipe, NeurIPS 2019, section 2.3",
     "", "all m micro-batches; with recompute their inputs and one whole",
     HV_SCHEDULE_RECOMPUTE | HV_SCHEDULE_BY_MEMORY, 1, OPTIONS(gpipe_options), hv__gen_gpipe},
    {"1f1b", "one forward, one backward; few activations", "PipeDream-Flush in PipeDream-2BW, ICML 2021; Megatron-LM, SC 2021, section 2.2",
     "", "min(m, p - r) micro-batches on rank r",
     HV_SCHEDULE_BY_MEMORY, 1, NO_OPTIONS, hv__gen_1f1b},
    {"dapple", "1F1B with early backwards and a chosen number of forwards ahead", "DAPPLE, PPoPP 2021, section 3",
     "", "pa: min(m, p - r), pb: min(m, 2(p - r) - 1) micro-batches on rank r",
     HV_SCHEDULE_BY_MEMORY, 1, OPTIONS(dapple_options), hv__gen_dapple},
    {"bpipe", "1F1B in which early ranks move activations to late ones: even memory", "BPipe, ICML 2023, section 3",
     "p even; rank r and rank p - 1 - r share a fast link", "at most (p + 3)/2 micro-batches on every rank",
     HV_SCHEDULE_STASHES, 1, NO_OPTIONS, hv__gen_bpipe},
    {"autopipe", "1F1B whose first micro-batches run forward in halves: a shorter warm-up", "AutoPipe, CLUSTER 2022, slicer",
     "micro-batches of at least two sequences", "min(m, p - r) micro-batches on rank r",
     HV_SCHEDULE_PARTS, 1, OPTIONS(autopipe_options), hv__gen_autopipe},
    {"interleaved", "1F1B over several chunks per rank: smaller bubble, more communication", "Megatron-LM, SC 2021, section 2.2",
     "m a multiple of p, or of a group size between p and m", "min(mv, 2(p - 1 - r) + (v - 1)group + 1)/v micro-batches on rank r",
     HV_SCHEDULE_CHUNKS | HV_SCHEDULE_NEEDS_CHUNKS, 2, OPTIONS(interleaved_options), hv__gen_interleaved},
    {"breadth-first", "every micro-batch through a chunk before the next chunk starts; suits sharded weights", "Breadth-First Pipeline Parallelism, MLSys 2023, section 4",
     "", "all m micro-batches",
     HV_SCHEDULE_CHUNKS | HV_SCHEDULE_BY_MEMORY, 2, NO_OPTIONS, hv__gen_breadth_first},
    {"group-interleaved", "interleaving in groups, backward split in two", "PipeOffload, ICML 2025, generalised interleaving",
     "", "falls with the group size, down to about half of interleaved",
     HV_SCHEDULE_CHUNKS | HV_SCHEDULE_SPLIT, 2, OPTIONS(group_options), hv__gen_group_interleaved},
    {"terapipe", "GPipe over token slices of a sequence", "TeraPipe, ICML 2021, section 3",
     "causal attention", "all slices of all m micro-batches",
     HV_SCHEDULE_SLICES | HV_SCHEDULE_BY_MEMORY, 1, OPTIONS(terapipe_options), hv__gen_terapipe},
    {"seq1f1b", "1F1B over token slices of a sequence", "Seq1F1B, arXiv 2406.03488, section 3",
     "causal attention", "(p - 1 - r + slices)/slices micro-batches on rank r",
     HV_SCHEDULE_SLICES, 1, OPTIONS(slices_options), hv__gen_seq1f1b},
    {"zb-h1", "backward split in two, weight gradients fill the end; memory of 1F1B", "Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.3",
     "with chunks as interleaved", "at most p micro-batches, counted until the weight gradient",
     HV_SCHEDULE_CHUNKS | HV_SCHEDULE_SPLIT, 1, OPTIONS(interleaved_options), hv__gen_zb_h1},
    {"zb-h2", "no bubble in the middle for about twice the memory of 1F1B", "Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.3",
     "m at least 2p - 1", "2p - 1 micro-batches, counted until the weight gradient",
     HV_SCHEDULE_SPLIT, 1, NO_OPTIONS, hv__gen_zb_h2},
    {"zb-1p", "zero-bubble heuristic within the memory of 1F1B", "Zero Bubble Pipeline Parallelism, ICLR 2024, section 3.1",
     "", "at most p micro-batches, half of each given back by the input gradient, half by the weight gradient",
     HV_SCHEDULE_SPLIT | HV_SCHEDULE_BY_COST | HV_SCHEDULE_GREEDY | HV_SCHEDULE_BY_MEMORY, 1, NO_OPTIONS, hv__gen_zb_1p},
    {"zb-1.5p", "zero-bubble heuristic within one and a half times the memory of 1F1B", "Zero Bubble Pipeline Parallelism, ICLR 2024, section 3.1",
     "", "at most 1.5p micro-batches, half of each given back by the input gradient, half by the weight gradient",
     HV_SCHEDULE_SPLIT | HV_SCHEDULE_BY_COST | HV_SCHEDULE_GREEDY | HV_SCHEDULE_BY_MEMORY, 1, NO_OPTIONS, hv__gen_zb_15p},
    {"zb-2p", "zero-bubble heuristic within twice the memory of 1F1B", "Zero Bubble Pipeline Parallelism, ICLR 2024, section 3.1",
     "", "at most 2p micro-batches, half of each given back by the input gradient, half by the weight gradient",
     HV_SCHEDULE_SPLIT | HV_SCHEDULE_BY_COST | HV_SCHEDULE_GREEDY | HV_SCHEDULE_BY_MEMORY, 1, NO_OPTIONS, hv__gen_zb_2p},
    {"zb-v", "zero bubble with two chunks per rank in V shape; memory of 1F1B, evenly spread", "Zero Bubble Pipeline Parallelism, arXiv version 2, section 6",
     "two chunks per rank", "p micro-batches on every rank, counted until the weight gradient; heuristic: half of each given back by the input gradient",
     HV_SCHEDULE_SPLIT | HV_SCHEDULE_BY_COST | HV_SCHEDULE_GREEDY | HV_SCHEDULE_BY_MEMORY, 2, OPTIONS(zb_v_options), hv__gen_zb_v},
    {"1f1b-v", "1F1B with two chunks per rank in V shape, two thirds of its activations", "Pipeline Parallelism with Controllable Memory, NeurIPS 2024, appendix",
     "two chunks per rank", "about 2p/3 micro-batches on every rank",
     0, 2, NO_OPTIONS, hv__gen_1f1b_v},
    {"v-half", "two chunks per rank in V shape, half the activations of 1F1B", "Pipeline Parallelism with Controllable Memory, NeurIPS 2024, section 3",
     "two chunks per rank", "about p/2 + 1 micro-batches on every rank",
     HV_SCHEDULE_SPLIT, 2, NO_OPTIONS, hv__gen_v_half},
    {"v-min", "two chunks per rank in V shape, a third of the activations of 1F1B", "Pipeline Parallelism with Controllable Memory, NeurIPS 2024, section 3",
     "two chunks per rank", "about p/3 + 1 micro-batches on every rank",
     HV_SCHEDULE_SPLIT, 2, NO_OPTIONS, hv__gen_v_min},
    {"v-adaptive", "two chunks per rank in V shape, the shortest within a memory limit", "Pipeline Parallelism with Controllable Memory, NeurIPS 2024, section 4",
     "two chunks per rank, at least 2 ranks", "at most the option memory, in halves of micro-batches, counted until the weight gradient",
     HV_SCHEDULE_SPLIT | HV_SCHEDULE_BY_COST | HV_SCHEDULE_BY_MEMORY, 2, OPTIONS(v_adaptive_options), hv__gen_v_adaptive},
    {"zb-list", "zero bubble for stages that differ: each rank runs the next operation that is ready, a backward first, a weight gradient last", "list scheduling (Graham, BSTJ 1966) of the split backward of Zero Bubble",
     "", "at most the option memory, counted until the weight gradient",
     HV_SCHEDULE_CHUNKS | HV_SCHEDULE_SPLIT | HV_SCHEDULE_BY_COST | HV_SCHEDULE_GREEDY | HV_SCHEDULE_BY_MEMORY, 2, OPTIONS(zb_list_options), hv__gen_zb_list},
    {"chimera", "pipelines in opposite directions, one in the bubbles of the other", "Chimera, SC 2021, sections 3.1 to 3.5",
     "p even; pipes even and a divisor of p; m even with mode doubling", "p/2 + 1 + min(r, p - 1 - r) micro-batches on rank r with two pipes, twice that with doubling; as many copies of the weights as pipes",
     HV_SCHEDULE_TWO_WAY, 1, OPTIONS(chimera_options), hv__gen_chimera},
    {"hanayo", "waves over the ranks and back: the bubble of Chimera with one copy of the weights", "Hanayo, SC 2023, section 3",
     "v even", "p micro-batches with m = p, up to 2p - 1 with more",
     HV_SCHEDULE_CHUNKS | HV_SCHEDULE_NEEDS_CHUNKS, 2, OPTIONS(hanayo_options), hv__gen_hanayo},
    {"dualpipe", "two flows in opposite directions, forward overlapped with backward", "DeepSeek-V3, arXiv 2412.19437, section 3.2.1",
     "p even, m even and at least 2p", "p + 1 micro-batches on every rank, two copies of the weights",
     HV_SCHEDULE_SPLIT | HV_SCHEDULE_TWO_WAY | HV_SCHEDULE_OVERLAP, 1, NO_OPTIONS, hv__gen_dualpipe},
    {"dualpipev", "DualPipe cut in half: two chunks per rank in V shape, one copy of the weights", "DualPipe repository, DualPipeV",
     "two chunks per rank, m at least 2p", "2p + 1 chunk activations on every rank",
     HV_SCHEDULE_SPLIT | HV_SCHEDULE_OVERLAP, 2, NO_OPTIONS, hv__gen_dualpipev},
    {"varuna", "rule schedule with recompute just before the gradient arrives", "Varuna, EuroSys 2022, section 4",
     "", "input activations of all micro-batches, one whole activation",
     HV_SCHEDULE_RECOMPUTE, 1, NO_OPTIONS, hv__gen_varuna},
    {"dynapipe", "cyclic: each rank runs the operations that are ready, backwards and forwards in turn; tolerates unequal micro-batches", "DynaPipe, EuroSys 2024, section 5",
     "", "min(m, 2(p - r) - 1) micro-batches on rank r with one chunk",
     HV_SCHEDULE_CHUNKS | HV_SCHEDULE_BY_MEMORY, 1, OPTIONS(dynapipe_options), hv__gen_dynapipe},
    {"tessel", "the repeating middle of shortest period within a memory limit, found by search", "Tessel, HPCA 2024, sections III and IV",
     "at most 16 ranks; above about 8 the best of 200,000 branches", "at most the option memory",
     HV_SCHEDULE_BY_COST | HV_SCHEDULE_BY_MEMORY, 1, OPTIONS(tessel_options), hv__gen_tessel},
    {"graphpipe", "1F1B on stages that form a graph: as many micro-batches in flight as the longest path to the end has stages", "GraphPipe, ASPLOS 2025",
     "", "min(m, d) micro-batches, d stages on the longest path from here to the end",
     HV_SCHEDULE_BY_MEMORY, 1, NO_OPTIONS, hv__gen_graphpipe},
    {"distmm", "towers whose loss needs a group of micro-batches: the next group's forwards between this one's backwards", "DistMM, NSDI 2024",
     "", "min(m, barrier + d - 1) micro-batches, d stages on the longest path from here to the end",
     HV_SCHEDULE_BY_MEMORY, 1, OPTIONS(distmm_options), hv__gen_distmm},
    {"pipedream", "1F1B without flush, each micro-batch with the weights it began with", "PipeDream, SOSP 2019, section 3.2",
     "stale weights must be allowed", "p - r micro-batches and as many weight versions on rank r",
     HV_SCHEDULE_ASYNC | HV_SCHEDULE_BY_MEMORY, 1, NO_OPTIONS, hv__gen_pipedream},
    {"pipedream-2bw", "1F1B without flush with two weight versions", "PipeDream-2BW, ICML 2021, section 3.1",
     "m at least p; stale weights must be allowed", "p - r micro-batches on rank r, two weight versions",
     HV_SCHEDULE_ASYNC | HV_SCHEDULE_BY_MEMORY, 1, NO_OPTIONS, hv__gen_2bw},
    {"hetpipe", "no flush inside a virtual worker, N_m minibatches in flight, first come, first served", "HetPipe, ATC 2020, section 4",
     "in_flight at most p; stale weights must be allowed", "min(N_m, p - r) micro-batches and as many weight versions on rank r",
     HV_SCHEDULE_ASYNC | HV_SCHEDULE_BY_COST | HV_SCHEDULE_BY_MEMORY, 1, OPTIONS(hetpipe_options), hv__gen_hetpipe},
    {"explicit", "an order written out, one list of operations per rank, or per device where stages share devices", "hetviz plan format, schedule.order",
     "every operation once; the order must not deadlock", "what the order keeps",
     HV_SCHEDULE_CHUNKS | HV_SCHEDULE_ORDER, 1, NO_OPTIONS, hv__gen_explicit},
};
/* clang-format on */

const struct hv_schedule_row *hv_schedules(size_t *n)
{
    *n = HV_COUNT(rows);
    return rows;
}

enum hv_status hv_schedule_find(const char *name, const struct hv_schedule_row **out,
                                struct hv_err *err)
{
    const char *names[HV_COUNT(rows)];
    struct hv_str list = {0};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *out = &rows[i];
            return HV_OK;
        }
    }
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        names[i] = rows[i].name;
        hv_str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = hv_suggest(name, names, HV_COUNT(rows));
    hv_err_set(err, HV_EUSAGE, "unknown schedule \"%s\"%s%s%s; known: %s", name,
               near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "",
               hv_str_cstr(&list));
    hv_str_free(&list);
    return HV_EUSAGE;
}
