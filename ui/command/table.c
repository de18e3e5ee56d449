/**
 * The rows of the command table. Data only: to add a command or an option, add a row here; parsing,
 * help, completion and the manual page follow. Not for the execution of commands.
 */
#include "ui/command/table.h"

#include "scripting/plugin/plugin.h"
#include "solver/base/attr.h"
#include "solver/workload/target.h"

/* clang-format off */
#define INPUT_OPTIONS \
    {"cluster", 'c', HV_ARG_FILE, "CLUSTER", "cluster file, or the name of a sample", 0, 0, NULL, true}, \
    {"model", 'm', HV_ARG_FILE, "MODEL", "model file, Hugging Face config.json, or the name of a model in the catalogue", 0, 0, NULL, true}, \
    {"job", 'j', HV_ARG_FILE, "JOB", "job file, or the name of a sample (default: batch 256, bf16, adam)", 0, 0, NULL, false}
#define OPTIONAL_INPUT_OPTIONS \
    {"cluster", 'c', HV_ARG_FILE, "CLUSTER", "use this cluster instead of the one that the plan names", 0, 0, NULL, false}, \
    {"model", 'm', HV_ARG_FILE, "MODEL", "use this model instead of the one that the plan names", 0, 0, NULL, false}, \
    {"job", 'j', HV_ARG_FILE, "JOB", "use this job instead of the one in the plan", 0, 0, NULL, false}
#define JSON_OPTION {"json", 0, HV_ARG_FLAG, NULL, "print one JSON value instead of text", 0, 0, NULL, false}
#define LIMIT_OPTION {"time-limit", 0, HV_ARG_DURATION, "S", "stop after this time and keep the best plan so far (10, 500ms, 2min)", 1e-3, 1e7, NULL, false}
#define END_OPTION {"time-limit", 0, HV_ARG_DURATION, "S", "end without a result after this time (10, 500ms, 2min)", 1e-3, 1e7, NULL, false}
#define OUT_OPTION {"out", 0, HV_ARG_FILE, "F", "write to this file (- is standard output)", 0, 0, NULL, false}
#define JOBS_OPTION {"jobs", 0, HV_ARG_INT, "N", "number of strategies that run in parallel (default: one per core)", 1, 4096, NULL, false}
#define WIDTH_OPTION {"width", 0, HV_ARG_INT, "N", "width of the chart in columns (default: width of the terminal)", 30, 10000, NULL, false}
#define ASCII_OPTION {"ascii", 0, HV_ARG_FLAG, NULL, "use ASCII characters only", 0, 0, NULL, false}

