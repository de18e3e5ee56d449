/*
 * Themes: the style table's defaults and the theme file. Defines the looks of styles; never draws.
 */
#include "ui/view/grid/theme.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/file.h"
#include "ui/view/settings/lines.h"

/* clang-format off */
static const struct {
    const char *name;
    struct hv_style_look look;
} table[] = {
#define X(id, name, fg, bg, fg16, bg16, attr, mono, help) {name, {fg, bg, fg16, bg16, attr, mono}},
    HV_STYLE_MAP(X)
#undef X
};
/* clang-format on */

static const char *const colors16[] = {
    "black",        "red",           "green",       "yellow",         "blue",
    "magenta",      "cyan",          "white",       "bright-black",   "bright-red",
    "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan",
    "bright-white"};

static const struct {
    const char *name;
    uint8_t bit;
} attrs[] = {{"bold", HV_ATTR_BOLD},
             {"dim", HV_ATTR_DIM},
             {"reverse", HV_ATTR_REVERSE},
             {"underline", HV_ATTR_UNDERLINE}};

void hv_theme_default(struct hv_theme *t)
{
    for (size_t i = 0; i < HV_STYLE_N; i++) {
        t->looks[i] = table[i].look;
    }
    t->light = false;
}

/* Nearest entry of the xterm 256-colour cube (levels 0, 95, 135 … 255) and its grey ramp. */
static int nearest_256(int r, int g, int b)
{
    static const int level[] = {0, 95, 135, 175, 215, 255};
    const int want[3] = {r, g, b};
    int idx[3], cube_d = 0;
    for (int c = 0; c < 3; c++) {
        idx[c] = 0;
        for (int i = 1; i < 6; i++) {
            if (abs(level[i] - want[c]) < abs(level[idx[c]] - want[c])) {
                idx[c] = i;
            }
        }
        int d = level[idx[c]] - want[c];
        cube_d += d * d;
    }
    int grey = ((r + g + b) / 3 - 8 + 5) / 10;
    grey = grey < 0 ? 0 : grey > 23 ? 23 : grey;
    int v = 8 + 10 * grey;
    int grey_d = (v - r) * (v - r) + (v - g) * (v - g) + (v - b) * (v - b);
    return grey_d < cube_d ? 232 + grey : 16 + 36 * idx[0] + 6 * idx[1] + idx[2];
}

static bool parse_color(const char *s, int *out)
{
    if (strcmp(s, "default") == 0) {
        *out = -1;
        return true;
    }
    for (size_t i = 0; i < HV_COUNT(colors16); i++) {
        if (strcmp(s, colors16[i]) == 0) {
            *out = (int)i;
            return true;
        }
    }
    if (s[0] == '#' && strlen(s) == 7 && strspn(s + 1, "0123456789abcdefABCDEF") == 6) {
        long rgb = strtol(s + 1, NULL, 16);
        *out = nearest_256((int)(rgb >> 16), (int)(rgb >> 8 & 255), (int)(rgb & 255));
        return true;
    }
    size_t digits = strspn(s, "0123456789");
    if (digits == 0 || digits > 3 || s[digits]) {
        return false;
    }
    *out = atoi(s);
    return *out < 256;
}

static bool parse_attr(const char *s, uint8_t *out)
{
    *out = 0;
    if (strcmp(s, "none") == 0) {
        return true;
    }
    while (*s) {
        size_t n = strcspn(s, "+"), i = 0;
        while (i < HV_COUNT(attrs) &&
               (strlen(attrs[i].name) != n || strncmp(attrs[i].name, s, n) != 0)) {
            i++;
        }
        if (i == HV_COUNT(attrs)) {
            return false;
        }
        *out |= attrs[i].bit;
        s += n;
        if (*s == '+' && *++s == '\0') {
            return false;
        }
    }
    return true;
}

/* Sets one `key=value`; NULL when fine, else what was expected. */
static const char *set_part(struct hv_style_look *look, const char *key, const char *value)
{
    int color = -1;
    bool is16 = strcmp(key, "fg16") == 0 || strcmp(key, "bg16") == 0;
    if (strcmp(key, "attr") == 0) {
        return parse_attr(value, &look->attr)
                   ? NULL
                   : "none, or bold, dim, reverse, underline joined by +";
    }
    if (strcmp(key, "mono") == 0) {
        return parse_attr(value, &look->mono)
                   ? NULL
                   : "none, or bold, dim, reverse, underline joined by +";
    }
    if (!is16 && strcmp(key, "fg") != 0 && strcmp(key, "bg") != 0) {
        return "one of fg, bg, fg16, bg16, attr, mono";
    }
    if (!parse_color(value, &color)) {
        return "default, 0-255, #rrggbb or a colour name";
    }
    if (is16 && color > 15) {
        return "default, 0-15 or one of the 16 colour names";
    }
    if (strcmp(key, "fg") == 0) {
        look->fg = (int16_t)color;
    } else if (strcmp(key, "bg") == 0) {
        look->bg = (int16_t)color;
    } else if (strcmp(key, "fg16") == 0) {
        look->fg16 = (int8_t)color;
    } else {
        look->bg16 = (int8_t)color;
    }
    return NULL;
}

