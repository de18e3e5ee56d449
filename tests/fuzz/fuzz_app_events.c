/* Fuzz target: random keys, clicks and sizes into the application with the toy view. */
#include <stdint.h>

#include "tests/screen/toy_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two bytes make an event. */
static struct hv_event make_event(uint8_t a, uint8_t b)
{
    if (a >= 0xf0) {
        return hv_event_resize((int)b, (int)(a & 15) * 5);
    }
    if (a >= 0xe0) {
        return (struct hv_event){
            .type = HV_EV_MOUSE, .mouse = (enum hv_mouse_kind)(a % 5), .x = b, .y = a & 15};
    }
    if (a >= 0xc0) {
        return hv_event_key((struct hv_key){.code = (enum hv_key_code)(2 + b % (HV_KEY_N - 2))});
    }
    return hv_event_key(
        (struct hv_key){.code = HV_KEY_CHAR, .mods = a >= 0xa0 ? HV_MOD_CTRL : 0, .cp = b});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct toy_model m = {.n_rows = size % 50, .unsaved = true};
    struct hv_keymap keys = {0};
    struct hv_grid g = {0};
    hv_keymap_default(&keys);
    struct hv_app *app = toy_app(&m, &keys, size % 2 == 0);
    for (size_t i = 0; i + 1 < size && i < 2000; i += 2) {
        struct hv_event ev = make_event(data[i], data[i + 1]);
        if (!hv_app_feed(app, &ev)) {
            break;
        }
        if (hv_app_is_dirty(app)) {
            hv_app_draw(app, &g);
        }
    }
    hv_app_free(app);
    hv_grid_free(&g);
    hv_keymap_free(&keys);
    return 0;
}
