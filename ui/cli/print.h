/** Text and JSON to standard output or a file. */
#ifndef HV_UI_CLI_PRINT_H
#define HV_UI_CLI_PRINT_H

#include "solver/base/json/json.h"
#include "solver/base/str.h"
#include "ui/command/command.h"

/** Appends a text of plugins or files line by line with everything that could steer a terminal made
 * visible. */
void hv_cli_clean_lines(struct hv_str *out, const char *text);

/** Writes to standard output; errors (closed pipe, full disk) are HV_EIO. */
enum hv_status hv_cli_print(const struct hv_str *text, struct hv_err *err) HV_NODISCARD;
/** Prints a JSON tree (pretty) and releases it. */
enum hv_status hv_cli_print_json(json_t *v, struct hv_err *err) HV_NODISCARD;
/** Writes to `--out` where given, else to standard output. */
enum hv_status hv_cli_write(const struct hv_args *args, const struct hv_str *text,
                            struct hv_err *err) HV_NODISCARD;

/** Columns of the terminal on standard output, or `otherwise` for files and pipes. */
int hv_cli_columns(int otherwise);

#endif
