/**
 * Completion scripts for bash, zsh and fish, made from the command table. What an option takes is
 * told by its metavar; the scripts ask the program for these words (`hetviz completion clusters`).
 */
#include "ui/command/help.h"

#include <string.h>

/* Words for the value of an option, or for a positional argument, by its name in the table. */
static const struct {
    const char *metavar, *words;
    bool many; /* several with , or + between */
} sources[] = {
    {"CLUSTER", "clusters", false},   {"MODEL", "models", false},
    {"JOB", "jobs", false},           {"PLAN", "plans", false},
    {"INSTANCE", "instances", false}, {"STRATEGY", "strategies", true},
    {"A,B,...", "strategies", true},  {"KIND", "devices", false},
    {"NAME=KIND", "devices", false},  {"TARGET", "targets", false},
    {"COLUMN", "columns", false},     {"COLUMN,...", "columns", true},
    {"FIGURE", "figures", false},     {"FIGURE,...", "figures", true},
};

/* Number of the row of a metavar, or -1: only files, if anything, can be offered. */
static int source_of(const char *metavar)
{
    for (size_t i = 0; metavar != NULL && i < HV_COUNT(sources); i++) {
        if (strcmp(sources[i].metavar, metavar) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* True where an option takes KEY=VALUE of a strategy or of a schedule. */
static bool is_option_of(const struct hv_opt *o)
{
    return o->type == HV_ARG_KEY_VALUE && strcmp(o->name, "option") == 0;
}

static void add_words(struct hv_str *out, const struct hv_command *c)
{
    size_t n = 0;
    const struct hv_opt *global = hv_global_options(&n);

    for (size_t i = 0; i < c->n_options; i++) {
        hv_str_addf(out, "--%s ", c->options[i].name);
    }
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(out, "--%s ", global[i].name);
    }
}

static void add_commands(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].hidden) {
            hv_str_addf(out, "%s ", rows[i].name);
        }
    }
}

/* "--ascii --plain …": options of the program without a command. */
static void add_front(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_opt *rows = hv_front_options(&n);
    for (size_t i = 0; i < n; i++) {
        hv_str_addf(out, "--%s ", rows[i].name);
    }
}

/* "-c|--cluster", as a pattern of bash and zsh. */
static void add_pattern(struct hv_str *out, const struct hv_opt *o)
{
    if (o->letter != 0) {
        hv_str_addf(out, "-%c|", o->letter);
    }
    hv_str_addf(out, "--%s", o->name);
}

/* The lines of a `case` over the option before the cursor that set from and many. */
static void add_sources(struct hv_str *out, const struct hv_command *c)
{
    for (size_t i = 0; i < c->n_options; i++) {
        const struct hv_opt *o = &c->options[i];
        int row = source_of(o->metavar);
        if (row < 0 && !is_option_of(o)) {
            continue;
        }
        hv_str_adds(out, "      ");
        add_pattern(out, o);
        if (row < 0) {
            hv_str_addf(out, ") from=%s;;\n", c->id == HV_CMD_SCHEDULE ? "schedules" : "options");
        } else {
            hv_str_addf(out, ") from=%s%s;;\n", sources[row].words,
                        sources[row].many ? " many=1" : "");
        }
    }
}

/* The cases of both shells: options of each command, words of its options and arguments. */
static void add_cases(struct hv_str *out, const char *open, const char *close, const char *before)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(rows[i].args, " .");
        if (rows[i].hidden) {
            continue;
        }
        hv_str_addf(out, "  %s) options=%s", rows[i].name, open);
        add_words(out, &rows[i]);
        hv_str_addf(out, "%s", close);
        char first[32] = "";
        if (len < sizeof first) {
            memcpy(first, rows[i].args, len);
            first[len] = '\0';
        }
        int row = source_of(first);
        if (row >= 0) {
            hv_str_addf(out, " from=%s", sources[row].words);
        }
        hv_str_addf(out, "\n    case %s in\n", before);
        add_sources(out, &rows[i]);
        /* the value of another option is a file, if anything */
        hv_str_adds(out, "      -*) from=;;\n    esac;;\n");
    }
    hv_str_addf(out, "  -*) options=%s", open); /* no command: a workspace on the screens */
    add_front(out);
    hv_str_addf(out, "%s;;\n", close);
}

