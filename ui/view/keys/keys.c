/* Key names, the key map and its file. Independent of escape codes of terminals. */
#include "ui/view/keys/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <utf8proc.h>

#include "solver/base/file.h"
#include "ui/view/grid/grid.h"
#include "ui/view/settings/lines.h"

static const char *const code_names[] = {
#define X(id, name) name,
    HV_KEY_MAP(X)
#undef X
};

/* Characters whose own sign would not survive in a file or a script. */
static const struct {
    const char *name;
    uint32_t cp;
} char_names[] = {{"Space", ' '}, {"lt", '<'}, {"gt", '>'}, {"caret", '^'}, {"hash", '#'}};

struct hv_event hv_event_key(struct hv_key k)
{
    return (struct hv_event){.type = HV_EV_KEY, .key = k};
}

struct hv_event hv_event_resize(int w, int h)
{
    return (struct hv_event){.type = HV_EV_RESIZE, .w = w, .h = h};
}

bool hv_key_same(struct hv_key a, struct hv_key b)
{
    return a.code == b.code && a.mods == b.mods && a.cp == b.cp;
}

static bool same_word(const char *name, size_t n, const char *word)
{
    return strlen(word) == n && strncasecmp(name, word, n) == 0;
}

/* One character or a named key, without modifiers. */
static bool parse_base(const char *s, size_t n, struct hv_key *out)
{
    utf8proc_int32_t cp;
    if (n == 0) {
        return false;
    }
    utf8proc_ssize_t len = utf8proc_iterate((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, &cp);
    if (len > 0 && (size_t)len == n && cp >= ' ' && cp != 0x7f && !(cp >= 0x80 && cp < 0xa0)) {
        *out = (struct hv_key){.code = HV_KEY_CHAR, .mods = out->mods, .cp = (uint32_t)cp};
        return true;
    }
    for (size_t i = HV_KEY_ENTER; i < HV_KEY_N; i++) {
        if (same_word(s, n, code_names[i])) {
            *out = (struct hv_key){.code = (enum hv_key_code)i, .mods = out->mods};
            return true;
        }
    }
    for (size_t i = 0; i < HV_COUNT(char_names); i++) {
        if (same_word(s, n, char_names[i].name)) {
            *out = (struct hv_key){.code = HV_KEY_CHAR, .mods = out->mods, .cp = char_names[i].cp};
            return true;
        }
    }
    return false;
}

/* Takes one modifier prefix off; false when there is none. */
static bool take_modifier(const char **s, size_t *n, uint8_t *mods)
{
    static const struct {
        const char *prefix;
        uint8_t bit;
    } prefixes[] = {{"^", HV_MOD_CTRL},       {"Ctrl-", HV_MOD_CTRL}, {"C-", HV_MOD_CTRL},
                    {"Shift-", HV_MOD_SHIFT}, {"S-", HV_MOD_SHIFT},   {"Alt-", HV_MOD_ALT},
                    {"M-", HV_MOD_ALT}};
    for (size_t i = 0; i < HV_COUNT(prefixes); i++) {
        size_t len = strlen(prefixes[i].prefix);
        if (*n > len && strncasecmp(*s, prefixes[i].prefix, len) == 0) {
            *mods |= prefixes[i].bit;
            *s += len;
            *n -= len;
            return true;
        }
    }
    return false;
}

enum hv_status hv_key_parse(const char *name, size_t n, struct hv_key *out, struct hv_err *err)
{
    const char *s = name;
    size_t left = n;
    if (left > 2 && s[0] == '<' && s[left - 1] == '>') {
        s++;
        left -= 2;
    }
    struct hv_key k = {.code = HV_KEY_NONE};
    while (take_modifier(&s, &left, &k.mods)) {
        continue;
    }
    if (parse_base(s, left, &k)) {
        if (k.code == HV_KEY_CHAR && (k.mods & HV_MOD_CTRL) && k.cp >= 'A' && k.cp <= 'Z') {
            k.cp += 'a' - 'A';
        }
        if (k.code == HV_KEY_CHAR) {
            k.mods &= (uint8_t) ~(unsigned)HV_MOD_SHIFT;
        }
        *out = k;
        return HV_OK;
    }
    char word[48];
    (void)snprintf(word, sizeof word, "%.*s", (int)(left < 47 ? left : 47), s);
    const char *near = hv_suggest(word, code_names + HV_KEY_ENTER, HV_KEY_N - HV_KEY_ENTER);
    return hv_err_set(err, HV_EINPUT, "key '%.*s' is not known%s%s%s", (int)(n < 60 ? n : 60), name,
                      near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void char_name(struct hv_key k, char *buf, size_t cap)
{
    for (size_t i = 0; i < HV_COUNT(char_names); i++) {
        if (char_names[i].cp == k.cp) {
            (void)snprintf(buf, cap, "%s", char_names[i].name);
            return;
        }
    }
    utf8proc_uint8_t utf8[5] = {0};
    if (utf8proc_encode_char((utf8proc_int32_t)k.cp, utf8) <= 0) {
        utf8[0] = '?';
    }
    if ((k.mods & HV_MOD_CTRL) && k.cp >= 'a' && k.cp <= 'z') {
        utf8[0] = (utf8proc_uint8_t)(k.cp - 'a' + 'A');
    }
    (void)snprintf(buf, cap, "%s", (const char *)utf8);
}

const char *hv_key_name(struct hv_key k, char *buf, size_t cap)
{
    char base[16];
    if (k.code == HV_KEY_CHAR) {
        char_name(k, base, sizeof base);
    } else {
        (void)snprintf(base, sizeof base, "%s", k.code < HV_KEY_N ? code_names[k.code] : "None");
    }
    const char *shift = k.mods & HV_MOD_SHIFT ? "Shift-" : "",
               *alt = k.mods & HV_MOD_ALT ? "M-" : "";
    const char *ctrl = !(k.mods & HV_MOD_CTRL) ? "" : k.code == HV_KEY_CHAR ? "^" : "Ctrl-";
    bool long_name = hv_text_width(base) > 1 && !k.mods && !(k.code >= HV_KEY_F1);
    (void)snprintf(buf, cap, "%s%s%s%s%s%s", long_name ? "<" : "", alt, shift, ctrl, base,
                   long_name ? ">" : "");
    return buf;
}

bool hv_keys_next(const char **text, struct hv_key *out, struct hv_err *err)
{
    const char *s = *text;
    if (!*s) {
        return false;
    }
    size_t n = 1;
    const char *close = *s == '<' ? strchr(s, '>') : NULL;
    if (close && close - s > 1 && close - s < 32) {
        n = (size_t)(close - s) + 1;
    } else if (*s == '^' && s[1]) {
        n = 1 + hv_text_next(s, 1);
    } else {
        n = hv_text_next(s, 0);
    }
    *text = s + n;
    return hv_key_parse(s, n, out, err) == HV_OK;
}

void hv_keymap_free(struct hv_keymap *m)
{
    for (size_t i = 0; i < m->binds.n; i++) {
        free(m->binds.items[i].command);
    }
    hv_vec_free(&m->binds);
}

/* Adds or replaces; takes `command`. */
static void set_bind(struct hv_keymap *m, const char *view, struct hv_key k, enum hv_action a,
                     char *command)
{
    struct hv_bind b = {.key = k, .action = a, .command = command};
    (void)snprintf(b.view, sizeof b.view, "%s", view);
    for (size_t i = 0; i < m->binds.n; i++) {
        struct hv_bind *old = &m->binds.items[i];
        if (hv_key_same(old->key, k) && strcmp(old->view, b.view) == 0) {
            free(old->command);
            *old = b;
            return;
        }
    }
    hv_vec_push(&m->binds, b);
}

static void bind_row(struct hv_keymap *m, enum hv_action a, const char *view)
{
    const char *s = hv_action_row(a)->keys;
    while (*s) {
        size_t n = strcspn(s, " ");
        struct hv_key k;
        if (hv_key_parse(s, n, &k, NULL) != HV_OK) {
            HV_BUG("action table: bad key '%.*s'", (int)n, s);
        }
        set_bind(m, view, k, a, NULL);
        s += n + (s[n] == ' ');
    }
}

void hv_keymap_default(struct hv_keymap *m)
{
    for (size_t a = 1; a < HV_ACT_N; a++) {
        const char *v = hv_action_row((enum hv_action)a)->views;
        while (*v) {
            char view[24];
            size_t n = strcspn(v, ",");
            (void)snprintf(view, sizeof view, "%.*s", (int)n, v);
            bind_row(m, (enum hv_action)a, view);
            v += n + (v[n] == ',');
        }
    }
}

const struct hv_bind *hv_keymap_find(const struct hv_keymap *m, const char *view, struct hv_key k)
{
    const struct hv_bind *global = NULL;
    for (size_t i = 0; i < m->binds.n; i++) {
        const struct hv_bind *b = &m->binds.items[i];
        if (!hv_key_same(b->key, k)) {
            continue;
        }
        if (strcmp(b->view, view) == 0) {
            return b;
        }
        if (strcmp(b->view, "*") == 0) {
            global = b;
        }
    }
    return global;
}

/* The i-th key whose binding in this view is the action; own bindings first. */
static bool key_at(const struct hv_keymap *m, const char *view, enum hv_action a, size_t want,
                   struct hv_key *out)
{
    for (int own = 1; own >= 0; own--) {
        for (size_t i = 0; i < m->binds.n; i++) {
            const struct hv_bind *b = &m->binds.items[i];
            bool is_own = strcmp(b->view, "*") != 0;
            if (b->action != a || b->command || is_own != (own == 1) ||
                hv_keymap_find(m, view, b->key) != b) {
                continue;
            }
            if (want-- == 0) {
                *out = b->key;
                return true;
            }
        }
    }
    return false;
}

bool hv_keymap_key_of(const struct hv_keymap *m, const char *view, enum hv_action a,
                      struct hv_key *out)
{
    return key_at(m, view, a, 0, out);
}

void hv_keymap_keys_of(const struct hv_keymap *m, const char *view, enum hv_action a,
                       struct hv_str *out)
{
    struct hv_key k;
    char name[32];
    for (size_t i = 0; key_at(m, view, a, i, &k); i++) {
        hv_str_adds(out, i > 0 ? " " : "");
        hv_str_adds(out, hv_key_name(k, name, sizeof name));
    }
}

static enum hv_status bad_action(const struct hv_lines *l, const char *word, struct hv_err *err)
{
    const char *names[HV_ACT_N];
    for (size_t i = 0; i < HV_ACT_N; i++) {
        names[i] = hv_action_row((enum hv_action)i)->name;
    }
    const char *near = hv_suggest(word, names, HV_ACT_N);
    return hv_lines_error(l, err, "action '%s' is not known%s%s%s", word,
                          near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* The words of a command up to a comment. */
static char *read_command(struct hv_lines *l, const char *first)
{
    struct hv_str s = {0};
    char word[256];
    hv_str_adds(&s, first + 1);
    while (hv_lines_word(l, word, sizeof word)) {
        hv_str_addc(&s, ' ');
        hv_str_adds(&s, word);
    }
    char *out = hv_xstrdup(hv_str_cstr(&s));
    hv_str_free(&s);
    return out;
}

static enum hv_status parse_line(struct hv_keymap *m, struct hv_lines *l, struct hv_err *err)
{
    char view[24], word[256];
    struct hv_key k;
    struct hv_err why = {0};
    (void)hv_lines_word(l, word, sizeof word);
    if (strcmp(word, "bind") != 0) {
        return hv_lines_error(l, err, "expected 'bind', found '%s'", word);
    }
    if (!hv_lines_word(l, word, sizeof word) || strlen(word) >= sizeof view) {
        return hv_lines_error(l, err, "expected the name of a view or *");
    }
    memcpy(view, word, strlen(word) + 1);
    if (!hv_lines_word(l, word, sizeof word)) {
        return hv_lines_error(l, err, "expected the name of a key, e.g. ^S, F5, <Space> or j");
    }
    if (hv_key_parse(word, strlen(word), &k, &why) != HV_OK) {
        return hv_lines_error(l, err, "%s", why.text);
    }
    if (!hv_lines_word(l, word, sizeof word)) {
        return hv_lines_error(l, err, "expected an action or :command");
    }
    if (word[0] == ':') {
        set_bind(m, view, k, HV_ACT_NONE, read_command(l, word));
        return HV_OK;
    }
    enum hv_action a = hv_action_find(word);
    if (a == HV_ACT_N) {
        return bad_action(l, word, err);
    }
    if (hv_lines_word(l, word, sizeof word)) {
        return hv_lines_error(l, err, "expected the end of the line or '# note', found '%s'", word);
    }
    set_bind(m, view, k, a, NULL);
    return HV_OK;
}

enum hv_status hv_keymap_parse(struct hv_keymap *m, const char *text, size_t n, const char *name,
                               struct hv_err *err)
{
    struct hv_lines l = {.text = text, .n = n, .name = name};
    enum hv_status first = HV_OK;
    while (hv_lines_next(&l)) {
        enum hv_status s = parse_line(m, &l, first == HV_OK ? err : NULL);
        if (first == HV_OK) {
            first = s;
        }
    }
    return first;
}

enum hv_status hv_keymap_read(struct hv_keymap *m, const char *path, struct hv_err *err)
{
    struct hv_str text = {0};
    enum hv_status s = hv_file_read(path, &text, err);
    if (s == HV_OK) {
        s = hv_keymap_parse(m, hv_str_cstr(&text), text.n, path, err);
    }
    hv_str_free(&text);
    return s;
}