static const struct hv_opt plan_options[] = {
    INPUT_OPTIONS,
    {"strategy", 's', HV_ARG_TEXT, "STRATEGY", "strategy, or a composition such as uniform+fireflyer", 0, 0, NULL, true},
    {"option", 'o', HV_ARG_KEY_VALUE, "KEY=VALUE", "option of the strategy; see `hetviz strategies NAME`; runtime=NAME: see `hetviz help runtimes`; target=NAME: only plans that this program can say, see `hetviz help targets`; graph=true or graph=SEQUENCES: the graph of a transformer in its place", 0, 0, NULL, false},
    {"replan", 0, HV_ARG_FILE, "PLAN", "plan that was running when devices were lost", 0, 0, NULL, false},
    {"lost", 0, HV_ARG_LIST, "ADDRESS,...", "devices that were lost and cannot be used, such as a[1].*", 0, 0, NULL, false},
    OUT_OPTION, JSON_OPTION, LIMIT_OPTION,
};
#define X(c, name) name,
/* without the first row, which writes nothing */
static const char *const target_words[] = {HV_TARGET_MAP(X) NULL};
#undef X
static const struct hv_opt compare_options[] = {
    INPUT_OPTIONS,
    {"strategies", 's', HV_ARG_LIST, "A,B,...", "strategies or kinds of strategies to run, or all (the default)", 0, 0, NULL, false},
    {"option", 'o', HV_ARG_KEY_VALUE, "[NAME.]KEY=VALUE", "option of one strategy, or of all strategies that have the key; runtime=NAME: see `hetviz help runtimes`; target=NAME: only plans that this program can say, see `hetviz help targets`; graph=true or graph=SEQUENCES: the graph of a transformer in its place", 0, 0, NULL, false},
    {"target", 0, HV_ARG_WORD, "TARGET", "mark the plans that this program can launch, and say why it cannot launch the others; `hetviz help targets` lists the programs", 0, 0, target_words + 1, false},
    JSON_OPTION, LIMIT_OPTION, JOBS_OPTION,
};
static const struct hv_opt eval_options[] = {OPTIONAL_INPUT_OPTIONS, JSON_OPTION, END_OPTION};
static const struct hv_opt gantt_options[] = {
    OPTIONAL_INPUT_OPTIONS, WIDTH_OPTION, ASCII_OPTION,
    {"links", 0, HV_ARG_FLAG, NULL, "in the terminal: show reductions, pushes and transfers on separate lines (always on for plans with stale weights)", 0, 0, NULL, false},
    {"svg", 0, HV_ARG_FILE, "F", "write an SVG picture", 0, 0, NULL, false},
    {"png", 0, HV_ARG_FILE, "F", "write a PNG picture", 0, 0, NULL, false},
    {"trace", 0, HV_ARG_FILE, "F", "write a Chrome or Perfetto trace", 0, 0, NULL, false},
};
static const struct hv_opt schedule_options[] = {
    {"ranks", 'p', HV_ARG_INT, "P", "pipeline ranks", 1, 65536, NULL, true},
    {"micro-batches", 'm', HV_ARG_INT, "M", "micro-batches", 1, 1e12, NULL, true},
    {"chunks", 'v', HV_ARG_INT, "V", "virtual chunks per rank (default: defined by the schedule)", 1, 1024, NULL, false},
    {"option", 'o', HV_ARG_KEY_VALUE, "KEY=VALUE", "option of the schedule (`hetviz help schedules NAME` lists them); shard_window=W on any: gathers and reductions of sharded weights, W chunks held whole", 0, 0, NULL, false},
    {"times", 0, HV_ARG_NUMBERS, "F,B,W,C", "times of forward pass, input gradient, weight gradient and hop", 0, 1e12, NULL, false},
    {"plan-times", 0, HV_ARG_NUMBERS, "F,B,W,C", "the same times, used only by cost-driven schedules to choose the order", 0, 1e12, NULL, false},
    {"scale", 0, HV_ARG_NUMBERS, "X,X,...", "relative duration of each stage, one factor per stage", 0, 1e9, NULL, false},
    {"hops", 0, HV_ARG_NUMBERS, "C,C,...", "transfer time between neighbouring stages, one number per pair of stages (replaces C in --times)", 0, 1e12, NULL, false},
    {"limits", 0, HV_ARG_NUMBERS, "N,N,...", "most micro-batches whose activations each rank may hold; only memory-aware schedules accept this option", 0, 1e9, NULL, false},
    {"cap", 0, HV_ARG_INT, "N", "most activations that a rank may hold; if the order deadlocks, the error names the blocked ranks", 1, 1e9, NULL, false},
    {"jitter", 0, HV_ARG_NUMBER, "X", "random variation of each duration (standard deviation of its logarithm)", 0, 3, NULL, false},
    {"look-ahead", 0, HV_ARG_INT, "N", "an idle rank may run a forward or weight-gradient operation early, from the next N operations", 1, 1e6, NULL, false},
    {"gantt", 0, HV_ARG_FLAG, NULL, "draw the schedule as a chart", 0, 0, NULL, false},
    WIDTH_OPTION, ASCII_OPTION, JSON_OPTION,
    {"svg", 0, HV_ARG_FILE, "F", "write an SVG picture", 0, 0, NULL, false},
    {"png", 0, HV_ARG_FILE, "F", "write a PNG picture", 0, 0, NULL, false},
};
static const struct hv_opt solve_options[] = {
    JSON_OPTION, LIMIT_OPTION,
    {"certify", 0, HV_ARG_FLAG, NULL, "let lp_solve certify the optimum of a chain without the usual limit of 1 s (--time-limit applies)", 0, 0, NULL, false},
    {"write-lp", 0, HV_ARG_FILE, "F", "write the integer program of a chain in LP format, or in MPS format if F ends in .mps", 0, 0, NULL, false},
};
static const struct hv_opt bound_options[] = {
    INPUT_OPTIONS, JSON_OPTION,
    {"time-limit", 0, HV_ARG_DURATION, "S", "stop the search after this time and print the bound found so far (10, 500ms, 2min)", 1e-3, 1e7, NULL, false},
};
static const struct hv_opt explain_options[] = {
    OPTIONAL_INPUT_OPTIONS, JSON_OPTION, END_OPTION,
    {"stage", 0, HV_ARG_INT, "N", "list the time and memory terms of this stage, each with its formula and source", 0, 1000000, NULL, false},
    {"replica", 0, HV_ARG_INT, "N", "replica entry that --stage refers to (default 0)", 0, 1000000, NULL, false},
};
static const struct hv_opt failures_options[] = {
    OPTIONAL_INPUT_OPTIONS, JSON_OPTION,
    {"lost", 0, HV_ARG_INT, "N", "plan for up to N failed nodes (default 2)", 0, 64, NULL, false},
    {"preempted", 0, HV_ARG_KEY_VALUE, "GROUP=N", "each node of this group is preempted N times per hour (all: every group)", 0, 0, NULL, false},
    {"checkpoint", 0, HV_ARG_DURATION, "S", "interval between checkpoints (default: from the job, or else the optimal one)", 1e-3, 1e12, NULL, false},
    {"restart", 0, HV_ARG_DURATION, "S", "time to restart all processes after a failure (default: from the job)", 0, 1e6, NULL, false},
    {"regroup", 0, HV_ARG_DURATION, "S", "time to rebuild communicators among surviving processes (default: from the job)", 0, 1e6, NULL, false},
    {"time-limit", 0, HV_ARG_DURATION, "S", "time limit for each new plan (default 10)", 1e-3, 1e7, NULL, false},
};
static const char *const kind_words[] = {
#define X(c, name, about) name,
    HV_KIND_MAP(X)
#undef X
        NULL};
