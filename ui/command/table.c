/**
 * The rows of the command table. Data only: to add a command or an option, add a row here; parsing,
 * help, completion and the manual page follow. Not for what commands do.
 */
#include "ui/command/table.h"

#include "solver/base/attr.h"

/* clang-format off */
#define INPUT_OPTIONS \
    {"cluster", 'c', HV_ARG_FILE, "CLUSTER", "cluster file, or the name of a sample", 0, 0, NULL, true}, \
    {"model", 'm', HV_ARG_FILE, "MODEL", "model file, Hugging Face config.json, or a name of the catalogue", 0, 0, NULL, true}, \
    {"job", 'j', HV_ARG_FILE, "JOB", "job file, or the name of a sample (default: batch 256, bf16, adam)", 0, 0, NULL, false}
#define OPTIONAL_INPUT_OPTIONS \
    {"cluster", 'c', HV_ARG_FILE, "CLUSTER", "cluster instead of the one the plan names", 0, 0, NULL, false}, \
    {"model", 'm', HV_ARG_FILE, "MODEL", "model instead of the one the plan names", 0, 0, NULL, false}, \
    {"job", 'j', HV_ARG_FILE, "JOB", "job instead of the one the plan holds", 0, 0, NULL, false}
#define JSON_OPTION {"json", 0, HV_ARG_FLAG, NULL, "print one JSON value instead of text", 0, 0, NULL, false}
#define LIMIT_OPTION {"time-limit", 0, HV_ARG_DURATION, "S", "stop after this time and keep the best plan so far (10, 500ms, 2min)", 1e-3, 1e7, NULL, false}
#define OUT_OPTION {"out", 0, HV_ARG_FILE, "F", "write to this file (- is standard output)", 0, 0, NULL, false}
#define JOBS_OPTION {"jobs", 0, HV_ARG_INT, "N", "strategies at the same time (default: one per core)", 1, 4096, NULL, false}
#define WIDTH_OPTION {"width", 0, HV_ARG_INT, "N", "columns of the picture (default: the terminal's)", 30, 10000, NULL, false}
#define ASCII_OPTION {"ascii", 0, HV_ARG_FLAG, NULL, "ASCII characters only", 0, 0, NULL, false}

