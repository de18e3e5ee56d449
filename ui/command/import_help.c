/** Texts about the formats of `import`, made from the table of solver/io/import. */
#include "solver/io/import/import.h"
#include "ui/command/help.h"

#include <string.h>

void hv_import_help(struct hv_str *out, void (*add_wrapped)(struct hv_str *out, const char *text))
{
    hv_str_adds(out, "\nformats:\n");
    for (size_t i = 0; hv_import_format_at(i) != NULL; i++) {
        const struct hv_import_format *f = hv_import_format_at(i);
        struct hv_str text = {0}, wrapped = {0};
        hv_str_addf(&text, "%s: %s", f->title, f->help);
        add_wrapped(&wrapped, hv_str_cstr(&text));
        hv_str_addf(out, "  %-18s %s\n", f->name, hv_import_part_name(f->part));
        for (const char *s = hv_str_cstr(&wrapped); *s != '\0';) {
            size_t n = strcspn(s, "\n");
            hv_str_addf(out, "      %.*s\n", (int)n, s);
            s += n + (s[n] == '\n');
        }
        hv_str_free(&text);
        hv_str_free(&wrapped);
    }
}

void hv_import_man(struct hv_str *out, void (*add_text)(struct hv_str *out, const char *text))
{
    for (size_t i = 0; hv_import_format_at(i) != NULL; i++) {
        const struct hv_import_format *f = hv_import_format_at(i);
        hv_str_adds(out, ".TP\n.B ");
        add_text(out, f->name);
        hv_str_adds(out, "\n");
        struct hv_str text = {0};
        hv_str_addf(&text, "%s (%s): %s", f->title, hv_import_part_name(f->part), f->help);
        add_text(out, hv_str_cstr(&text));
        hv_str_addc(out, '\n');
        hv_str_free(&text);
    }
}

void hv_import_words(struct hv_str *out)
{
    hv_str_adds(out, "auto local");
    for (size_t i = 0; hv_import_format_at(i) != NULL; i++) {
        hv_str_addf(out, " %s", hv_import_format_at(i)->name);
    }
}
