/**
 * Texts made from the command table: usage, help, list, manual page. Completion scripts are in
 * completion.c. Not for parsing.
 */
#include "ui/command/help.h"
#include "solver/base/page/roff.h"
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
    } else if (c->id == HV_CMD_EXPORT) {
        hv_str_adds(out, "\ntargets:\n");
        hv_target_list(out);
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

static void add_roff_options(struct hv_str *out, const struct hv_opt *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hv_str name = {0};
        add_opt_name(&name, &rows[i]);
        hv_str_adds(out, ".TP\n.B ");
        hv_roff_words(out, hv_str_cstr(&name) + strspn(hv_str_cstr(&name), " "));
        hv_str_addc(out, '\n');
        hv_roff_text(out, rows[i].help);
        hv_str_addc(out, '\n');
        hv_str_free(&name);
    }
}

void hv_command_man(struct hv_str *out)
{
    size_t n = 0, n_global = 0;
    const struct hv_command *rows = hv_commands(&n);
    const struct hv_opt *global = hv_global_options(&n_global);

    hv_roff_head(out, "HETVIZ", 1);
    hv_str_adds(out,
                ".SH NAME\nhetviz \\- plan training on pools of unequal GPUs\n"
                ".SH SYNOPSIS\n.B hetviz\n[\\fIWORKSPACE\\fR]\n.br\n.B hetviz\n\\fICOMMAND\\fR "
                "[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n");
    hv_description_man(out, hv_roff_text);
    hv_str_adds(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < n; i++) {
        struct hv_str usage = {0};
        if (rows[i].hidden) {
            continue;
        }
        add_usage(&usage, &rows[i]);
        hv_str_adds(out, ".SS ");
        hv_roff_words(out, hv_str_cstr(&usage));
        hv_str_addc(out, '\n');
        hv_roff_text(out, rows[i].help);
        hv_str_addc(out, '\n');
        add_roff_options(out, rows[i].options, rows[i].n_options);
        if (rows[i].id == HV_CMD_IMPORT) {
            hv_import_man(out, hv_roff_text);
        }
        hv_str_free(&usage);
    }
    hv_str_adds(out, ".SH SCHEDULES\n");
    hv_schedule_man(out, hv_roff_text);
    hv_str_adds(out, ".SH RUNTIMES\n");
    hv_runtime_man(out, hv_roff_text);
    hv_str_adds(out, ".SH TARGETS\n");
    hv_target_man(out, hv_roff_text);
    hv_str_adds(out, ".SH GLOSSARY\n");
    hv_glossary_man(out, hv_roff_text);
    const struct hv_opt *front = hv_front_options(&n);
    hv_str_adds(out, ".SH OPTIONS OF THE SCREENS\n");
    add_roff_options(out, front, n);
    hv_str_adds(out, ".SH OPTIONS OF EVERY COMMAND\n");
    add_roff_options(out, global, n_global);
    hv_places_man(out, hv_roff_text);
    hv_str_adds(out, ".SH EXIT STATUS\n");
    hv_roff_text(out, "0: success; 1: no feasible plan, a violation or a failed test; 2: wrong "
                      "usage; 3: invalid input; 4: ended early by a signal or by --time-limit; 5: "
                      "error in a plugin; 70: internal error.\n");
    hv_str_adds(out, ".SH SEE ALSO\n.BR hetviz\\-plugin (7)\n");
}
