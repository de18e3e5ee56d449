/* Grid, layout, theme, keys, widgets: properties and files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "solver/base/file.h"
#include "solver/base/rng.h"
#include "ui/view/grid/layout.h"
#include "ui/view/widget/widgets.h"

static void grid_clips_and_keeps_wide_halves_together(void **state)
{
    (void)state;
    struct hv_grid g = {0};
    struct hv_str s = {0};
    hv_grid_resize(&g, 6, 2);
    assert_int_equal(hv_grid_put(&g, 0, 0, -1, "a漢b", 1), 4);
    (void)hv_grid_put(&g, 2, 0, 1, "x", 0); /* the right half of the wide one */
    (void)hv_grid_put(&g, 5, 1, -1, "漢", 0);
    (void)hv_grid_put(&g, -1, 1, -1, "yz", 0);
    hv_grid_dump(&g, &s);
    assert_string_equal(hv_str_cstr(&s), "a xb\nz\n");
    hv_str_clear(&s);
    (void)hv_grid_put_user(&g, 0, 0, -1, "\033[2J", 0);
    hv_grid_dump(&g, &s);
    assert_null(strchr(hv_str_cstr(&s), '\033'));
    hv_str_free(&s);
    hv_grid_free(&g);
}

static void bars_have_eighths(void **state)
{
    (void)state;
    struct hv_grid g = {0};
    struct hv_str s = {0};
    hv_grid_resize(&g, 4, 2);
    hv_grid_bar(&g, 0, 0, 4, 0.40625, HV_STYLE_BAR); /* 13 of 32 eighths */
    g.ascii = true;
    hv_grid_bar(&g, 0, 1, 4, 0.5, HV_STYLE_BAR);
    hv_grid_dump(&g, &s);
    assert_string_equal(hv_str_cstr(&s), "█▋\n##\n");
    hv_str_free(&s);
    hv_grid_free(&g);
}

/* A part that shows its number, its place in one cell of three and, for some, the cursor. */
static void draw_part(struct hv_grid *g, struct hv_rect r, uint64_t what)
{
    for (int y = r.y; y < r.y + r.h; y++) {
        for (int x = r.x; x < r.x + r.w; x++) {
            if ((x - r.x + y - r.y) % 3 != 0) {
                (void)hv_grid_put(g, x, y, r.x + r.w - x,
                                  what % 2   ? "漢"
                                  : g->ascii ? "#"
                                             : "b",
                                  (unsigned)what);
            }
        }
    }
    if (what % 4 == 1) {
        hv_grid_cursor(g, r.x, r.y);
    }
}

/* Panels side by side, some of which show what they showed before, and something laid over them. */
static void draw_frame(struct hv_grid *g, struct hv_rng *rng, bool in_parts)
{
    (in_parts ? hv_grid_begin : hv_grid_resize)(g, g->w, g->h);
    for (int x = 0; x < g->w;) {
        struct hv_rect r = {x, (int)hv_rng_below(rng, 2), 4 + (int)hv_rng_below(rng, 3) * 2,
                            2 + (int)hv_rng_below(rng, 3)};
        uint64_t what = hv_rng_below(rng, 5);
        struct hv_rect old = hv_grid_clip(g, (struct hv_rect){x, 0, r.w, 4});
        if (!in_parts || !hv_grid_part(g, r, what)) {
            draw_part(g, r, what);
            if (in_parts) {
                hv_grid_part_end(g);
            }
        }
        hv_grid_unclip(g, old);
        x += r.w;
    }
    if (hv_rng_below(rng, 3) == 0) {
        hv_grid_fill(g, (struct hv_rect){3, 1, 9, 2}, '*', 5);
    }
    if (hv_rng_below(rng, 3) == 0) {
        hv_grid_restyle(g, (struct hv_rect){2, 0, 7, 4}, HV_STYLE_ID_MASK, HV_STYLE_REVERSE);
    }
    if (in_parts) {
        hv_grid_end(g);
    }
}

