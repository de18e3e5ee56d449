/* A save of several files: whole or not at all, whatever call fails and wherever it is killed. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include "solver/base/save/save.h"
#include "tests/unit/faults.h"
#include <dirent.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>

/* ---- a folder of files ----------------------------------------------------------------------- */

static int make_folder(void **state)
{
    const char *tmp = getenv("TMPDIR");
    struct hv_str p = {0};
    hv_str_addf(&p, "%s/hv_test_XXXXXX", tmp && tmp[0] ? tmp : P_tmpdir);
    if (!mkdtemp(p.p) || chdir(p.p) != 0) {
        return -1;
    }
    *state = p.p;
    return 0;
}

static int remove_folder(void **state)
{
    char command[512];
    faults = (struct faults){0};
    snprintf(command, sizeof command, "chmod -R u+rwx '%s'; rm -rf '%s'", (char *)*state,
             (char *)*state);
    free(*state);
    return chdir("/") == 0 ? system(command) : -1;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends "NAME=CONTENT;" of every file below a folder, hidden ones too, by name. */
static void add_listing(const char *folder, struct hv_str *out)
{
    char *names[64];
    size_t n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e = readdir(d); e != NULL && n < 64; e = readdir(d)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            names[n++] = strdup(e->d_name);
        }
    }
    closedir(d);
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        struct hv_str path = {0}, text = {0};
        struct stat st;
        hv_str_addf(&path, "%s/%s", folder, names[i]);
        assert_int_equal(lstat(path.p, &st), 0);
        if (S_ISDIR(st.st_mode)) {
            hv_str_addf(out, "%s/{", names[i]);
            add_listing(path.p, out);
            hv_str_adds(out, "}");
        } else {
            assert_int_equal(hv_file_read(path.p, &text, NULL), HV_OK);
            hv_str_addf(out, "%s=%s;", names[i], hv_str_cstr(&text));
        }
        hv_str_free(&path);
        hv_str_free(&text);
        free(names[i]);
    }
}

static char *listing(void)
{
    struct hv_str s = {0};
    add_listing("ws", &s);
    return s.p;
}

#define OLD_STATE "a=old a;b=old b;old/{p=old plan;}"

#define NEW_STATE "a=new a;b=new b;new/{q=new plan;}old/{}z=new z;" /* an emptied folder stays */

static void make_world(void)
{
    assert_int_equal(system("rm -rf ws && mkdir -p ws/old"), 0);
    put("ws/a", "old a");
    put("ws/b", "old b");
    put("ws/old/p", "old plan");
}

/* Replaces two files, makes two, one of them in a new folder, and removes one. */
static enum hv_status save(struct hv_err *err)
{
    struct hv_save *s = NULL;
    enum hv_status st = hv_save_begin(&s, "ws", err);
    if (st == HV_OK) {
        hv_save_add(s, "a", "new a", 5);
        hv_save_add(s, "z", "new z", 5);
        hv_save_folder(s, "new");
        hv_save_add(s, "new/q", "new plan", 8);
        hv_save_add(s, "b", "new b", 5);
        hv_save_remove(s, "old/p");
        st = hv_save_commit(s, err);
    }
    hv_save_free(s);
    return st;
}

/* 0: the old state, 1: the new one, -1: neither. */
static int state_of_world(void)
{
    char *now = listing();
    int state = strcmp(now, OLD_STATE) == 0 ? 0 : -1;
    if (strcmp(now, NEW_STATE) == 0) {
        state = 1;
    }
    if (state < 0) {
        print_message("neither old nor new: %s\n", now);
    }
    free(now);
    return state;
}

/* Runs `body` in a child in which the call `at` kills; true when it was killed. */
static bool killed_at(int at, void (*body)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        faults = (struct faults){.at = at};
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status);
}

static void save_alone(void)
{
    struct hv_err err;
    (void)!save(&err);
}

