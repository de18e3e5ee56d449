/** `hetviz profile`: starts the profiler, or shows what it wrote. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "solver/base/file.h"
#include "ui/cli/cli.h"
#include "ui/cli/profile_show.h"

#define PROGRAM "hetviz-profile"

/** Where a profile goes by default: a file per machine and card among the user's own. */
static enum hv_status default_path(const struct hv_args *args, struct hv_str *out,
                                   struct hv_err *err)
{
    char host[64] = "this-machine";
    enum hv_status st = hv_user_dir(out, HV_DIR_DATA, err);
    if (st == HV_OK) {
        hv_str_adds(out, "/profiles");
        st = hv_file_mkdirs(hv_str_cstr(out), err);
    }
    if (gethostname(host, sizeof host) != 0 || strchr(host, '/') != NULL) {
        (void)strcpy(host, "this-machine");
    }
    host[sizeof host - 1] = '\0';
    hv_str_addf(out, "/%s-gpu%.0f.json", host, hv_args_number(args, "device", 0));
    return st;
}

/** Becomes the profiler. Returns only when that is not possible. */
static enum hv_status start(const struct hv_args *args, const char *out, struct hv_err *err)
{
    struct hv_str program = {0}, device = {0};
    if (!hv_program_beside(&program, PROGRAM)) {
        hv_str_free(&program);
        return hv_err_set(
            err, HV_ENO,
            "this hetviz was built without the profiler: the profiler needs the CUDA toolkit "
            "(nvcc, cuBLASLt) at build time; install the toolkit and run `make` again");
    }
    hv_text_addf(&device, "%.0f", hv_args_number(args, "device", 0));
    const char *as = hv_args_text(args, "as", NULL);
    (void)execl(hv_str_cstr(&program), PROGRAM, out, hv_args_has(args, "quick") ? "quick" : "full",
                hv_args_has(args, "fresh") ? "fresh" : "keep", hv_str_cstr(&device), as,
                (char *)NULL);
    enum hv_status st =
        hv_err_set(err, HV_EIO, "cannot start %s: %s", hv_str_cstr(&program), strerror(errno));
    hv_str_free(&program);
    hv_str_free(&device);
    return st;
}

enum hv_status hv_cli_profile(struct hv_args *args, struct hv_err *err)
{
    const char *show = hv_args_text(args, "show", NULL), *out = hv_args_text(args, "out", NULL);
    if (show != NULL) {
        return hv_cli_profile_show(args, show, err);
    }
    if (hv_args_has(args, "svg") || hv_args_has(args, "json")) {
        return hv_err_set(err, HV_EUSAGE, "--svg and --json go with --show F");
    }
    struct hv_str path = {0};
    enum hv_status st = HV_OK;
    if (out == NULL) {
        st = default_path(args, &path, err);
        out = hv_str_cstr(&path);
    }
    if (st == HV_OK) {
        st = start(args, out, err);
    }
    hv_str_free(&path);
    return st;
}
