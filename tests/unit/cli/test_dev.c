/*
 * The verb `dev` over stand-in processes: it runs in a child of the test, which sends the signals.
 */
#include "cli/dev.h"

#include <glob.h>
#include <jansson.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/cli/service_dir.h"
#include "tests/unit/cli/streams.h"

TestSuite(dev, .init = service_dir_make, .fini = service_dir_remove, .timeout = 30);

enum {
    WORDS_MAX = 24
};

static char *below(const char *name)
{
    return rt_xasprintf("%s/%s", service_dir, name);
}

/* The child: its outputs go to files "out" and "err". */
static void be_dev(const char *words)
{
    char *text = rt_xasprintf("redistinto dev %s", words);
    char *argv[WORDS_MAX + 1];
    int argc = 0;
    struct cli_context context = {
        .version = "1",
        .binaries_dir = service_dir,
        .temporary_dir = service_dir,
        .environment = environ,
    };

    context.out = fopen(below("out"), "we");
    context.err = fopen(below("err"), "we");
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    _exit((int)cli_verb_run(&context, argc, argv));
}

static pid_t start(const char *words)
{
    pid_t pid = fork();

    cr_assert_geq(pid, 0);
    if (pid == 0)
        be_dev(words);
    return pid;
}

static int finish(pid_t pid)
{
    int status = 0;

    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status), "ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* NULL when there is no such file; freed by the caller. */
static char *content_of(const char *name)
{
    char *path = below(name);
    FILE *file = fopen(path, "re");
    char *content = NULL;
    size_t size = 0;

    rt_free(path);
    if (file == NULL)
        return NULL;
    if (getdelim(&content, &size, '\0', file) < 0)
        content[0] = '\0';
    (void)fclose(file);
    return content;
}

static void expect_in(const char *name, const char *text)
{
    char *content = content_of(name);

    cr_assert_not_null(content, "%s is missing", name);
    cr_assert_not_null(strstr(content, text), "%s: %s", name, content);
    free(content);
}

static bool is_there(const char *name)
{
    char *path = below(name);
    bool is = access(path, F_OK) == 0;

    rt_free(path);
    return is;
}

/* The suite's timeout ends this when it never holds. */
static void wait_until_there(const char *name)
{
    while (!is_there(name))
        (void)usleep(2000);
}

static pid_t start_with_ready_file(const char *more)
{
    char *words = rt_xasprintf("--base-port 0 --ready-file %s/ready %s", service_dir, more);
    pid_t pid = start(words);

    rt_free(words);
    return pid;
}

Test(dev, serves_until_sigterm_and_leaves_nothing)
{
    pid_t pid = start_with_ready_file("--instances 2");
    char *content;
    json_t *ready;
    pid_t instance;

    wait_until_there("ready");
    content = content_of("ready");
    ready = json_loads(content, 0, NULL);
    cr_assert_not_null(ready);
    cr_assert_eq(json_integer_value(json_object_get(ready, "pid")), pid);
    cr_assert_eq(json_array_size(json_object_get(ready, "instances")), 2);
    instance = (pid_t)json_integer_value(
        json_object_get(json_array_get(json_object_get(ready, "instances"), 1), "pid"));
    cr_assert_eq(kill(instance, 0), 0);
    cr_assert_eq(access(json_string_value(json_object_get(ready, "data_dir")), F_OK), 0);
    cr_assert_eq(kill(pid, SIGTERM), 0);
    cr_assert_eq(finish(pid), 0);
    cr_assert_neq(kill(instance, 0), 0);
    cr_assert_neq(access(json_string_value(json_object_get(ready, "data_dir")), F_OK), 0);
    cr_assert_not(is_there("ready"));
    expect_in("out", "not for production");
    json_decref(ready);
    free(content);
}

Test(dev, json_summary_is_the_ready_file)
{
    pid_t pid = start_with_ready_file("-o json");
    char *ready;

    wait_until_there("ready");
    ready = content_of("ready");
    cr_assert_eq(kill(pid, SIGINT), 0);
    cr_assert_eq(finish(pid), 0);
    expect_in("out", ready);
    free(ready);
}

Test(dev, keeps_a_named_directory)
{
    char *words = rt_xasprintf("--data-dir %s/data", service_dir);
    pid_t pid = start_with_ready_file(words);

    wait_until_there("ready");
    cr_assert_eq(kill(pid, SIGHUP), 0);
    cr_assert_eq(finish(pid), 0);
    cr_assert(is_there("data/coordinator.log"));
    cr_assert(is_there("data/instance-3.log"));
    rt_free(words);
}

Test(dev, says_who_died_and_goes_on)
{
    pid_t pid = start_with_ready_file("");
    char *content;
    json_t *ready;
    pid_t instance;

    wait_until_there("ready");
    content = content_of("ready");
    ready = json_loads(content, 0, NULL);
    instance = (pid_t)json_integer_value(
        json_object_get(json_array_get(json_object_get(ready, "instances"), 0), "pid"));
    json_decref(ready);
    free(content);
    cr_assert_eq(kill(instance, SIGKILL), 0);
    for (bool is_said = false; !is_said;) {
        content = content_of("err");
        is_said = content != NULL && strstr(content, "by hand:\n") != NULL;
        free(content);
    }
    cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0);
    cr_assert_eq(kill(pid, SIGTERM), 0);
    cr_assert_eq(finish(pid), 0);
    expect_in("err", "instance-1 (pid ");
    expect_in("err", "was killed by signal 9 (Killed); to start it again by hand:\n");
    expect_in("err", "redistinto-instance --name instance-1 --listen 127.0.0.1:");
}

