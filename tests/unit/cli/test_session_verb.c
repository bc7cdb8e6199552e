/*
 * The verb session: wrong usage, which is told before anything is asked of a coordinator.
 */
#include "cli/session_verb.h"

#include "tests/support/check.h"
#include "tests/unit/cli/streams.h"

#define NAME_OF_64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

TestSuite(session_verb, .fini = test_alloc_expect_none);

/* The words after `redistinto session`. */
static void expect(const char *first, const char *second, const char *message)
{
    char name[] = "redistinto", verb[] = "session";
    char *argv[] = {name, verb, (char *)first, (char *)second, NULL};
    struct streams streams;
    enum model_exit result;
    int argc = 2;

    while (argv[argc] != NULL)
        argc++;
    streams_open(&streams);
    result = cli_verb_run(&streams.context, argc, argv);
    streams_flush(&streams);
    cr_expect_not_null(strstr(streams.err, message), "%s", streams.err);
    cr_expect_str_eq(streams.out, "");
    cr_expect_eq(result, MODEL_EXIT_USAGE);
    streams_close(&streams);
}

Test(session_verb, wrong_usage)
{
    expect(NULL, NULL, "session: open|close [ID] is missing");
    expect("opened", NULL, "session: unknown argument 'opened': there are session open, session");
    expect("open", "7", "session: unexpected argument '7': open takes no ID");
    expect("open", "--name=a b", "--name 'a b' must be 1 to 63 characters");
    expect("open", "--name=" NAME_OF_64, "' must be 1 to 63 characters");
    expect("close", NULL, "session: the ID of the session to close is missing");
    expect("close", "7", "session: '7' is no id: valid are 32 hexadecimal digits");
}
