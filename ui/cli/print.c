/** Text and JSON to standard output or a file. */
#include "ui/cli/print.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "solver/base/file.h"

int hv_cli_columns(int otherwise)
{
    struct winsize w;
    bool told = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0;
    return told ? w.ws_col : otherwise;
}

enum hv_status hv_cli_print(const struct hv_str *text, struct hv_err *err)
{
    struct hv_str clean = {0};
    hv_text_clean_lines(&clean, hv_str_cstr(text), text->n);
    enum hv_status st = hv_cli_print_styled(&clean, err);
    hv_str_free(&clean);
    return st;
}

enum hv_status hv_cli_print_styled(const struct hv_str *text, struct hv_err *err)
{
    return hv_file_write("-", hv_str_cstr(text), text->n, err);
}

enum hv_status hv_cli_print_json(json_t *v, struct hv_err *err)
{
    struct hv_str text = {0};
    hv_json_write(&text, v, true);
    json_decref(v);
    enum hv_status st = hv_cli_print_styled(&text, err);
    hv_str_free(&text);
    return st;
}

enum hv_status hv_cli_write(const struct hv_args *args, const struct hv_str *text,
                            struct hv_err *err)
{
    return hv_file_write(hv_args_text(args, "out", "-"), hv_str_cstr(text), text->n, err);
}
