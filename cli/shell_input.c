/*
 * Lines for the shell: see shell_input.h. Invariant: nothing blocks but poll(), so that news are
 * heard. The thread of the shell.
 */
#include "cli/shell_input.h"

#include <ctype.h>
#include <errno.h>
#include <histedit.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli/file.h"
#include "cli/shell_line.h"
#include "runtime/base/alloc.h"

enum {
    CHUNK_SIZE = 16384,
    HISTORY_MAX = 1000, /* lines */
    CHARACTER_MAX = 8,  /* bytes, more than any encoding needs */
    WORD_MAX = 16,      /* bytes, the longest word there is and more */
};

#define INCOMPLETE ((size_t)-2) /* what mbrtowc() says of the beginning of a character */

struct cli_shell_input {
    const struct cli_shell_input_options *options;
    int news_fd;

    /* A terminal's. */
    EditLine *editor; /* NULL: none */
    History *history;
    char *history_path; /* owned, NULL: kept nowhere */
    char *kept;         /* owned; what was typed when news came */
    bool is_woken;

    /* Anything else's: lines[at..size) is not yet given out. */
    struct rt_buffer lines;
    size_t at;
    bool is_skipping; /* the rest of a line that is too long */
    bool is_ended;
};

/* ---- waiting --------------------------------------------------------------------------------- */

/* true: there is something to read, or the end of it. false: news. */
static bool wait_readable(const struct cli_shell_input *input)
{
    struct pollfd fds[] = {{.fd = input->news_fd, .events = POLLIN},
                           {.fd = STDIN_FILENO, .events = POLLIN}};

    while (poll(fds, RT_ARRAY_SIZE(fds), -1) < 0 && errno == EINTR)
        continue;
    return fds[0].revents == 0;
}

static ssize_t read_some(char *chunk, size_t size)
{
    ssize_t n;

    do
        n = read(STDIN_FILENO, chunk, size);
    while (n < 0 && errno == EINTR);
    return n;
}

/* ---- a terminal ------------------------------------------------------------------------------ */

static struct cli_shell_input *input_of(EditLine *editor)
{
    void *input = NULL;

    (void)el_get(editor, EL_CLIENTDATA, &input);
    return input;
}

static char *prompt_of(EditLine *editor)
{
    return (char *)input_of(editor)->options->prompt;
}

static void keep_line(struct cli_shell_input *input)
{
    const LineInfo *line = el_line(input->editor);
    int size = (int)(line->lastchar - line->buffer);

    rt_free(input->kept);
    input->kept = rt_xasprintf("%.*s", size, line->buffer);
}

/* One character for the editor: 1, 0 at the end of the input, -1 for news or a failure. Bytes that
 * are no character of the locale are dropped, but not what follows them; so is NUL, where the
 * editor's line would end. */
static int read_character(EditLine *editor, wchar_t *ret_character)
{
    struct cli_shell_input *input = input_of(editor);
    char bytes[CHARACTER_MAX];
    size_t size = 0;

    while (size < sizeof(bytes)) {
        mbstate_t state = {0};
        size_t taken = size == 0 ? INCOMPLETE : mbrtowc(ret_character, bytes, size, &state);
        ssize_t n;

        if (taken > 0 && taken <= sizeof(bytes))
            return 1;
        if (taken != INCOMPLETE) {
            memmove(bytes, bytes + 1, --size);
            continue;
        }
        if (!wait_readable(input)) {
            keep_line(input);
            input->is_woken = true;
            return -1;
        }
        n = read_some(bytes + size, 1);
        if (n <= 0)
            return (int)n;
        size++;
    }
    return -1;
}

struct completion {
    const char *first;
    size_t n_found;
};

static void note_word(const char *word, void *ctx)
{
    struct completion *completion = ctx;

    if (completion->n_found++ == 0)
        completion->first = word;
}

/* In the case in which the word was begun where case means nothing. */
static char in_case(char c, const struct cli_shell_input_options *options, char typed)
{
    if (!options->is_caseless)
        return c;
    return (char)(islower((unsigned char)typed) ? tolower((unsigned char)c)
                                                : toupper((unsigned char)c));
}

