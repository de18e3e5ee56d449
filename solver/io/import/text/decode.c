/* Converts the bytes of a file, possibly compressed or in UTF-16, to UTF-8 text. */
#include "solver/io/import/text/decode.h"

#include "solver/base/units.h"
#include <ctype.h>
#include <string.h>
#include <zlib.h>

static bool starts(const char *bytes, size_t n, const char *with, size_t len)
{
    return n >= len && memcmp(bytes, with, len) == 0;
}

/* Binary files that users may try to import, and how to export them as text. */
static enum hv_status refuse_binary(const char *name, const char *bytes, size_t n,
                                    struct hv_err *err)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *what;
    } kinds[] = {
        {"SQLite format 3", 15,
         "an SQLite file (nsys export --type=sqlite), which is not read; export the trace as "
         "Chrome JSON from PyTorch's profiler instead"},
        {"PK\003\004", 4, "a zip archive; unpack it and import the file inside"},
        {"\x28\xB5\x2F\xFD", 4, "packed with zstd; unpack it first (zstd -d FILE)"},
        {"BZh", 3, "packed with bzip2; unpack it first (bunzip2 FILE)"},
        {"\xFD"
         "7zXZ",
         5, "packed with xz; unpack it first (unxz FILE)"},
        {"\x7F"
         "ELF",
         4, "a program"},
        {"%PDF", 4, "a PDF document"},
    };
    for (size_t i = 0; i < HV_COUNT(kinds); i++) {
        if (starts(bytes, n, kinds[i].magic, kinds[i].len)) {
            return hv_err_at(err, HV_EINPUT, name, 0, 0, "this is %s", kinds[i].what);
        }
    }
    return HV_OK;
}

static enum hv_status inflate_gzip(const char *name, const char *bytes, size_t n, size_t most,
                                   struct hv_str *out, struct hv_err *err)
{
    unsigned char buf[65536];
    z_stream z = {0};
    union {
        const char *in;
        unsigned char *out;
    } cast = {.in = bytes}; /* zlib's input is not const, and is not written to */
    if (inflateInit2(&z, 15 + 16) != Z_OK) {
        return hv_err_at(err, HV_EINTERNAL, name, 0, 0, "zlib cannot be initialised");
    }
    z.next_in = cast.out;
    z.avail_in = (uInt)n;
    int rc = Z_OK;
    while (rc == Z_OK && out->n <= most) {
        z.next_out = buf;
        z.avail_out = sizeof buf;
        rc = inflate(&z, Z_NO_FLUSH);
        hv_str_add(out, (const char *)buf, sizeof buf - z.avail_out);
        if (rc == Z_STREAM_END && z.avail_in > 0 && inflateReset(&z) == Z_OK) {
            rc = Z_OK; /* consecutive gzip members form one file */
        }
    }
    (void)inflateEnd(&z);
    if (out->n > most) {
        return hv_err_at(err, HV_ELIMIT, name, 0, 0,
                         "unpacked it is larger than the %zu MiB that an import may have",
                         most >> 20);
    }
    return rc == Z_STREAM_END ? HV_OK
                              : hv_err_at(err, HV_EINPUT, name, 0, 0,
                                          "the gzip file is cut short or damaged; fetch it again");
}

static void add_character(struct hv_str *out, unsigned c)
{
    if (c < 0x80) {
        hv_str_addc(out, (char)c);
    } else if (c < 0x800) {
        hv_str_addc(out, (char)(0xC0 | c >> 6));
        hv_str_addc(out, (char)(0x80 | (c & 63)));
    } else {
        if (c >= 0x10000) {
            hv_str_addc(out, (char)(0xF0 | c >> 18));
            hv_str_addc(out, (char)(0x80 | (c >> 12 & 63)));
        } else {
            hv_str_addc(out, (char)(0xE0 | c >> 12));
        }
        hv_str_addc(out, (char)(0x80 | (c >> 6 & 63)));
        hv_str_addc(out, (char)(0x80 | (c & 63)));
    }
}

