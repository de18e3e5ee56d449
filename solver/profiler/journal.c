/*
 * The first line of the journal names card and driver, and quick or full. A complete line ends with
 * a newline: the rest after the last newline is left from a crash.
 */
#include "solver/profiler/journal.h"

#include "solver/base/file.h"
#include "solver/base/json/json.h"
#include "solver/io/own/cluster/probe_file.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "hetviz.profile-journal/1"

static void add_line(struct hv_str *out, json_t *tree)
{
    hv_json_write(out, tree, false);
    json_decref(tree);
    hv_str_addc(out, '\n');
}

static void add_header(struct hv_str *out, const struct hv_bench_card *card, bool quick)
{
    add_line(out, json_pack("{s:s, s:s, s:s, s:b}", "format", FORMAT, "card", card->name, "driver",
                            card->driver, "quick", quick));
}

/* Reads the lines after the header; stops at the first incomplete one. Returns the bytes of
 * complete lines. */
static size_t read_samples(struct hv_journal *j, const char *path, const struct hv_str *text,
                           size_t at)
{
    const char *end;
    while ((end = memchr(text->p + at, '\n', text->n - at)) != NULL) {
        struct hv_json json = {0};
        struct hv_probe_sample s;
        size_t n = (size_t)(end - text->p) - at;
        if (hv_json_parse(&json, text->p + at, n, path, NULL) != HV_OK) {
            break;
        }
        struct hv_jp root = hv_jp_root(&json);
        bool good = hv_probe_sample_read(&root, &s, NULL) == HV_OK;
        hv_json_free(&json);
        if (!good) {
            break;
        }
        hv_vec_push(&j->before, s);
        at += n + 1;
    }
    return at;
}

static enum hv_status reopen(struct hv_journal *j, const char *path, const struct hv_str *text,
                             struct hv_err *err)
{
    enum hv_status st = hv_file_write(path, hv_str_cstr(text), text->n, err);
    if (st) {
        return st;
    }
    j->f = fopen(path, "a");
    return j->f != NULL ? HV_OK : hv_err_set(err, HV_EIO, "%s: %s", path, strerror(errno));
}

enum hv_status hv_journal_open(struct hv_journal *j, const char *path,
                               const struct hv_bench_card *card, bool quick, bool fresh,
                               struct hv_err *err)
{
    *j = (struct hv_journal){0};
    struct hv_str text = {0}, header = {0};
    add_header(&header, card, quick);
    bool there = !fresh && access(path, F_OK) == 0;
    enum hv_status st = there ? hv_file_read(path, &text, err) : HV_OK;
    bool begun = memchr(hv_str_cstr(&text), '\n', text.n) != NULL;
    if (st == HV_OK && begun) {
        if (text.n < header.n || memcmp(text.p, header.p, header.n) != 0) {
            st = hv_err_at(err, HV_EINPUT, path, 1, 1,
                           "an unfinished profile of another card, driver or kind (expected %.*s); "
                           "--fresh drops it",
                           (int)header.n - 1, header.p);
        } else {
            text.n = read_samples(j, path, &text, header.n);
        }
    } else if (st == HV_OK) {
        hv_str_clear(&text);
        hv_str_add(&text, header.p, header.n);
    }
    if (st == HV_OK) {
        st = reopen(j, path, &text, err);
    }
    if (st) {
        hv_journal_close(j);
    }
    hv_str_free(&text);
    hv_str_free(&header);
    return st;
}

enum hv_status hv_journal_add(struct hv_journal *j, const struct hv_probe_sample *s,
                              struct hv_err *err)
{
    struct hv_str line = {0};
    add_line(&line, hv_probe_sample_tree(s));
    bool good = fwrite(line.p, 1, line.n, j->f) == line.n && fflush(j->f) == 0;
    hv_str_free(&line);
    return good ? HV_OK : hv_err_set(err, HV_EIO, "cannot write the journal: %s", strerror(errno));
}

void hv_journal_close(struct hv_journal *j)
{
    if (j->f != NULL) {
        (void)fclose(j->f);
    }
    j->f = NULL;
    hv_vec_free(&j->before);
}