static const struct hv_opt plan_options[] = {
    INPUT_OPTIONS,
    {"strategy", 's', HV_ARG_TEXT, "STRATEGY", "strategy, or a composition such as uniform+fireflyer", 0, 0, NULL, true},
    {"option", 'o', HV_ARG_KEY_VALUE, "KEY=VALUE", "option of the strategy; see `hetviz strategies NAME`", 0, 0, NULL, false},
    {"replan", 0, HV_ARG_FILE, "PLAN", "plan that was running when devices were lost", 0, 0, NULL, false},
    {"lost", 0, HV_ARG_LIST, "ADDRESS,...", "devices that may not be used any more, such as a[1].*", 0, 0, NULL, false},
    OUT_OPTION, JSON_OPTION, LIMIT_OPTION,
};
static const struct hv_opt compare_options[] = {
    INPUT_OPTIONS,
    {"strategies", 's', HV_ARG_LIST, "A,B,...", "strategies to run, or all (the default)", 0, 0, NULL, false},
    {"option", 'o', HV_ARG_KEY_VALUE, "[NAME.]KEY=VALUE", "option of one strategy, or of every one that has the key", 0, 0, NULL, false},
    JSON_OPTION, LIMIT_OPTION, JOBS_OPTION,
};
static const struct hv_opt eval_options[] = {OPTIONAL_INPUT_OPTIONS, JSON_OPTION};
static const struct hv_opt gantt_options[] = {
    OPTIONAL_INPUT_OPTIONS, WIDTH_OPTION, ASCII_OPTION,
    {"links", 0, HV_ARG_FLAG, NULL, "in the terminal: reductions, pushes and transfers on lines of their own (plans with stale weights: always)", 0, 0, NULL, false},
    {"svg", 0, HV_ARG_FILE, "F", "write an SVG picture", 0, 0, NULL, false},
    {"png", 0, HV_ARG_FILE, "F", "write a PNG picture", 0, 0, NULL, false},
    {"trace", 0, HV_ARG_FILE, "F", "write a Chrome or Perfetto trace", 0, 0, NULL, false},
};
static const struct hv_opt schedule_options[] = {
    {"ranks", 'p', HV_ARG_INT, "P", "pipeline ranks", 1, 65536, NULL, true},
    {"micro-batches", 'm', HV_ARG_INT, "M", "micro-batches", 1, 1e12, NULL, true},
    {"chunks", 'v', HV_ARG_INT, "V", "model chunks per rank (default: the schedule's own)", 1, 1024, NULL, false},
    {"option", 'o', HV_ARG_KEY_VALUE, "KEY=VALUE", "option of the schedule (`hetviz help schedules NAME` lists them)", 0, 0, NULL, false},
    {"times", 0, HV_ARG_NUMBERS, "F,B,W,C", "time of forward, input gradient, weight gradient and hop", 0, 1e12, NULL, false},
    {"plan-times", 0, HV_ARG_NUMBERS, "F,B,W,C", "times that cost-driven schedules decide with", 0, 1e12, NULL, false},
    {"scale", 0, HV_ARG_NUMBERS, "X,X,...", "how many times as long each stage takes, one number per stage", 0, 1e9, NULL, false},
    {"hops", 0, HV_ARG_NUMBERS, "C,C,...", "time from each stage to the next and back, one number less than stages (instead of C in --times)", 0, 1e12, NULL, false},
    {"limits", 0, HV_ARG_NUMBERS, "N,N,...", "micro-batches whose activations each rank may hold; schedules that decide by memory keep to them, others are refused", 0, 1e9, NULL, false},
    {"cap", 0, HV_ARG_INT, "N", "activations that a rank may hold; says who blocks whom where that is too few", 1, 1e9, NULL, false},
    {"jitter", 0, HV_ARG_NUMBER, "X", "spread of every duration: standard deviation of its logarithm", 0, 3, NULL, false},
    {"look-ahead", 0, HV_ARG_INT, "N", "ranks that would wait take a forward or weight gradient from the next N operations", 1, 1e6, NULL, false},
    {"gantt", 0, HV_ARG_FLAG, NULL, "draw it", 0, 0, NULL, false},
    WIDTH_OPTION, ASCII_OPTION, JSON_OPTION,
    {"svg", 0, HV_ARG_FILE, "F", "write an SVG picture", 0, 0, NULL, false},
    {"png", 0, HV_ARG_FILE, "F", "write a PNG picture", 0, 0, NULL, false},
};
static const struct hv_opt solve_options[] = {
    JSON_OPTION, LIMIT_OPTION,
    {"certify", 0, HV_ARG_FLAG, NULL, "give lp_solve longer to prove a chain's optimum a second time (1 s, or --time-limit)", 0, 0, NULL, false},
    {"write-lp", 0, HV_ARG_FILE, "F", "write a chain's integer program in LP format, or MPS when F ends in .mps", 0, 0, NULL, false},
};
static const struct hv_opt bound_options[] = {INPUT_OPTIONS, JSON_OPTION};
static const struct hv_opt explain_options[] = {
    OPTIONAL_INPUT_OPTIONS, JSON_OPTION,
    {"stage", 0, HV_ARG_INT, "N", "the terms behind every second and byte of this stage, with formula and source", 0, 1000000, NULL, false},
    {"replica", 0, HV_ARG_INT, "N", "replica entry of --stage (default 0)", 0, 1000000, NULL, false},
};
static const struct hv_opt failures_options[] = {
    OPTIONAL_INPUT_OPTIONS, JSON_OPTION,
    {"lost", 0, HV_ARG_INT, "N", "plans for up to this many nodes away (default 2)", 0, 64, NULL, false},
    {"preempted", 0, HV_ARG_KEY_VALUE, "GROUP=N", "a node of this group is taken away N times an hour (all: every group)", 0, 0, NULL, false},
    {"checkpoint", 0, HV_ARG_DURATION, "S", "work between two checkpoints, instead of the job's or the best", 1e-3, 1e12, NULL, false},
    {"restart", 0, HV_ARG_DURATION, "S", "start of all processes after a failure, instead of the job's", 0, 1e6, NULL, false},
    {"regroup", 0, HV_ARG_DURATION, "S", "new communicators among processes that go on, instead of the job's", 0, 1e6, NULL, false},
    {"time-limit", 0, HV_ARG_DURATION, "S", "give every new plan this time (default 10)", 1e-3, 1e7, NULL, false},
};
static const struct hv_opt json_options[] = {JSON_OPTION};
static const struct hv_opt selftest_options[] = {
    {"times", 0, HV_ARG_FLAG, NULL, "end every line with the CPU time it took", 0, 0, NULL, false},
};
static const struct hv_opt validate_options[] = {
    JSON_OPTION,
    {"data", 0, HV_ARG_FILE, "DIR", "rows of this folder or file instead of the shipped ones", 0, 0, NULL, false},
    {"shipped", 0, HV_ARG_FLAG, NULL, "predict with the shipped calibration instead of fits without each source", 0, 0, NULL, false},
    {"fit", 0, HV_ARG_FILE, "F", "write a calibration fitted on all rows", 0, 0, NULL, false},
    {"svg", 0, HV_ARG_FILE, "F", "write an SVG picture of predicted against measured", 0, 0, NULL, false},
};
static const struct hv_opt profile_options[] = {
    JSON_OPTION,
    {"out", 0, HV_ARG_FILE, "F", "the profile to write (default: among your own, where every command finds it)", 0, 0, NULL, false},
    {"quick", 0, HV_ARG_FLAG, NULL, "at most a minute instead of at most ten", 0, 0, NULL, false},
    {"fresh", 0, HV_ARG_FLAG, NULL, "start again instead of going on from an unfinished run", 0, 0, NULL, false},
    {"device", 0, HV_ARG_INT, "N", "number of the GPU (default 0)", 0, 1023, NULL, false},
    {"as", 0, HV_ARG_TEXT, "KIND", "the kind of the catalogue that it counts as (default: by its name)", 0, 0, NULL, false},
    {"show", 0, HV_ARG_FILE, "F", "measure nothing: show this profile", 0, 0, NULL, false},
    {"svg", 0, HV_ARG_FILE, "F", "with --show: write the roofline chart as SVG", 0, 0, NULL, false},
};
static const struct hv_opt import_options[] = {OUT_OPTION};
static const struct hv_opt new_plugin_options[] = {OUT_OPTION};
static const struct hv_opt lua_options[] = {
    {"cluster", 'c', HV_ARG_FILE, "CLUSTER", "cluster file, or the name of a sample (default: two-generations)", 0, 0, NULL, false},
    {"model", 'm', HV_ARG_FILE, "MODEL", "model file, or a name of the catalogue (default: llama-3-8b)", 0, 0, NULL, false},
    {"job", 'j', HV_ARG_FILE, "JOB", "job file, or the name of a sample", 0, 0, NULL, false},
};

