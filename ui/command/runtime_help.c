/** Texts made from the table of runtimes: list, one in full, words for completion, manual page. */
#include "solver/base/units.h"
#include "solver/workload/runtime.h"
#include "ui/command/help.h"
#include "ui/command/limits_help.h"
#include "ui/command/paragraph.h"

void hv_runtime_list(struct hv_str *out)
{
    for (int i = 0; i < HV_RUNTIME_N; i++) {
        hv_str_addf(out, "%-12s %s\n", hv_runtime_name((enum hv_runtime)i),
                    hv_runtime_row((enum hv_runtime)i)->title);
    }
    hv_str_adds(out,
                "\n`hetviz help runtimes NAME` says what one does by itself. A job names its "
                "runtime\n(\"runtime\"), or `-o runtime=NAME` of `plan` and `compare` does.\n");
}

/** Calls `add` for every fact of a runtime, as a sentence without its full stop. */
static void each_fact(const struct hv_runtime_row *r,
                      void (*add)(struct hv_str *out, const char *text), struct hv_str *out)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    struct hv_str text = {0};
    add(out, hv_runtime_sends_text(r->sends));
    if (r->splits_sends) {
        add(out, "tensor-parallel ranks send a share each, and the receivers gather them");
    }
    add(out, hv_runtime_reduction_text(r->reduction));
    add(out, r->bucket_of_tensors
                 ? "the tensor with which a bucket of gradients reaches its size closes it"
                 : "buckets of gradients are cut at exactly their size");
    if (r->flat_elements > 0) {
        hv_str_addf(&text, "gradients are copied into flat buffers of at most %s values first",
                    hv_fmt_count(a, sizeof a, r->flat_elements));
        add(out, hv_str_cstr(&text));
        hv_str_clear(&text);
    }
    if (r->tensor_s > 0) {
        hv_str_addf(&text, "a reduction takes %s of host time per parameter tensor",
                    hv_fmt_seconds(a, sizeof a, r->tensor_s));
        add(out, hv_str_cstr(&text));
        hv_str_clear(&text);
    }
    if (r->step_bytes > 0) {
        hv_str_addf(&text,
                    "the optimizer step without a master copy holds %g more bytes per parameter",
                    r->step_bytes);
        add(out, hv_str_cstr(&text));
        hv_str_clear(&text);
    }
    if (r->whole_tensors > 0) {
        hv_str_addf(&text,
                    "without sequence parallelism every tensor-parallel rank keeps %g tensors of "
                    "the size of a layer's input whole",
                    r->whole_tensors);
        add(out, hv_str_cstr(&text));
        hv_str_clear(&text);
    }
    if (hv_known(r->library_bytes)) {
        hv_str_addf(&text, "context and libraries of a process take %s",
                    hv_fmt_bytes(b, sizeof b, r->library_bytes));
        add(out, hv_str_cstr(&text));
        hv_str_clear(&text);
    }
    if (r->channel_bytes > 0) {
        hv_str_addf(&text, "the communicator of a tensor-parallel group takes %s per channel",
                    hv_fmt_bytes(b, sizeof b, r->channel_bytes));
        add(out, hv_str_cstr(&text));
        hv_str_clear(&text);
    }
    if (hv_known(r->fragmentation_frac)) {
        hv_str_addf(&text, "the allocator holds %s more than is in use",
                    hv_fmt_percent(b, sizeof b, r->fragmentation_frac));
        add(out, hv_str_cstr(&text));
    }
    hv_str_free(&text);
}

static void add_item(struct hv_str *out, const char *text)
{
    struct hv_str item = {0};
    hv_str_addf(&item, "- %s", text);
    hv_paragraph_add(out, hv_str_cstr(&item));
    hv_str_free(&item);
}

/** Degrees, and what searches for the runtime keep to. */
static void add_limits(const struct hv_runtime_row *r, struct hv_str *out)
{
    hv_str_addf(out, "degrees: %s", r->degrees);
    hv_limits_add(&r->can, "run", out);
}

static void add_clause(struct hv_str *out, const char *text)
{
    hv_str_addf(out, "%s; ", text);
}

bool hv_runtime_help(struct hv_str *out, const char *name)
{
    enum hv_runtime found;
    if (!hv_runtime_find(name, &found)) {
        return false;
    }
    const struct hv_runtime_row *r = hv_runtime_row(found);
    struct hv_str text = {0};
    hv_str_addf(out, "%s: %s\n\n", name, r->title);
    each_fact(r, add_item, out);
    add_limits(r, &text);
    add_item(out, hv_str_cstr(&text));
    hv_str_clear(&text);
    hv_str_addf(&text, "Sources: %s.", r->source);
    hv_str_addc(out, '\n');
    hv_paragraph_add(out, hv_str_cstr(&text));
    hv_str_free(&text);
    return true;
}

void hv_runtime_words(struct hv_str *out, const char *key)
{
    for (int i = 0; i < HV_RUNTIME_N; i++) {
        hv_str_addf(out, "%s%s\n", key, hv_runtime_name((enum hv_runtime)i));
    }
}

void hv_runtime_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text))
{
    for (int i = 0; i < HV_RUNTIME_N; i++) {
        const struct hv_runtime_row *r = hv_runtime_row((enum hv_runtime)i);
        struct hv_str facts = {0};
        hv_str_adds(out, ".TP\n.B ");
        add_text(out, hv_runtime_name((enum hv_runtime)i));
        hv_str_addc(out, '\n');
        hv_str_addf(&facts, "%s. ", r->title);
        each_fact(r, add_clause, &facts);
        add_limits(r, &facts);
        hv_str_addf(&facts, "; degrees: %s. Sources: %s.", r->degrees, r->source);
        add_text(out, hv_str_cstr(&facts));
        hv_str_addc(out, '\n');
        hv_str_free(&facts);
    }
}
