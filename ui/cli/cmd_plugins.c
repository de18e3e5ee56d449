/** `hetviz new-plugin`: writes the start of a plugin or of a family. */
#include <string.h>

#include "scripting/plugin/plugin.h"
#include "solver/base/file.h"
#include "ui/cli/cli.h"

/** Writes a plugin of one file. */
static enum hv_status new_file(const char *id, const char *out, struct hv_err *err)
{
    struct hv_str text = {0}, old = {0};
    enum hv_status st = hv_plugin_skeleton(&text, id, err);
    if (st == HV_OK && strcmp(out, "-") != 0 && hv_file_read(out, &old, NULL) == HV_OK) {
        st = hv_err_set(err, HV_EUSAGE, "%s exists already; choose another name with --out", out);
    }
    if (st == HV_OK) {
        st = hv_file_write(out, hv_str_cstr(&text), text.n, err);
    }
    hv_str_free(&old);
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_new_plugin(struct hv_args *args, struct hv_err *err)
{
    const char *name = args->positional[0];
    const char *out = hv_args_text(args, "out", name);
    struct hv_str id = {0};
    bool named_file = hv_text_ends_with(name, ".lua");
    hv_str_add(&id, name, strlen(name) - (named_file ? strlen(".lua") : 0));
    bool family = hv_args_has(args, "family");
    bool one_file = named_file || strcmp(out, "-") == 0 || hv_text_ends_with(out, ".lua");
    enum hv_status st =
        family && one_file
            ? hv_err_set(err, HV_EUSAGE,
                         "new-plugin: --family writes a folder: give a name without .lua")
        : one_file ? new_file(hv_str_cstr(&id), out, err)
        : family   ? hv_plugin_skeleton_family(out, hv_str_cstr(&id), err)
                   : hv_plugin_skeleton_folder(out, hv_str_cstr(&id), err);
    hv_str_free(&id);
    return st;
}