static enum hv_style find_style(const char *name)
{
    for (size_t i = 0; i < HV_STYLE_N; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return (enum hv_style)i;
        }
    }
    return HV_STYLE_N;
}

static enum hv_status bad_style(const struct hv_lines *l, const char *name, struct hv_err *err)
{
    const char *names[HV_STYLE_N];
    for (size_t i = 0; i < HV_STYLE_N; i++) {
        names[i] = table[i].name;
    }
    const char *near = hv_suggest(name, names, HV_STYLE_N);
    return hv_lines_error(l, err, "style '%s' is not known%s%s%s", name,
                          near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static enum hv_status parse_line(struct hv_theme *t, struct hv_lines *l, struct hv_err *err)
{
    char word[64];
    (void)hv_lines_word(l, word, sizeof word);
    if (strcmp(word, "background") == 0) {
        bool dark = hv_lines_word(l, word, sizeof word) && strcmp(word, "dark") == 0;
        if (!dark && strcmp(word, "light") != 0) {
            return hv_lines_error(l, err, "expected background light or background dark");
        }
        t->light = !dark;
        return HV_OK;
    }
    if (strcmp(word, "style") != 0) {
        return hv_lines_error(l, err, "expected 'style' or 'background', found '%s'", word);
    }
    if (!hv_lines_word(l, word, sizeof word)) {
        return hv_lines_error(l, err, "expected the name of a style");
    }
    enum hv_style s = find_style(word);
    if (s == HV_STYLE_N) {
        return bad_style(l, word, err);
    }
    while (hv_lines_word(l, word, sizeof word)) {
        char *eq = strchr(word, '=');
        if (!eq) {
            return hv_lines_error(l, err, "expected key=value, found '%s'", word);
        }
        *eq = '\0';
        const char *expected = set_part(&t->looks[s], word, eq + 1);
        if (expected) {
            return hv_lines_error(l, err, "%s=%s: expected %s", word, eq + 1, expected);
        }
    }
    return HV_OK;
}

enum hv_status hv_theme_parse(struct hv_theme *t, const char *text, size_t n, const char *name,
                              struct hv_err *err)
{
    struct hv_lines l = {.text = text, .n = n, .name = name};
    enum hv_status first = HV_OK;
    while (hv_lines_next(&l)) {
        enum hv_status s = parse_line(t, &l, first == HV_OK ? err : NULL);
        if (first == HV_OK) {
            first = s;
        }
    }
    return first;
}

enum hv_status hv_theme_read(struct hv_theme *t, const char *path, struct hv_err *err)
{
    struct hv_str text = {0};
    enum hv_status s = hv_file_read(path, &text, err);
    if (s == HV_OK) {
        s = hv_theme_parse(t, hv_str_cstr(&text), text.n, path, err);
    }
    hv_str_free(&text);
    return s;
}

const char *const hv_theme_names[] = {"default", "light", "high-contrast", "mono", NULL};

enum hv_status hv_theme_named(struct hv_theme *t, const char *name, struct hv_err *err)
{
    struct hv_str path = {0}, file = {0};
    enum hv_status st = HV_OK;
    hv_theme_default(t);
    const char *const *own = hv_theme_names;
    while (*own && strcmp(*own, name) != 0) {
        own++;
    }
    if (*own && own != hv_theme_names) {
        hv_str_addf(&file, "share/themes/%s.theme", name);
        st = hv_data_path(&path, hv_str_cstr(&file), err);
    }
    if (st == HV_OK && own != hv_theme_names) {
        st = hv_theme_read(t, *own ? hv_str_cstr(&path) : name, err);
    }
    if (st == HV_EIO && !*own && !strchr(name, '/')) {
        hv_str_clear(&file);
        for (own = hv_theme_names; *own; own++) {
            hv_str_addf(&file, "%s, ", *own);
        }
        st = hv_err_set(err, HV_EINPUT, "no theme '%s': %sor a file of styles", name,
                        hv_str_cstr(&file));
    }
    hv_str_free(&file);
    hv_str_free(&path);
    return st;
}