static const struct hv_opt strategies_options[] = {
    JSON_OPTION,
    {"kind", 0, HV_ARG_WORD, "KIND", "only strategies of this kind: planner, baseline, data, tensor, pipeline, sequence, experts, hetero, auto-parallel or yours", 0, 0, kind_words, false},
};
static const struct hv_opt shard_options[] = {
    {"json", 0, HV_ARG_FLAG, NULL, "print one line of JSON per case", 0, 0, NULL, false},
    {"mesh", 0, HV_ARG_KEY_VALUE, "AXIS=N", "for a model: an axis of the mesh and its devices (several times, the last axis is the fastest)", 0, 0, NULL, false},
    {"split", 0, HV_ARG_KEY_VALUE, "TENSOR.DIM=AXIS", "for a model: split this dimension over this axis (several axes as x+y, the major one first)", 0, 0, NULL, false},
    {"grad", 0, HV_ARG_FLAG, NULL, "for a model: the gradients of all parameters too", 0, 0, NULL, false},
    {"sequences", 0, HV_ARG_INT, "N", "for a transformer: sequences in the graph that is made of it (default 1)", 1, 1 << 20, NULL, false},
    {"tokens", 0, HV_ARG_INT, "N", "for a transformer: tokens of a sequence (default 2048, or the most that the model has)", 1, 1 << 24, NULL, false},
    {"graph", 0, HV_ARG_FLAG, NULL, "for a model: print its graph as a file of kind graph instead", 0, 0, NULL, false},
};
static const struct hv_opt sweep_options[] = {
    {"out", 'O', HV_ARG_FILE, "DIR", "folder of the results (run, submit, plan); for merge and show --csv the file to write", 0, 0, NULL, false},
    {"shards", 0, HV_ARG_INT, "N", "plan, submit: number of shards (submit: 16)", 1, 1e7, NULL, false},
    {"shard", 0, HV_ARG_TEXT, "K/N", "run: only this shard of N (default: 1/1, everything)", 0, 0, NULL, false},
    {"jobs", 'j', HV_ARG_INT, "N", "run: cells at the same time (default: one per core); submit: cores of a shard", 1, 1024, NULL, false},
    {"failed", 0, HV_ARG_FLAG, NULL, "run: try cells again that failed or were stopped", 0, 0, NULL, false},
    {"time-limit", 0, HV_ARG_DURATION, "S", "run: stop after this time; the same command goes on (exit code 4)", 1e-3, 1e7, NULL, false},
    {"slurm", 0, HV_ARG_FLAG, NULL, "submit: write DIR/sweep.sbatch, an array of jobs, and give it to sbatch", 0, 0, NULL, false},
    {"gnu-parallel", 0, HV_ARG_FLAG, NULL, "submit: print the command line for GNU parallel", 0, 0, NULL, false},
    {"retries", 0, HV_ARG_INT, "N", "submit: attempts of a shard (default 3)", 1, 1000, NULL, false},
    {"dry-run", 0, HV_ARG_FLAG, NULL, "submit: write the script and do not start it", 0, 0, NULL, false},
    {"where", 0, HV_ARG_TEXT, "SQL", "show: only rows for which this holds, such as \"nodes > 2 AND mfu > 0.4\"", 0, 0, NULL, false},
    {"sort", 0, HV_ARG_TEXT, "COLUMN", "show: the best first (default: by axes)", 0, 0, NULL, false},
    {"columns", 0, HV_ARG_LIST, "COLUMN,...", "show: these columns", 0, 0, NULL, false},
    {"most", 0, HV_ARG_INT, "N", "show: at most N rows", 1, 1e9, NULL, false},
    {"pareto", 0, HV_ARG_LIST, "FIGURE,...", "show: only rows that no other row beats in these figures", 0, 0, NULL, false},
    JSON_OPTION,
    {"csv", 0, HV_ARG_FLAG, NULL, "show: as CSV, all digits", 0, 0, NULL, false},
    {"svg", 0, HV_ARG_FILE, "F", "show: write a heat map of --value over --x and --y", 0, 0, NULL, false},
    {"x", 0, HV_ARG_TEXT, "COLUMN", "show --svg: the columns of the map", 0, 0, NULL, false},
    {"y", 0, HV_ARG_TEXT, "COLUMN", "show --svg: the rows of the map", 0, 0, NULL, false},
    {"value", 0, HV_ARG_TEXT, "FIGURE", "show --svg: the figure (default: iteration_s); a cell shows the best of it", 0, 0, NULL, false},
};
static const struct hv_opt selftest_options[] = {
    {"times", 0, HV_ARG_FLAG, NULL, "print the CPU time at the end of every line", 0, 0, NULL, false},
};
static const struct hv_opt validate_options[] = {
    JSON_OPTION,
    {"data", 0, HV_ARG_FILE, "DIR", "use the measurements in this folder or file instead of the shipped ones", 0, 0, NULL, false},
    {"shipped", 0, HV_ARG_FLAG, NULL, "predict with the shipped calibration instead of leave-one-source-out fits", 0, 0, NULL, false},
    {"fit", 0, HV_ARG_FILE, "F", "write a calibration that is fitted on all rows", 0, 0, NULL, false},
    {"svg", 0, HV_ARG_FILE, "F", "write an SVG picture of predicted against measured", 0, 0, NULL, false},
};
static const struct hv_opt calibrate_options[] = {
    {"plan", 0, HV_ARG_FILE, "PLAN", "plan that a run followed, or what it was launched with (arguments of Megatron-LM, configurations of DeepSpeed or torchtitan, with -c): one for all logs, or one for each in the same order (give the option several times, or plans among the files)", 0, 0, NULL, false},
    OPTIONAL_INPUT_OPTIONS,
    {"out", 0, HV_ARG_FILE, "F", "calibration to write (default: in your data folder, where every command finds it)", 0, 0, NULL, false},
    JSON_OPTION,
};
static const struct hv_opt profile_options[] = {
    JSON_OPTION,
    {"out", 0, HV_ARG_FILE, "F", "profile to write (default: in your data folder, where every command finds it)", 0, 0, NULL, false},
    {"quick", 0, HV_ARG_FLAG, NULL, "measure for at most one minute instead of ten", 0, 0, NULL, false},
    {"fresh", 0, HV_ARG_FLAG, NULL, "start again instead of resuming an unfinished run", 0, 0, NULL, false},
    {"device", 0, HV_ARG_INT, "N", "index of the GPU (default 0)", 0, 1023, NULL, false},
    {"as", 0, HV_ARG_TEXT, "KIND", "device kind in the catalogue (default: found by the name of the GPU)", 0, 0, NULL, false},
    {"show", 0, HV_ARG_FILE, "F", "show this profile, without measuring", 0, 0, NULL, false},
    {"svg", 0, HV_ARG_FILE, "F", "with --show: write the roofline chart as SVG", 0, 0, NULL, false},
};
static const struct hv_opt import_options[] = {
    OUT_OPTION,
    {"device", 0, HV_ARG_KEY_VALUE, "NAME=KIND", "device kind of the cards that a file calls NAME (gpu: cards without a name), such as a100=A100-SXM-80GB", 0, 0, NULL, false},
    {"json", 0, HV_ARG_FLAG, NULL, "print the report as one JSON value on standard output; the document is written only with --out", 0, 0, NULL, false},
};
static const struct hv_opt export_options[] = {
    {"to", 0, HV_ARG_WORD, "TARGET", "program or form to write the plan for; the list is below", 0, 0, target_words + 1, true},
    {"out", 0, HV_ARG_FILE, "DIR", "write the files into this folder instead of printing them", 0, 0, NULL, false},
    {"nearest", 0, HV_ARG_FLAG, NULL, "where the target cannot say the plan: search the best plan that it can say, and write that one", 0, 0, NULL, false},
    OPTIONAL_INPUT_OPTIONS,
};
static const struct hv_opt new_plugin_options[] = {
    OUT_OPTION,
    {"family", 0, HV_ARG_FLAG, NULL, "write a family: one engine, several strategies", 0, 0, NULL, false},
};
static const struct hv_opt lua_options[] = {
    {"cluster", 'c', HV_ARG_FILE, "CLUSTER", "cluster file, or the name of a sample (default: two-generations)", 0, 0, NULL, false},
    {"model", 'm', HV_ARG_FILE, "MODEL", "model file, or the name of a model in the catalogue (default: llama-3-8b)", 0, 0, NULL, false},
    {"job", 'j', HV_ARG_FILE, "JOB", "job file, or the name of a sample", 0, 0, NULL, false},
};

