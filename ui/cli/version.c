/** Says which program this is: for people in one line, for reports of faults as JSON. */
#include "ui/cli/version.h"

#include <expat.h>
#include <sqlite3.h>
#include <string.h>
#include <utf8proc.h>
#include <yaml.h>
#include <zlib.h>

#include "scripting/host/host.h"
#include "solver/base/file.h"
#include "solver/base/page/roff.h"
#include "solver/eval/verdict/verdict.h"
#include "solver/io/export/painter.h"
#include "solver/optim/lp/lp.h"
#include "ui/cli/cli.h"
#include "ui/cli/print.h"

/* HV_BUILD_COMMIT, HV_BUILD_MODE and HV_BUILD_FLAGS, written by the Makefile */
#include "ui/cli/build_facts.inc"

#if defined(__clang__)
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

/** The versions of the libraries that run, which may be newer than those it was built with. */
static json_t *libraries(const char *terminal)
{
    struct hv_str lp = {0};
    json_t *v = json_object();

    hv_lp_library(&lp);
    json_object_set_new(v, "expat", json_string(XML_ExpatVersion() + strlen("expat_")));
    json_object_set_new(v, "gmp", json_string(hv_lp_exact_library()));
    json_object_set_new(v, "jansson", json_string(jansson_version_str()));
    json_object_set_new(v, "libyaml", json_string(yaml_get_version_string()));
    json_object_set_new(v, "lp_solve", json_string(hv_str_cstr(&lp)));
    json_object_set_new(v, "lua", json_string(hv_lua_library()));
    json_object_set_new(v, "sqlite", json_string(sqlite3_libversion()));
    json_object_set_new(v, "terminal", json_string(terminal));
    json_object_set_new(v, "utf8proc", json_string(utf8proc_version()));
    json_object_set_new(v, "zlib", json_string(zlibVersion()));
    hv_str_free(&lp);
    return v;
}

/** What this copy can do here and another may not. */
static json_t *features(void)
{
    struct hv_str profiler = {0};
    json_t *v = json_object();

    json_object_set_new(v, "png", json_boolean(hv_paint_has_png()));
    json_object_set_new(v, "profiler",
                        json_boolean(hv_program_beside(&profiler, "hetviz-profile")));
    hv_str_free(&profiler);
    return v;
}

/** The folder that has share/schema, or null where it is not found. */
static json_t *data_folder(void)
{
    static const char inside[] = "/plan.schema.json";
    struct hv_str path = {0};
    struct hv_err none = {0};
    json_t *v = NULL;

    if (hv_data_path(&path, "share/schema/plan.schema.json", &none) == HV_OK) {
        v = json_stringn(path.p, path.n - strlen(inside) - strlen("/schema"));
    }
    hv_str_free(&path);
    return v != NULL ? v : json_null();
}

static enum hv_status print_facts(const char *terminal, struct hv_err *err)
{
    json_t *v = json_object();

    json_object_set_new(v, "program", json_string("hetviz"));
    json_object_set_new(v, "version", json_string(HV_VERSION));
    json_object_set_new(v, "date", json_string(HV_RELEASE_DATE));
    json_object_set_new(v, "commit",
                        HV_BUILD_COMMIT[0] != '\0' ? json_string(HV_BUILD_COMMIT) : json_null());
    json_object_set_new(v, "judge", json_integer(HV_JUDGE_VERSION));
    json_object_set_new(v, "mode", json_string(HV_BUILD_MODE));
    json_object_set_new(v, "compiler", json_string(COMPILER));
    json_object_set_new(v, "flags", json_string(HV_BUILD_FLAGS));
    json_object_set_new(v, "libraries", libraries(terminal));
    json_object_set_new(v, "features", features());
    json_object_set_new(v, "data", data_folder());
    return hv_cli_print_json(v, err);
}

int hv_cli_version(int argc, char **argv, const char *terminal)
{
    static const char text[] = "hetviz " HV_VERSION "\n";
    struct hv_err err = {0};
    enum hv_status st;

    if (argc == 0) {
        st = hv_file_write("-", text, sizeof text - 1, &err);
    } else if (argc == 1 && strcmp(argv[0], "--json") == 0) {
        st = print_facts(terminal, &err);
    } else {
        st = hv_err_set(&err, HV_EUSAGE, "--version takes --json and nothing else, found \"%s\"",
                        argv[argc - 1]);
    }
    return st == HV_OK ? 0 : hv_cli_fail(&err);
}