static const struct hv_opt global_options[] = {
    {"help", 'h', HV_ARG_FLAG, NULL, "show the help of this command", 0, 0, NULL, false},
    {"seed", 0, HV_ARG_INT, "N", "seed of every random choice (default 1)", 0, 9007199254740991.0, NULL, false},
    {"budget", 0, HV_ARG_INT, "N", "stop a search after N evaluations", 1, 9007199254740991.0, NULL, false},
    {"quiet", 'q', HV_ARG_FLAG, NULL, "nothing on standard error but errors", 0, 0, NULL, false},
    {"plain", 0, HV_ARG_FLAG, NULL, "no colour, no box characters", 0, 0, NULL, false},
};

static const struct hv_opt front_options[] = {
    {"ascii", 0, HV_ARG_FLAG, NULL, "frames, bars and marks in ASCII", 0, 0, NULL, false},
    {"plain", 0, HV_ARG_FLAG, NULL, "lines of words instead of screens, for screen readers and pipes (also HETVIZ_PLAIN=1)", 0, 0, NULL, false},
    {"no-mouse", 0, HV_ARG_FLAG, NULL, "leave the mouse to the terminal", 0, 0, NULL, false},
    {"color", 0, HV_ARG_TEXT, "auto|always|never", "colours (auto: unless NO_COLOR is set)", 0, 0, NULL, false},
    {"theme", 0, HV_ARG_TEXT, "NAME", "default, light, high-contrast or mono, or a file (also HETVIZ_THEME; light where COLORFGBG tells of a light background)", 0, 0, NULL, false},
    {"script", 0, HV_ARG_FILE, "F", "type what a file says: `keys jj<Enter>`, `wait TEXT`, `:command`, `:save-screen F`", 0, 0, NULL, false},
    {"dump", 0, HV_ARG_TEXT, "SCREEN", "print a screen and leave: cluster, model, strategies, plans, gantt, explain, what-if, console", 0, 0, NULL, false},
    {"out", 0, HV_ARG_FILE, "F", "with --dump: write the screen to this file, as a picture where it ends in .svg or .png", 0, 0, NULL, false},
    {"size", 0, HV_ARG_TEXT, "WxH", "with --script or --dump: columns and rows (default 80x24)", 0, 0, NULL, false},
};