/* Cells that are not what they were lie where the grid says that something changed. */
static void assert_changes_told(const struct hv_grid *g, const struct hv_cell *before)
{
    for (int y = 0; y < g->h; y++) {
        for (int x = 0; x < g->w; x++) {
            const struct hv_cell *a = &g->cells[y * g->w + x], *b = &before[y * g->w + x];
            if (memcmp(a->utf8, b->utf8, 8) != 0 || a->style != b->style || a->width != b->width) {
                assert_true(x >= g->changed[y].from && x < g->changed[y].to);
            }
        }
    }
}

static void parts_leave_no_trace(void **state)
{
    (void)state;
    struct hv_grid kept = {0}, fresh = {0};
    struct hv_cell before[28 * 5];
    struct hv_rng rng, again;
    hv_rng_seed(&rng, 11);
    hv_grid_resize(&kept, 24, 5);
    hv_grid_resize(&fresh, 24, 5);
    for (int frame = 0; frame < 2000; frame++) {
        if (hv_rng_below(&rng, 40) == 0) {
            int w = 12 + (int)hv_rng_below(&rng, 16);
            hv_grid_resize(&kept, w, 5);
            hv_grid_resize(&fresh, w, 5);
        }
        kept.ascii = fresh.ascii = hv_rng_below(&rng, 2) == 0;
        again = rng;
        memcpy(before, kept.cells, (size_t)(kept.w * kept.h) * sizeof *before);
        draw_frame(&kept, &rng, true);
        draw_frame(&fresh, &again, false);
        assert_changes_told(&kept, before);
        for (int i = 0; i < fresh.w * fresh.h; i++) {
            assert_memory_equal(kept.cells[i].utf8, fresh.cells[i].utf8, 8);
            assert_int_equal(kept.cells[i].style, fresh.cells[i].style);
            assert_int_equal(kept.cells[i].width, fresh.cells[i].width);
        }
        assert_int_equal(kept.cursor_x, fresh.cursor_x);
        assert_int_equal(kept.cursor_y, fresh.cursor_y);
    }
    hv_grid_free(&kept);
    hv_grid_free(&fresh);
}

static void parts_are_drawn_once(void **state)
{
    (void)state;
    struct hv_grid g = {0};
    struct hv_rect r = {1, 1, 4, 2}, lower = {3, 2, 4, 2}, cut = {5, 1, 4, 2};
    hv_grid_resize(&g, 8, 4);
    assert_false(hv_grid_part(&g, r, 7));
    (void)hv_grid_put(&g, 1, 1, -1, "one", 0);
    hv_grid_part_end(&g);
    assert_true(hv_grid_part(&g, r, 7));
    assert_false(hv_grid_part(&g, r, 8));
    (void)hv_grid_put(&g, 1, 1, -1, "two", 0);
    hv_grid_part_end(&g);
    assert_true(hv_grid_part(&g, r, 7)); /* over what came later */
    assert_string_equal(g.cells[8 + 1].utf8, "o");
    assert_true(hv_grid_part(&g, lower, 8)); /* at another place */
    assert_string_equal(g.cells[2 * 8 + 3].utf8, "t");
    assert_false(hv_grid_part(&g, cut, 8)); /* a piece of it is another part */
    hv_grid_part_end(&g);
    assert_false(hv_grid_part(&g, r, 0));
    hv_grid_part_end(&g);
    assert_false(hv_grid_part(&g, r, 10));
    assert_false(hv_grid_part(&g, (struct hv_rect){1, 1, 2, 1}, 11)); /* inside another */
    (void)hv_grid_put(&g, 1, 1, 2, "in", 0);
    hv_grid_part_end(&g);
    (void)hv_grid_put(&g, 3, 1, 2, "ut", 0);
    hv_grid_part_end(&g);
    assert_true(hv_grid_part(&g, lower, 10));
    assert_string_equal(g.cells[2 * 8 + 5].utf8, "u");
    g.ascii = true;
    assert_false(hv_grid_part(&g, r, 7));
    hv_grid_part_end(&g);
    hv_grid_resize(&g, 9, 4);
    assert_true(hv_grid_part(&g, r, 7));
    r.w = 5;
    assert_false(hv_grid_part(&g, r, 7));
    hv_grid_free(&g);
}

