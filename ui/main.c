/** Entry point: picks a command or the terminal front end; nothing else lives here. */
#include <locale.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "solver/base/file.h"
#include "solver/base/log.h"
#include "solver/base/str.h"
#include "ui/cli/cli.h"
#include "ui/cli/version.h"
#include "ui/term/tui.h"

/** True where the word looks like a path, to distinguish a workspace from a mistyped command. */
static bool looks_like_path(const char *word)
{
    return strchr(word, '/') != NULL || strchr(word, '.') != NULL;
}

static int unknown_command(const char *word)
{
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);
    const char *names[HV_CMD_N];
    for (size_t i = 0; i < n; i++) {
        names[i] = rows[i].name;
    }
    struct hv_err err = {0};
    const char *near = hv_suggest(word, names, n);
    hv_err_set(&err, HV_EUSAGE,
               "no command or workspace \"%s\"%s%s%s; `hetviz help` lists the commands", word,
               near != NULL ? ", did you mean \"" : "", near != NULL ? near : "",
               near != NULL ? "\"?" : "");
    return hv_cli_fail(&err);
}

/**
 * Arenas are large and short-lived. glibc stops giving such blocks back after the first few; with a
 * fixed threshold they return to the system at once (64 MiB less on a plan for 1,024 devices).
 */
static void keep_memory_small(void)
{
#if defined(__GLIBC__)
    (void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
#endif
}

int main(int argc, char **argv)
{
    keep_memory_small();
    setlocale(LC_CTYPE, ""); /* no other category: files use decimal points in every locale */
    (void)signal(SIGXFSZ, SIG_IGN); /* exceeding the file size limit is an error, not a signal */
    hv_log_to(hv_log_stderr, NULL, HV_LOG_WARN);
    const char *first = argc > 1 ? argv[1] : "";
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        return hv_cli_version(argc - 2, argv + 2, hv_tui_library());
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        first = "help";
    }
    size_t n = 0;
    const struct hv_command *rows = hv_commands(&n);
    const struct hv_command *command = hv_command_find(rows, n, first);
    if (command != NULL) {
        return hv_cli_run(command, argc - 2, argv + 2);
    }
    if (first[0] != '\0' && first[0] != '-' && !looks_like_path(first) &&
        !hv_tui_is_workspace(first)) {
        return unknown_command(first);
    }
    return hv_tui_main(argc - 1, argv + 1);
}
