/*
 * The verb `completion`: the script as text and JSON, other shells.
 */
#include "cli/completion.h"

#include "cli/report.h"
#include "tests/support/check.h"
#include "tests/unit/cli/streams.h"

TestSuite(completion, .fini = test_alloc_expect_none);

static void expect(enum cli_output output, const char *shell, enum model_exit exit, const char *out,
                   const char *err)
{
    const char *const arguments[] = {shell, NULL};
    struct streams streams;

    streams_open(&streams);
    streams.context.completion_bash = "a \"script\"\n";
    streams.context.completion_zsh = "of zsh\n";
    streams.context.completion_fish = "of fish\n";
    streams.context.common.output = output;
    streams.context.verb = "completion";
    cr_assert_eq(cli_completion_verb.run(&streams.context, arguments, NULL), exit);
    streams_flush(&streams);
    cr_assert_str_eq(streams.out, out);
    cr_assert_str_eq(streams.err, err);
    streams_close(&streams);
}

Test(completion, script)
{
    expect(CLI_OUTPUT_TEXT, "bash", MODEL_EXIT_OK, "a \"script\"\n", "");
    expect(CLI_OUTPUT_JSON, "bash", MODEL_EXIT_OK,
           "{\"shell\":\"bash\",\"script\":\"a \\\"script\\\"\\n\"}\n", "");
}

Test(completion, other_shells)
{
    expect(CLI_OUTPUT_TEXT, "zsh", MODEL_EXIT_OK, "of zsh\n", "");
    expect(CLI_OUTPUT_TEXT, "fish", MODEL_EXIT_OK, "of fish\n", "");
    expect(CLI_OUTPUT_TEXT, "csh", MODEL_EXIT_USAGE, "",
           "redistinto: completion: there is no script for 'csh' (bash, zsh, fish) "
           "(INVALID_ARGUMENT)\n");
}

Test(completion, output_that_cannot_be_written)
{
    const char *const arguments[] = {"bash", NULL};
    struct streams streams;
    FILE *memory;

    streams_open(&streams);
    memory = streams.context.out;
    streams.context.out = fopen("/dev/full", "w");
    streams.context.completion_bash = "script\n";
    cr_assert_eq(cli_completion_verb.run(&streams.context, arguments, NULL), MODEL_EXIT_FAILED);
    (void)fclose(streams.context.out);
    streams.context.out = memory;
    streams_close(&streams);
}
