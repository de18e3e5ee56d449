/*
 * The reference of the plugin API as text: list, one function, manual page. The rows come from the
 * comments (reference.awk); only the table that a plugin returns is described here. Help on
 * commands is in ui/command.
 */
#include "scripting/plugin/reference.h"
#include "scripting/plugin/plugin.h"
#include "solver/base/page/roff.h"

#include <string.h>

#define COLUMNS 92

static const struct hv_api_doc rows[] = {
#include "scripting/plugin/api_docs.inc"
};

/** A member of the table that a plugin returns. */
struct member {
    const char *name, *text;
};
static const struct member members[] = {
    {"api", "1, the version of this contract"},
    {"id", "name on the command line: a-z, 0-9, - and _"},
    {"title, kind, summary", "texts of lists; kind is the heading a menu puts it under"},
    {"system, reference", "the publication and its DOI or arXiv number; may be left out"},
    {"needs",
     "{model = \"transformer|layers|graph|modules\", jobs = \"many|any\", mode = \"serve\"}; where "
     "the input is another, the strategy does not apply; jobs: it schedules a queue (ctx.jobs), "
     "any: or one job"},
    {"effort, stale, serves, file_order, as_given",
     "facts that other strategies need: effort = \"quick|medium|slow\" (quick: a second at most on "
     "a "
     "thousand devices; without it `auto` asks the strategy by name only); stale = true: its plans "
     "compute with stale weights; serves = true: it plans inference; file_order = true: it sees "
     "node "
     "groups in the order of the cluster file, else in an order by hardware, so that its plans do "
     "not depend on the file's; as_given = true: its plans are what its options say, also where "
     "the "
     "job's runtime cannot run them"},
    {"options",
     "list of {key, type = \"integer|number|boolean|string|choice|schedule\", default, min, max, "
     "choices, help}; flags, forms, help and checks follow"},
    {"plan(ctx)", "a plan, a list of plans, or nil and the reason"},
    {"apply(plan, ctx)", "a changed plan (handle or table), or nil and the reason; a plugin with "
                         "apply stands after + in a composition"},
    {"order(p)",
     "every rank's list of tokens for p = {ranks, micro_batches, chunks, stages, times, "
     "per_stage, memory, options}: a schedule; the order travels in the plan"},
    {"replan(ctx, plan, lost)",
     "a plan without the devices whose numbers are in lost; where there is "
     "none, plan is called again without them"},
    {"claim(plan, ctx)",
     "the prediction of the publication's formula: {iteration_s, formula, terms, warnings, …}"},
    {"selftest(t)", "checks: t.near(name, got, want, tolerance, source), t.equal(name, got, want, "
                    "source), t.ok(name, condition, source)"},
    {"ctx", "{cluster, model (handles), job = {global_batch, sequence, precision, optimizer, …}, "
            "options, seed}; read-only, only valid inside the call"},
};

const struct hv_api_doc *hv_api_docs(size_t *n)
{
    *n = HV_COUNT(rows);
    return rows;
}

/* True where the row describes a function of the core, not one of share/lua. */
static bool is_core(const struct hv_api_doc *d)
{
    return strncmp(d->source, "scripting/", strlen("scripting/")) == 0;
}

/** Length of the first sentence. */
static size_t first_sentence(const char *text)
{
    const char *end = strstr(text, ". ");
    size_t n = end != NULL ? (size_t)(end - text) : strlen(text);
    return n > 0 && end == NULL && text[n - 1] == '.' ? n - 1 : n;
}

void hv_api_list(struct hv_str *out)
{
    size_t n_core = 0;

    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        hv_str_addf(out, "%-22s %.*s\n", rows[i].name, (int)first_sentence(rows[i].text),
                    rows[i].text);
        n_core += is_core(&rows[i]);
    }
    hv_str_addf(out, "%zu functions, %zu of share/lua; `hetviz help api NAME` explains one\n",
                n_core, HV_COUNT(rows) - n_core);
}

/** Adds text wrapped at blanks, every line indented; newlines stay. */
static void add_wrapped(struct hv_str *out, const char *text, int indent)
{
    while (*text != '\0') {
        size_t line = strcspn(text, "\n"), n = line;
        if (n > (size_t)(COLUMNS - indent)) {
            n = (size_t)(COLUMNS - indent);
            while (n > 0 && text[n] != ' ') {
                n--;
            }
            n = n == 0 ? line : n;
        }
        hv_str_addf(out, "%*s%.*s\n", indent, "", (int)n, text);
        text += n;
        text += *text == ' ' || *text == '\n';
    }
}

