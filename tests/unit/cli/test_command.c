/*
 * Command lines of the services: the contract with their option tables, and quoting.
 */
#include "cli/command.h"

#include "tests/support/check.h"

TestSuite(command, .fini = test_alloc_expect_none);

static const struct cli_command_options options = {
    .binaries_dir = "/opt/r d",
    .data_dir = "/data",
    .profile = "default",
    .distribution = "equitable-load",
    .key_ranges = "even",
    .replacement = "LRU",
    .log_level = "info",
    .lease_ms = 3000,
    .entries = 65536,
    .entry_size = 128,
};

static void expect(struct cli_command *command, const char *expected)
{
    struct rt_buffer buffer = {0};

    cr_assert_null(command->arguments[command->n_arguments]);
    cli_command_append(command, &buffer);
    cr_assert_str_eq(rt_buffer_string(&buffer), expected);
    rt_buffer_deinit(&buffer);
    cli_command_deinit(command);
}

Test(command, coordinator)
{
    struct cli_command command;

    cli_command_init_coordinator(&command, &options, "127.0.0.1:7400");
    expect(&command, "'/opt/r d/redistinto-coordinator' --listen 127.0.0.1:7400 "
                     "--data-dir /data/coordinator --profile default "
                     "--distribution equitable-load --key-ranges even --lease 3000ms --log-level "
                     "info --config /dev/null");
}

Test(command, coordinator_that_is_looked_at)
{
    struct cli_command_options looked_at = options;
    struct cli_command command;

    looked_at.compaction = "global";
    looked_at.delay_ms = 250;
    looked_at.operation_log = "/data/o.log";
    cli_command_init_coordinator(&command, &looked_at, "127.0.0.1:7400");
    expect(&command,
           "'/opt/r d/redistinto-coordinator' --listen 127.0.0.1:7400 "
           "--data-dir /data/coordinator --profile default "
           "--distribution equitable-load --key-ranges even "
           "--compaction global --delay-ms 250 "
           "--operation-log /data/o.log --lease 3000ms --log-level info --config /dev/null");
}

Test(command, esi_service)
{
    struct cli_command_options planned = options;
    struct cli_command command;

    planned.planner = "sjf-cd";
    cli_command_init_esi(&command, &planned, "127.0.0.1:7470", "127.0.0.1:7400");
    expect(&command, "'/opt/r d/redistinto-esi' serve --listen 127.0.0.1:7470 --coordinator "
                     "127.0.0.1:7400 --profile default --planner sjf-cd --log-level info --config "
                     "/dev/null");
}

Test(command, esi_service_with_keys_that_are_blocked)
{
    struct cli_command_options planned = options;
    struct cli_command command;

    planned.profile = "classic";
    planned.planner = "sjf-sd";
    planned.alpha = "0.25";
    planned.initial_estimate = "3";
    planned.blocked = "a,b";
    cli_command_init_esi(&command, &planned, "127.0.0.1:7470", "127.0.0.1:7400");
    expect(&command, "'/opt/r d/redistinto-esi' serve --listen 127.0.0.1:7470 --coordinator "
                     "127.0.0.1:7400 --profile classic --planner sjf-sd --alpha 0.25 "
                     "--initial-estimate 3 --blocked a,b --log-level info --config /dev/null");
}

Test(command, instance)
{
    struct cli_command command;

    cli_command_init_instance(&command, &options, "instance-2", "127.0.0.1:0", "127.0.0.1:7400");
    expect(&command, "'/opt/r d/redistinto-instance' --name instance-2 --listen 127.0.0.1:0 "
                     "--coordinator 127.0.0.1:7400 --data-dir /data/instance-2 --entries 65536 "
                     "--entry-size 128 --profile default --replacement LRU --log-level info "
                     "--config /dev/null");
}

Test(command, instance_with_files)
{
    struct cli_command_options with_files = options;
    struct cli_command command;

    with_files.store = "files";
    with_files.dump_interval_ms = 1500;
    cli_command_init_instance(&command, &with_files, "i", "127.0.0.1:0", "127.0.0.1:7400");
    expect(&command, "'/opt/r d/redistinto-instance' --name i --listen 127.0.0.1:0 "
                     "--coordinator 127.0.0.1:7400 --data-dir /data/i --entries 65536 "
                     "--entry-size 128 --profile default --replacement LRU --store files "
                     "--dump-interval 1500ms --log-level info --config /dev/null");
}

Test(command, supervised)
{
    struct cli_command command;
    size_t n_arguments;

    cli_command_init_instance(&command, &options, "i", "127.0.0.1:0", "127.0.0.1:7400");
    n_arguments = command.n_arguments;
    cli_command_supervise(&command);
    cr_assert_eq(command.n_arguments, n_arguments + 3);
    cr_assert_str_eq(command.arguments[n_arguments], "--ready-fd");
    cr_assert_str_eq(command.arguments[n_arguments + 1], "3");
    cr_assert_str_eq(command.arguments[n_arguments + 2], "--exit-with-stdin");
    cli_command_deinit(&command);
    cli_command_deinit(&command);
}

Test(command, quotes_for_the_shell)
{
    struct cli_command_options odd = options;
    struct cli_command command;

    odd.binaries_dir = "/x";
    odd.data_dir = "/it's $HOME";
    odd.profile = "";
    cli_command_init_coordinator(&command, &odd, "unix:/a[b]");
    expect(&command, "/x/redistinto-coordinator --listen 'unix:/a[b]' "
                     "--data-dir '/it'\\''s $HOME/coordinator' --profile '' "
                     "--distribution equitable-load --key-ranges even --lease 3000ms --log-level "
                     "info --config /dev/null");
}
