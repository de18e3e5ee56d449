/*
 * `hetviz solve`: reads an instance, solves it, prints the answer. Only arguments and printing;
 * the solvers are called in solve_kinds.c.
 */
#include "solver/base/units.h"
#include "ui/cli/cli.h"
#include "ui/cli/interrupt.h"
#include "ui/cli/print.h"
#include "ui/cli/solve_int.h"

#include <stdio.h>
#include <unistd.h>

static json_t *answer_tree(const struct hv__solve_answer *w)
{
    json_t *tree = json_object();
    json_object_set_new(tree, "objective", hv_json_num(w->objective));
    json_object_set_new(tree, "bound", hv_json_num(w->bound));
    json_object_set_new(tree, "optimal", json_boolean(w->feasible && w->proven));
    if (w->stopped) {
        json_object_set_new(tree, "stopped", json_true());
    }
    json_object_set(tree, "solution", w->solution ? w->solution : json_null());
    json_object_set_new(tree, "seconds", hv_json_num(w->seconds));
    json_object_set_new(tree, "method", json_string(w->method));
    json_object_set_new(tree, "certificate", json_string(hv_str_cstr(&w->certificate)));
    return tree;
}

/** Six digits are for people; --json has all. */
static void add_value(struct hv_str *out, const char *label, double v, const char *unit)
{
    hv_text_addf(out, "%-13s", label);
    if (hv_known(v)) {
        hv_text_addf(out, "%.8g%s", v, unit);
    } else {
        hv_str_adds(out, "–");
    }
}

static void print_text(const struct hv__solve_answer *w, const char *name, struct hv_str *out)
{
    char num[HV_FMT_CAP];
    if (*name) {
        hv_text_addf(out, "%-13s%s\n", "instance", name);
    }
    add_value(out, "objective", w->objective, w->unit);
    if (w->feasible && w->proven) {
        hv_str_adds(out, " (optimal)");
    } else if (w->feasible && hv_known(w->bound) && w->objective > 0) {
        hv_text_addf(out, " (not proven, gap %.2f %%)",
                     100 * (w->objective - w->bound) / w->objective);
    } else if (w->feasible) {
        hv_str_adds(out, " (not proven)");
    }
    hv_str_addc(out, '\n');
    if (w->feasible) {
        add_value(out, "bound", w->bound, w->unit);
        hv_str_addc(out, '\n');
    }
    hv_text_addf(out, "%-13s%s\n", "time", hv_fmt_seconds(num, sizeof num, w->seconds));
    hv_text_addf(out, "%-13s%s\n", "method", w->method);
    hv_text_addf(out, "%-13s%s\n", "certificate", hv_str_cstr(&w->certificate));
    if (w->table.n > 0) {
        hv_str_addc(out, '\n');
        hv_str_add(out, w->table.p, w->table.n);
    }
}

static enum hv_status print_answer(const struct hv__solve_answer *w, const char *name, bool json,
                                   struct hv_err *err)
{
    if (json) {
        return hv_cli_print_json(answer_tree(w), err);
    }
    struct hv_str out = {0};
    print_text(w, name, &out);
    enum hv_status st = hv_cli_print(&out, err);
    hv_str_free(&out);
    return st;
}

enum hv_status hv_cli_solve(struct hv_args *args, struct hv_err *err)
{
    const struct hv__solve_ask ask = {.write_lp = hv_args_text(args, "write-lp", NULL),
                                      .time_limit_s = hv_args_number(args, "time-limit", 0),
                                      .certify = hv_args_has(args, "certify"),
                                      .progress =
                                          isatty(STDERR_FILENO) && !hv_args_has(args, "quiet")};
    struct hv_instance in = {.name = ""};
    struct hv_arena arena = {0};
    struct hv__solve_answer w = {.objective = HV_UNKNOWN, .bound = HV_UNKNOWN, .method = ""};
    enum hv_status st = hv_instance_load(&in, args->positional[0], err);
    if (st == HV_OK) {
        hv_interrupt_catch();
        hv_interrupt_insist(ask.time_limit_s);
        st = hv__solve_instance(&in, &ask, &arena, &w, err);
        hv_interrupt_relax();
    }
    if (ask.progress) {
        (void)fputs("\r\033[K", stderr);
    }
    if (st == HV_OK) {
        w.stopped = w.stopped || hv_interrupted(NULL);
        st = print_answer(&w, in.name, hv_args_has(args, "json"), err);
        if (st == HV_OK && w.stopped) {
            st = hv_err_set(
                err, HV_ESTOPPED,
                hv_interrupted(NULL) ? "interrupted%s" : "the time limit ended the search%s",
                w.feasible ? "; the best solution so far is printed" : "; no solution was found");
        } else if (st == HV_OK && !w.feasible) {
            st = hv_err_set(err, HV_ENO, "no solution: %s", hv_str_cstr(&w.certificate));
        }
    }
    hv__solve_answer_free(&w);
    hv_arena_free(&arena);
    hv_instance_free(&in);
    return st;
}