static void recover_alone(void)
{
    (void)!hv_save_recover("ws", NULL);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_save_replaces_makes_and_removes(void **state)
{
    (void)state;
    struct hv_err err = {0};
    make_world();
    assert_int_equal(save(&err), HV_OK);
    assert_int_equal(state_of_world(), 1);
    assert_int_equal(save(&err), HV_OK); /* again, over its own files */
    assert_int_equal(state_of_world(), 1);
    assert_int_equal(hv_save_recover("ws", &err), HV_OK);
    assert_int_equal(hv_save_recover("nowhere", &err), HV_OK);
}

static void a_kill_anywhere_leaves_one_of_two_states(void **state)
{
    (void)state;
    int seen[2] = {0, 0}, at = 1;
    for (;; at++) {
        make_world();
        bool killed = killed_at(at, save_alone);
        assert_int_equal(hv_save_recover("ws", NULL), HV_OK);
        int now = state_of_world();
        assert_in_range(now, 0, 1);
        seen[now]++;
        if (!killed) {
            assert_int_equal(now, 1);
            break;
        }
        /* and the next save works */
        struct hv_err err = {0};
        assert_int_equal(save(&err), HV_OK);
        assert_int_equal(state_of_world(), 1);
    }
    assert_true(at > 30);
    assert_true(seen[0] > 10);
    assert_true(seen[1] > 5);
}

/* The recovery may be killed too, and the next start goes on. */
static void a_kill_during_the_recovery_loses_nothing(void **state)
{
    (void)state;
    for (int at = 1;; at++) {
        bool killed = false;
        for (int again = 1;; again++) {
            make_world();
            killed = killed_at(at, save_alone);
            bool twice = killed_at(again, recover_alone);
            assert_int_equal(hv_save_recover("ws", NULL), HV_OK);
            assert_in_range(state_of_world(), 0, 1);
            if (!twice) {
                break;
            }
        }
        if (!killed) {
            break;
        }
    }
}

/* One call fails: an error means the old state, success the new one; nothing is left but perhaps
 * the file that was to be removed. */
static void a_failed_call_leaves_the_old_state(void **state)
{
    (void)state;
    static const int errors[] = {EACCES, ENOSPC, EIO};
    for (size_t e = 0; e < HV_COUNT(errors); e++) {
        for (int at = 1;; at++) {
            struct hv_err err = {0};
            make_world();
            faults = (struct faults){.at = at, .error = errors[e]};
            enum hv_status st = save(&err);
            bool reached = faults.n >= at;
            faults = (struct faults){0};
            assert_int_equal(hv_save_recover("ws", NULL), HV_OK);
            if (st == HV_OK) {
                (void)unlink("ws/old/p");
            }
            assert_int_equal(state_of_world(), st == HV_OK ? 1 : 0);
            if (st != HV_OK) {
                assert_true(strlen(err.text) > 0);
            }
            if (!reached) {
                assert_int_equal(st, HV_OK);
                break;
            }
        }
    }
}

/* A file that cannot be replaced although its folder can be written: nothing changes at all, before
 * any recovery, and the message is true. */
static void one_file_that_cannot_be_replaced_stops_all(void **state)
{
    (void)state;
    for (int at = 1; at <= 4; at++) {
        struct hv_err err = {0};
        make_world();
        faults = (struct faults){.at = at, .error = EPERM, .only = "rename"};
        assert_int_equal(save(&err), HV_EIO);
        faults = (struct faults){0};
        assert_int_equal(state_of_world(), 0);
        assert_non_null(strstr(err.text, "the old files are unchanged"));
    }
    make_world();
    assert_int_equal(system("rm ws/b && mkdir ws/b && touch ws/b/x"), 0);
    char *before = listing();
    struct hv_err err = {0};
    assert_int_equal(save(&err), HV_EIO);
    assert_non_null(strstr(err.text, "directory"));
    char *after = listing();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* The old files cannot be put back at once: the message says so, and the next start does it. */
static void what_cannot_be_undone_now_is_undone_later(void **state)
{
    (void)state;
    struct hv_err err = {0};
    make_world();
    faults = (struct faults){.at = 2, .error = EIO, .only = "rename", .from_then = true};
    assert_int_equal(save(&err), HV_EIO);
    faults = (struct faults){0};
    assert_non_null(strstr(err.text, "next start"));
    assert_null(strstr(err.text, "unchanged"));
    assert_int_equal(hv_save_recover("ws", NULL), HV_OK);
    assert_int_equal(state_of_world(), 0);
}

/* As an ordinary user, because root may write everywhere. */
static int save_as_nobody(void)
{
    struct hv_err err = {0};
    if (geteuid() == 0 && setuid(65534) != 0) {
        return 0;
    }
    if (save(&err) != HV_EIO || strstr(err.text, "Permission") == NULL) {
        return 1;
    }
    return 0;
}

static void in_child(int (*body)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(body());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void protected_files_and_folders(void **state)
{
    (void)state;
    assert_int_equal(chmod(".", 0777), 0);
    make_world();
    /* one protected file among writable ones; then folders that may not be written */
    static const char *const cases[] = {"chmod -R a+rwX ws && chmod 444 ws/b",
                                        "chmod -R a+rwX ws && chmod 555 ws",
                                        "chmod -R a+rwX ws && mkdir -p ws/new && chmod 755 ws/new"};
    for (size_t i = 0; i < HV_COUNT(cases); i++) {
        make_world();
        assert_int_equal(system(cases[i]), 0);
        char *before = listing();
        /* in the last case the folder must belong to another user to be closed */
        if (i < 2 || geteuid() == 0) {
            in_child(save_as_nobody);
        }
        char *after = listing();
        assert_string_equal(before, after);
        free(before);
        free(after);
        assert_int_equal(system("chmod -R u+rwx ws"), 0);
    }
}

/* ---- links ----------------------------------------------------------------------------------- */

static void a_linked_file_is_replaced_where_it_lies(void **state)
{
    (void)state;
    struct hv_err err = {0};
    struct stat st;
    make_world();
    assert_int_equal(system("mkdir -p far && rm ws/a"), 0);
    put("far/a", "old a");
    assert_int_equal(symlink("../far/a", "ws/a"), 0);
    for (int at = 1; killed_at(at, save_alone); at++) {
        assert_int_equal(hv_save_recover("ws", NULL), HV_OK);
        assert_in_range(state_of_world(), 0, 1);
        make_world();
        put("far/a", "old a");
        assert_int_equal(unlink("ws/a"), 0);
        assert_int_equal(symlink("../far/a", "ws/a"), 0);
    }
    assert_int_equal(lstat("ws/a", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    struct hv_str far = {0};
    add_listing("far", &far);
    assert_string_equal(hv_str_cstr(&far), "a=new a;");
    hv_str_free(&far);
    assert_int_equal(save(&err), HV_OK);
}

/* A journal may come with a folder from elsewhere: it can harm no file outside. */
static void a_foreign_journal_harms_nothing_outside(void **state)
{
    (void)state;
    static const char *const journals[] = {
        "hetviz-save/1 undo   \n{\"token\": \"0123456789abcdef\", \"files\": [{\"name\": \"out\", "
        "\"made\": true}], \"remove\": [], \"folders\": []}",
        "hetviz-save/1 undo   \n{\"token\": \"0123456789abcdef\", \"files\": [{\"name\": "
        "\"far/x\", \"made\": true}], \"remove\": [], \"folders\": [\"far/empty\"]}",
        "hetviz-save/1 commit \n{\"token\": \"0123456789abcdef\", \"files\": [], \"remove\": "
        "[\"far/x\"], \"folders\": []}",
        "hetviz-save/1 commit \n{\"token\": \"0123456789abcdef\", \"files\": [{\"name\": "
        "\"../far/x\", \"made\": true}], \"remove\": [\"../far/x\"], \"folders\": []}",
        "hetviz-save/1 commit \n{\"token\": \"../../../../far/\", \"files\": [], \"remove\": "
        "[\"/etc/x\"], \"folders\": []}",
        "hetviz-save/1 commit \nnot JSON",
        "hetviz-save/1 commit \n",
        "hetviz-save/1 comm",
        "something else",
    };
    for (size_t i = 0; i < HV_COUNT(journals); i++) {
        struct hv_err err = {0};
        assert_int_equal(system("rm -rf ws far && mkdir -p ws far/empty"), 0);
        put("far/x", "precious");
        assert_int_equal(symlink("../far", "ws/far"), 0);
        assert_int_equal(symlink("../far/x", "ws/out"), 0);
        put("ws/.hetviz-save", journals[i]);
        enum hv_status st = hv_save_recover("ws", &err);
        assert_true(st == HV_OK || st == HV_EINPUT);
        if (st != HV_OK) {
            assert_non_null(strstr(err.file, ".hetviz-save"));
        }
        struct hv_str far = {0};
        add_listing("far", &far);
        assert_string_equal(hv_str_cstr(&far), "empty/{}x=precious;");
        hv_str_free(&far);
    }
}

/* ---- two programs ---------------------------------------------------------------------------- */

/* Two programs save again and again: each save is whole, the last state is one of the two. */
static void two_programs_save_at_once(void **state)
{
    (void)state;
    pid_t pids[2];
    make_world();
    for (int k = 0; k < 2; k++) {
        pids[k] = fork();
        assert_true(pids[k] >= 0);
        if (pids[k] == 0) {
            char text[24];
            snprintf(text, sizeof text, "of %d", k);
            for (int i = 0; i < 40; i++) {
                struct hv_save *s = NULL;
                if (hv_save_begin(&s, "ws", NULL) != HV_OK) {
                    _exit(1);
                }
                hv_save_add(s, "a", text, strlen(text));
                hv_save_add(s, "b", text, strlen(text));
                if (hv_save_commit(s, NULL) != HV_OK) {
                    _exit(2);
                }
                hv_save_free(s);
            }
            _exit(0);
        }
    }
    for (int k = 0; k < 2; k++) {
        int status;
        assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    char *now = listing();
    assert_true(strcmp(now, "a=of 0;b=of 0;old/{p=old plan;}") == 0 ||
                strcmp(now, "a=of 1;b=of 1;old/{p=old plan;}") == 0);
    free(now);
}

/* A reader waits for a save in progress, and does not undo it. */
static void a_save_in_progress_is_left_alone(void **state)
{
    (void)state;
    struct hv_save *s = NULL;
    struct hv_err err = {0};
    int status;
    make_world();
    assert_int_equal(hv_save_begin(&s, "ws", &err), HV_OK);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (int fd = 3; fd < 64; fd++) {
            close(fd); /* the lock of its parent is not its own */
        }
        bool good = hv_save_recover("ws", NULL) == HV_OK && access("ws/z", F_OK) == 0;
        _exit(good ? 0 : 1);
    }
    hv_save_add(s, "z", "new z", 5);
    assert_int_equal(hv_save_commit(s, &err), HV_OK);
    hv_save_free(s);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- single files ---------------------------------------------------------------------------- */

static void write_alone(void)
{
    (void)!hv_file_write("ws/a", "new a", 5, NULL);
}

/* A program that is killed while it writes one file leaves the old or the new one; its temporary
 * file goes with the next write of that file, or when the folder is swept. */
static void one_file_is_whole_and_its_temporary_file_goes(void **state)
{
    (void)state;
    for (int at = 1;; at++) {
        make_world();
        bool killed = killed_at(at, write_alone);
        if (at % 2 == 0) {
            hv_file_sweep("ws");
        } else {
            struct hv_str now = {0};
            assert_int_equal(hv_file_read("ws/a", &now, NULL), HV_OK);
            assert_int_equal(hv_file_write("ws/a", now.p, now.n, NULL), HV_OK);
            hv_str_free(&now);
        }
        char *after = listing();
        assert_true(strcmp(after, OLD_STATE) == 0 ||
                    strcmp(after, "a=new a;b=old b;old/{p=old plan;}") == 0);
        free(after);
        if (!killed) {
            break;
        }
    }
}

static void a_sweep_spares_what_is_not_ours(void **state)
{
    (void)state;
    static const char *const others[] = {"ws/.a.backup",        "ws/.a.hetviz-12345",
                                         "ws/a.hetviz-Ab1234",  "ws/.a.hetviz-Ab12345",
                                         "ws/.a.hetviz-Ab 234", "ws/.hetviz-Ab1234"};
    make_world();
    for (size_t i = 0; i < HV_COUNT(others); i++) {
        put(others[i], "mine");
    }
    put("ws/.a.hetviz-Stale1", "half");
    put("ws/.a.hetviz-InUse1", "half");
    int fd = open("ws/.a.hetviz-InUse1", O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(symlink("a", "ws/.b.hetviz-Link12"), 0);
    hv_file_sweep("ws");
    for (size_t i = 0; i < HV_COUNT(others); i++) {
        assert_int_equal(access(others[i], F_OK), 0);
    }
    assert_int_equal(access("ws/.a.hetviz-Stale1", F_OK), -1);
    assert_int_equal(access("ws/.a.hetviz-InUse1", F_OK), 0);
    assert_int_equal(access("ws/a", F_OK), 0);
    close(fd);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(a_save_replaces_makes_and_removes),
        IN_FOLDER(a_kill_anywhere_leaves_one_of_two_states),
        IN_FOLDER(a_kill_during_the_recovery_loses_nothing),
        IN_FOLDER(a_failed_call_leaves_the_old_state),
        IN_FOLDER(one_file_that_cannot_be_replaced_stops_all),
        IN_FOLDER(what_cannot_be_undone_now_is_undone_later),
        IN_FOLDER(protected_files_and_folders),
        IN_FOLDER(a_linked_file_is_replaced_where_it_lies),
        IN_FOLDER(a_foreign_journal_harms_nothing_outside),
        IN_FOLDER(two_programs_save_at_once),
        IN_FOLDER(a_save_in_progress_is_left_alone),
        IN_FOLDER(one_file_is_whole_and_its_temporary_file_goes),
        IN_FOLDER(a_sweep_spares_what_is_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
