/* Files: reading with limits, atomic writing, and where things are looked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "solver/base/file.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each test has an empty folder as its state and works inside it. */
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
    char *path = *state, command[512];
    if (chdir("/") != 0) {
        return -1;
    }
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    free(path);
    return system(command);
}

static int n_files(void)
{
    int n = 0;
    DIR *d = opendir(".");
    for (struct dirent *e; (e = readdir(d));) {
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(d);
    return n;
}

static void holds(const char *path, const char *want)
{
    struct hv_str s = {0};
    struct hv_err e;
    assert_int_equal(hv_file_read(path, &s, &e), HV_OK);
    assert_string_equal(hv_str_cstr(&s), want);
    hv_str_free(&s);
}

static void put(const char *path, const char *text)
{
    struct hv_err e;
    e.text[0] = '\0';
    if (hv_file_write(path, text, strlen(text), &e) != HV_OK) {
        fail_msg("%s: %s", e.file, e.text);
    }
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777u;
}

static void write_then_read(void **state)
{
    (void)state;
    umask(027);
    put("a", "one");
    assert_int_equal(mode_of("a"), 0640);
    holds("a", "one");
    chmod("a", 0604);
    put("a", "two");
    assert_int_equal(mode_of("a"), 0604);
    holds("a", "two");
    put("empty", "");
    holds("empty", "");
    assert_int_equal(n_files(), 2);
}

static void links_are_followed(void **state)
{
    (void)state;
    assert_int_equal(mkdir("d", 0700), 0);
    put("d/real", "old");
    assert_int_equal(symlink("d/real", "link"), 0);
    assert_int_equal(symlink("link", "link2"), 0);
    put("link2", "new");
    holds("d/real", "new");
    struct stat st;
    assert_int_equal(lstat("link2", &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(symlink("d/later", "dangling"), 0);
    put("dangling", "x");
    holds("d/later", "x");
    struct hv_err e;
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_equal(hv_file_write("loop", "x", 1, &e), HV_EIO);
}

static void failures_name_path_and_reason(void **state)
{
    (void)state;
    struct hv_str s = {0};
    struct hv_err e;
    char b[1400];
    hv_str_adds(&s, "kept");
    assert_int_equal(hv_file_read("missing", &s, &e), HV_EIO);
    assert_string_equal(hv_err_format(&e, b, sizeof b),
                        "missing: cannot read: No such file or directory");
    assert_int_equal(hv_file_read(".", &s, &e), HV_EIO);
    assert_string_equal(e.text, "cannot read: it is a directory");
    assert_int_equal(hv_file_write(".", "x", 1, &e), HV_EIO);
    assert_string_equal(e.text, "cannot write: it is a directory");
    assert_int_equal(hv_file_write("no/such/folder", "x", 1, &e), HV_EIO);
    assert_string_equal(e.file, "no/such/folder");
    assert_int_equal(hv_file_write("/dev/full", "x", 1, &e), HV_EIO);
    assert_string_equal(e.text, "cannot write: No space left on device");
    assert_int_equal(hv_file_write("/dev/null", "x", 1, &e), HV_OK);
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    int fd = open("huge", O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(fd, (off_t)HV_FILE_LIMIT + 1), 0);
    close(fd);
    assert_int_equal(hv_file_read("huge", &s, &e), HV_ELIMIT);
    assert_string_equal(hv_str_cstr(&s), "kept");
    hv_str_free(&s);
}

/* Runs `body` in a child that must end with 0; limits and ids it changes are its own. */
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

/* A closed reader of standard output is an error, not the end of the program. */
static int write_to_closed_pipe(void)
{
    int fds[2];
    struct hv_err e;
    if (pipe(fds) != 0 || dup2(fds[1], STDOUT_FILENO) < 0) {
        return 1;
    }
    close(fds[0]);
    close(fds[1]);
    return hv_file_write("-", "x", 1, &e) == HV_EIO && strstr(e.text, "Broken pipe") ? 0 : 2;
}

static int read_from_pipe(void)
{
    int fds[2];
    struct hv_str s = {0};
    struct hv_err e;
    if (pipe(fds) != 0 || dup2(fds[0], STDIN_FILENO) < 0 || write(fds[1], "hello", 5) != 5) {
        return 1;
    }
    close(fds[1]);
    enum hv_status st = hv_file_read("-", &s, &e);
    int bad = st != HV_OK || strcmp(hv_str_cstr(&s), "hello") != 0;
    hv_str_free(&s);
    return bad;
}

static void pipes(void **state)
{
    (void)state;
    in_child(write_to_closed_pipe);
    in_child(read_from_pipe);
}

/* As an ordinary user (root may do everything, so root becomes nobody). */
static int write_without_permission(void)
{
    struct hv_err e;
    if (geteuid() == 0 && setuid(65534) != 0) {
        return 0;
    }
    if (hv_file_write("locked/old", "new", 3, &e) != HV_EIO || !strstr(e.text, "Permission")) {
        return 1;
    }
    if (hv_file_write("read_only", "new", 3, &e) != HV_EIO) {
        return 2;
    }
    return 0;
}

static void the_old_file_survives(void **state)
{
    (void)state;
    chmod(".", 0777);
    assert_int_equal(mkdir("locked", 0755), 0);
    put("locked/old", "old");
    put("read_only", "old");
    chmod("locked/old", 0666);
    chmod("read_only", 0444);
    chmod("locked", 0555);
    in_child(write_without_permission);
    chmod("locked", 0755);
    holds("locked/old", "old");
    holds("read_only", "old");
    assert_int_equal(n_files(), 2); /* no temporary file is left */
}

static void what_is_written_soon_is_whole_as_well(void **state)
{
    (void)state;
    struct hv_err e;
    assert_int_equal(hv_file_write_soon("place", "one", 3, &e), HV_OK);
    assert_int_equal(hv_file_write_soon("place", "two!", 4, &e), HV_OK);
    holds("place", "two!");
    assert_int_equal(n_files(), 1);
    assert_int_equal(hv_file_write_soon("nowhere/place", "x", 1, &e), HV_EIO);
    assert_int_equal(n_files(), 1);
}

static void folders_and_their_parents(void **state)
{
    (void)state;
    struct hv_err e;
    assert_int_equal(hv_file_mkdirs("x//y/z/", &e), HV_OK);
    assert_int_equal(hv_file_mkdirs("x/y/z", &e), HV_OK);
    assert_int_equal(mode_of("x/y/z"), 0700);
    put("file", "");
    assert_int_equal(hv_file_mkdirs("file/below", &e), HV_EIO);
    assert_string_equal(e.file, "file");
}

static void user_folders(void **state)
{
    (void)state;
    struct hv_str s = {0};
    struct hv_err e;
    setenv("HOME", "/h", 1);
    setenv("XDG_DATA_HOME", "relative", 1);
    setenv("XDG_CACHE_HOME", "/c", 1);
    unsetenv("XDG_STATE_HOME");
    assert_int_equal(hv_user_dir(&s, HV_DIR_STATE, &e), HV_OK);
    hv_str_addc(&s, ' ');
    assert_int_equal(hv_user_dir(&s, HV_DIR_DATA, &e), HV_OK);
    hv_str_addc(&s, ' ');
    assert_int_equal(hv_user_dir(&s, HV_DIR_CACHE, &e), HV_OK);
    assert_string_equal(s.p, "/h/.local/state/hetviz /h/.local/share/hetviz /c/hetviz");
    unsetenv("HOME");
    assert_int_equal(hv_user_dir(&s, HV_DIR_STATE, &e), HV_EIO);
    hv_str_free(&s);
}

static void own_data(void **state)
{
    struct hv_str s = {0}, want = {0};
    struct hv_err e;
    put("probe", "x");
    setenv("HETVIZ_ROOT", *state, 1);
    assert_int_equal(hv_data_path(&s, "probe", &e), HV_OK);
    hv_str_addf(&want, "%s/probe", (char *)*state);
    assert_string_equal(s.p, want.p);
    assert_int_equal(hv_data_path(&s, "share/no/such/file", &e), HV_EIO);
    assert_non_null(strstr(e.text, "share/no/such/file"));
    unsetenv("HETVIZ_ROOT");
    hv_str_free(&s);
    hv_str_free(&want);
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(write_then_read),
        IN_FOLDER(links_are_followed),
        IN_FOLDER(failures_name_path_and_reason),
        IN_FOLDER(pipes),
        IN_FOLDER(the_old_file_survives),
        IN_FOLDER(what_is_written_soon_is_whole_as_well),
        IN_FOLDER(folders_and_their_parents),
        IN_FOLDER(user_folders),
        IN_FOLDER(own_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