static void frames_keep_what_is_drawn_again(void **state)
{
    (void)state;
    struct hv_grid g = {0};
    hv_grid_resize(&g, 10, 2);
    (void)hv_grid_put(&g, 0, 0, -1, "abc", 0);
    (void)hv_grid_put(&g, 0, 1, -1, "xyz", 0);
    hv_grid_begin(&g, 10, 2);
    (void)hv_grid_put(&g, 0, 0, -1, "abd", 0);
    hv_grid_end(&g);
    assert_int_equal(g.changed[0].from, 2);
    assert_int_equal(g.changed[0].to, 3);
    assert_string_equal(g.cells[10].utf8, " "); /* not drawn: gone */
    assert_int_equal(g.changed[1].from, 0);
    assert_int_equal(g.changed[1].to, 3);
    hv_grid_begin(&g, 10, 2);
    (void)hv_grid_put(&g, 0, 0, -1, "abd", 0);
    hv_grid_end(&g);
    for (int y = 0; y < 2; y++) {
        assert_true(g.changed[y].to <= g.changed[y].from);
    }
    hv_grid_free(&g);
}

static bool inside(struct hv_rect r, struct hv_rect outer)
{
    return r.w == 0 || r.h == 0 ||
           (r.x >= outer.x && r.y >= outer.y && r.x + r.w <= outer.x + outer.w &&
            r.y + r.h <= outer.y + outer.h);
}

static void layout_never_overlaps_or_leaves(void **state)
{
    (void)state;
    const struct hv_split parts[] = {{0, 2, 20}, {12, 0, 0}, {0, 1, 10}};
    for (int w = 1; w <= 200; w += 3) {
        for (int h = 1; h <= 60; h++) {
            struct hv_frame f = hv_layout_frame(w, h);
            struct hv_rect all = {0, 0, w, h}, out[3];
            assert_true(inside(f.body, all) && inside(f.status, all) && inside(f.keybar, all));
            assert_true(f.body.w > 0 && f.body.h > 0);
            for (int axis = 0; axis < 2; axis++) {
                hv_layout_panels(f.body, (enum hv_axis)axis, parts, 3, (size_t)(h % 3), out);
                int area = 0;
                for (int i = 0; i < 3; i++) {
                    assert_true(out[i].w >= 0 && out[i].h >= 0 && inside(out[i], f.body));
                    area += out[i].w * out[i].h;
                    for (int j = 0; j < i; j++) {
                        struct hv_rect meet = hv_rect_meet(out[i], out[j]);
                        assert_int_equal(meet.w * meet.h, 0);
                    }
                }
                assert_int_equal(area, f.body.w * f.body.h);
            }
        }
    }
    assert_int_equal(hv_layout_columns(79), 1);
    assert_int_equal(hv_layout_columns(80), 2);
    assert_int_equal(hv_layout_columns(110), 3);
}

/* The map as a keys file. */
static void write_keymap(const struct hv_keymap *m, struct hv_str *out)
{
    char name[32];
    for (size_t i = 0; i < m->binds.n; i++) {
        const struct hv_bind *b = &m->binds.items[i];
        hv_str_addf(out, "bind %s %s ", b->view, hv_key_name(b->key, name, sizeof name));
        if (b->command) {
            hv_str_addf(out, ":%s\n", b->command);
        } else {
            hv_str_addf(out, "%s  # %s\n", hv_action_row(b->action)->name,
                        hv_action_row(b->action)->help);
        }
    }
}

