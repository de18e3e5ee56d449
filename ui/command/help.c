/**
 * Texts made from the command table: usage, help, list, manual page, completion scripts. Not for
 * parsing.
 */
#include "ui/command/help.h"
#include "ui/command/glossary.h"

#include <string.h>

/* Widest line of prose in the help. */
#define HELP_COLUMNS 90

static void add_opt_name(struct hv_str *out, const struct hv_opt *o)
{
    if (o->letter != 0) {
        hv_str_addf(out, "-%c, --%s", o->letter, o->name);
    } else {
        hv_str_addf(out, "    --%s", o->name);
    }
    if (o->metavar != NULL) {
        hv_str_addf(out, " %s", o->metavar);
    }
}

/* "hetviz plan -c CLUSTER -m MODEL … ". */
static void add_usage(struct hv_str *out, const struct hv_command *c)
{
    hv_str_addf(out, "hetviz %s", c->name);
    if (c->args[0] != '\0') {
        hv_str_addf(out, " %s", c->args);
    }
    for (size_t i = 0; i < c->n_options; i++) {
        const struct hv_opt *o = &c->options[i];
        hv_str_adds(out, o->required ? " " : " [");
        if (o->letter != 0) {
            hv_str_addf(out, "-%c", o->letter);
        } else {
            hv_str_addf(out, "--%s", o->name);
        }
        if (o->metavar != NULL) {
            hv_str_addf(out, " %s", o->metavar);
        }
        if (!o->required) {
            hv_str_addc(out, ']');
        }
    }
}

static void add_options(struct hv_str *out, const struct hv_opt *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t start = out->n;
        hv_str_adds(out, "  ");
        add_opt_name(out, &rows[i]);
        size_t width = out->n - start;
        do {
            hv_str_addc(out, ' ');
        } while (++width < 32);
        hv_str_addf(out, "%s\n", rows[i].help);
    }
}

/** Adds text wrapped at blanks to HELP_COLUMNS; newlines in it stay. */
static void add_wrapped(struct hv_str *out, const char *text)
{
    size_t column = 0;

    while (*text != '\0') {
        size_t word = strcspn(text, " \n");
        if (column > 0 && column + 1 + word > HELP_COLUMNS) {
            hv_str_addc(out, '\n');
            column = 0;
        } else if (column > 0) {
            hv_str_addc(out, ' ');
            column++;
        }
        hv_str_add(out, text, word);
        column += word;
        text += word;
        if (*text == '\n') {
            hv_str_addc(out, '\n');
            column = 0;
        }
        text += *text != '\0';
    }
}

void hv_command_help(struct hv_str *out, const struct hv_command *c)
{
    size_t n_global = 0;
    const struct hv_opt *global = hv_global_options(&n_global);

    hv_str_adds(out, "usage: ");
    add_usage(out, c);
    hv_str_adds(out, "\n\n");
    add_wrapped(out, c->help);
    hv_str_adds(out, "\n\noptions:\n");
    add_options(out, c->options, c->n_options);
    add_options(out, global, n_global);
    if (c->id == HV_CMD_IMPORT) {
        hv_import_help(out, add_wrapped);
    }
}

void hv_command_list(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);

    hv_str_adds(out,
                "hetviz compares plans for training large models on unequal devices\n\n  hetviz "
                "[WORKSPACE]       open the terminal front end (default: a sample)\n  hetviz "
                "COMMAND [ARGS]    run a command; `hetviz help COMMAND` explains it\n\n");
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].hidden) {
            hv_str_addf(out, "  %-12s %s\n", rows[i].name, rows[i].summary);
        }
    }
    const struct hv_opt *front = hv_front_options(&n);
    hv_str_adds(out, "\noptions of the front end:\n");
    add_options(out, front, n);
}

/** The roff escape of a character that is not ASCII; NULL for characters that the texts do not
 * use. */
