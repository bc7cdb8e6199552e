/*
 * Stands in for the services' binaries in the tests of processes and clusters. FAKE_BEHAVIOUR in
 * the environment, else the value of --log-level, says how it behaves, "behaviour" for all or
 * "behaviour@name" for the process of that name only:
 *
 *   serve     (and anything else) says "ready 127.0.0.1:<pid>"; ends with status 0 on SIGTERM or at
 *             the end of stdin
 *   refuse2   logs 30 lines, ends with status 2; refuse4, refuse7 likewise
 *   silent    serves, but never says so
 *   mumble    says something else
 *   stubborn  serves, ignores SIGTERM
 *   sloppy    serves, ends with status 3
 *
 * It logs "start TIME" and "end TIME" with the monotonic clock in nanoseconds, and "listen
 * ADDRESS".
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

static const char *option(char **argv, const char *name)
{
    for (; *argv != NULL; argv++)
        if (strcmp(*argv, name) == 0)
            return argv[1];
    return "";
}

static void say(const char *what)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)fprintf(stderr, "%s %" PRId64 "\n", what, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

/* The behaviour for the process whose data directory this is. */
static const char *behaviour_of(char **argv)
{
    static char behaviour[64];
    const char *path = option(argv, "--data-dir");
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    const char *given = getenv("FAKE_BEHAVIOUR");
    char *at;

    if (given == NULL)
        given = option(argv, "--log-level");
    (void)snprintf(behaviour, sizeof(behaviour), "%s", given);
    at = strchr(behaviour, '@');
    if (at == NULL)
        return behaviour;
    *at = '\0';
    return strcmp(at + 1, name) == 0 ? behaviour : "serve";
}

static void say_variables(void)
{
    for (char **word = environ; *word != NULL; word++)
        if (strncmp(*word, "REDISTINTO_", strlen("REDISTINTO_")) == 0)
            (void)fprintf(stderr, "variable %s\n", *word);
}

static int refuse(const char *behaviour)
{
    for (int i = 1; i <= 30; i++)
        (void)fprintf(stderr, "refusal line %d\n", i);
    return atoi(behaviour + strlen("refuse"));
}

/* Before anybody is told to count on it. */
static void block_sigterm(sigset_t *ret_signals)
{
    (void)sigemptyset(ret_signals);
    (void)sigaddset(ret_signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, ret_signals, NULL);
}

static void wait_for_end(const sigset_t *signals, bool ignores_sigterm)
{
    struct pollfd fds[2] = {{.fd = 0, .events = POLLIN}, {.events = POLLIN}};
    char byte;

    fds[1].fd = ignores_sigterm ? -1 : signalfd(-1, signals, 0);
    do
        (void)poll(fds, 2, -1);
    while ((fds[0].revents == 0 || read(0, &byte, 1) > 0) && fds[1].revents == 0);
}

int main(int argc, char **argv)
{
    const char *behaviour = behaviour_of(argv);

    sigset_t signals;

    (void)argc;
    block_sigterm(&signals);
    say("start");
    (void)fprintf(stderr, "listen %s\n", option(argv, "--listen"));
    say_variables();
    if (strncmp(behaviour, "refuse", strlen("refuse")) == 0)
        return refuse(behaviour);
    if (strcmp(behaviour, "mumble") == 0)
        (void)dprintf(3, "hello\n");
    else if (strcmp(behaviour, "silent") != 0)
        (void)dprintf(3, "ready 127.0.0.1:%d\n", (int)getpid());
    wait_for_end(&signals, strcmp(behaviour, "stubborn") == 0);
    say("end");
    return strcmp(behaviour, "sloppy") == 0 ? 3 : 0;
}
