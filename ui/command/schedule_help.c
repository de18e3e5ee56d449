/*
 * Texts made from the table of schedules and from schedules written in Lua: list, one in full,
 * words for completion, part of the manual page. Not for making schedules.
 */
#include "scripting/plugin/plugin.h"
#include "solver/sim/schedule/schedule.h"
#include "ui/command/help.h"
#include <string.h>

static void add_choices(struct hv_str *out, const struct hv_schedule_option *o)
{
    for (size_t i = 0; o->choices != NULL && o->choices[i] != NULL; i++) {
        hv_str_addf(out, "%s%s", i == 0 ? "" : "|", o->choices[i]);
    }
    if (o->choices == NULL) {
        hv_str_addf(out, "%lld to %lld", (long long)o->min, (long long)o->max);
    }
}

static void add_default(struct hv_str *out, const struct hv_schedule_option *o)
{
    if (o->choices != NULL) {
        hv_str_adds(out, o->choices[o->def]);
    } else {
        hv_str_addf(out, "%lld", (long long)o->def);
    }
}

/** A schedule written in Lua, by number; NULL for plugins that are something else. */
static const struct hv_plugin *lua_schedule(const struct hv_plugins *lua, size_t i)
{
    const struct hv_plugin *p = &lua->items[i];

    return p->error == NULL && p->has[HV_PLUGIN_ORDER] ? p : NULL;
}

void hv_schedule_list(struct hv_str *out, const struct hv_plugins *lua)
{
    size_t n = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n);

    for (size_t i = 0; i < n; i++) {
        hv_str_addf(out, "%-18s %s\n", rows[i].name, rows[i].summary);
    }
    for (size_t i = 0; lua != NULL && i < lua->n; i++) {
        const struct hv_plugin *p = lua_schedule(lua, i);
        if (p != NULL) {
            hv_str_addf(out, "%-18s %s (Lua)\n", p->id, p->summary != NULL ? p->summary : p->title);
        }
    }
    hv_str_adds(out, "\n`hetviz help schedules NAME` describes one; plugins with order(p) add "
                     "further schedules.\n");
}

/** Describes the flags of a row. */
static void add_flags(struct hv_str *out, const struct hv_schedule_row *s)
{
    static const struct {
        unsigned flag;
        const char *text;
    } meanings[] = {
        {HV_SCHEDULE_ASYNC, "has no pipeline flush, so weights are stale"},
        {HV_SCHEDULE_SPLIT, "splits backwards into input and weight gradients"},
        {HV_SCHEDULE_TWO_WAY, "keeps several copies of the weights"},
        {HV_SCHEDULE_SLICES, "cuts sequences into token slices"},
        {HV_SCHEDULE_BY_COST, "chooses the order from given times (--plan-times, --scale, --hops)"},
        {HV_SCHEDULE_BY_MEMORY, "respects a memory limit per rank (--limits, in_flight in a plan)"},
    };
    if (s->flags & HV_SCHEDULE_CHUNKS) {
        hv_str_addf(out, "chunks  %s, default %d (-v)\n",
                    s->flags & HV_SCHEDULE_NEEDS_CHUNKS ? "2 or more" : "1 or more", s->chunks);
    } else {
        hv_str_addf(out, "chunks  %d\n", s->chunks);
    }
    for (size_t i = 0; i < HV_COUNT(meanings); i++) {
        if (s->flags & meanings[i].flag) {
            hv_str_addf(out, "        %s\n", meanings[i].text);
        }
    }
}

static void help_of_row(struct hv_str *out, const struct hv_schedule_row *s)
{
    hv_str_addf(out, "%s: %s\n\nsource  %s\nneeds   %s\nmemory  %s\n", s->name, s->summary,
                s->source, s->constraints[0] != '\0' ? s->constraints : "nothing", s->memory);
    add_flags(out, s);
    hv_str_adds(out, s->n_options > 0 ? "\noptions\n" : "\nno options\n");
    for (size_t i = 0; i < s->n_options; i++) {
        const struct hv_schedule_option *o = &s->options[i];
        hv_str_addf(out, "  -o %s=", o->key);
        add_default(out, o);
        hv_str_adds(out, " (");
        add_choices(out, o);
        hv_str_addf(out, ")\n      %s\n", o->help);
    }
}