static void shipped_files_equal_the_tables(void **state)
{
    (void)state;
    struct hv_theme a, b;
    struct hv_err err = {0};
    hv_theme_default(&a);
    memset(&b, 0x55, sizeof b);
    assert_int_equal(hv_theme_read(&b, "share/themes/default.theme", &err), HV_OK);
    for (int i = 0; i < HV_STYLE_N; i++) {
        assert_int_equal(a.looks[i].fg, b.looks[i].fg);
        assert_int_equal(a.looks[i].bg, b.looks[i].bg);
        assert_int_equal(a.looks[i].fg16, b.looks[i].fg16);
        assert_int_equal(a.looks[i].bg16, b.looks[i].bg16);
        assert_int_equal(a.looks[i].attr, b.looks[i].attr);
        assert_int_equal(a.looks[i].mono, b.looks[i].mono);
    }
    assert_int_equal(hv_theme_read(&b, "share/themes/mono.theme", &err), HV_OK);
    assert_int_equal(hv_theme_read(&b, "share/themes/high-contrast.theme", &err), HV_OK);
    assert_int_equal(hv_theme_read(&b, "share/themes/light.theme", &err), HV_OK);
    assert_true(b.light && !a.light);
    for (int i = 0; i < HV_STYLE_N; i++) { /* nothing white or yellow on the terminal's own white */
        int fg = b.looks[i].fg;
        assert_true(b.looks[i].bg >= 0 || fg < 0 || fg == 16 || fg == 25 || fg == 29 || fg == 31 ||
                    fg == 94 || fg == 130 || (fg >= 232 && fg <= 246));
        assert_int_equal(a.looks[i].mono, b.looks[i].mono);
    }
    struct hv_keymap table = {0}, file = {0};
    hv_keymap_default(&table);
    if (getenv("GENERATE") != NULL) {
        struct hv_str now = {0};
        write_keymap(&table, &now);
        assert_int_equal(hv_file_write("share/keys/default.keys", hv_str_cstr(&now), now.n, &err),
                         HV_OK);
        hv_str_free(&now);
    }
    assert_int_equal(hv_keymap_read(&file, "share/keys/default.keys", &err), HV_OK);
    struct hv_str x = {0}, y = {0};
    write_keymap(&table, &x);
    write_keymap(&file, &y);
    assert_string_equal(hv_str_cstr(&x), hv_str_cstr(&y));
    hv_str_free(&x);
    hv_str_free(&y);
    hv_keymap_free(&table);
    hv_keymap_free(&file);
}

static void wrong_lines_say_where(void **state)
{
    (void)state;
    struct hv_theme t;
    struct hv_keymap m = {0};
    struct hv_err err = {0};
    const char theme[] = "# x\nstyle text fg=300\nstyle error fg=blue\n";
    hv_theme_default(&t);
    assert_int_equal(hv_theme_parse(&t, theme, sizeof theme - 1, "a.theme", &err), HV_EINPUT);
    assert_int_equal(err.line, 2);
    assert_int_equal(err.col, 12);
    assert_int_equal(t.looks[HV_STYLE_ERROR].fg, 4); /* good lines count all the same */
    const char keys[] = "bind * ^S save\nbind gantt z gantt-zoom-inn\nbind * # :say hi # note\n";
    assert_int_equal(hv_keymap_parse(&m, keys, sizeof keys - 1, "k", &err), HV_EINPUT);
    assert_int_equal(err.line, 2);
    assert_non_null(strstr(err.text, "gantt-zoom-in"));
    hv_keymap_free(&m);
}

static void key_names_read_back(void **state)
{
    (void)state;
    char name[32];
    const struct hv_key samples[] = {{HV_KEY_CHAR, 0, 'j'},
                                     {HV_KEY_CHAR, 0, ' '},
                                     {HV_KEY_CHAR, HV_MOD_CTRL, 's'},
                                     {HV_KEY_CHAR, HV_MOD_ALT, 'x'},
                                     {HV_KEY_CHAR, 0, '<'},
                                     {HV_KEY_CHAR, 0, '^'},
                                     {HV_KEY_CHAR, 0, '#'},
                                     {HV_KEY_CHAR, 0, 0xe9},
                                     {HV_KEY_TAB, HV_MOD_SHIFT, 0},
                                     {HV_KEY_F5, 0, 0},
                                     {HV_KEY_ENTER, 0, 0},
                                     {HV_KEY_LEFT, HV_MOD_CTRL | HV_MOD_SHIFT, 0}};
    for (size_t i = 0; i < HV_COUNT(samples); i++) {
        struct hv_key k = {0};
        (void)hv_key_name(samples[i], name, sizeof name);
        assert_int_equal(hv_key_parse(name, strlen(name), &k, NULL), HV_OK);
        assert_true(hv_key_same(k, samples[i]));
    }
    struct hv_key k;
    assert_int_equal(hv_key_parse("Entr", 4, &k, NULL), HV_EINPUT);
}

