/**
 * The command line: one function per command, found by its id in the table of ui/command/command.h.
 *
 * Results go to standard output, everything else to standard error. A command returns a status;
 * main turns it into the exit code. HV_ENO without text means that the answer has been printed
 * already.
 */
#ifndef HV_UI_CLI_CLI_H
#define HV_UI_CLI_CLI_H

#include "solver/base/json/json.h"
#include "solver/eval/eval.h"
#include "solver/io/own/docs.h"
#include "ui/command/command.h"

#define X(id, name) enum hv_status hv_cli_##name(struct hv_args *args, struct hv_err *err);
/** One entry per command: parses nothing, prints its result. */
HV_COMMAND_MAP(X)
#undef X

/** Runs `hetviz ARGV…` for a command name; prints errors; returns the exit code. `program_argc`
 * counts what follows the name. */
int hv_cli_run(const struct hv_command *command, int argc, char **argv);
/** Prints an error as "hetviz: file:line:col: text" and returns its exit code. */
int hv_cli_fail(const struct hv_err *err);

/** Appends a text of plugins or files line by line with everything that could steer a terminal made
 * visible. */
void hv_cli_clean_lines(struct hv_str *out, const char *text);

/** Writes to standard output; errors (closed pipe, full disk) are HV_EIO. */
enum hv_status hv_cli_print(const struct hv_str *text, struct hv_err *err) HV_NODISCARD;
/** Prints a JSON tree (pretty) and releases it. */
enum hv_status hv_cli_print_json(json_t *v, struct hv_err *err) HV_NODISCARD;
/** Writes to `--out` where given, else to standard output. */
enum hv_status hv_cli_write(const struct hv_args *args, const struct hv_str *text,
                            struct hv_err *err) HV_NODISCARD;

/** Columns of the terminal on standard output, or `otherwise` for files and pipes. */
int hv_cli_columns(int otherwise);

/** A plan with everything needed to judge it. Owner: hv_judged_free. */
struct hv_judged {
    struct hv_inputs inputs;
    struct hv_plan_doc plan;
    struct hv_cost *cost;
    struct hv_cost **jobs; /**< of a plan for many jobs: one each */
    struct hv_arena arena;
    struct hv_verdict verdict;
};
/** Reads the plan named first, with -c, -m and -j where given, and judges it. */
enum hv_status hv_cli_judge(const struct hv_args *args, bool timeline, struct hv_judged *out,
                            struct hv_err *err) HV_NODISCARD;
void hv_judged_free(struct hv_judged *j);

/** Appends the summary of a verdict as `eval` prints it. */
void hv_cli_verdict_text(const struct hv_plan *plan, const struct hv_verdict *v,
                         struct hv_str *out);
/** One sentence for titles: "iteration 11.2 s, bubble 9.8%, …". */
void hv_cli_verdict_line(const struct hv_verdict *v, struct hv_str *out);

#endif
