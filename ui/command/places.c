/** Files and environment variables that the program uses, and its description: data of the manual
 * page. To document another file or variable, add a row. */
#include "solver/base/attr.h"
#include "ui/command/help.h"

struct place {
    const char *name, *help;
};

/* clang-format off */
static const struct place files[] = {
    {"$XDG_CONFIG_HOME/hetviz/keys", "key bindings that change the built-in ones; `share/keys/default.keys` lists these (~/.config without the variable)"},
    {"$XDG_CONFIG_HOME/hetviz/theme", "colours of the screens, if no theme is chosen"},
    {"$XDG_DATA_HOME/hetviz/plugins/", "your plugins, each a folder with plugin.lua or a .lua file (~/.local/share without the variable)"},
    {"$XDG_DATA_HOME/hetviz/profiles/", "measured tables of devices, written by `hetviz profile` and used by every command"},
    {"$XDG_DATA_HOME/hetviz/calibrations/", "numbers fitted to your own runs by `hetviz calibrate`, one file for each kind of device; they take the place of the shipped ones"},
    {"$XDG_STATE_HOME/hetviz/last.json", "the place where the screens were left (~/.local/state without the variable)"},
    {"$XDG_STATE_HOME/hetviz/recovery/", "unsaved changes of open workspaces, offered at the next start"},
    {"$XDG_STATE_HOME/hetviz/sample/", "your copy of the sample workspace that opens without an argument"},
    {"$XDG_CACHE_HOME/hetviz/plugins.json", "metadata of plugins by the hash of their files; may be removed (~/.cache without the variable)"},
    {"PREFIX/share/hetviz/", "shipped files: plugins/, samples/ (clusters, jobs, models, plans, instances, workspaces), share/devices, share/models, share/profiles, share/schema, share/guide"},
};
static const struct place variables[] = {
    {"HETVIZ_PLUGINS", "folders with further plugins, separated by colons; of two plugins with one id the one found later counts"},
    {"HETVIZ_ROOT", "folder that replaces PREFIX/share/hetviz for all shipped files"},
    {"HETVIZ_THEME", "theme of the screens, if --theme is not given"},
    {"HETVIZ_PLAIN", "1: print text lines instead of screens, as --plain does"},
    {"NO_COLOR", "if set and not empty: use no colours"},
    {"COLORFGBG", "set by some terminals; a light background selects the theme light"},
    {"TERM", "type of the terminal; dumb prints text lines instead of screens"},
    {"VISUAL", "editor for plugins and files, with its arguments"},
    {"EDITOR", "the same, if VISUAL is not set (vi if neither is)"},
    {"XDG_CONFIG_HOME", "folder of your settings (see FILES)"},
    {"XDG_DATA_HOME", "folder of your plugins, profiles and calibrations"},
    {"XDG_STATE_HOME", "folder of recovery files and of the last place"},
    {"XDG_CACHE_HOME", "folder of caches"},
    {"HOME", "your folder; the XDG folders lie in it if their variables are not set"},
    {"LC_CTYPE", "characters of the terminal; numbers in files have decimal points in every locale"},
};
/* clang-format on */

static void add_places(struct hv_str *out, const char *title, const struct place *rows, size_t n,
                       void (*add_text)(struct hv_str *out, const char *text))
{
    hv_str_addf(out, ".SH %s\n", title);
    for (size_t i = 0; i < n; i++) {
        hv_str_adds(out, ".TP\n.B ");
        add_text(out, rows[i].name);
        hv_str_addc(out, '\n');
        add_text(out, rows[i].help);
        hv_str_addc(out, '\n');
    }
}

void hv_places_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text))
{
    add_places(out, "FILES", files, HV_COUNT(files), add_text);
    add_places(out, "ENVIRONMENT", variables, HV_COUNT(variables), add_text);
}

void hv_description_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text))
{
    static const char *const paragraphs[] = {
        "hetviz plans the training of large models on clusters of unequal GPUs. It runs published "
        "planning systems (strategies) side by side, simulates the plans that they make with one "
        "simulator, and shows the timeline, the memory and the cost of each plan, why it takes "
        "that long, and what would make it faster.",
        "Without a command, hetviz opens a workspace in the terminal: a cluster, a model, a "
        "training job and the plans for them. WORKSPACE is a file, a folder with workspace.json, "
        "or the name of a sample; without it, the last workspace or a sample opens. With a "
        "command, it prints its result and ends; --json prints it as one JSON value.",
        "CLUSTER, MODEL, JOB and PLAN are files (JSON, formats in share/schema) or names of "
        "shipped ones. A single - is standard input or standard output."};
    for (size_t i = 0; i < HV_COUNT(paragraphs); i++) {
        hv_str_adds(out, i > 0 ? ".PP\n" : "");
        add_text(out, paragraphs[i]);
        hv_str_addc(out, '\n');
    }
}