#define OPTIONS(table) table, HV_COUNT(table)
#define NO_OPTIONS NULL, 0
static const struct hv_command command_rows[] = {
    {HV_CMD_PLAN, "plan", "p", "", 0, 0, "run one strategy, print or write its plan",
     "Runs a strategy on a cluster, a model and a job, judges the plan and prints it. With --json or --out the plan is a "
     "file that `hetviz eval` reads again. With --lost the plan does without these devices; with --replan too the strategy mends the plan that "
     "was running, where it knows how. "
     "A job file may hold a queue (`jobs`): then strategies that schedule jobs (crius) give each of them devices in turn, and `hetviz eval` times all of "
     "them.\nExample: hetviz plan -c two-generations -m llama-3-8b -s whale --out p.json",
     OPTIONS(plan_options), false},
    {HV_CMD_COMPARE, "compare", "cmp", "", 0, 0, "run many strategies, print the ranked table",
     "Runs strategies side by side, one worker process per core, and ranks their plans by simulated iteration time. Strategies "
     "that do not apply say what they need; below the table stands why the first is first.\nExample: hetviz compare -c two-generations -m llama-3-8b -s all",
     OPTIONS(compare_options), false},
    {HV_CMD_EVAL, "eval", NULL, "PLAN", 1, 1, "judge a plan: time, memory, bound, violations",
     "Simulates a plan and checks every rule. Prints all figures even when rules are broken, and exits 1 then.\n"
     "Example: hetviz eval p.json --json",
     OPTIONS(eval_options), false},
    {HV_CMD_GANTT, "gantt", NULL, "PLAN", 1, 1, "draw the timeline of a plan",
     "Draws to the terminal, or writes a picture or a trace.\nExample: hetviz gantt p.json --svg p.svg",
     OPTIONS(gantt_options), false},
    {HV_CMD_SCHEDULE, "schedule", NULL, "NAME", 1, 1, "operation order of a pipeline schedule",
     "Prints both makespans (from 0 to the last end, and the longest span of a rank), idle time by cause, the peak number of "
     "activations and the order of every rank. NAME: one of `hetviz help schedules`, a plugin with order(p), or its file.\n"
     "Example: hetviz schedule 1f1b -p 4 -m 8 --gantt",
     OPTIONS(schedule_options), false},
    {HV_CMD_SOLVE, "solve", NULL, "INSTANCE", 1, 1, "solve a bare optimisation instance",
     "Reads a hetviz.partition/1 file (chain, also with several stages per rank or in free order; replicas; joint; dag) or "
     "a hetviz.distribute/1 file (minmax, sum, minvar, ratio, lpt) and prints optimum, bound and proof. For a chain "
     "lp_solve is asked too, in a process of its own. On a terminal standard error shows best, bound and gap meanwhile; "
     "Ctrl-C and --time-limit end a search with the best so far. "
     "INSTANCE: a file, or the name of a shipped one "
     "(samples/instances: chain, free-order, folded, replicas, joint, graph, batch, batch-convex, items).\n"
     "Example: hetviz solve folded",
     OPTIONS(solve_options), false},
    {HV_CMD_BOUND, "bound", NULL, "", 0, 0, "no plan can be faster than this, and why",
     "Prints a lower bound of the iteration time over all plans and what it is made of: work, shapes and exchanges of valid degrees, "
     "fill and drain, optimizer, host work, waiting, slow networks between parts of the cluster, and the devices that gradients need. "
     "With --json the parts have keys of their own; kept_plans_s, with the slow network's part (cut_s), is of plans that exchange nothing "
     "across it inside passes, shard no states over it and have no parameter servers, bound_s of these too; even_plans_s is of copies of one pipeline "
     "whose passes are all alike in a stage, because none goes backward before one has gone forward through all layers; other_plans_s is the lower one of plans whose stages branch, whose micro-batches come in parts or whose tensor parallelism is "
     "not 1d.\nExample: hetviz bound -c two-generations -m llama-3-8b",
     OPTIONS(bound_options), false},
    {HV_CMD_EXPLAIN, "explain", NULL, "PLAN", 1, 1, "where the time of a plan goes",
     "Breaks the iteration down into compute, exposed communication and idle time, with the stage that bounds it. With --stage, "
     "the terms of that stage: operators, exchanges, transfer, memory.\n"
     "Example: hetviz explain p.json --stage 0",
     OPTIONS(explain_options), false},
    {HV_CMD_FAILURES, "failures", NULL, "PLAN", 1, 1, "what failing and preempted nodes leave of a plan",
     "Expected tokens per second and their price when nodes fail or are taken away: the best time between checkpoints, what a failure costs "
     "(detection, rollback, reinstantiation), and the plans that the plan's own strategy makes of what is left of the nodes. Rates come from the "
     "inventory (`preemptions_per_hour`), times from the job (`failures`), or from --preempted, --checkpoint, --restart and --regroup; What-if turns "
     "the same.\nExample: hetviz failures p.json --lost 3 --preempted g=0.5 --checkpoint 600",
     OPTIONS(failures_options), false},
    {HV_CMD_STRATEGIES, "strategies", "ls", "[NAME]", 0, 1, "list strategies, or describe one",
     "Lists every strategy with the system it stands for; with a name, its options and what it decides.\n"
     "Example: hetviz strategies oobleck",
     OPTIONS(json_options), false},
    {HV_CMD_SELFTEST, "selftest", NULL, "[STRATEGY|FILE|FOLDER...]", 0, -1, "acceptance numbers of the plugins",
     "Runs every plugin's own tests and ends with `N passed, N failed`.\nExample: hetviz selftest oobleck",
     OPTIONS(selftest_options), false},
    {HV_CMD_VALIDATE, "validate", NULL, "", 0, 0, "predicted against published measurements",
     "Predicts published iteration times and peak memory row by row, and prints per group the mean absolute error, the bias and the rank "
     "correlation beside a one-parameter baseline and Calculon.\nExample: hetviz validate --data my-rows",
     OPTIONS(validate_options), false},
    {HV_CMD_PROFILE, "profile", NULL, "", 0, 0, "measure this machine's GPU, or show a profile",
     "Times products, attention, memory kernels, copies and collectives of an NVIDIA GPU, checks whole layers against the tables that come of it, and "
     "writes a profile that prices its kind from then on. Ctrl-C stops it; the same command goes on from there. --show draws a profile: achieved "
     "rates under the card's ceilings.\nExample: hetviz profile --quick",
     OPTIONS(profile_options), false},
    {HV_CMD_CHECK, "check", NULL, "FILE...", 1, -1, "check files without running anything",
     "Reads each file as what it says it is (cluster, model, job, plan, workspace, instance, profile, plugin) and reports the first mistake with its "
     "position.\nExample: hetviz check cluster.json plugin.lua",
     NO_OPTIONS, false},
    {HV_CMD_IMPORT, "import", NULL, "FORMAT|auto|local [FILE...]", 1, -1, "make documents of other programs' files",
     "Reads what nvidia-smi, Slurm, Kubernetes, NCCL, clouds, Hugging Face, DeepSpeed, Megatron-LM and others write, and writes a cluster, a model, "
     "a job with its layout, a plan or a trace. Several files of one machine or of one job become one document. Standard error says what was "
     "understood, what was guessed and what was ignored. auto finds the format by the content; local asks this machine; - is standard input.\n"
     "Example: hetviz import auto smi.xml topo.txt --out cluster.json",
     OPTIONS(import_options), false},
    {HV_CMD_NEW_PLUGIN, "new-plugin", NULL, "NAME | NAME.lua", 1, 1, "write a commented plugin that runs",
     "Writes a small strategy to start from: NAME as a folder with plugin.lua, a module and selftest.lua, NAME.lua as one file. --out says where; "
     "an end in .lua, or -, means one file too.\nExample: hetviz new-plugin mine --out plugins/mine",
     OPTIONS(new_plugin_options), false},
    {HV_CMD_LUA, "lua", NULL, "", 0, 0, "try what plugins can call, line by line",
     "Reads Lua from standard input, runs it in a worker and prints what it gives, tables as JSON. `ctx` is that of plan(ctx). The table `workspace` "
     "{cluster, model, job, plans} is a copy of the inputs: what a line changes there is told as commands, and `ctx` shows it from the next line on; nothing "
     "changes a file. Ctrl-C or Ctrl-D ends it.\nExample: echo 'hv.strategy(\"uniform\"):eval()' | hetviz lua -c a100-v100-t4 -m llama-3-8b",
     OPTIONS(lua_options), false},
    {HV_CMD_COMPLETION, "completion", NULL, "SHELL | schedules [NAME]", 1, 2, "completion script for bash, zsh or fish",
     "Prints a script to be sourced by the shell; with `schedules` the words these scripts offer: the names of all schedules, or what -o takes of one.\nExample: source <(hetviz completion bash)", NO_OPTIONS, false},
    {HV_CMD_HELP, "help", NULL, "[COMMAND | SCHEDULE | TERM | schedules [NAME] | glossary [TERM] | api [NAME] | man [plugin]]", 0, 2, "list the commands, or explain one, a schedule or a term",
     "Without a command the list of all; `hetviz help schedules` lists the schedules, also those of plugins, `hetviz help api` what plugins can call, and explains each by name; `hetviz help glossary` defines the words that tables and messages use; "
     "`hetviz help man` prints the manual page, `hetviz help man plugin` that of plugins.\nExample: hetviz help api hv.opt.partition", NO_OPTIONS, false},
    {HV_CMD_WORKER, "worker", NULL, "", 0, 0, "run one job from standard input",
     "Internal: reads a job as JSON on standard input and writes events as JSON lines on standard output.", NO_OPTIONS, true},
};

