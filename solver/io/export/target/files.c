/* The files of an export: made, noted, written, freed. */
#include <string.h>
#include <sys/stat.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/io/export/target/inside.h"

struct hv_str *hv__export_file(struct hv__exporting *x, const char *name)
{
    hv_vec_push(&x->out->files, (struct hv_export_file){.name = name});
    return &x->out->files.items[x->out->files.n - 1].text;
}

void hv__export_note(struct hv__exporting *x, const char *fmt, ...)
{
    struct hv_str text = {0};
    va_list ap;
    va_start(ap, fmt);
    hv_str_addv(&text, fmt, ap);
    va_end(ap);
    hv_vec_push(&x->out->notes, hv_arena_strdup(&x->out->arena, hv_str_cstr(&text)));
    hv_str_free(&text);
}

enum hv_status hv_export_write(const struct hv_export *x, const char *folder, struct hv_err *err)
{
    struct hv_str path = {0};
    enum hv_status st = hv_file_mkdirs(folder, err);
    for (size_t i = 0; st == HV_OK && i < x->files.n; i++) {
        const struct hv_export_file *f = &x->files.items[i];
        hv_str_clear(&path);
        hv_str_addf(&path, "%s/%s", folder, f->name);
        st = hv_file_write(hv_str_cstr(&path), hv_str_cstr(&f->text), f->text.n, err);
        if (st == HV_OK && f->is_program && chmod(hv_str_cstr(&path), 0755) != 0) {
            st = hv_err_set(err, HV_EIO, "%s: cannot be made executable", hv_str_cstr(&path));
        }
    }
    hv_str_free(&path);
    return st;
}

void hv_export_text(const struct hv_export *x, struct hv_str *out)
{
    for (size_t i = 0; i < x->files.n; i++) {
        if (x->files.n > 1) {
            hv_str_addf(out, "%s==> %s <==\n", i > 0 ? "\n" : "", x->files.items[i].name);
        }
        hv_str_add(out, hv_str_cstr(&x->files.items[i].text), x->files.items[i].text.n);
    }
}

void hv_export_free(struct hv_export *x)
{
    for (size_t i = 0; i < x->files.n; i++) {
        hv_str_free(&x->files.items[i].text);
    }
    hv_vec_free(&x->files);
    hv_vec_free(&x->notes);
    hv_arena_free(&x->arena);
    *x = (struct hv_export){0};
}
