/* Fuzz target: theme files, keys files, key names. */
#include <stdint.h>
#include <stdlib.h>

#include "ui/view/grid/theme.h"
#include "ui/view/keys/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct hv_theme theme;
    struct hv_keymap keys = {0};
    struct hv_key k, again;
    char name[32];
    hv_theme_default(&theme);
    if (hv_theme_parse(&theme, text, size, "fuzz", NULL) == HV_OK &&
        hv_keymap_parse(&keys, text, size, "fuzz", NULL) == HV_OK) {
        hv_keymap_free(&keys);
    }
    if (hv_keymap_parse(&keys, text, size, "fuzz", NULL) == HV_OK) {
        (void)hv_keymap_find(&keys, "gantt", (struct hv_key){HV_KEY_F1, 0, 0});
    }
    hv_keymap_free(&keys);
    if (hv_key_parse(text, size, &k, NULL) == HV_OK) {
        (void)hv_key_name(k, name, sizeof name);
        struct hv_str s = {0};
        hv_str_adds(&s, name);
        if (hv_key_parse(hv_str_cstr(&s), s.n, &again, NULL) != HV_OK || !hv_key_same(k, again)) {
            abort();
        }
        hv_str_free(&s);
    }
    return 0;
}