/* The end of the function for bash: options, or the words of the value before the cursor. */
static void add_bash_values(struct hv_str *out)
{
    hv_str_adds(
        out,
        "  case $cur in -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")); return;; esac\n"
        "  if [ -z \"$from\" ]; then COMPREPLY=($(compgen -f -- \"$cur\")); return; fi\n"
        "  case $from:$key:$cur in options::*.*) head=${cur%%.*}.; strategy=${cur%%.*}; "
        "cur=${cur#*.};; "
        "esac\n"
        "  words=$(\"$me\" completion $from ${strategy:+\"$strategy\"} 2>/dev/null)\n"
        "  case $from in\n"
        "  options|schedules)\n"
        "    [ -n \"$key\" ] && words=$(echo \"$words\" | sed -n \"s/^${key##*.}=//p\" "
        "2>/dev/null)\n"
        "    COMPREPLY=($(compgen -P \"$head\" -W \"$words\" -- \"$cur\"))\n"
        "    [ \"${COMPREPLY[0]: -1}\" = '=' ] && compopt -o nospace 2>/dev/null\n"
        "    return;;\n"
        "  esac\n"
        "  if [ -n \"$many\" ]; then head=${cur%\"${cur##*[,+]}\"}; fi\n"
        "  COMPREPLY=($(compgen -P \"$head\" -W \"$words\" -- \"${cur#\"$head\"}\"))\n"
        "  [ -n \"$many\" ] || COMPREPLY+=($(compgen -f -- \"$cur\"))\n"
        "}\ncomplete -F _hetviz hetviz\n");
}

static void add_bash(struct hv_str *out)
{
    hv_str_adds(out, "_hetviz() {\n"
                     "  local cur=${COMP_WORDS[COMP_CWORD]} me=${COMP_WORDS[0]} i\n"
                     "  if [ $COMP_CWORD = 1 ]; then\n"
                     "    case $cur in\n"
                     "    -*) COMPREPLY=($(compgen -W '");
    add_front(out);
    hv_str_adds(out, "' -- \"$cur\"));;\n"
                     "    *) COMPREPLY=($(compgen -f -W '");
    add_commands(out);
    hv_str_adds(out,
                "' -- \"$cur\"));;\n"
                "    esac\n"
                "    return\n"
                "  fi\n"
                "  # bash parts words at =: KEY = VALUE, or --option = value\n"
                "  local at=$((COMP_CWORD - 1)) key= from= many= options= strategy= words= head=\n"
                "  if [ \"$cur\" = '=' ]; then cur=; at=$COMP_CWORD; fi\n"
                "  if [ \"${COMP_WORDS[at]}\" = '=' ]; then\n"
                "    key=${COMP_WORDS[at - 1]}; at=$((at - 2))\n"
                "    case $key in -*) key=; at=$((at + 1));; esac\n"
                "  fi\n"
                "  for ((i = 2; i < COMP_CWORD; i++)); do\n"
                "    case ${COMP_WORDS[i]} in -s|--strategy|--strategies)\n"
                "      strategy=${COMP_WORDS[i + 1]}\n"
                "      [ \"$strategy\" = '=' ] && strategy=${COMP_WORDS[i + 2]};; esac\n"
                "  done\n"
                "  case ${COMP_WORDS[1]} in\n");
    add_cases(out, "'", "'", "${COMP_WORDS[at]}");
    hv_str_adds(
        out, "  esac\n"
             "  case ${COMP_WORDS[1]} in\n"
             "  schedule)\n"
             "    if [ $COMP_CWORD = 2 ]; then COMPREPLY=($(compgen -f -W \"$(\"$me\" completion "
             "schedules 2>/dev/null)\" -- \"$cur\")); return; fi\n"
             "    strategy=${COMP_WORDS[2]};;\n"
             "  import)\n"
             "    if [ $COMP_CWORD = 2 ]; then COMPREPLY=($(compgen -f -W '");
    hv_import_words(out);
    hv_str_adds(
        out,
        "' -- \"$cur\")); return; fi;;\n"
        "  strategies|selftest) case $cur in -*) ;; *) COMPREPLY=($(compgen -W \"$(\"$me\" "
        "completion strategies 2>/dev/null)\" -- \"$cur\")); return;; esac;;\n"
        "  help)\n"
        "    COMPREPLY=($(compgen -W \"schedules runtimes targets glossary knobs api man $(\"$me\" "
        "completion schedules "
        "2>/dev/null)\" -- \"$cur\")); return;;\n"
        "  esac\n");
    add_bash_values(out);
}