/* Completes the first word of the line. */
static unsigned char complete_word(EditLine *editor, int character)
{
    const struct cli_shell_input_options *options = input_of(editor)->options;
    const LineInfo *line = el_line(editor);
    const char *begin = line->buffer;
    struct completion completion = {0};
    char rest[WORD_MAX + 2];
    size_t n = 0;

    (void)character;
    while (begin < line->cursor && *begin == ' ')
        begin++;
    options->complete(rt_bytes_of(begin, (size_t)(line->cursor - begin)), note_word, &completion);
    if (completion.n_found != 1)
        return CC_ERROR;
    for (const char *c = completion.first + (line->cursor - begin); *c != '\0' && n < WORD_MAX; c++)
        rest[n++] = in_case(*c, options, line->cursor[-1]);
    rest[n++] = ' ';
    rest[n] = '\0';
    return el_insertstr(editor, rest) == 0 ? CC_REFRESH : CC_ERROR;
}

static enum cli_shell_event next_typed(struct cli_shell_input *input, struct rt_bytes *ret_line)
{
    const char *line;
    HistEvent event;
    int size = 0;

    el_resize(input->editor);
    if (input->kept != NULL)
        el_push(input->editor, input->kept);
    input->kept = rt_free(input->kept);
    input->is_woken = false;
    /* Before the prompt: whoever sees it may type, Ctrl-D also. */
    (void)el_set(input->editor, EL_PREP_TERM, 1);
    line = el_gets(input->editor, &size);
    if (line == NULL || size <= 0)
        return input->is_woken ? CLI_SHELL_NEWS : CLI_SHELL_END;
    if (line[size - 1] == '\n')
        size--;
    if (size > 0)
        (void)history(input->history, &event, H_ENTER, line);
    *ret_line = rt_bytes_of(line, (size_t)size);
    return CLI_SHELL_LINE;
}

/* ---- its history ----------------------------------------------------------------------------- */

static const char *variable(char *const *environment, const char *name)
{
    size_t size = strlen(name);

    for (; environment != NULL && *environment != NULL; environment++)
        if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=' &&
            (*environment)[size + 1] != '\0')
            return *environment + size + 1;
    return NULL;
}

/* Every directory of an absolute path, the file at its end aside. */
static bool make_parents(const char *path)
{
    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        RT_CLEANUP(rt_freep) char *parent = rt_xasprintf("%.*s", (int)(slash - path), path);

        if (cli_file_make_directory(parent, NULL) != RT_OK)
            return false;
    }
    return true;
}

static char *find_history(char *const *environment, const char *name)
{
    const char *state = variable(environment, "XDG_STATE_HOME");
    const char *home = variable(environment, "HOME");
    char *path = NULL;

    if (state != NULL && *state == '/')
        path = rt_xasprintf("%s/redistinto/%s", state, name);
    else if (home != NULL && *home == '/')
        path = rt_xasprintf("%s/.local/state/redistinto/%s", home, name);
    if (path != NULL && !make_parents(path))
        path = rt_free(path);
    return path;
}

