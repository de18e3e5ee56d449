/*
 * Texts made from the table of schedules: list, one in full, part of the manual page. Not for
 * making schedules.
 */
#include "solver/sim/schedule.h"
#include "ui/session/command.h"
#include <string.h>

static void add_choices(struct hv_str *out, const struct hv_schedule_option *o)
{
    for (size_t i = 0; o->choices != NULL && o->choices[i] != NULL; i++)
        hv_str_addf(out, "%s%s", i == 0 ? "" : "|", o->choices[i]);
    if (o->choices == NULL)
        hv_str_addf(out, "%lld to %lld", (long long)o->min, (long long)o->max);
}

void hv_schedule_list(struct hv_str *out)
{
    size_t n = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n);

    for (size_t i = 0; i < n; i++)
        hv_str_addf(out, "%-18s %s\n", rows[i].name, rows[i].summary);
    hv_str_adds(out,
                "\n`hetviz help NAME` says more of one; plugins with order(p) add their own.\n");
}

bool hv_schedule_help(struct hv_str *out, const char *name)
{
    const struct hv_schedule_row *s = NULL;

    if (hv_schedule_find(name, &s, NULL) != HV_OK)
        return false;
    hv_str_addf(out, "%s: %s\n\nsource  %s\nneeds   %s\nmemory  %s\n", s->name, s->summary,
                s->source, s->constraints[0] != '\0' ? s->constraints : "nothing", s->memory);
    hv_str_adds(out, s->n_options > 0 ? "\noptions\n" : "");
    for (size_t i = 0; i < s->n_options; i++) {
        const struct hv_schedule_option *o = &s->options[i];
        hv_str_addf(out, "  -o %s=", o->key);
        if (o->choices != NULL)
            hv_str_adds(out, o->choices[o->def]);
        else
            hv_str_addf(out, "%lld", (long long)o->def);
        hv_str_adds(out, " (");
        add_choices(out, o);
        hv_str_addf(out, ")\n      %s\n", o->help);
    }
    return true;
}

void hv_schedule_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text))
{
    size_t n = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n);

    for (size_t i = 0; i < n; i++) {
        const struct hv_schedule_row *s = &rows[i];
        hv_str_adds(out, ".TP\n.B ");
        add_text(out, s->name);
        hv_str_addc(out, '\n');
        add_text(out, s->summary);
        hv_str_adds(out, ". Memory: ");
        add_text(out, s->memory);
        hv_str_adds(out, s->constraints[0] != '\0' ? ". Needs: " : "");
        add_text(out, s->constraints);
        hv_str_adds(out, ". Source: ");
        add_text(out, s->source);
        hv_str_adds(out, ".\n");
        for (size_t k = 0; k < s->n_options; k++) {
            struct hv_str line = {0};
            hv_str_addf(&line, "%s=", s->options[k].key);
            add_choices(&line, &s->options[k]);
            hv_str_addf(&line, ": %s.", s->options[k].help);
            hv_str_adds(out, ".br\n");
            add_text(out, hv_str_cstr(&line));
            hv_str_addc(out, '\n');
            hv_str_free(&line);
        }
    }
}
