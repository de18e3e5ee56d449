/** Kinds of guessed cards: what is said of them, and the one that words name. */
#include "ui/screens/import_cards.h"

#include <string.h>

#include "solver/base/units.h"
#include "solver/inventory/device.h"
#include "ui/command/typed.h"
#include "ui/view/grid/grid.h"

/** Names in an error; more are counted. */
#define NAMED 5

void hv_import_kind_text(const struct hv_device_kind *k, enum hv_precision p, int width,
                         struct hv_str *out)
{
    char buf[HV_FMT_CAP];
    hv_str_adds(out, k->name);
    for (int w = hv_text_width(k->name); w < width; w++) {
        hv_str_addc(out, ' ');
    }
    if (hv_known(k->memory_bytes)) {
        hv_str_addf(out, "  %s", hv_fmt_bytes(buf, sizeof buf, k->memory_bytes));
    }
    if (hv_device_has(k, p)) {
        hv_str_addf(out, "  %s %s",
                    hv_fmt_si(buf, sizeof buf, hv_device_peak_flops_per_s(k, p), "F/s"),
                    hv_precision_name(p));
    }
}

/** The kinds that have all words: their number, the first one, and names for an error. */
struct fitting {
    size_t n;
    const struct hv_device_kind *first;
    struct hv_str names;
};

static void try_kind(struct fitting *f, const struct hv_device_kind *k, const char *words)
{
    if (!hv_typed_words_in(k->name, words)) {
        return;
    }
    f->first = f->n == 0 ? k : f->first;
    f->n++;
    if (f->n <= NAMED) {
        hv_str_addf(&f->names, "%s%s", f->n > 1 ? ", " : "", k->name);
    }
}

enum hv_status hv_import_kind_named(const struct hv_session *s, const struct hv_import_choice *c,
                                    const char *words, const struct hv_device_kind **out,
                                    struct hv_err *err)
{
    const struct hv_device_catalogue *all = hv_session_devices(s);
    struct fitting f = {0};
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < c->n; i++) {
        try_kind(&f, c->candidates[i], words);
    }
    for (size_t i = 0; f.n == 0 && i < all->n_kinds; i++) {
        try_kind(&f, &all->kinds[i], words);
    }
    *out = f.first;
    if (f.n == 0) {
        st = hv_err_set(err, HV_ENO, "no kind of the catalogue has '%.60s' in its name", words);
    } else if (f.n > 1) {
        st = hv_err_set(err, HV_ENO, "'%.40s' may be %s%s: add a word", words,
                        hv_str_cstr(&f.names), f.n > NAMED ? ", ..." : "");
    }
    hv_str_free(&f.names);
    return st;
}

void hv_import_add_kind(struct hv_str *words, const char *written, const char *kind)
{
    struct hv_str setting = {0};
    hv_str_addf(&setting, "--device=%s=%s", written, kind);
    hv_str_adds(words, " \"");
    for (const char *c = hv_str_cstr(&setting); *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            hv_str_addc(words, '\\');
        }
        hv_str_addc(words, *c);
    }
    hv_str_addc(words, '"');
    hv_str_free(&setting);
}
