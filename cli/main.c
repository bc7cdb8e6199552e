/*
 * `redistinto`: gathers what the process was given and runs the verb. Main thread.
 */
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/completion.h"
#include "cli/file.h"
#include "cli/report.h"
#include "cli/verb.h"
#include "runtime/base/alloc.h"
#include "runtime/base/log.h"

static const char *temporary_dir(void)
{
    const char *path = getenv("TMPDIR");

    return path == NULL || *path == '\0' ? "/tmp" : path;
}

int main(int argc, char **argv)
{
    struct cli_context context = {
        .out = stdout,
        .err = stderr,
        .out_is_terminal = isatty(STDOUT_FILENO) != 0,
        .version = REDISTINTO_VERSION,
        .completion_bash = cli_completion_bash,
        .completion_zsh = cli_completion_zsh,
        .completion_fish = cli_completion_fish,
        .temporary_dir = temporary_dir(),
        .environment = environ,
    };
    struct rt_error err = RT_ERROR_INIT;
    char *binaries_dir = NULL;
    enum model_exit result;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)setlocale(LC_CTYPE, "");
    context.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    rt_log_init("redistinto", RT_LOG_ERROR);
    if (cli_file_program_dir(&binaries_dir, &err) != RT_OK)
        return cli_report_error(&context, &err);
    context.binaries_dir = binaries_dir;
    result = cli_verb_run(&context, argc, argv);
    rt_free(binaries_dir);
    return (int)result;
}
