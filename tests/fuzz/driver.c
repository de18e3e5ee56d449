/*
 * Runs a fuzz target once over every file of the folders and files given as arguments, so that the
 * targets and their corpora are part of the ordinary tests. With MODE=fuzz libFuzzer stands here.
 */
#include "solver/base/arena.h"
#include "solver/base/file.h"
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct totals {
    unsigned passed, failed;
};

static int is_visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void run_file(const char *path, struct totals *t)
{
    struct hv_str text = {0};
    struct hv_err err;
    if (hv_file_read(path, &text, &err) != HV_OK) {
        fprintf(stderr, "%s: %s\n", err.file, err.text);
        t->failed++;
        return;
    }
    /* exactly as large as the input, so that the sanitizer sees a read past its end */
    uint8_t *bytes = hv_xmalloc(text.n);
    memcpy(bytes, hv_str_cstr(&text), text.n);
    fprintf(stderr, "running %s\n", path);
    LLVMFuzzerTestOneInput(bytes, text.n);
    free(bytes);
    hv_str_free(&text);
    t->passed++;
}

static void run_folder(const char *path, struct totals *t)
{
    struct dirent **entries;
    int n = scandir(path, &entries, is_visible, alphasort);
    if (n < 0) {
        fprintf(stderr, "%s: cannot list this folder\n", path);
        t->failed++;
        return;
    }
    for (int i = 0; i < n; i++) {
        struct hv_str p = {0};
        hv_str_addf(&p, "%s/%s", path, entries[i]->d_name);
        run_file(hv_str_cstr(&p), t);
        hv_str_free(&p);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    struct totals t = {0};
    for (int i = 1; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            run_folder(argv[i], &t);
        } else {
            run_file(argv[i], &t);
        }
    }
    printf("%u passed, %u failed\n", t.passed, t.failed);
    return t.failed > 0 || t.passed == 0;
}
