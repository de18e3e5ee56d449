/* Values, texts and errors as lines of JSON. jansson writes and reads them: both ends are this
 * program, numbers keep type and value, and a tree may have any keys. */
#include "scripting/host/message.h"

#include <stdlib.h>
#include <string.h>

#define REAL_DIGITS 17

void hv__message_send(const struct hv__cell_inside *inside, json_t *value)
{
    char *text =
        json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(REAL_DIGITS));

    if (text != NULL) {
        hv__cell_write(inside, text, strlen(text));
    }
    free(text);
    json_decref(value);
}

json_t *hv__message_read(const char *line, size_t n)
{
    return json_loadb(line, n, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
}

json_t *hv__pack_text(const char *text, size_t n)
{
    struct hv_str out = {0};

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80) {
            hv_str_addc(&out, (char)(0xC0 | (c >> 6)));
            c = 0x80 | (c & 0x3F);
        }
        hv_str_addc(&out, (char)c);
    }
    json_t *packed = json_stringn(hv_str_cstr(&out), out.n);
    hv_str_free(&out);
    return packed;
}

void hv__unpack_text(const json_t *packed, struct hv_str *out)
{
    const char *text = json_string_value(packed);
    size_t n = json_string_length(packed);

    for (size_t i = 0; text != NULL && i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80 && i + 1 < n) {
            i++;
            c = (unsigned char)(c << 6) | ((unsigned char)text[i] & 0x3F);
        }
        hv_str_addc(out, (char)c);
    }
}

json_t *hv__pack_err(enum hv_status s, const struct hv_err *err)
{
    json_t *packed = json_object();

    json_object_set_new(packed, "status", json_integer(s));
    json_object_set_new(packed, "file", hv__pack_text(err->file, strlen(err->file)));
    json_object_set_new(packed, "line", json_integer(err->line));
    json_object_set_new(packed, "col", json_integer(err->col));
    json_object_set_new(packed, "text", hv__pack_text(err->text, strlen(err->text)));
    return packed;
}

/** Copies a packed text into a buffer of a record. */
static void fill(const json_t *packed, char *buf, size_t cap)
{
    struct hv_str text = {0};

    hv__unpack_text(packed, &text);
    (void)snprintf(buf, cap, "%s", hv_str_cstr(&text));
    hv_str_free(&text);
}

enum hv_status hv__unpack_err(const json_t *packed, struct hv_err *err)
{
    json_int_t s = json_integer_value(json_object_get(packed, "status"));

    if (!json_is_object(packed) || s < 0 || s >= HV_STATUS_N) {
        return hv_err_set(err, HV_EINTERNAL,
                          "the process that runs Lua sent neither a result nor an error");
    }
    if (err != NULL) {
        fill(json_object_get(packed, "file"), err->file, sizeof err->file);
        fill(json_object_get(packed, "text"), err->text, sizeof err->text);
        err->line = (unsigned)json_integer_value(json_object_get(packed, "line"));
        err->col = (unsigned)json_integer_value(json_object_get(packed, "col"));
        err->status = (enum hv_status)s;
    }
    return (enum hv_status)s;
}