static const struct hv_command prompt_rows[] = {
    {HV_PROMPT_SET, "set", NULL, "DOCUMENT.KEY VALUE", 2, -1, "change a value of cluster, model or job",
     "The key path is that of the file, the value is JSON or a bare word. `set ascii`, `set noascii`, `set mouse`, `set nomouse` and `set theme NAME` are about the screens: without the mouse the terminal selects text as ever.\nExample: set cluster.nodes[0].count 4", NO_OPTIONS, false},
    {HV_PROMPT_REMOVE, "remove", NULL, "DOCUMENT.KEY", 1, -1, "take a member or a list element away", "Example: remove cluster.nodes[2]", NO_OPTIONS, false},
    {HV_PROMPT_INSERT, "insert", NULL, "DOCUMENT.KEY[N] VALUE", 2, -1, "put an element into a list, before element N",
     "N may be the list's length: at the end.\nExample: insert cluster.nodes[0] {\"name\": \"n\", \"count\": 1, \"device\": \"T4-16GB\", \"devices\": 4}", NO_OPTIONS, false},
    {HV_PROMPT_COLLECT, "begin", NULL, "", 0, 0, "collect the edits that follow",
     "The edits up to `end` are checked together and are one undo step per document: for changes that are only valid as a whole.", NO_OPTIONS, false},
    {HV_PROMPT_COLLECTED, "end", NULL, "", 0, 0, "make the edits collected since `begin`", "When they are refused nothing is changed.", NO_OPTIONS, false},
    {HV_PROMPT_UNDO, "undo", "u", "", 0, 0, "take the last change back", "Up to 1,000 changes can be taken back.", NO_OPTIONS, false},
    {HV_PROMPT_REDO, "redo", NULL, "", 0, 0, "make the change again that was taken back", "Works until the next change.", NO_OPTIONS, false},
    {HV_PROMPT_WRITE, "write", "w", "[FOLDER]", 0, 1, "save the workspace", "Without a folder it is saved where it came from.", NO_OPTIONS, false},
    {HV_PROMPT_QUIT, "quit", "q", "[!]", 0, 1, "leave the program", "Asks when there are unsaved changes; `quit !` does not.", NO_OPTIONS, false},
    {HV_PROMPT_RUN, "run", "r", "STRATEGY|all [KEY=VALUE...]", 1, -1, "run a strategy in a worker",
     "The row appears in the plans table and fills in as the worker reports.\nExample: run oobleck faults=2", NO_OPTIONS, false},
    {HV_PROMPT_CANCEL, "cancel", "x", "[ROW]", 0, 1, "stop a running strategy, keep its best plan", "Without a row all of them.", NO_OPTIONS, false},
    {HV_PROMPT_OPTION, "option", "o", "STRATEGY KEY=VALUE", 2, 2, "keep an option for the next runs of a strategy",
     "The option is checked at once and saved with the workspace.", NO_OPTIONS, false},
    {HV_PROMPT_LIMIT, "limit", NULL, "time=S|evaluations=N|seed=N...", 1, 3, "what every run from now on gets",
     "time in seconds and evaluations: 0 is no limit.\nExample: limit time=60 seed=2", NO_OPTIONS, false},
    {HV_PROMPT_SELECT, "select", NULL, "ROW", 1, 1, "go to a row of the plans", "The row is a name or a number. Gantt, Explain and What-if show it.", NO_OPTIONS, false},
    {HV_PROMPT_DELETE, "delete", NULL, "ROW", 1, 1, "take a row of the plans away", "Undo brings it back.", NO_OPTIONS, false},
    {HV_PROMPT_RENAME, "rename", NULL, "ROW NAME", 2, 2, "give a plan another name", "Names have no / and are unique.", NO_OPTIONS, false},
    {HV_PROMPT_NOTE, "note", NULL, "ROW [TEXT]", 1, -1, "write a note on a plan", "It is saved with the plan; without a text it is taken away.\nExample: note oobleck-2 \"for the Friday run\"", NO_OPTIONS, false},
    {HV_PROMPT_PLAN, "plan", NULL, "NAME {PLAN}|FILE", 2, -1, "add a plan to the rows", "The plan is a file, or JSON as in one.\nExample: plan mine p.json", NO_OPTIONS, false},
    {HV_PROMPT_EXPORT, "export", NULL, "[ROW] FILE", 1, 2, "write the plan of a row to a file", "The row is the selected one unless given.", NO_OPTIONS, false},
    {HV_PROMPT_IMPORT, "import", "i", "FILE...|local", 1, -1, "look at files of other programs and take them over",
     "What nvidia-smi, Slurm, Kubernetes, Hugging Face and others write; nothing changes before Enter.\nExample: import smi.xml topo.txt", NO_OPTIONS, false},
    {HV_PROMPT_SCREEN, "screen", NULL, "NAME", 1, 1, "go to a screen", "Names are those of the tabs.", NO_OPTIONS, false},
    {HV_PROMPT_LUA, "lua", NULL, "CODE", 1, -1, "run a line of Lua in the console",
     "What it says is on screen 8; what it does to the table `workspace` comes back as edits that can be undone.\n"
     "Example: lua workspace.cluster.nodes[1].count = 4", NO_OPTIONS, false},
    {HV_PROMPT_RECORD, "record", NULL, "[FILE]", 0, 1, "write every change from now on as a script",
     "`hetviz --script FILE WORKSPACE` does it all again from the saved workspace. Without a file the recording ends.\nExample: record tour.script", NO_OPTIONS, false},
    {HV_PROMPT_HELP, "help", NULL, "[WORD]", 0, 1, "keys of this screen, those with a word in it first", "The keys can be searched further; Enter runs one.\nExample: help zoom", NO_OPTIONS, false},
    {HV_PROMPT_SAVE_SCREEN, "save-screen", NULL, "FILE", 1, 1, "write what is on the screen to a file", "A picture where the name ends in .svg or .png, else text.\nExample: save-screen gantt.png", NO_OPTIONS, false},
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
