/** Text and JSON to standard output or a file. */
#ifndef HV_UI_CLI_PRINT_H
#define HV_UI_CLI_PRINT_H

#include "solver/base/json/json.h"
#include "solver/base/str.h"
#include "ui/command/command.h"

/** Writes lines to standard output, with everything that could steer a terminal made visible
 * (hv_text_clean_lines); errors (closed pipe, full disk) are HV_EIO. Text is composed with
 * hv_text_addf, so that a name in it stays on its line. */
enum hv_status hv_cli_print(const struct hv_str *text, struct hv_err *err) HV_NODISCARD;
/** As hv_cli_print for text that is safe already and holds escape sequences of the program. */
enum hv_status hv_cli_print_styled(const struct hv_str *text, struct hv_err *err) HV_NODISCARD;
/** Prints a JSON tree (pretty) and releases it. */
enum hv_status hv_cli_print_json(json_t *v, struct hv_err *err) HV_NODISCARD;
/** Writes to `--out` where given, else to standard output. */
enum hv_status hv_cli_write(const struct hv_args *args, const struct hv_str *text,
                            struct hv_err *err) HV_NODISCARD;

/** Columns of the terminal on standard output, or `otherwise` for files and pipes. */
int hv_cli_columns(int otherwise);

#endif