static const char *roff_name(const char *text)
{
    static const char *const names[][2] = {{"…", "..."},   {"–", "\\(en"}, {"—", "\\(em"},
                                           {"×", "\\(mu"}, {"≤", "\\(<="}, {"≥", "\\(>="},
                                           {"→", "\\(->"}};
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        if (strncmp(text, names[i][0], strlen(names[i][0])) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

/** Adds text with the characters that roff interprets escaped. */
static void add_roff(struct hv_str *out, const char *text)
{
    for (bool line_start = true; *text != '\0'; text++) {
        const char *name = (unsigned char)*text >= 0x80 ? roff_name(text) : NULL;
        if (name != NULL) {
            hv_str_adds(out, name);
            while (((unsigned char)text[1] & 0xc0) == 0x80) {
                text++;
            }
            line_start = false;
            continue;
        }
        if (line_start && (*text == '.' || *text == '\'')) {
            hv_str_adds(out, "\\&");
        }
        if (*text == '\\') {
            hv_str_adds(out, "\\e");
        } else if (*text == '-') {
            hv_str_adds(out, "\\-");
        } else {
            hv_str_addc(out, *text);
        }
        line_start = *text == '\n';
        if (line_start) {
            hv_str_adds(out, ".br\n");
        }
    }
}

static void add_roff_options(struct hv_str *out, const struct hv_opt *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hv_str name = {0};
        add_opt_name(&name, &rows[i]);
        hv_str_adds(out, ".TP\n.B ");
        add_roff(out, hv_str_cstr(&name) + strspn(hv_str_cstr(&name), " "));
        hv_str_addc(out, '\n');
        add_roff(out, rows[i].help);
        hv_str_addc(out, '\n');
        hv_str_free(&name);
    }
}

void hv_command_man(struct hv_str *out)
{
    size_t n = 0, n_global = 0;
    const struct hv_command *rows = hv_commands(&n);
    const struct hv_opt *global = hv_global_options(&n_global);

    hv_str_adds(out,
                ".TH HETVIZ 1\n.SH NAME\nhetviz \\- plan training on pools of unequal GPUs\n"
                ".SH SYNOPSIS\n.B hetviz\n[\\fIWORKSPACE\\fR]\n.br\n.B hetviz\n\\fICOMMAND\\fR "
                "[\\fIOPTIONS\\fR]\n.SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) {
        struct hv_str usage = {0};
        if (rows[i].hidden) {
            continue;
        }
        add_usage(&usage, &rows[i]);
        hv_str_adds(out, ".SS ");
        add_roff(out, hv_str_cstr(&usage));
        hv_str_addc(out, '\n');
        add_roff(out, rows[i].help);
        hv_str_addc(out, '\n');
        add_roff_options(out, rows[i].options, rows[i].n_options);
        if (rows[i].id == HV_CMD_IMPORT) {
            hv_import_man(out, add_roff);
        }
        hv_str_free(&usage);
    }
    hv_str_adds(out, ".SH SCHEDULES\n");
    hv_schedule_man(out, add_roff);
    hv_str_adds(out, ".SH GLOSSARY\n");
    hv_glossary_man(out, add_roff);
    const struct hv_opt *front = hv_front_options(&n);
    hv_str_adds(out, ".SH OPTIONS OF THE SCREENS\n");
    add_roff_options(out, front, n);
    hv_str_adds(out, ".SH OPTIONS OF EVERY COMMAND\n");
    add_roff_options(out, global, n_global);
    hv_str_adds(out, ".SH EXIT STATUS\n0: success; 1: no feasible plan, a violation or a failed "
                     "test; 2: wrong usage; 3: invalid input; 4: ended early by a signal or by "
                     "--time-limit; 5: error in a plugin; 70: internal error.\n");
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

static void add_bash(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);

    hv_str_adds(out,
                "_hetviz() {\n  local cur=${COMP_WORDS[COMP_CWORD]}\n  if [ $COMP_CWORD = 1 ]; "
                "then COMPREPLY=($(compgen -f -W '");
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].hidden) {
            hv_str_addf(out, "%s ", rows[i].name);
        }
    }
    hv_str_adds(out, "' -- \"$cur\")); return; fi\n  local words=\n  case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < n; i++) {
        if (rows[i].hidden) {
            continue;
        }
        hv_str_addf(out, "  %s) words='", rows[i].name);
        add_words(out, &rows[i]);
        hv_str_adds(out, "';;\n");
    }
    hv_str_adds(
        out, "  esac\n"
             "  local at=$((COMP_CWORD - 1)) me=${COMP_WORDS[0]} key=\n"
             "  case ${COMP_WORDS[1]} in\n"
             "  schedule)\n"
             "    if [ $COMP_CWORD = 2 ]; then COMPREPLY=($(compgen -f -W \"$(\"$me\" completion "
             "schedules 2>/dev/null)\" -- \"$cur\")); return; fi\n"
             "    if [ \"$cur\" = '=' ]; then key=${COMP_WORDS[at]}; cur=; at=$((at - 1))\n"
             "    elif [ \"${COMP_WORDS[at]}\" = '=' ]; then key=${COMP_WORDS[at - 1]}; at=$((at "
             "- 2)); fi\n"
             "    case ${COMP_WORDS[at]} in -o|--option)\n"
             "      words=$(\"$me\" completion schedules \"${COMP_WORDS[2]}\" 2>/dev/null)\n"
             "      [ -n \"$key\" ] && words=$(echo \"$words\" | sed -n \"s/^$key=//p\")\n"
             "      COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
             "      [ \"${COMPREPLY[0]: -1}\" = '=' ] && compopt -o nospace 2>/dev/null\n"
             "      return;; esac;;\n"
             "  import)\n"
             "    if [ $COMP_CWORD = 2 ]; then COMPREPLY=($(compgen -W '");
    hv_import_words(out);
    hv_str_adds(
        out,
        "' -- \"$cur\")); return; fi;;\n"
        "  help)\n"
        "    COMPREPLY=($(compgen -W \"schedules glossary knobs api man $(\"$me\" completion schedules "
        "2>/dev/null)\" -- \"$cur\")); return;;\n"
        "  esac\n"
        "  case $cur in -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"));; *) "
        "COMPREPLY=($(compgen -f -- \"$cur\"));; esac\n}\ncomplete -F _hetviz hetviz\n");
}