static void behave(const char *behaviour)
{
    cr_assert_eq(setenv("FAKE_BEHAVIOUR", behaviour, 1), 0);
}

/* Of the directories that `dev` makes for itself. */
static void expect_no_temporary_directory(void)
{
    char *pattern = below("redistinto-??????");
    glob_t found;

    cr_assert_eq(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    rt_free(pattern);
}

Test(dev, quotes_the_log_of_who_refuses)
{
    char *content;

    behave("refuse4@instance-2");
    cr_assert_eq(finish(start_with_ready_file("")), 4);
    expect_in("err", "redistinto: dev: instance-2 exited with status 4 before the cluster served "
                     "(FAILED_PRECONDITION)\nIts log ends with:\n  refusal line 11\n");
    expect_in("err", "  refusal line 30\n");
    content = content_of("out");
    cr_assert_str_eq(content, "");
    free(content);
    cr_assert_not(is_there("ready"));
    expect_no_temporary_directory();
}

Test(dev, refusal_as_json)
{
    behave("refuse7@coordinator");
    cr_assert_eq(finish(start_with_ready_file("-o json")), 5);
    expect_in("out", "{\"error\":{\"code\":\"UNAVAILABLE\",");
    expect_in("err", "Its log ends with:\n  refusal line 11\n");
}

Test(dev, interrupted_before_it_served)
{
    char *words = rt_xasprintf("--data-dir %s/data", service_dir);
    pid_t pid;

    behave("silent@instance-1");
    pid = start_with_ready_file(words);
    wait_until_there("data/instance-1.log");
    cr_assert_eq(kill(pid, SIGINT), 0);
    cr_assert_eq(finish(pid), 130);
    rt_free(words);
}

Test(dev, sloppy_end)
{
    pid_t pid;

    behave("sloppy@instance-1");
    pid = start_with_ready_file("");
    wait_until_there("ready");
    cr_assert_eq(kill(pid, SIGTERM), 0);
    cr_assert_eq(finish(pid), 1);
    expect_in("err", "instance-1 exited with status 3 while stopping");
}

Test(dev, second_signal_kills)
{
    pid_t pid;
    siginfo_t info = {0};

    behave("stubborn");
    pid = start_with_ready_file("");
    wait_until_there("ready");
    while (info.si_pid == 0) {
        cr_assert_eq(kill(pid, SIGINT), 0);
        (void)usleep(2000);
        cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    }
    cr_assert_eq(finish(pid), 1);
    expect_in("err", "was killed by signal 9 (Killed) while stopping");
    expect_no_temporary_directory();
}

Test(dev, variables_stay_with_it)
{
    char *words = rt_xasprintf("--data-dir %s/data", service_dir);
    pid_t pid;

    cr_assert_eq(setenv("REDISTINTO_INSTANCES", "1", 1), 0);
    pid = start_with_ready_file(words);
    wait_until_there("ready");
    cr_assert_eq(kill(pid, SIGTERM), 0);
    cr_assert_eq(finish(pid), 0);
    cr_assert(is_there("data/instance-1.log"));
    cr_assert_not(is_there("data/instance-2.log"));
    expect_in("data/instance-1.log", "listen ");
    {
        char *log = content_of("data/instance-1.log");

        cr_assert_null(strstr(log, "variable"), "%s", log);
        free(log);
    }
    rt_free(words);
}

Test(dev, stale_ready_file_goes_at_once)
{
    char *path = below("ready");

    behave("refuse2");
    cr_assert_eq(cli_file_replace(path, RT_BYTES_LITERAL("{}"), NULL), RT_OK);
    cr_assert_eq(finish(start_with_ready_file("")), 2);
    cr_assert_not(is_there("ready"));
    rt_free(path);
}

Test(dev, ready_file_that_cannot_be_written)
{
    char *words = rt_xasprintf("--base-port 0 --ready-file %s/absent/ready", service_dir);

    cr_assert_eq(finish(start(words)), 2);
    expect_in("err", "--ready-file: ");
    expect_in("err", "absent/ready: No such file or directory (INVALID_ARGUMENT)");
    expect_no_temporary_directory();
    rt_free(words);
}

Test(dev, data_dir_that_is_a_file)
{
    char *words = rt_xasprintf("--data-dir %s/file", service_dir);
    char *path = below("file");

    cr_assert_eq(cli_file_replace(path, RT_BYTES_LITERAL(""), NULL), RT_OK);
    cr_assert_eq(finish(start_with_ready_file(words)), 2);
    expect_in("err", "--data-dir: ");
    expect_in("err", "is not a directory");
    rt_free(path);
    rt_free(words);
}

Test(dev, data_dir_without_parent)
{
    char *words = rt_xasprintf("--data-dir %s/absent/data", service_dir);

    cr_assert_eq(finish(start(words)), 2);
    expect_in("err", "--data-dir: ");
    rt_free(words);
}

Test(dev, ready_file_beside_us)
{
    char *words = rt_xasprintf("--base-port 0 --instances 1 --ready-file ready");
    pid_t pid;

    cr_assert_eq(chdir(service_dir), 0);
    pid = start(words);
    wait_until_there("ready");
    cr_assert_eq(kill(pid, SIGTERM), 0);
    cr_assert_eq(finish(pid), 0);
    rt_free(words);
}

static void expect_missing(const char *name)
{
    char *path = below(name);

    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(finish(start("--base-port 0")), 2);
    expect_in("err", path);
    expect_in("err", "must be installed beside this command");
    rt_free(path);
}

Test(dev, missing_services)
{
    expect_missing("redistinto-instance");
    expect_missing("redistinto-coordinator");
}
