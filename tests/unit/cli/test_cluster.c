/*
 * Local clusters of stand-in processes: order of start and stop, failures of every step, kills.
 */
#include "cli/cluster.h"

#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>

#include "tests/unit/cli/service_dir.h"

TestSuite(cluster, .init = service_dir_make, .fini = service_dir_remove, .timeout = 20);

enum then {
    THEN_STOP,
    THEN_STOP_TWICE,
    THEN_KILL_INSTANCE_2, /* and stop once it is lost */
};

struct run {
    uv_loop_t loop;
    struct cli_cluster *cluster;
    struct cli_cluster_options options;
    enum then then;
    unsigned n_serving;
    unsigned n_lost;
    unsigned n_stopped;
    char lost[64];
};

static void on_serving(struct cli_cluster *cluster, void *ctx)
{
    struct run *run = ctx;

    run->n_serving++;
    switch (run->then) {
    case THEN_STOP_TWICE:
        cli_cluster_stop(cluster);
        cli_cluster_stop(cluster);
        break;
    case THEN_STOP:
        cli_cluster_stop(cluster);
        break;
    case THEN_KILL_INSTANCE_2:
        cr_assert_eq(kill(cli_cluster_member(cluster, 2)->pid, SIGKILL), 0);
        break;
    }
}

static void on_lost(struct cli_cluster *cluster, const struct cli_cluster_member *member,
                    const struct cli_process *process, void *ctx)
{
    struct run *run = ctx;

    run->n_lost++;
    cr_assert_eq(cli_process_exit_status(process), -1);
    (void)snprintf(run->lost, sizeof(run->lost), "%s", member->name);
    cli_cluster_stop(cluster);
}

static void on_stopped(struct cli_cluster *cluster, void *ctx)
{
    struct run *run = ctx;

    (void)cluster;
    run->n_stopped++;
}

static void begin(struct run *run, const char *behaviour)
{
    run->options.command = (struct cli_command_options){
        .planner = "fifo",
        .binaries_dir = service_dir,
        .data_dir = service_dir,
        .profile = "default",
        .distribution = "equitable-load",
        .key_ranges = "even",
        .replacement = "CIRC",
        .log_level = behaviour,
        .lease_ms = 1000,
        .entries = 1,
        .entry_size = 1,
    };
    run->options.n_instances = run->options.n_instances == 0 ? 2 : run->options.n_instances;
    if (run->options.start_timeout_ms == 0)
        run->options.start_timeout_ms = CLI_CLUSTER_START_TIMEOUT_MS;
    if (run->options.stop_timeout_ms == 0)
        run->options.stop_timeout_ms = CLI_CLUSTER_STOP_TIMEOUT_MS;
    run->options.on_serving = on_serving;
    run->options.on_lost = on_lost;
    run->options.on_stopped = on_stopped;
    run->options.ctx = run;
    cr_assert_eq(uv_loop_init(&run->loop), 0);
    run->cluster = cli_cluster_new(&run->loop, &run->options);
    cli_cluster_start(run->cluster);
}

/* Until nothing is left; the cluster is still there. */
static void finish(struct run *run)
{
    cr_assert_eq(uv_run(&run->loop, UV_RUN_DEFAULT), 0);
    cr_assert_eq(uv_loop_close(&run->loop), 0);
    cr_assert_eq(run->n_stopped, 1);
    for (size_t i = 0; i < cli_cluster_n_members(run->cluster); i++) {
        pid_t pid = cli_cluster_member(run->cluster, i)->pid;

        cr_assert(pid == 0 || kill(pid, 0) != 0, "%s lives on",
                  cli_cluster_member(run->cluster, i)->name);
    }
}

static enum rt_code error_code(const struct run *run)
{
    return cli_cluster_error(run->cluster)->code;
}

static bool error_says(const struct run *run, const char *text)
{
    return strstr(cli_cluster_error(run->cluster)->message, text) != NULL;
}

/* The time behind `word` in the member's log. */
static int64_t logged(const char *name, const char *word)
{
    char *path = rt_xasprintf("%s/%s.log", service_dir, name);
    struct rt_buffer log = {0};
    const char *found;
    int64_t when;

    cli_file_append_tail(path, 0, 100, &log);
    found = strstr(rt_buffer_string(&log), word);
    cr_assert_not_null(found, "%s did not %s", name, word);
    when = strtoll(found + strlen(word), NULL, 10);
    rt_buffer_deinit(&log);
    rt_free(path);
    return when;
}