static void open_editor(struct cli_shell_input *input, struct cli_context *context)
{
    HistEvent event;

    input->history = history_init();
    input->editor = el_init("redistinto", stdin, context->out, context->err);
    rt_assert(input->history != NULL && input->editor != NULL);
    (void)history(input->history, &event, H_SETSIZE, HISTORY_MAX);
    (void)history(input->history, &event, H_SETUNIQUE, 1);
    input->history_path = find_history(context->environment, input->options->history);
    if (input->history_path != NULL)
        (void)history(input->history, &event, H_LOAD, input->history_path);
    (void)el_set(input->editor, EL_CLIENTDATA, input);
    (void)el_set(input->editor, EL_PROMPT, prompt_of);
    (void)el_set(input->editor, EL_EDITOR, "emacs");
    (void)el_set(input->editor, EL_HIST, history, input->history);
    (void)el_set(input->editor, EL_GETCFN, read_character);
    /* el_set() would copy the names and lose the copies. */
    (void)el_wset(input->editor, EL_ADDFN, L"complete-word", L"Completes the first word",
                  complete_word);
    (void)el_set(input->editor, EL_BIND, "^I", "complete-word", NULL);
    (void)el_set(input->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
}

static void close_editor(struct cli_shell_input *input)
{
    HistEvent event;

    if (input->history_path != NULL)
        (void)history(input->history, &event, H_SAVE, input->history_path);
    el_end(input->editor);
    history_end(input->history);
    rt_free(input->history_path);
    rt_free(input->kept);
}

/* ---- a pipe ---------------------------------------------------------------------------------- */

/* Up to the next newline, or all that there is at the end. */
static bool take_line(struct cli_shell_input *input, struct rt_bytes *ret_line)
{
    const uint8_t *begin = input->lines.data + input->at;
    size_t size = input->lines.size - input->at;
    const uint8_t *newline = size == 0 ? NULL : memchr(begin, '\n', size);

    if (newline != NULL) {
        *ret_line = rt_bytes_of(begin, (size_t)(newline - begin));
        input->at += ret_line->size + 1;
        return true;
    }
    if (!input->is_ended || size == 0)
        return false;
    *ret_line = rt_bytes_of(begin, size);
    input->at += size;
    return true;
}

/* Moves what is left to the front. */
static void tidy(struct cli_shell_input *input)
{
    if (input->at == 0)
        return;
    memmove(input->lines.data, input->lines.data + input->at, input->lines.size - input->at);
    input->lines.size -= input->at;
    input->at = 0;
}

/* A line that is too long is dropped piece by piece, and told at its end. */
static enum cli_shell_event judge(struct cli_shell_input *input, size_t line_size,
                                  enum cli_shell_event event)
{
    bool is_too_long = input->is_skipping || line_size > CLI_SHELL_LINE_MAX;

    input->is_skipping = false;
    return is_too_long ? CLI_SHELL_TOO_LONG : event;
}

static void drop_what_is_too_long(struct cli_shell_input *input)
{
    if (input->lines.size - input->at <= CLI_SHELL_LINE_MAX)
        return;
    input->is_skipping = true;
    rt_buffer_reset(&input->lines);
    input->at = 0;
}

static enum cli_shell_event next_read(struct cli_shell_input *input, struct rt_bytes *ret_line,
                                      struct rt_error *err)
{
    char chunk[CHUNK_SIZE];
    ssize_t n;

    while (!take_line(input, ret_line)) {
        if (input->is_ended)
            return judge(input, 0, CLI_SHELL_END);
        if (!wait_readable(input))
            return CLI_SHELL_NEWS;
        drop_what_is_too_long(input);
        n = read_some(chunk, sizeof(chunk));
        if (n < 0) {
            (void)rt_fail_errno(err, errno, "reading standard input");
            return CLI_SHELL_FAILED;
        }
        input->is_ended = n == 0;
        tidy(input);
        rt_buffer_append(&input->lines, rt_bytes_of(chunk, (size_t)n));
        if (rt_buffer_check(&input->lines, err) != RT_OK)
            return CLI_SHELL_FAILED;
    }
    return judge(input, ret_line->size, CLI_SHELL_LINE);
}

/* ---- either ---------------------------------------------------------------------------------- */

struct cli_shell_input *cli_shell_input_new(struct cli_context *context,
                                            const struct cli_shell_input_options *options)
{
    struct cli_shell_input *input = rt_xalloc(sizeof(*input));

    input->options = options;
    if (context->out_is_terminal && isatty(STDIN_FILENO))
        open_editor(input, context);
    return input;
}

struct cli_shell_input *cli_shell_input_free(struct cli_shell_input *input)
{
    if (input == NULL)
        return NULL;
    if (input->editor != NULL)
        close_editor(input);
    rt_buffer_deinit(&input->lines);
    return rt_free(input);
}

bool cli_shell_input_is_terminal(const struct cli_shell_input *input)
{
    return input->editor != NULL;
}

enum cli_shell_event cli_shell_input_next(struct cli_shell_input *input, int news_fd,
                                          struct rt_bytes *ret_line, struct rt_error *err)
{
    input->news_fd = news_fd;
    return input->editor != NULL ? next_typed(input, ret_line) : next_read(input, ret_line, err);
}

void cli_shell_input_discard(struct cli_shell_input *input)
{
    input->kept = rt_free(input->kept);
}
