/*
 * Child processes: see process.h.
 */
#include "tests/unit/store/process.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void process_start(struct process *process, const char *mode, const char *path)
{
    char *argv[] = {(char *)STORE_TEST_CHILD, (char *)mode, (char *)path, NULL};
    posix_spawn_file_actions_t actions;
    int in[2];
    int out[2];

    cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
    cr_assert_eq(posix_spawn_file_actions_init(&actions), 0);
    cr_assert_eq(posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO), 0);
    cr_assert_eq(posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO), 0);
    cr_assert_eq(posix_spawn(&process->pid, argv[0], &actions, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(in[0]);
    (void)close(out[1]);
    process->in = in[1];
    process->out = fdopen(out[0], "r");
    cr_assert_not_null(process->out);
}

int process_finish(struct process *process)
{
    char rest[256];
    int status;

    (void)close(process->in);
    while (fgets(rest, sizeof(rest), process->out))
        continue;
    (void)fclose(process->out);
    cr_assert_eq(waitpid(process->pid, &status, 0), process->pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