Test(cluster, starts_and_stops_in_order)
{
    struct run run = {0};

    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(run.n_serving, 1);
    cr_assert_eq(run.n_lost, 0);
    cr_assert(cli_cluster_has_served(run.cluster));
    cr_assert_eq(error_code(&run), RT_OK);
    cr_assert_lt(logged("coordinator", "start "), logged("instance-1", "start "));
    cr_assert_lt(logged("instance-1", "start "), logged("instance-2", "start "));
    cr_assert_lt(logged("instance-1", "end "), logged("coordinator", "end "));
    cr_assert_lt(logged("instance-2", "end "), logged("coordinator", "end "));
    cli_cluster_free(run.cluster);
}

Test(cluster, tells_how_to_start_a_member_by_hand)
{
    struct run run = {0};
    struct rt_buffer line = {0};
    char *expected;

    begin(&run, "serve");
    finish(&run);
    cli_command_append(&cli_cluster_member(run.cluster, 1)->command, &line);
    expected = rt_xasprintf("%s/redistinto-instance --name instance-1 --listen %s "
                            "--coordinator %s --data-dir %s/instance-1 --entries 1 "
                            "--entry-size 1 --profile default --replacement CIRC --log-level serve "
                            "--config /dev/null",
                            service_dir, cli_cluster_member(run.cluster, 1)->address,
                            cli_cluster_member(run.cluster, 0)->address, service_dir);
    cr_assert_str_eq(rt_buffer_string(&line), expected);
    rt_free(expected);
    rt_buffer_deinit(&line);
    cli_cluster_free(run.cluster);
}

Test(cluster, refusals_keep_their_kind)
{
    static const struct {
        const char *behaviour;
        enum rt_code code;
    } rows[] = {
        {"refuse2@instance-2", RT_INVALID_ARGUMENT},
        {"refuse4@coordinator", RT_FAILED_PRECONDITION},
        {"refuse7@instance-1", RT_UNAVAILABLE},
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(rows); i++) {
        struct run run = {0};
        struct rt_bytes tail;

        begin(&run, rows[i].behaviour);
        finish(&run);
        tail = cli_cluster_log_tail(run.cluster);
        cr_assert_eq(error_code(&run), rows[i].code, "%s", rows[i].behaviour);
        cr_assert(error_says(&run, strchr(rows[i].behaviour, '@') + 1));
        cr_assert_eq(run.n_serving, 0);
        cr_assert_not(cli_cluster_has_served(run.cluster));
        cr_assert(rt_bytes_has_prefix(tail, RT_BYTES_LITERAL("  refusal line 11\n")));
        cli_cluster_free(run.cluster);
    }
}

Test(cluster, silent_member_times_out)
{
    struct run run = {.options.start_timeout_ms = 200};

    begin(&run, "silent@instance-1");
    finish(&run);
    cr_assert_eq(error_code(&run), RT_DEADLINE_EXCEEDED);
    cr_assert(error_says(&run, "instance-1 does not serve after 200 ms"));
    cr_assert_gt(cli_cluster_log_tail(run.cluster).size, 0);
    cli_cluster_free(run.cluster);
}

Test(cluster, missing_binary)
{
    struct run run = {0};
    char *path = rt_xasprintf("%s/redistinto-instance", service_dir);

    cr_assert_eq(unlink(path), 0);
    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(error_code(&run), RT_NOT_FOUND);
    cr_assert(error_says(&run, "redistinto-instance"));
    cli_cluster_free(run.cluster);
    rt_free(path);
}

Test(cluster, missing_coordinator_binary)
{
    struct run run = {0};
    char *path = rt_xasprintf("%s/redistinto-coordinator", service_dir);

    cr_assert_eq(unlink(path), 0);
    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(error_code(&run), RT_NOT_FOUND);
    cli_cluster_free(run.cluster);
    rt_free(path);
}

Test(cluster, interrupted_before_it_served)
{
    struct run run = {0};

    begin(&run, "silent@instance-2");
    while (cli_cluster_member(run.cluster, 2)->pid == 0)
        (void)uv_run(&run.loop, UV_RUN_ONCE);
    cli_cluster_stop(run.cluster);
    finish(&run);
    cr_assert_not(cli_cluster_has_served(run.cluster));
    cr_assert_eq(run.n_serving, 0);
    cli_cluster_free(run.cluster);
}