/* UTF-16, as written by PowerShell's `>`. */
static void from_utf16(const char *bytes, size_t n, bool big, struct hv_str *out)
{
    unsigned high = 0;
    for (size_t i = 2; i + 1 < n; i += 2) {
        unsigned a = (unsigned char)bytes[i], b = (unsigned char)bytes[i + 1];
        unsigned c = big ? a << 8 | b : b << 8 | a;
        if (c >= 0xD800 && c < 0xDC00) {
            high = c;
        } else if (c >= 0xDC00 && c < 0xE000) {
            add_character(out, high ? 0x10000 + ((high - 0xD800) << 10) + (c - 0xDC00) : '?');
            high = 0;
        } else {
            add_character(out, c);
            high = 0;
        }
    }
}

static bool is_control(char c)
{
    return c == '\0' || ((unsigned char)c < 0x20 && !strchr("\t\n\r\f\v", c));
}

/* Removes colour codes (ESC [ … letter), as nvidia-smi and log viewers write them, and the control
 * characters that some sites put into names for sorting. Binary files (with NUL) stay as they
 * are. */
static void drop_controls(struct hv_str *s)
{
    size_t to = 0;
    if (s->n == 0) {
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->p[i] != 0x1B) {
            s->p[to] = s->p[i];
            to += !is_control(s->p[i]);
            continue;
        }
        size_t j = i + 1;
        if (j < s->n && s->p[j] == '[') {
            do {
                j++;
            } while (j < s->n && s->p[j] >= 0x20 && s->p[j] < 0x40);
        }
        i = j < s->n ? j : s->n - 1;
    }
    s->n = to;
    s->p[to] = '\0';
}

/* Length of the UTF-8 character at s, 0 when there is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    size_t len = s[0] < 0x80                   ? 1
                 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                 : (s[0] & 0xF0) == 0xE0       ? 3
                 : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                               : 0;
    for (size_t i = 1; i < len; i++) {
        if (i >= n || (s[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool bad = len == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0));
    bad = bad || (len == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90)));
    return bad ? 0 : len;
}

/* Bytes that are not UTF-8 are decoded as Latin-1, so that equal names stay equal. */
static void make_utf8(struct hv_str *s)
{
    struct hv_str out = {0};
    bool changed = false;
    for (size_t i = 0; i < s->n;) {
        size_t len = utf8_length((const unsigned char *)s->p + i, s->n - i);
        if (len > 0) {
            hv_str_add(&out, s->p + i, len);
        } else {
            add_character(&out, (unsigned char)s->p[i]);
            changed = true;
        }
        i += len > 0 ? len : 1;
    }
    if (changed) {
        hv_str_clear(s);
        hv_str_add(s, hv_str_cstr(&out), out.n);
    }
    hv_str_free(&out);
}

bool hv__is_binary(const char *text, size_t n)
{
    /* a protocol buffer whose first field is a small number, as in ONNX files */
    return n > 8 && text[0] == 0x08 && (unsigned char)text[1] < 32 &&
           memchr(text, '\0', n < 4096 ? n : 4096) != NULL;
}

enum hv_status hv__decode(const char *name, const char *bytes, size_t n, size_t most,
                          struct hv_str *out, struct hv_err *err)
{
    struct hv_str unpacked = {0};
    enum hv_status st = HV_OK;
    if (n > most) {
        return hv_err_at(err, HV_ELIMIT, name, 0, 0,
                         "%zu MiB; an import may have %zu MiB: cut the file down", n >> 20,
                         most >> 20);
    }
    if (starts(bytes, n, "\x1F\x8B", 2)) {
        st = inflate_gzip(name, bytes, n, most, &unpacked, err);
        bytes = hv_str_cstr(&unpacked);
        n = unpacked.n;
    }
    st = st ? st : refuse_binary(name, bytes, n, err);
    if (st == HV_OK && (starts(bytes, n, "\xFF\xFE", 2) || starts(bytes, n, "\xFE\xFF", 2))) {
        from_utf16(bytes, n, bytes[0] == '\xFE', out);
    } else if (st == HV_OK) {
        size_t skip = starts(bytes, n, "\xEF\xBB\xBF", 3) ? 3 : 0;
        hv_str_add(out, bytes + skip, n - skip);
    }
    hv_str_free(&unpacked);
    if (st == HV_OK && !hv__is_binary(hv_str_cstr(out), out->n)) {
        drop_controls(out);
        make_utf8(out);
    }
    return st;
}