static void add_part(struct hv_str *out, const char *title, const char *text)
{
    if (text[0] == '\0') {
        return;
    }
    hv_str_addf(out, "  %s\n", title);
    add_wrapped(out, text, 4);
}

static void add_row(struct hv_str *out, const struct hv_api_doc *d)
{
    hv_str_addf(out, "%s\n", d->name);
    add_wrapped(out, d->text, 2);
    add_part(out, "takes", d->params);
    add_part(out, "gives", d->returns);
    add_part(out, "units", d->units);
    add_part(out, "errors", d->raises);
    hv_str_adds(out, d->usage[0] != '\0' ? "  example\n" : "");
    for (const char *line = d->usage; *line != '\0'; line += *line == '\n') {
        int n = (int)strcspn(line, "\n");
        hv_str_addf(out, "    %.*s\n", n, line);
        line += n;
    }
}

static bool is_inside(const char *name, const char *of)
{
    size_t n = strlen(of);
    return strncmp(name, of, n) == 0 && (name[n] == '\0' || name[n] == '.' || name[n] == ':');
}

enum hv_status hv_api_describe(const char *name, struct hv_str *out, struct hv_err *err)
{
    const char *names[HV_COUNT(rows)];
    bool found = false;

    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        names[i] = rows[i].name;
        const char *bare = strncmp(names[i], "hv.", 3) == 0 ? names[i] + 3 : names[i];
        if (!is_inside(names[i], name) && !is_inside(bare, name)) {
            continue;
        }
        hv_str_adds(out, found ? "\n" : "");
        add_row(out, &rows[i]);
        found = true;
    }
    if (found) {
        return HV_OK;
    }
    const char *near = hv_suggest(name, names, HV_COUNT(rows));
    return hv_err_set(err, HV_EUSAGE, "no function \"%s\"%s%s%s; `hetviz help api` lists all", name,
                      near != NULL ? ", did you mean " : "", near != NULL ? near : "",
                      near != NULL ? "?" : "");
}

/** Adds a paragraph of a manual page. */
static void add_roff(struct hv_str *out, const char *text)
{
    hv_roff_text(out, text);
    hv_str_addc(out, '\n');
}

static void add_roff_row(struct hv_str *out, const struct hv_api_doc *d)
{
    const struct member parts[] = {{"takes", d->params},
                                   {"gives", d->returns},
                                   {"units", d->units},
                                   {"errors", d->raises},
                                   {"example", d->usage}};

    hv_str_adds(out, ".SS ");
    add_roff(out, d->name);
    add_roff(out, d->text);
    for (size_t i = 0; i < HV_COUNT(parts); i++) {
        if (parts[i].text[0] == '\0') {
            continue;
        }
        hv_str_addf(out, ".TP\n.I %s\n", parts[i].name);
        add_roff(out, parts[i].text);
    }
}

void hv_api_man(struct hv_str *out)
{
    hv_roff_head(out, "HETVIZ-PLUGIN", 7);
    hv_str_adds(out, ".SH NAME\nhetviz\\-plugin \\- strategies for hetviz in Lua\n"
                     ".SH DESCRIPTION\n");
    add_roff(out,
             "A strategy is one Lua file that returns a table. It runs in a sandbox, in a process "
             "of its own, with limits on memory, instructions and time; on Linux, where the kernel "
             "has Landlock and seccomp, that process cannot write files, start programs, or reach "
             "the network or other processes. A plan table has exactly the keys and units of a "
             "plan file; everything else is SI (s, bytes, FLOP) and counts from 1, ranges "
             "inclusive. \"nil, reason\" means that there is no answer; a wrong argument is an "
             "error that names file and line. The same input and seed give the same bytes.");
    hv_str_adds(out, ".SH THE TABLE A PLUGIN RETURNS\n");
    for (size_t i = 0; i < HV_COUNT(members); i++) {
        hv_str_adds(out, ".TP\n.B ");
        add_roff(out, members[i].name);
        add_roff(out, members[i].text);
    }
    for (int library = 0; library < 2; library++) {
        hv_str_adds(out, library == 0 ? ".SH FUNCTIONS\n" : ".SH LIBRARIES\nLua, after require.\n");
        for (size_t i = 0; i < HV_COUNT(rows); i++) {
            if (is_core(&rows[i]) == (library == 0)) {
                add_roff_row(out, &rows[i]);
            }
        }
    }
    hv_str_adds(out, ".SH SEE ALSO\n.BR hetviz (1)\n");
}