Test(cluster, stopped_before_the_first_step)
{
    struct run run = {0};

    begin(&run, "serve");
    cli_cluster_stop(run.cluster);
    finish(&run);
    cr_assert_eq(cli_cluster_member(run.cluster, 0)->pid, 0);
    cr_assert_eq(error_code(&run), RT_OK);
    cli_cluster_free(run.cluster);
}

Test(cluster, loses_a_member_and_goes_on)
{
    struct run run = {.then = THEN_KILL_INSTANCE_2};

    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(run.n_lost, 1);
    cr_assert_str_eq(run.lost, "instance-2");
    cr_assert_eq(error_code(&run), RT_OK);
    cli_cluster_free(run.cluster);
}

Test(cluster, kills_who_does_not_stop)
{
    struct run run = {.options.stop_timeout_ms = 200};

    begin(&run, "stubborn@instance-1");
    finish(&run);
    cr_assert_eq(error_code(&run), RT_ABORTED);
    cr_assert(error_says(&run, "instance-1 was killed by signal 9"));
    cli_cluster_free(run.cluster);
}

Test(cluster, second_stop_kills_at_once)
{
    struct run run = {.then = THEN_STOP_TWICE};

    begin(&run, "stubborn");
    finish(&run);
    cr_assert_eq(error_code(&run), RT_ABORTED);
    cli_cluster_free(run.cluster);
}

Test(cluster, sloppy_end_is_said)
{
    struct run run = {0};

    begin(&run, "sloppy@coordinator");
    finish(&run);
    cr_assert_eq(error_code(&run), RT_ABORTED);
    cr_assert(error_says(&run, "coordinator exited with status 3"));
    cli_cluster_free(run.cluster);
}

Test(cluster, most_instances)
{
    struct run run = {.options.n_instances = CLI_CLUSTER_INSTANCES_MAX};

    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(cli_cluster_n_members(run.cluster), 1 + CLI_CLUSTER_INSTANCES_MAX);
    cr_assert_eq(error_code(&run), RT_OK);
    cli_cluster_free(run.cluster);
}

/* Takes a free port of the loopback interface until the descriptor is closed. */
static int take_port(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(fd, 1), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

Test(cluster, taken_port_gives_way)
{
    struct run run = {0};
    int fd = take_port(&run.options.base_port);

    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(logged("coordinator", "listen 127.0.0.1:"), 0);
    (void)close(fd);
    cli_cluster_free(run.cluster);
}

Test(cluster, free_ports_are_used)
{
    struct run run = {0};
    uint16_t base;

    (void)close(take_port(&run.options.base_port));
    base = run.options.base_port;
    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(logged("coordinator", "listen 127.0.0.1:"), base);
    cr_assert_eq(logged("instance-1", "listen 127.0.0.1:"), base + 10);
    cr_assert_eq(logged("instance-2", "listen 127.0.0.1:"), base + 11);
    cli_cluster_free(run.cluster);
}

Test(cluster, the_esi_service_starts_last_and_stops_before_the_coordinator)
{
    struct run run = {.options.has_esi = true};

    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(cli_cluster_n_members(run.cluster), 4);
    cr_assert_str_eq(cli_cluster_member(run.cluster, 3)->name, "esi");
    cr_assert_lt(logged("instance-2", "start "), logged("esi", "start "));
    cr_assert_eq(logged("esi", "listen 127.0.0.1:"), 0);
    cr_assert_eq(error_code(&run), RT_OK);
    cli_cluster_free(run.cluster);
}

Test(cluster, base_port_0_means_any)
{
    struct run run = {0};

    begin(&run, "serve");
    finish(&run);
    cr_assert_eq(logged("coordinator", "listen 127.0.0.1:"), 0);
    cr_assert_eq(logged("instance-2", "listen 127.0.0.1:"), 0);
    cli_cluster_free(run.cluster);
}

/* Aborts before a fini could run: without a directory to remove. */
TestSuite(cluster_misuse);

Test(cluster_misuse, no_instance_is_an_error_of_the_programmer, .signal = SIGABRT)
{
    struct cli_cluster_options options = {.n_instances = 0};
    uv_loop_t loop;

    cr_assert_eq(uv_loop_init(&loop), 0);
    (void)cli_cluster_new(&loop, &options);
}