/** Works both sourced and from a folder of $fpath, where the file itself is the function. */
static void add_zsh(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);

    hv_str_adds(out,
                "#compdef hetviz\n_hetviz() {\n  local -a words_here\n  if (( CURRENT == 2 )); "
                "then\n    compadd --");
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].hidden) {
            hv_str_addf(out, " %s", rows[i].name);
        }
    }
    hv_str_adds(out, "\n    _files\n    return\n  fi\n  case ${words[2]} in\n");
    for (size_t i = 0; i < n; i++) {
        if (rows[i].hidden) {
            continue;
        }
        hv_str_addf(out, "  %s) words_here=(", rows[i].name);
        add_words(out, &rows[i]);
        hv_str_adds(out, ");;\n");
    }
    hv_str_adds(out,
                "  esac\n"
                "  if [[ ${words[2]} == schedule && $CURRENT == 3 ]] || [[ ${words[2]} == help "
                "]]; then\n"
                "    compadd -- ${(f)\"$(${words[1]} completion schedules 2>/dev/null)\"}\n"
                "    [[ ${words[2]} == help ]] && compadd -- schedules glossary knobs api man\n"
                "    return\n"
                "  fi\n"
                "  if [[ ${words[2]} == import && $CURRENT == 3 ]]; then\n    compadd -- ");
    hv_import_words(out);
    hv_str_adds(out, "\n    return\n  fi\n"
                     "  if [[ ${words[2]} == schedule && ${words[CURRENT-1]} == (-o|--option) ]]; "
                     "then\n"
                     "    compadd -S '' -- ${(f)\"$(${words[1]} completion schedules ${words[3]} "
                     "2>/dev/null)\"}\n"
                     "    return\n"
                     "  fi\n"
                     "  if [[ $PREFIX == -* ]]; then compadd -- $words_here; else _files; "
                     "fi\n}\nif [[ $funcstack[1] == _hetviz ]]; then _hetviz \"$@\"; else compdef "
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

static void add_fish(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);

    for (size_t i = 0; i < n; i++) {
        if (rows[i].hidden) {
            continue;
        }
        hv_str_addf(out, "complete -c hetviz -n __fish_use_subcommand -a %s -d ", rows[i].name);
        add_quoted(out, rows[i].summary);
        hv_str_addc(out, '\n');
        for (size_t j = 0; j < rows[i].n_options; j++) {
            const struct hv_opt *o = &rows[i].options[j];
            hv_str_addf(out, "complete -c hetviz -n '__fish_seen_subcommand_from %s' -l %s",
                        rows[i].name, o->name);
            if (o->letter != 0) {
                hv_str_addf(out, " -s %c", o->letter);
            }
            hv_str_adds(out, o->type == HV_ARG_FLAG ? " -d " : " -r -d ");
            add_quoted(out, o->help);
            hv_str_addc(out, '\n');
        }
    }
}

/** The script runs the program for names of schedules and their options, because plugins add
 * some. */
static void add_fish_schedules(struct hv_str *out)
{
    hv_str_adds(out, "complete -c hetviz -n '__fish_seen_subcommand_from schedule help' -a "
                     "'(hetviz completion schedules 2>/dev/null)'\n"
                     "complete -c hetviz -n '__fish_seen_subcommand_from schedule' -l option -s o "
                     "-x -a '(hetviz completion schedules (commandline -opc)[3] 2>/dev/null)'\n"
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
        add_fish_schedules(out);
    } else {
        return hv_err_set(err, HV_EUSAGE, "completion: expected bash, zsh or fish, found '%s'",
                          shell);
    }
    return HV_OK;
}