/** Works both sourced and from a folder of $fpath, where the file itself is the function. */
static void add_zsh(struct hv_str *out)
{
    hv_str_adds(out, "#compdef hetviz\n_hetviz() {\n"
                     "  local -a options offered\n"
                     "  local from= many= strategy= me=${words[1]} i\n"
                     "  if (( CURRENT == 2 )); then\n"
                     "    if [[ $PREFIX == -* ]]; then compadd -- ");
    add_front(out);
    hv_str_adds(out, "; return; fi\n    compadd -- ");
    add_commands(out);
    hv_str_adds(out, "\n    _files\n    return\n  fi\n"
                     "  for (( i = 3; i < CURRENT; i++ )); do\n"
                     "    [[ ${words[i]} == (-s|--strategy|--strategies) ]] && "
                     "strategy=${words[i+1]}\n"
                     "  done\n"
                     "  case ${words[2]} in\n");
    add_cases(out, "(", ")", "${words[CURRENT-1]}");
    hv_str_adds(out,
                "  esac\n"
                "  if [[ ${words[2]} == schedule && $CURRENT == 3 ]] || [[ ${words[2]} == help ]]; "
                "then\n"
                "    compadd -- ${(f)\"$($me completion schedules 2>/dev/null)\"}\n"
                "    [[ ${words[2]} == help ]] && compadd -- schedules runtimes targets glossary "
                "knobs api man\n"
                "    return\n"
                "  fi\n"
                "  if [[ ${words[2]} == import && $CURRENT == 3 ]]; then\n    compadd -- ");
    hv_import_words(out);
    hv_str_adds(
        out, "\n    _files\n    return\n  fi\n"
             "  [[ ${words[2]} == schedule ]] && strategy=${words[3]}\n"
             "  [[ ${words[2]} == (strategies|selftest) ]] && from=strategies many=1\n"
             "  if [[ $PREFIX == -* ]]; then compadd -- $options; return; fi\n"
             "  if [[ -z $from ]]; then _files; return; fi\n"
             "  offered=(${(f)\"$($me completion $from $strategy 2>/dev/null)\"})\n"
             "  case $from in\n"
             "  options|schedules) compadd -S '' -- $offered; return;;\n"
             "  devices) compset -P '*=';;\n"
             "  esac\n"
             "  if [[ -n $many ]]; then compset -P '*[,+]'; compadd -S '' -- $offered; return; fi\n"
             "  compadd -- $offered\n"
             "  _files\n"
             "}\nif [[ $funcstack[1] == _hetviz ]]; then _hetviz \"$@\"; else compdef "
             "_hetviz hetviz; fi\n");
}

/** Adds text inside single quotes for fish. */
static void add_quoted(struct hv_str *out, const char *text)
{
    hv_str_addc(out, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            hv_str_adds(out, "'\\''");
        } else {
            hv_str_addc(out, *text);
        }
    }
    hv_str_addc(out, '\'');
}

/* The words that fish offers for the value of an option. */
static void add_fish_words(struct hv_str *out, const struct hv_command *c, const struct hv_opt *o)
{
    int row = source_of(o->metavar);
    if (is_option_of(o)) {
        hv_str_addf(out, " -x -a '(__hetviz_options %s)'",
                    c->id == HV_CMD_SCHEDULE ? "schedules" : "options");
    } else if (row >= 0 && (sources[row].many || o->type == HV_ARG_KEY_VALUE)) {
        hv_str_addf(out, " -x -a '(__hetviz_list %s)'", sources[row].words);
    } else if (row >= 0) {
        hv_str_addf(out, " -r -a '(hetviz completion %s 2>/dev/null)'", sources[row].words);
    } else if (o->type != HV_ARG_FLAG) {
        hv_str_adds(out, " -r");
    }
}

