/**
 * The action table: all actions of keys and clicks. Key bindings, key bar, help, completion and the
 * manual are made from it; keys are named nowhere else.
 */
#ifndef HV_UI_VIEW_KEYS_ACTION_H
#define HV_UI_VIEW_KEYS_ACTION_H

#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
/**
 * One row per action: constant, name, views ("*" = everywhere; else names joined by ','), default
 * keys (blank-separated key names), label in the key bar, help. A view's row wins over a "*" row.
 */
#define HV_ACTION_MAP(X)                                                                                               \
    X(NONE,             "none",               "*",          "",                   "",         "do nothing (to unbind a key)") \
    X(HELP,             "help",               "*",          "F1 ?",               "Help",     "list the keys of this screen and all other keys") \
    X(QUIT,             "quit",               "*",          "Q F10",              "Quit",     "quit hetviz; asks if there are unsaved changes") \
    X(CLOSE,            "close",              "*",          "q",                  "Quit",     "close this view; the last one quits hetviz") \
    X(CANCEL,           "back",               "*",          "<Esc>",              "Back",     "leave the field, then close the view; never quits") \
    X(COMMAND,          "command",            "*",          ":",                  "Command",  "open the command line with history and completion") \
    X(FIND,             "find",               "*",          "/ F3",               "Find",     "find a text") \
    X(FIND_NEXT,        "find-next",          "*",          "n",                  "Next",     "go to the next match") \
    X(FIND_PREV,        "find-previous",      "*",          "N",                  "Prev",     "go to the previous match") \
    X(SAVE,             "save",               "*",          "^S F2",              "Save",     "save the workspace") \
    X(UNDO,             "undo",               "*",          "u",                  "Undo",     "undo the last change of the workspace") \
    X(REDO,             "redo",               "*",          "^R",                 "Redo",     "redo the last undone change") \
    X(REDRAW,           "redraw",             "*",          "^L",                 "Redraw",   "draw the screen again") \
    X(SCREEN_1,         "screen-1",           "*",          "1",                  "Cluster",  "open screen 1") \
    X(SCREEN_2,         "screen-2",           "*",          "2",                  "Model",    "open screen 2") \
    X(SCREEN_3,         "screen-3",           "*",          "3",                  "Strategy", "open screen 3") \
    X(SCREEN_4,         "screen-4",           "*",          "4",                  "Plans",    "open screen 4") \
    X(SCREEN_5,         "screen-5",           "*",          "5",                  "Gantt",    "open screen 5") \
    X(SCREEN_6,         "screen-6",           "*",          "6",                  "Explain",  "open screen 6") \
    X(SCREEN_7,         "screen-7",           "*",          "7",                  "What-if",  "open screen 7") \
    X(SCREEN_8,         "screen-8",           "*",          "8",                  "Console",  "open screen 8") \
    X(PANEL_NEXT,       "panel-next",         "*",          "<Tab>",              "Panel",    "go to the next panel or field") \
    X(PANEL_PREV,       "panel-previous",     "*",          "Shift-Tab",          "Panel",    "go to the previous panel or field") \
    X(UP,               "up",                 "*",          "k <Up>",             "Up",       "one row up") \
    X(DOWN,             "down",               "*",          "j <Down>",           "Down",     "one row down") \
    X(LEFT,             "left",               "*",          "h <Left>",           "Left",     "one column left") \
    X(RIGHT,            "right",              "*",          "l <Right>",          "Right",    "one column right") \
    X(TOP,              "top",                "*",          "g <Home>",           "Top",      "first row") \
    X(BOTTOM,           "bottom",             "*",          "G <End>",            "Bottom",   "last row") \
    X(PAGE_UP,          "page-up",            "*",          "<PgUp>",             "Page up",     "one page up") \
    X(PAGE_DOWN,        "page-down",          "*",          "<PgDn>",             "Page down",     "one page down") \
    X(HALF_UP,          "half-page-up",       "*",          "^U",                 "Half up",  "half a page up") \
    X(HALF_DOWN,        "half-page-down",     "*",          "^D",                 "Half down", "half a page down") \
    X(OPEN,             "open",               "*",          "<Enter>",            "Open",     "open or accept") \
    X(MARK,             "mark",               "*",          "<Space>",            "Mark",     "mark the row for actions on several rows") \
    X(FILTER,           "filter",             "*",          "f F4",               "Filter",   "show only rows that contain a text") \
    X(SORT,             "sort",               "*",          "s F6",               "Sort",     "sort by the next column") \
    X(SORT_REVERSE,     "sort-reverse",       "*",          "S",                  "Reverse",  "reverse the sort order") \
    X(ADD,              "add",                "*",          "a",                  "Add",      "add an item") \
    X(EDIT,             "edit",               "*",          "e =",                "Edit",     "edit the item") \
    X(DELETE,           "delete",             "*",          "d",                  "Del",      "delete the item (undo restores it)") \
    X(COPY,             "copy",               "*",          "y",                  "Copy",     "copy the item") \
    X(PASTE,            "paste",              "*",          "P",                  "Paste",    "paste the copied item") \
    X(IMPORT,           "import",             "*",          "i F7",               "Import",   "import a file") \
    X(EXPORT,           "export",             "*",          "E F8",               "Export",   "export to a file") \
    X(RELOAD,           "reload",             "*",          "r",                  "Reload",   "read files and plugins again") \
    X(RUN,              "run",                "*",          "F5",                 "Run",      "run the strategy, or compute again") \
    X(STOP,             "stop",               "*",          "x F9",               "Stop",     "cancel running work and keep the best result") \
    X(TOUR,             "tour",               "*",          "T",                  "Tour",     "start or end a tour of the screens in twelve steps") \
    X(CLUSTER_DRAIN,    "cluster-drain",      "cluster",    "D",                  "Drain",    "drain the node, or put it back into use") \
    X(CLUSTER_TOPOLOGY, "cluster-topology",   "cluster",    "t",                  "Topology", "show the topology inside the node") \
    X(CLUSTER_LINKS,    "cluster-links",      "cluster",    "L",                  "Links",    "edit the links") \
    X(CLUSTER_PRICES,   "cluster-prices",     "cluster",    "$",                  "Prices",   "show the price catalogue") \
    X(MODEL_TABLE,      "model-table",        "model",      "t",                  "Unfold",   "unfold or fold all layers") \
    X(MODEL_PROFILE,    "model-profile",      "model",      "p",                  "Profile",  "load a profile of a GPU, or measure this GPU") \
    X(MODEL_CHECKS,     "model-checks",       "model",      "c",                  "Checks",   "show only the checks, or also the memory preview") \
    X(STRATEGY_RUN,     "strategy-run",       "strategies", "<Enter>",            "Run",      "run the strategy with its parameters, or all of a kind") \
    X(STRATEGY_QUEUE,   "strategy-queue",     "strategies", "<Space>",            "Queue",    "queue the strategy, or all of a kind, and go to the next line") \
    X(STRATEGY_PARAMS,  "strategy-params",    "strategies", "p",                  "Params",   "edit the parameters of the strategy") \
    X(STRATEGY_EDITOR,  "strategy-editor",    "strategies", "E o",                "Editor",   "edit the plugin in $VISUAL or $EDITOR; reload it") \
    X(STRATEGY_RUN_ALL, "strategy-run-all",   "strategies", "A",                  "Run all",  "run every strategy with its parameters") \
    X(PLAN_COMPARE,     "plan-compare",       "plans",      "c",                  "Compare",  "compare marked plans, or the marked one with this") \
    X(PLAN_FRONT,       "plan-front",         "plans",      "P",                  "Front",    "show only the Pareto front of the scatter plot") \
    X(PLAN_AXIS_X,      "plan-axis-x",        "plans",      "X",                  "Axis",     "choose the next x axis of the scatter plot") \
    X(PLAN_AXIS_Y,      "plan-axis-y",        "plans",      "Y",                  "Axis",     "choose the next y axis of the scatter plot") \
    X(PLAN_RENAME,      "plan-rename",        "plans",      "R",                  "Rename",   "rename the plan") \
    X(PLAN_NOTE,        "plan-note",          "plans",      "N",                  "Note",     "write a note on the plan; it is saved with the plan") \
    X(GANTT_ZOOM_IN,    "gantt-zoom-in",      "gantt",      "+ =",                "Zoom",     "zoom in at the cursor") \
    X(GANTT_ZOOM_OUT,   "gantt-zoom-out",     "gantt",      "- _",                "Zoom",     "zoom out at the cursor") \
    X(GANTT_ZOOM_AREA,  "gantt-zoom-area",    "gantt",      "z",                  "Area",     "zoom to the marked area") \
    X(GANTT_FIT,        "gantt-fit",          "gantt",      "0",                  "Fit",      "show the whole iteration") \
    X(GANTT_PAN_LEFT,   "gantt-pan-left",     "gantt",      "H Shift-Left",       "Pan",      "pan half a screen left") \
    X(GANTT_PAN_RIGHT,  "gantt-pan-right",    "gantt",      "L Shift-Right",      "Pan",      "pan half a screen right") \
    X(GANTT_OP_PREV,    "gantt-op-previous",  "gantt",      "[",                  "Op",       "go to the previous operation of the lane") \
    X(GANTT_OP_NEXT,    "gantt-op-next",      "gantt",      "]",                  "Op",       "go to the next operation of the lane") \
    X(GANTT_MB_PREV,    "gantt-mb-previous",  "gantt",      "{",                  "Same mb",  "go to the previous operation of this micro-batch") \
    X(GANTT_MB_NEXT,    "gantt-mb-next",      "gantt",      "}",                  "Same mb",  "go to the next operation of this micro-batch") \
    X(GANTT_CAUSE,      "gantt-cause",        "gantt",      "w",                  "Cause",    "go to the operation that this one waited for") \
    X(GANTT_EFFECT,     "gantt-effect",       "gantt",      "W",                  "Effect",   "go to the operation that waits for this one") \
    X(GANTT_CRITICAL,   "gantt-critical",     "gantt",      "C",                  "Crit",     "show or hide the critical path") \
    X(GANTT_MEMORY,     "gantt-memory",       "gantt",      "m",                  "Mem",      "show or hide the memory lane") \
    X(GANTT_GOTO,       "gantt-goto",         "gantt",      "g",                  "Go to",    "go to a time") \
    X(GANTT_SCHEDULE_NEXT, "gantt-schedule-next", "gantt", "s",                   "Schedule", "list the schedules with their times (the plan stays visible); in the list, sort") \
    X(GANTT_SCHEDULE_PREV, "gantt-schedule-previous", "gantt", "S",               "Schedule", "list the schedules and try the one above") \
    X(GANTT_MICRO_MORE, "gantt-micro-more",   "gantt",      "b",                  "Micro-b.", "list the micro-batches with their times") \
    X(GANTT_MICRO_LESS, "gantt-micro-less",   "gantt",      "B",                  "Micro-b.", "list the micro-batches and try the one above") \
    X(GANTT_CHUNKS_MORE, "gantt-chunks-more", "gantt",      "v",                  "Chunks",   "list the numbers of chunks with their times") \
    X(GANTT_CHUNKS_LESS, "gantt-chunks-less", "gantt",      "V",                  "Chunks",   "list the numbers of chunks and try the one above") \
    X(GANTT_PICK_ALL,   "gantt-pick-all",     "gantt",      "!",                  "All",      "list also what does not apply, with the reason") \
    X(GANTT_LINKS,      "gantt-links",        "gantt",      "K",                  "Links",    "show or hide separate lanes for links") \
    X(GANTT_PARTS,      "gantt-gpus",         "gantt",      "F",                  "GPUs",     "show or hide lanes for GPUs of a stage that differ") \
    X(GANTT_EXPERTS,    "gantt-experts",      "gantt",      "X",                  "Experts",  "show or hide the load of ranks with experts over the iterations") \
    X(GANTT_PIN,        "gantt-pin",          "gantt",      "p",                  "Pin",      "pin or unpin this lane at the top") \
    X(GANTT_SPLIT,      "gantt-split",        "gantt",      "|",                  "Split",    "show or hide a second plan on the same time axis") \
    X(GANTT_OTHER,      "gantt-other",        "gantt",      "\\",                 "Other",    "choose another second plan for the split view") \
    X(GANTT_EXPLAIN,    "gantt-explain",      "gantt",      "<Enter>",            "Details",  "show or hide details of the operation") \
    X(GANTT_PLAN_PREV,  "gantt-plan-previous", "gantt,explain,what-if", "<lt>",   "Plan",     "show the previous plan on this screen") \
    X(GANTT_PLAN_NEXT,  "gantt-plan-next",    "gantt,explain,what-if", ">",       "Plan",     "show the next plan on this screen") \
    X(EXPLAIN_EVIDENCE, "explain-evidence",   "explain",    "<Enter>",            "Evidence", "open the evidence: operation, group, job or lever") \
    X(EXPLAIN_FOLD,     "explain-fold",       "explain",    "<Space>",            "Unfold",   "unfold or fold the lines below (also Right, Left)") \
    X(EXPLAIN_TRY,      "explain-try",        "explain",    "w",                  "What-if",  "try the lever of this line in What-if") \
    X(WHAT_IF_LESS,     "what-if-less",       "what-if",    "h <Left>",           "Turn",     "move the lever one position down") \
    X(WHAT_IF_MORE,     "what-if-more",       "what-if",    "l <Right>",          "Turn",     "move the lever one position up") \
    X(WHAT_IF_FAR_LESS, "what-if-far-less",   "what-if",    "H Shift-Left",       "Far",      "move the lever five positions down") \
    X(WHAT_IF_FAR_MORE, "what-if-far-more",   "what-if",    "L Shift-Right",      "Far",      "move the lever five positions up") \
    X(WHAT_IF_RESET,    "what-if-reset",      "what-if",    "r",                  "Reset",    "reset the lever to the current value") \
    X(WHAT_IF_RESET_ALL, "what-if-reset-all", "what-if",    "R",                  "Reset all", "reset all levers to the current values") \
    X(WHAT_IF_ACCEPT,   "what-if-accept",     "what-if",    "<Enter>",            "Accept",   "apply the changes; undo reverts them") \
    X(WHAT_IF_SHARE,    "what-if-share",      "what-if",    "b",                  "Best layers", "use the layer distribution of the linear program") \
    X(WHAT_IF_SOLVE,    "what-if-solve",      "what-if",    "s",                  "Solve",    "apply the changes, then run the strategy again") \
    X(CONSOLE_LEVEL,    "console-level",      "console",    "L",                  "Level",    "choose the next level of the log") \
    X(CONSOLE_COMMANDS, "console-commands",   "console",    "c",                  "Commands", "show only commands, or the whole log") \
    X(CONSOLE_LUA,      "console-lua",        "console",    "e i",                "Lua",      "type lines of Lua; an empty line or Esc ends this") \
    X(CONSOLE_RECORD,   "console-record",     "console",    "R",                  "Record",   "start or end recording your changes as a script") \
    X(IMPORT_ACCEPT,    "import-accept",      "import",     "<Enter>",            "Accept",   "accept the import as one change that undo reverts") \
    X(IMPORT_WAY,       "import-way",         "import",     "<Tab>",              "How",      "replace the cluster, add nodes, or update nodes") \
    X(IMPORT_CARD,      "import-card",        "import",     "c",                  "Card",     "go to the next card whose kind is guessed") \
    X(IMPORT_KIND_NEXT, "import-kind-next",   "import",     "d",                  "Kind",     "choose the next kind for the guessed card") \
    X(IMPORT_KIND_PREV, "import-kind-previous", "import",   "D",                  "Kind",     "choose the previous kind for the guessed card") \
    X(HELP_RUN,         "help-run",           "help",       "<Enter>",            "Run",      "run the selected action")
/* clang-format on */

/** Actions. */
enum hv_action {
#define X(id, name, views, keys, label, help) HV_ACT_##id,
    HV_ACTION_MAP(X)
#undef X
        HV_ACT_N
};

/** One row of the table. */
struct hv_action_row {
    const char *name, *views, *keys, *label, *help;
};

/** The row of an action. */
const struct hv_action_row *hv_action_row(enum hv_action a);
/** The action with that name, HV_ACT_N when there is none. */
enum hv_action hv_action_find(const char *name);
/** True when the action can be used in the view (its own or "*"). */
bool hv_action_in_view(enum hv_action a, const char *view);

#endif