static const struct hv_opt global_options[] = {
    {"help", 'h', HV_ARG_FLAG, NULL, "show the help of this command", 0, 0, NULL, false},
    {"seed", 0, HV_ARG_INT, "N", "seed of the random numbers (default 1)", 0, 9007199254740991.0, NULL, false},
    {"budget", 0, HV_ARG_INT, "N", "stop a search after N evaluations", 1, 9007199254740991.0, NULL, false},
    {"quiet", 'q', HV_ARG_FLAG, NULL, "print only errors on standard error", 0, 0, NULL, false},
    {"plain", 0, HV_ARG_FLAG, NULL, "use no colours and no box-drawing characters", 0, 0, NULL, false},
};

static const struct hv_opt front_options[] = {
    {"ascii", 0, HV_ARG_FLAG, NULL, "draw frames, bars and marks in ASCII", 0, 0, NULL, false},
    {"plain", 0, HV_ARG_FLAG, NULL, "print text lines instead of screens, for screen readers and pipes (also HETVIZ_PLAIN=1)", 0, 0, NULL, false},
    {"no-mouse", 0, HV_ARG_FLAG, NULL, "do not use the mouse, so that the terminal can select text", 0, 0, NULL, false},
    {"color", 0, HV_ARG_TEXT, "auto|always|never", "use colours (auto: unless NO_COLOR is set)", 0, 0, NULL, false},
    {"theme", 0, HV_ARG_TEXT, "NAME", "default, light, high-contrast, mono or a file (also HETVIZ_THEME; light is chosen if COLORFGBG reports a light background)", 0, 0, NULL, false},
    {"script", 0, HV_ARG_FILE, "F", "run the lines of a file: `keys jj<Enter>`, `wait TEXT`, `:command`, `:save-screen F`", 0, 0, NULL, false},
    {"dump", 0, HV_ARG_TEXT, "SCREEN", "print one screen and exit: cluster, model, strategies, plans, gantt, explain, what-if, console", 0, 0, NULL, false},
    {"out", 0, HV_ARG_FILE, "F", "with --dump: write the screen to this file, as a picture if the name ends in .svg or .png", 0, 0, NULL, false},
    {"size", 0, HV_ARG_TEXT, "WxH", "with --script or --dump: size of the screen in columns and rows (default 80x24)", 0, 0, NULL, false},
    {"version", 'V', HV_ARG_FLAG, NULL, "as the first word: print the version and end; --version --json: everything that a report of a fault needs", 0, 0, NULL, false},
};

static const struct hv_opt prompt_export_options[] = {
    {"to", 0, HV_ARG_WORD, "TARGET", "write the files of this target into a folder", 0, 0, target_words + 1, false},
};