static void views_win_over_global_keys(void **state)
{
    (void)state;
    struct hv_keymap m = {0};
    struct hv_key g = {HV_KEY_CHAR, 0, 'g'};
    hv_keymap_default(&m);
    assert_int_equal(hv_keymap_find(&m, "gantt", g)->action, HV_ACT_GANTT_GOTO);
    assert_int_equal(hv_keymap_find(&m, "plans", g)->action, HV_ACT_TOP);
    hv_keymap_free(&m);
}

static void type(struct hv_line *l, const char *keys)
{
    struct hv_key k;
    while (hv_keys_next(&keys, &k, NULL)) {
        (void)hv_line_key(l, k);
    }
}

static void line_edits_undoes_and_remembers(void **state)
{
    (void)state;
    struct hv_line l = {0};
    type(&l, "ab cd<Left>X^W");
    assert_string_equal(hv_str_cstr(&l.text), "ab d");
    type(&l, "^_");
    assert_string_equal(hv_str_cstr(&l.text), "ab cXd");
    type(&l, "<Enter>");
    hv_line_set(&l, "");
    type(&l, "new<Up>");
    assert_string_equal(hv_str_cstr(&l.text), "ab cXd");
    type(&l, "<Down>");
    assert_string_equal(hv_str_cstr(&l.text), "new");
    hv_line_free(&l);
}

static void forms_refuse_wrong_values(void **state)
{
    (void)state;
    struct hv_field fields[] = {{.name = "count",
                                 .kind = HV_FIELD_NUMBER,
                                 .min = 1,
                                 .max = 16,
                                 .integer = true,
                                 .value = "8"},
                                {.name = "spot", .kind = HV_FIELD_BOOL, .value = "no"}};
    struct hv_form f = {.fields = fields, .n_fields = 2};
    struct hv_key enter = {.code = HV_KEY_ENTER}, down = {.code = HV_KEY_DOWN};
    (void)hv_form_key(&f, (struct hv_key){HV_KEY_CHAR, 0, '9'});
    (void)hv_form_key(&f, (struct hv_key){HV_KEY_CHAR, 0, '9'});
    assert_int_equal(hv_form_key(&f, enter), HV_FORM_REFUSED);
    assert_true(fields[0].bad[0] != '\0');
    (void)hv_form_key(&f, (struct hv_key){.code = HV_KEY_BACKSPACE});
    assert_int_equal(hv_form_key(&f, enter), HV_FORM_CHANGED);
    assert_string_equal(fields[0].value, "9");
    (void)hv_form_key(&f, down);
    assert_int_equal(hv_form_key(&f, enter), HV_FORM_CHANGED);
    assert_string_equal(fields[1].value, "yes");
    hv_form_free(&f);
}

static void keybar_keeps_help_and_quit(void **state)
{
    (void)state;
    struct hv_keybar_item items[] = {{.action = HV_ACT_HELP, .key = "F1", .label = "Help"},
                                     {.action = HV_ACT_ADD, .key = "a", .label = "Add"},
                                     {.action = HV_ACT_EDIT, .key = "e", .label = "Edit"},
                                     {.action = HV_ACT_CLOSE, .key = "q", .label = "Quit"}};
    hv_keybar_fit(items, 4, 24);
    assert_true(items[0].w > 0 && items[1].w > 0 && items[3].w > 0);
    assert_int_equal(items[2].w, 0);
    assert_int_equal(hv_keybar_hit(items, 4, items[3].x), HV_ACT_CLOSE);
}