static void help_of_plugin(struct hv_str *out, const struct hv_plugin *p)
{
    char def[128];

    hv_str_addf(out, "%s: %s\n\nsource  %s\nfile    %s\n", p->id,
                p->summary != NULL ? p->summary : p->title,
                p->reference != NULL ? p->reference : "not given", p->name);
    hv_str_adds(out, "chunks  default 1 (-v)\n");
    hv_str_adds(out, p->n_options > 0 ? "\noptions\n" : "\nno options\n");
    for (size_t i = 0; i < p->n_options; i++) {
        const struct hv_option_row *o = &p->options[i];
        hv_str_addf(out, "  -o %s=%s (%s", o->key, hv_option_text(o->def, def, sizeof def),
                    hv_option_type_name(o->type));
        for (size_t k = 0; k < o->n_choices; k++) {
            hv_str_addf(out, "%s%s", k == 0 ? ": " : "|", o->choices[k]);
        }
        hv_str_addf(out, ")\n      %s\n", o->help != NULL ? o->help : "");
    }
}

/** The plugin with order(p) of that id, or NULL. */
static const struct hv_plugin *find_lua(const struct hv_plugins *lua, const char *name)
{
    for (size_t i = 0; lua != NULL && i < lua->n; i++) {
        const struct hv_plugin *p = lua_schedule(lua, i);
        if (p != NULL && strcmp(p->id, name) == 0) {
            return p;
        }
    }
    return NULL;
}

bool hv_schedule_help(struct hv_str *out, const char *name, const struct hv_plugins *lua)
{
    const struct hv_schedule_row *s = NULL;
    const struct hv_plugin *p = find_lua(lua, name);

    if (hv_schedule_find(name, &s, NULL) == HV_OK) {
        help_of_row(out, s);
    } else if (p != NULL) {
        help_of_plugin(out, p);
    }
    return s != NULL || p != NULL;
}

static void add_word(struct hv_str *out, const char *key, const char *const *choices, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        hv_str_addf(out, "%s=%s\n", key, choices[k]);
    }
    if (n == 0) {
        hv_str_addf(out, "%s=\n", key);
    }
}

static void names(struct hv_str *out, const struct hv_plugins *lua)
{
    size_t n = 0;
    const struct hv_schedule_row *rows = hv_schedules(&n);

    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].flags & HV_SCHEDULE_ORDER)) { /* its order only exists as part of a plan */
            hv_str_addf(out, "%s\n", rows[i].name);
        }
    }
    for (size_t i = 0; lua != NULL && i < lua->n; i++) {
        if (lua_schedule(lua, i) != NULL) {
            hv_str_addf(out, "%s\n", lua->items[i].id);
        }
    }
}

void hv_schedule_words(struct hv_str *out, const char *name, const struct hv_plugins *lua)
{
    const struct hv_schedule_row *s = NULL;
    const struct hv_plugin *p = name != NULL ? find_lua(lua, name) : NULL;

    if (name == NULL) {
        names(out, lua);
    } else if (hv_schedule_find(name, &s, NULL) == HV_OK) {
        for (size_t i = 0; i < s->n_options; i++) {
            size_t n = 0;
            while (s->options[i].choices != NULL && s->options[i].choices[n] != NULL) {
                n++;
            }
            add_word(out, s->options[i].key, s->options[i].choices, n);
        }
    } else if (p != NULL) {
        for (size_t i = 0; i < p->n_options; i++) {
            add_word(out, p->options[i].key, p->options[i].choices, p->options[i].n_choices);
        }
    }
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
            hv_str_addf(&line, "-o %s=", s->options[k].key);
            add_choices(&line, &s->options[k]);
            hv_str_adds(&line, " (default ");
            add_default(&line, &s->options[k]);
            hv_str_addf(&line, "): %s.", s->options[k].help);
            hv_str_adds(out, ".br\n");
            add_text(out, hv_str_cstr(&line));
            hv_str_addc(out, '\n');
            hv_str_free(&line);
        }
    }
}