#define OPTIONS(table) table, HV_COUNT(table)
#define NO_OPTIONS NULL, 0
static const struct hv_command command_rows[] = {
    {HV_CMD_PLAN, "plan", "p", "", 0, 0, "run one strategy and print or write its plan",
     "Runs a strategy on a cluster, a model and a job, simulates the resulting plan and prints its figures. --json and --out write the plan as a "
     "file that `hetviz eval` can read. With --lost the plan does not use the lost devices; with --replan as well, the strategy repairs the "
     "running plan if it supports that. A job file may hold a queue (`jobs`): strategies that schedule several jobs (crius) assign devices to "
     "each job, and `hetviz eval` simulates all of them.\n"
     "Example: hetviz plan -c two-generations -m llama-3-8b -s whale --out p.json",
     OPTIONS(plan_options), false},
    {HV_CMD_COMPARE, "compare", "cmp", "", 0, 0, "run several strategies and rank their plans",
     "Runs strategies side by side, one worker process per core, and ranks their plans by simulated iteration time. For each strategy that does "
     "not apply, the table gives the reason. The text below the table explains why the first plan is the fastest.\n"
     "Example: hetviz compare -c two-generations -m llama-3-8b -s all",
     OPTIONS(compare_options), false},
    {HV_CMD_EVAL, "eval", NULL, "PLAN", 1, 1, "simulate a plan: time, memory, bound, violations",
     "Simulates a plan and checks every rule. A plan that violates a rule still gets all figures; the exit status is then 1.\nExample: hetviz eval p.json --json",
     OPTIONS(eval_options), false},
    {HV_CMD_GANTT, "gantt", NULL, "PLAN", 1, 1, "draw the timeline of a plan",
     "Draws the timeline in the terminal, or writes it as a picture or a trace.\nExample: hetviz gantt p.json --svg p.svg",
     OPTIONS(gantt_options), false},
    {HV_CMD_SCHEDULE, "schedule", NULL, "NAME", 1, 1, "simulate a bare pipeline schedule",
     "Prints two makespans (time until the last operation ends, and the longest span of one rank), idle time by cause, the peak number of stored "
     "activations and the order of operations on every rank. NAME is a schedule of `hetviz help schedules`, a plugin with order(p), or the file "
     "of such a plugin.\n"
     "Example: hetviz schedule 1f1b -p 4 -m 8 --gantt",
     OPTIONS(schedule_options), false},
    {HV_CMD_SOLVE, "solve", NULL, "INSTANCE", 1, 1, "solve a bare optimisation instance",
     "Reads a hetviz.partition/1 file (chain, also with several stages per rank or in free order; replicas; joint; dag) or a hetviz.distribute/1 "
     "file (minmax, sum, minvar, ratio, lpt) and prints the optimum, a bound and the proof. For a chain, lp_solve solves the instance a second "
     "time in a separate process. If standard error is a terminal, it shows the best value, the bound and the gap during the search. Ctrl-C and "
     "--time-limit end the search and print the best solution so far. INSTANCE is a file, or the name of a shipped instance (samples/instances: "
     "chain, free-order, folded, replicas, joint, graph, batch, batch-convex, items).\n"
     "Example: hetviz solve folded",
     OPTIONS(solve_options), false},
    {HV_CMD_BOUND, "bound", NULL, "", 0, 0, "lower bound of the iteration time, and its parts",
     "Prints a lower bound of the iteration time of all plans, and its parts: arithmetic, kernel shapes and communication of valid parallel "
     "degrees, pipeline fill and drain, optimizer, host work, waiting, slow networks between parts of the cluster, and the number of devices that "
     "the gradients need. With --json each part has a key. bound_s holds for all plans. kept_plans_s adds the part of slow networks (cut_s); it "
     "holds for plans without parameter servers that neither communicate over the slow network inside a pass nor shard states over it. "
     "even_plans_s holds for plans made of copies of one pipeline in which all passes of a stage are equal: there no backward pass starts before "
     "a micro-batch has passed all layers. other_plans_s is a smaller bound; it holds for plans with branching stages, partial micro-batches or "
     "tensor parallelism in 2D, 2.5D or 3D. A search that --time-limit stops prints a bound that holds and may be lower (exit code 4, "
     "\"stopped\" in JSON); where not even the inputs are read by then, there is none.\n"
     "Example: hetviz bound -c two-generations -m llama-3-8b",
     OPTIONS(bound_options), false},
    {HV_CMD_EXPLAIN, "explain", NULL, "PLAN", 1, 1, "where the time of a plan goes",
     "Breaks the iteration down into compute, exposed communication and idle time, and names the stage that limits it. Where a "
     "faster part of the cluster would make this very plan slower, as it can where orders are derived from times or transfers share links, it says "
     "so: each part is tried twice as fast. --stage lists the terms of one stage: operators, communication, transfers, memory.\n"
     "Example: hetviz explain p.json --stage 0",
     OPTIONS(explain_options), false},
    {HV_CMD_FAILURES, "failures", NULL, "PLAN", 1, 1, "expected throughput under failures and preemptions",
     "Prints the expected tokens per second and their price when nodes fail or are preempted: the optimal checkpoint interval, the time that a "
     "failure costs (detection, rollback, reinstantiation), and the plans that the strategy of the plan makes for the remaining nodes. Rates come "
     "from the cluster (`preemptions_per_hour`) and times from the job (`failures`); --preempted, --checkpoint, --restart and --regroup replace "
     "them. The What-if screen has levers for the same values.\n"
     "Example: hetviz failures p.json --lost 3 --preempted g=0.5 --checkpoint 600",
     OPTIONS(failures_options), false},
    {HV_CMD_SHARD, "shard", NULL, "CASES|MODEL", 1, 1, "layouts of an operator graph on a mesh, and the exchanges they need",
     "Reads questions about layouts (hetviz.shard-cases/1), or a model: a graph with `tensors`, or a transformer, whose graph it makes. From the layouts of a few tensors it completes those of "
     "all others, and prints the exchanges that follow with their bytes per device (rings), and the bytes of arguments and results. Cases without a "
     "mesh ask for the rules of their operators: the factors of every dimension.\n"
     "Example: hetviz shard model.json --mesh x=2 --mesh y=4 --split x.batch=x --split up.ffn=y\n"
     "Example: hetviz shard llama-3-8b --sequences 8 --mesh d=8 --split tokens.batch=d --grad",
     OPTIONS(shard_options), false},
    {HV_CMD_SWEEP, "sweep", NULL, "plan|run|submit|merge|show [FILE]", 1, 2, "one question over many clusters, models, jobs and options",
     "`sweep plan SPEC` reads a specification (hetviz.sweep/1: inputs, axes, conditions, strategies) and prints its cells; with --out it keeps the "
     "specification in DIR with every document in it. `sweep run [SPEC] --out DIR` computes the cells that have no result yet, on all cores; several programs, on several "
     "machines, each run one shard (--shard K/N). A result is one line of DIR/shard-K-of-N.jsonl, whole or absent. `sweep submit --out DIR` starts the shards under Slurm, or "
     "prints a command line for GNU parallel. `sweep merge DIR` writes DIR/sweep.sqlite with one row per cell, and `sweep show DIR` reads it: as a table, CSV, a Pareto front, or a "
     "heat map. share/guide/sweeps.md describes the specification and the store.\n"
     "Example: hetviz sweep run sweep.json --out results",
     OPTIONS(sweep_options), false},
    {HV_CMD_STRATEGIES, "strategies", "ls", "[NAME]", 0, 1, "list strategies, or describe one",
     "Lists every strategy by kind, on a terminal under headings, with the published system that it implements. With a name, describes one: its citation, the knobs that it "
     "fixes and those that it searches, the numbers of the publication that its self-tests check, its options.\n"
     "Example: hetviz strategies oobleck",
     OPTIONS(strategies_options), false},
    {HV_CMD_SELFTEST, "selftest", NULL, "[STRATEGY|FILE|FOLDER...]", 0, -1, "run the self-tests of the plugins",
     "Runs the tests of every plugin, which compare it with published numbers. The last line is `N passed, N failed`.\nExample: hetviz selftest oobleck",
     OPTIONS(selftest_options), false},
    {HV_CMD_VALIDATE, "validate", NULL, "", 0, 0, "compare predictions with published measurements",
     "Predicts published iteration times and peak memory row by row. For each group it prints the mean absolute error, the bias and the rank "
     "correlation, with those of a one-parameter baseline and of Calculon beside them.\n"
     "Example: hetviz validate --data my-rows",
     OPTIONS(validate_options), false},
    {HV_CMD_CALIBRATE, "calibrate", NULL, "LOG...", 1, -1, "fit predictions to runs of your own",
     "Reads the iteration times that trainers print (Megatron-LM, DeepSpeed, torchtitan, NeMo, Chrome traces with profiler steps), compares them with "
     "the simulation of the plans that ran, and fits the few numbers of the calibration that these runs tell apart. Every command then uses the "
     "fitted numbers for devices of that kind. Three short runs with different layouts are a good start; each is also predicted by the others.\n"
     "Example: hetviz calibrate a.log b.log c.log --plan a.json --plan b.json --plan c.json",
     OPTIONS(calibrate_options), false},
    {HV_CMD_PROFILE, "profile", NULL, "", 0, 0, "measure this machine's GPU, or show a profile",
     "Measures matrix products, attention, memory-bound kernels, copies and collectives on an NVIDIA GPU, checks the resulting tables against "
     "measured layers, and writes a profile. hetviz then uses this profile for all devices of that kind. Ctrl-C stops the measurement; the same "
     "command resumes it. --show draws a profile as a roofline chart.\n"
     "Example: hetviz profile --quick",
     OPTIONS(profile_options), false},
    {HV_CMD_CHECK, "check", NULL, "FILE...", 1, -1, "check files without running anything",
     "Checks each file by its format (cluster, model, job, plan, workspace, instance, profile, plugin) and reports the first error with its "
     "position.\n"
     "Example: hetviz check cluster.json plugin.lua",
     NO_OPTIONS, false},
    {HV_CMD_IMPORT, "import", NULL, "[FORMAT|auto|local] FILE...", 1, -1, "convert files of other programs",
     "Reads what nvidia-smi, Slurm, Kubernetes, NCCL, clouds, Hugging Face, DeepSpeed, Megatron-LM and others write, and writes a cluster, a "
     "model, a job with its layout, a plan or a trace summary. Several files become one document: those of one machine are joined (by host name, "
     "by the UUIDs of the cards, else by equal cards), others become nodes of their own. A report on standard error lists what was understood, "
     "guessed and ignored; every member of the files is named in it. --json prints it as an object: parameters (of the model; null without one), "
     "understood, guessed and ignored. A card whose name may mean several kinds is guessed; the report lists the candidates, and --device decides. auto (the "
     "default) detects the format by the content; local reads this machine; - is standard input.\n"
     "Example: hetviz import nodes.txt --device a100=A100-SXM-80GB --out cluster.json",
     OPTIONS(import_options), false},
    {HV_CMD_EXPORT, "export", NULL, "PLAN", 1, 1, "write a plan for the program that runs it",
     "Writes the files with which another program launches the plan, or shows it. A plan that the target cannot say is refused, with every stage "
     "and property that it has no words for (exit code 1). With --nearest the best plan that it can say is searched (as `plan -s auto -o target=TARGET` "
     "does), written instead together with plan.json, and compared with the given one. Runtimes also get launch.sh, which starts one process per rank on every host, and "
     "ranks.csv: rank, host, GPU and place in the plan. Host names come from `x-nodes` of the cluster. Without --out the files are printed.\n"
     "Example: hetviz export p.json --to megatron --out run",
     OPTIONS(export_options), false},
    {HV_CMD_NEW_PLUGIN, "new-plugin", NULL, "NAME | NAME.lua", 1, 1, "write a commented plugin that runs",
     "Writes a small strategy as a starting point. NAME makes a folder with plugin.lua, a module and selftest.lua; NAME.lua makes a single file. "
     "--out sets the target; a target that ends in .lua, or -, also makes a single file. --family makes a folder with two strategies that share an engine.\n"
     "Example: hetviz new-plugin mine --out plugins/mine",
     OPTIONS(new_plugin_options), false},
    {HV_CMD_LUA, "lua", NULL, "", 0, 0, "try the plugin API, line by line",
     "Reads Lua from standard input, runs it in a worker process and prints the results, tables as JSON. `ctx` is the argument of plan(ctx). The "
     "table `workspace` {cluster, model, job, plans} is a copy of the inputs. A change of this table is printed as commands and is part of `ctx` "
     "from the next line on; Lua reads and writes no files. Ctrl-C or Ctrl-D ends the session.\n"
     "Example: echo 'hv.strategy(\"uniform\"):eval()' | hetviz lua -c a100-v100-t4 -m llama-3-8b",
     OPTIONS(lua_options), false},
    {HV_CMD_COMPLETION, "completion", NULL, "SHELL | WORDS [NAME]", 1, 2, "completion script for bash, zsh or fish",
     "Prints a completion script that the shell can source. With WORDS it prints what the scripts offer, one word per line: clusters, models, "
     "jobs, plans, instances, devices, strategies, runtimes, targets, columns and figures (of `sweep show`), schedules (with NAME: the options of a schedule), or options (of the strategy NAME, or of "
     "all).\n"
     "Example: source <(hetviz completion bash)", NO_OPTIONS, false},
    {HV_CMD_HELP, "help", NULL, "[COMMAND | SCHEDULE | TERM | schedules [NAME] | runtimes [NAME] | targets [NAME] | glossary [TERM] | knobs | api [NAME] | man [plugin]]", 0, 2, "list the commands, or describe a command, a schedule or a term",
     "Lists all commands, or describes one command, schedule or term. `hetviz help schedules` lists the schedules, including those of plugins. "
     "`hetviz help runtimes` lists the runtimes that a job can name, and with a name says what it does by itself. `hetviz help targets` does the same for the programs that `export` writes for. `hetviz help api` lists the functions that plugins can call. `hetviz help glossary` defines the terms of tables and messages, `hetviz help knobs` says which keys of a plan are simulated in full. `hetviz help "
     "man` prints the manual page, `hetviz help man plugin` the manual page of the plugin API.\n"
     "Example: hetviz help api hv.opt.partition", NO_OPTIONS, false},
    {HV_CMD_WORKER, "worker", NULL, "", 0, 0, "run one job from standard input",
     "Internal: reads a job as JSON on standard input and writes events as JSON lines on standard output.", NO_OPTIONS, true},
};