static void keybar_twins_and_hints_take_clicks(void **state)
{
    (void)state;
    struct hv_keybar_item items[] = {{.action = HV_ACT_GANTT_ZOOM_IN,
                                      .twin = HV_ACT_GANTT_ZOOM_OUT,
                                      .twin_x = 2,
                                      .key = "+/-",
                                      .label = "Zoom"},
                                     {.key = "Tab", .label = "Next", .press = {HV_KEY_TAB, 0, 0}},
                                     {.key = "Esc", .label = "Leave", .press = {HV_KEY_ESC, 0, 0}}};
    hv_keybar_fit(items, 3, 80);
    assert_int_equal(hv_keybar_hit(items, 3, 0), HV_ACT_GANTT_ZOOM_IN);
    assert_int_equal(hv_keybar_hit(items, 3, 2), HV_ACT_GANTT_ZOOM_OUT);
    assert_int_equal(hv_keybar_hit(items, 3, 5), HV_ACT_GANTT_ZOOM_IN); /* the label */
    assert_int_equal(hv_keybar_press(items, 3, 0).code, HV_KEY_NONE);
    assert_int_equal(hv_keybar_press(items, 3, items[1].x).code, HV_KEY_TAB);
    hv_keybar_fit(items, 3, 20); /* the way out stays */
    assert_int_equal(items[1].w, 0);
    assert_true(items[2].w > 0);
}

static void check_squeeze(const char *name, int w, const char *want)
{
    struct hv_str text = {0};
    hv_text_squeeze(name, w, false, &text);
    assert_string_equal(hv_str_cstr(&text), want);
    assert_true(hv_text_width(hv_str_cstr(&text)) <= w);
    hv_str_free(&text);
}

static void long_names_keep_what_tells_them_apart(void **state)
{
    (void)state;
    check_squeeze("a nodes", 18, "a nodes");
    check_squeeze("A100-SXM-80GB memory speed", 18, "A100… memory speed");
    check_squeeze("A100-SXM-80GB peak", 14, "A100-SXM… peak");
    check_squeeze("group-007", 8, "gro…-007");
    check_squeeze("групування", 5, "гр…ня");
    for (int w = 0; w < 4; w++) {
        struct hv_str text = {0};
        hv_text_squeeze("group-007 nodes", w, true, &text);
        assert_true(w == 0 || hv_text_width(hv_str_cstr(&text)) <= w);
        hv_str_free(&text);
    }
}

static void words_wrap_and_show_their_cut(void **state)
{
    (void)state;
    struct hv_grid g = {0};
    struct hv_str out = {0};
    hv_grid_resize(&g, 10, 3);
    assert_int_equal(hv_words_rows("one two three four", 9, 9), 3);
    assert_int_equal(hv_words_rows("one two three four", 9, 2), 2);
    assert_int_equal(hv_words_rows("", 9, 2), 0);
    assert_int_equal(hv_words_draw(&g, (struct hv_rect){0, 0, 9, 2}, "one two three four", 0), 2);
    hv_grid_dump(&g, &out);
    assert_non_null(strstr(hv_str_cstr(&out), "one two"));
    assert_non_null(strstr(hv_str_cstr(&out), "three fo…"));
    hv_str_free(&out);
    hv_grid_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grid_clips_and_keeps_wide_halves_together),
                                       cmocka_unit_test(bars_have_eighths),
                                       cmocka_unit_test(parts_leave_no_trace),
                                       cmocka_unit_test(parts_are_drawn_once),
                                       cmocka_unit_test(frames_keep_what_is_drawn_again),
                                       cmocka_unit_test(layout_never_overlaps_or_leaves),
                                       cmocka_unit_test(shipped_files_equal_the_tables),
                                       cmocka_unit_test(wrong_lines_say_where),
                                       cmocka_unit_test(key_names_read_back),
                                       cmocka_unit_test(views_win_over_global_keys),
                                       cmocka_unit_test(line_edits_undoes_and_remembers),
                                       cmocka_unit_test(forms_refuse_wrong_values),
                                       cmocka_unit_test(keybar_keeps_help_and_quit),
                                       cmocka_unit_test(keybar_twins_and_hints_take_clicks),
                                       cmocka_unit_test(long_names_keep_what_tells_them_apart),
                                       cmocka_unit_test(words_wrap_and_show_their_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