/* One option; `when` is the condition of fish, quoted; c is NULL for those without a command. */
static void add_fish_option(struct hv_str *out, const char *when, const struct hv_command *c,
                            const struct hv_opt *o)
{
    hv_str_addf(out, "complete -c hetviz -n %s -l %s", when, o->name);
    if (o->letter != 0) {
        hv_str_addf(out, " -s %c", o->letter);
    }
    add_fish_words(out, c, o);
    hv_str_adds(out, " -d ");
    add_quoted(out, o->help);
    hv_str_addc(out, '\n');
}

static void add_fish_command(struct hv_str *out, const struct hv_command *c)
{
    struct hv_str when = {0};
    hv_str_addf(&when, "'__fish_seen_subcommand_from %s'", c->name);
    hv_str_addf(out, "complete -c hetviz -n __fish_use_subcommand -a %s -d ", c->name);
    add_quoted(out, c->summary);
    hv_str_addc(out, '\n');
    for (size_t j = 0; j < c->n_options; j++) {
        add_fish_option(out, hv_str_cstr(&when), c, &c->options[j]);
    }
    hv_str_free(&when);
    size_t len = strcspn(c->args, " .");
    for (size_t i = 0; i < HV_COUNT(sources); i++) {
        if (strlen(sources[i].metavar) == len && strncmp(sources[i].metavar, c->args, len) == 0) {
            hv_str_addf(out,
                        "complete -c hetviz -n '__fish_seen_subcommand_from %s' -a '(hetviz "
                        "completion %s 2>/dev/null)'\n",
                        c->name, sources[i].words);
        }
    }
}

static void add_fish(struct hv_str *out)
{
    size_t n = 0, n_front = 0;
    const struct hv_command *rows = hv_commands(&n);
    const struct hv_opt *front = hv_front_options(&n_front);

    hv_str_adds(out, "# words behind the last comma, plus or equals sign of the present word\n"
                     "function __hetviz_list\n"
                     "  set -l head (string replace -r '[^,+=]*$' '' -- (commandline -ct))\n"
                     "  for word in (hetviz completion $argv 2>/dev/null)\n"
                     "    echo $head$word\n"
                     "  end\n"
                     "end\n"
                     "# options of the strategy behind -s, or of the schedule\n"
                     "function __hetviz_options\n"
                     "  set -l tokens (commandline -opc)\n"
                     "  set -l name\n"
                     "  if test $argv[1] = schedules\n"
                     "    set name $tokens[3]\n"
                     "  else\n"
                     "    for i in (seq (count $tokens))\n"
                     "      if contains -- $tokens[$i] -s --strategy --strategies\n"
                     "        set name $tokens[(math $i + 1)]\n"
                     "      end\n"
                     "    end\n"
                     "  end\n"
                     "  hetviz completion $argv[1] $name 2>/dev/null\n"
                     "end\n");
    for (size_t i = 0; i < n_front; i++) {
        add_fish_option(out, "__fish_use_subcommand", NULL, &front[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].hidden) {
            add_fish_command(out, &rows[i]);
        }
    }
    hv_str_adds(out, "complete -c hetviz -n '__fish_seen_subcommand_from schedule help' -a "
                     "'(hetviz completion schedules 2>/dev/null)'\n"
                     "complete -c hetviz -n '__fish_seen_subcommand_from strategies selftest' -a "
                     "'(hetviz completion strategies 2>/dev/null)'\n"
                     "complete -c hetviz -n '__fish_seen_subcommand_from import' -a '");
    hv_import_words(out);
    hv_str_adds(out, "'\n");
}

enum hv_status hv_command_completion(struct hv_str *out, const char *shell, struct hv_err *err)
{
    if (strcmp(shell, "bash") == 0) {
        add_bash(out);
    } else if (strcmp(shell, "zsh") == 0) {
        add_zsh(out);
    } else if (strcmp(shell, "fish") == 0) {
        add_fish(out);
    } else {
        return hv_err_set(err, HV_EUSAGE, "completion: expected bash, zsh or fish, found '%s'",
                          shell);
    }
    return HV_OK;
}