static const struct hv_command prompt_rows[] = {
    {HV_PROMPT_SET, "set", NULL, "DOCUMENT.KEY VALUE", 2, -1, "change a value of cluster, model or job",
     "The key path is the path in the file; the value is JSON or a bare word. `set ascii`, `set noascii`, `set mouse`, `set nomouse` and `set "
     "theme NAME` change the display: with `nomouse` the terminal can select text.\n"
     "Example: set cluster.nodes[0].count 4", NO_OPTIONS, false},
    {HV_PROMPT_REMOVE, "remove", NULL, "DOCUMENT.KEY", 1, -1, "remove a member or a list element", "Example: remove cluster.nodes[2]", NO_OPTIONS, false},
    {HV_PROMPT_INSERT, "insert", NULL, "DOCUMENT.KEY[N] VALUE", 2, -1, "insert an element into a list, before element N",
     "If N is the length of the list, the element is appended.\n"
     "Example: insert cluster.nodes[0] {\"name\": \"n\", \"count\": 1, \"device\": \"T4-16GB\", \"devices\": 4}", NO_OPTIONS, false},
    {HV_PROMPT_COLLECT, "begin", NULL, "", 0, 0, "collect the edits that follow into one change",
     "The edits up to `end` are checked together and make one undo step per document. Use it for changes that are valid only as a whole.", NO_OPTIONS, false},
    {HV_PROMPT_COLLECTED, "end", NULL, "", 0, 0, "apply the edits collected since `begin`", "If one of them is invalid, none is applied.", NO_OPTIONS, false},
    {HV_PROMPT_UNDO, "undo", "u", "", 0, 0, "undo the last change", "Up to 1,000 changes can be undone.", NO_OPTIONS, false},
    {HV_PROMPT_REDO, "redo", NULL, "", 0, 0, "redo the change that was undone", "Redo is possible until the next change.", NO_OPTIONS, false},
    {HV_PROMPT_WRITE, "write", "w", "[FOLDER]", 0, 1, "save the workspace", "Without a folder the workspace is saved in the folder it was opened from.", NO_OPTIONS, false},
    {HV_PROMPT_QUIT, "quit", "q", "[!]", 0, 1, "quit hetviz", "If there are unsaved changes hetviz asks for confirmation; `quit !` discards them.", NO_OPTIONS, false},
    {HV_PROMPT_RUN, "run", "r", "STRATEGY|KIND|all [KEY=VALUE...]", 1, -1, "run a strategy in a worker process",
     "A new row of the plans table shows the progress and the best plan so far. A kind (data, pipeline, ...) stands for all its strategies.\nExample: run oobleck faults=2", NO_OPTIONS, false},
    {HV_PROMPT_CANCEL, "cancel", "x", "[ROW]", 0, 1, "stop a running strategy and keep its best plan", "Without a row all running strategies are stopped.", NO_OPTIONS, false},
    {HV_PROMPT_OPTION, "option", "o", "STRATEGY KEY=VALUE", 2, 2, "set an option for the next runs of a strategy",
     "The option is checked at once and saved with the workspace.", NO_OPTIONS, false},
    {HV_PROMPT_LIMIT, "limit", NULL, "time=S|evaluations=N|seed=N...", 1, 3, "set the limits of all later runs",
     "Times are in seconds; a time or a number of evaluations of 0 means no limit.\nExample: limit time=60 seed=2", NO_OPTIONS, false},
    {HV_PROMPT_SELECT, "select", NULL, "ROW", 1, 1, "select a row of the plans table", "The row is a name or a number. Gantt, Explain and What-if show the selected plan.", NO_OPTIONS, false},
    {HV_PROMPT_DELETE, "delete", NULL, "ROW", 1, 1, "delete a row of the plans table", "Undo restores it.", NO_OPTIONS, false},
    {HV_PROMPT_RENAME, "rename", NULL, "ROW NAME", 2, 2, "rename a plan", "Names are unique and must not contain /.", NO_OPTIONS, false},
    {HV_PROMPT_NOTE, "note", NULL, "ROW [TEXT]", 1, -1, "write a note on a plan",
     "The note is saved with the plan; without a text it is removed.\nExample: note oobleck-2 \"for the Friday run\"", NO_OPTIONS, false},
    {HV_PROMPT_PLAN, "plan", NULL, "NAME {PLAN}|FILE", 2, -1, "add a plan to the plans table", "The plan is a file, or the JSON text of a plan file.\nExample: plan mine p.json", NO_OPTIONS, false},
    {HV_PROMPT_EXPORT, "export", NULL, "[ROW] FILE", 1, 2, "write the plan of a row to a file",
     "Without a row the selected plan is written. With --to TARGET the files of a program that runs or shows the plan are written into the folder FILE "
     "(`hetviz help targets`).\nExample: export --to megatron run", OPTIONS(prompt_export_options), false},
    {HV_PROMPT_IMPORT, "import", "i", "FILE...|local", 1, -1, "import files of other programs, with a preview",
     "Reads the output of nvidia-smi, Slurm, Kubernetes, Hugging Face and others. Nothing changes until Enter accepts the preview.\n"
     "Example: import smi.xml topo.txt", NO_OPTIONS, false},
    {HV_PROMPT_SCREEN, "screen", NULL, "NAME", 1, 1, "go to a screen", "The names are those of the tabs.", NO_OPTIONS, false},
    {HV_PROMPT_LUA, "lua", NULL, "CODE", 1, -1, "run one line of Lua in the console",
     "Screen 8 shows the output. Changes of the table `workspace` become edits that can be undone.\n"
     "Example: lua workspace.cluster.nodes[1].count = 4", NO_OPTIONS, false},
    {HV_PROMPT_RECORD, "record", NULL, "[FILE]", 0, 1, "record every later change as a script",
     "`hetviz --script FILE WORKSPACE` replays the script on the saved workspace. Without a file the recording ends.\nExample: record tour.script", NO_OPTIONS, false},
    {HV_PROMPT_HELP, "help", NULL, "[WORD]", 0, 1, "list the keys of this screen, those that match WORD first", "Typing searches the keys; Enter runs the selected action.\nExample: help zoom", NO_OPTIONS, false},
    {HV_PROMPT_SAVE_SCREEN, "save-screen", NULL, "FILE", 1, 1, "write the screen to a file", "The file is a picture if the name ends in .svg or .png, and text otherwise.\nExample: save-screen gantt.png", NO_OPTIONS, false},
};
/* clang-format on */

const struct hv_command *hv_commands(size_t *n)
{
    *n = HV_COUNT(command_rows);
    return command_rows;
}

const struct hv_command *hv_prompt_commands(size_t *n)
{
    *n = HV_COUNT(prompt_rows);
    return prompt_rows;
}

const struct hv_opt *hv_global_options(size_t *n)
{
    *n = HV_COUNT(global_options);
    return global_options;
}

const struct hv_opt *hv_front_options(size_t *n)
{
    *n = HV_COUNT(front_options);
    return front_options;
}
