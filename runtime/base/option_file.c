/*
 * The configuration file: see option.h. It is read as a whole, then each setting is checked in the
 * order of the lines, then they are applied, [common] first. Invariant: nothing is applied when
 * anything is wrong. The main thread, before others start.
 */
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/option_internal.h"

#define COMMON "common"
#define VERB   "cli."

/* Of the binaries. */
static const char *const sections[] = {COMMON, "coordinator", "instance", "esi", "cli"};

/* What [common] takes: options of more than one binary that mean the same in each. */
static const char *const common_names[] = {
    "coordinator", "drain-timeout", "log-level", "output", "store-limit", "timeout",
};

struct setting {
    char *section; /* owned */
    char *name;    /* owned */
    char *text;    /* owned */
    int line;
    int section_line;
    struct rt_option_entry *entry; /* NULL: not for this binary */
};

struct file {
    const struct rt_option_setup *setup;
    struct rt_options *options;
    FILE *stream;
    struct setting *settings; /* owned */
    size_t n_settings;
    int line;
    int section_line; /* of the last section */
    enum rt_code code;
    struct rt_error *err;
};

/* ---- reading ---- */

static char *fail_line(struct file *file, const char *what)
{
    file->code = rt_fail(file->err, RT_INVALID_ARGUMENT, "%s", what);
    return NULL;
}

static char *fail_long_line(struct file *file)
{
    file->code = rt_fail(file->err, RT_INVALID_ARGUMENT,
                         "the line is longer than %d bytes; a longer value can be given on the "
                         "command line or in the environment",
                         RT_OPTION_FILE_LINE_MAX);
    return NULL;
}

static const char *skip_bom(const char *text)
{
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

/* inih would drop what stands behind the name. */
static char *check_section(struct file *file, char *text)
{
    const char *start = file->line == 1 ? skip_bom(text) : text;
    const char *end = strchr(start, ']');
    const char *rest;

    if (*start != '[' || end == NULL)
        return text;
    file->section_line = file->line;
    rest = end + 1 + strspn(end + 1, " \t\r\n\v\f");
    if (*rest == '\0' || (*rest == ';' && rest > end + 1))
        return text;
    return fail_line(file, "only a comment, ';' behind a blank, may follow the section's ']'");
}

static bool is_blank(int c)
{
    return c != '\n' && isspace(c);
}

/* For inih, as fgets; counts lines and sees what fgets would hide. `size` has room for the longest
 * line and its end. An indented line would be more of the value before it: the blanks go. */
static char *read_line(char *text, int size, void *stream)
{
    struct file *file = stream;
    int n = 0;
    int c = 0;
    bool was_return = false;

    rt_assert(size >= RT_OPTION_FILE_LINE_MAX + 2);
    if (file->code != RT_OK)
        return NULL;
    file->line++;
    while (c != '\n' && (c = getc(file->stream)) != EOF) {
        if (file->line > RT_OPTION_FILE_LINES_MAX)
            return fail_line(file, "the file has too many lines");
        if (c == '\0')
            return fail_line(file, "the file is no text");
        if (was_return && c != '\n')
            return fail_line(file, "a carriage return stands inside the line; lines end with a "
                                   "newline");
        was_return = c == '\r';
        if (n == 0 && is_blank(c))
            continue;
        if (n == RT_OPTION_FILE_LINE_MAX && c != '\n')
            return fail_long_line(file);
        text[n++] = (char)c;
    }
    text[n] = '\0';
    return n > 0 ? check_section(file, text) : NULL;
}

static int on_setting(void *ctx, const char *section, const char *name, const char *text)
{
    struct file *file = ctx;
    struct setting *setting;

    file->settings = rt_xrealloc(file->settings, (file->n_settings + 1) * sizeof(*file->settings));
    setting = &file->settings[file->n_settings++];
    *setting = (struct setting){
        .section = rt_xstrdup(section),
        .name = rt_xstrdup(name),
        .text = rt_xstrdup(text),
        .line = file->line,
        .section_line = file->section_line,
    };
    return 1;
}

static enum rt_code read_settings(struct file *file)
{
    int bad_line = ini_parse_stream(read_line, file, on_setting, file);

    if (file->code == RT_OK && ferror(file->stream)) {
        (void)rt_fail_errno(file->err, errno, "it cannot be read");
        file->code = RT_INVALID_ARGUMENT;
    } else if (file->code == RT_OK && bad_line != 0) {
        file->line = bad_line;
        (void)fail_line(file, "not of the form 'name = value' or '[section]'");
    }
    return file->code;
}

/* ---- checking ---- */

static bool is_among(const char *const *words, size_t n_words, const char *word)
{
    for (size_t i = 0; i < n_words; i++)
        if (strcmp(words[i], word) == 0)
            return true;
    return false;
}

/* Whether options of this binary stand there. */
static bool is_own_section(const struct file *file, const char *section)
{
    const struct rt_option_command *command = file->setup->command;

    if (strcmp(section, command->section) == 0)
        return true;
    for (size_t i = 0; i < command->n_tables; i++)
        if (command->tables[i].section && strcmp(command->tables[i].section, section) == 0)
            return true;
    return false;
}

static bool is_known_section(const struct file *file, const char *section)
{
    size_t n_more = 0;

    while (file->setup->sections && file->setup->sections[n_more])
        n_more++;
    if (!file->setup->sections && strncmp(section, VERB, strlen(VERB)) == 0)
        return true;
    return is_own_section(file, section) || is_among(sections, RT_ARRAY_SIZE(sections), section) ||
           is_among(file->setup->sections, n_more, section);
}

static enum rt_code fail_section(const struct setting *setting, struct rt_error *err)
{
    if (!*setting->section)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "option '%s' stands before the first section (there are [common], "
                       "[coordinator], [instance], [esi], [cli] and [cli.VERB])",
                       setting->name);
    return rt_fail(err, RT_INVALID_ARGUMENT,
                   "unknown section [%s] (there are [common], [coordinator], [instance], [esi], "
                   "[cli] and [cli.VERB])",
                   setting->section);
}

static enum rt_code fail_name(const struct setting *setting, struct rt_error *err)
{
    if (strcmp(setting->section, COMMON) == 0)
        return rt_fail(err, RT_INVALID_ARGUMENT,
                       "[common] takes no option '%s' (it takes coordinator, drain-timeout, "
                       "log-level, output, store-limit and timeout)",
                       setting->name);
    return rt_fail(err, RT_INVALID_ARGUMENT, "unknown option '%s' in [%s] (see --help)",
                   setting->name, setting->section);
}

static enum rt_option_rank rank_of(const struct setting *setting)
{
    return strcmp(setting->section, COMMON) == 0 ? RT_OPTION_COMMON : RT_OPTION_OWN;
}

/* Finds what the setting is for; NULL when another binary or verb is to check it. */
static enum rt_code find_entry(const struct file *file, struct setting *setting,
                               struct rt_error *err)
{
    bool is_common = rank_of(setting) == RT_OPTION_COMMON;

    if (is_common && !is_among(common_names, RT_ARRAY_SIZE(common_names), setting->name))
        return fail_name(setting, err);
    setting->entry =
        rt_option_find(file->options, is_common ? NULL : setting->section, setting->name);
    if (setting->entry && setting->entry->is_general)
        setting->entry = NULL;
    if (!setting->entry && is_own_section(file, setting->section))
        return fail_name(setting, err);
    return RT_OK;
}

static enum rt_code check_setting(struct file *file, struct setting *setting)
{
    struct rt_option_entry *entry;
    int *line;
    enum rt_code code;

    if (!is_known_section(file, setting->section)) {
        if (*setting->section)
            file->line = setting->section_line;
        return fail_section(setting, file->err);
    }
    code = find_entry(file, setting, file->err);
    if (code != RT_OK || !setting->entry)
        return code;
    entry = setting->entry;
    line = &entry->lines[rank_of(setting)];
    if (*line != 0)
        return rt_fail(file->err, RT_INVALID_ARGUMENT,
                       "option '%s' is set twice in [%s], first in line %d", setting->name,
                       setting->section, *line);
    *line = setting->line;
    code = rt_option_value_check(entry->option, setting->text, file->err);
    if (code != RT_OK && file->err)
        (void)rt_wrap(file->err, "option '%s'", setting->name);
    return code;
}

static enum rt_code check_settings(struct file *file)
{
    enum rt_code code = RT_OK;

    for (size_t i = 0; i < file->n_settings && code == RT_OK; i++) {
        file->line = file->settings[i].line;
        code = check_setting(file, &file->settings[i]);
    }
    return code;
}

/* ---- applying ---- */

static void apply_rank(struct file *file, enum rt_option_rank rank)
{
    for (size_t i = 0; i < file->n_settings; i++) {
        const struct setting *setting = &file->settings[i];

        if (!setting->entry || rank_of(setting) != rank)
            continue;
        if (rt_option_value_set(setting->entry, setting->text, NULL) != RT_OK)
            rt_assert(!"a checked value is wrong");
        setting->entry->origin = RT_OPTION_FROM_FILE;
        setting->entry->line = setting->line;
    }
}

static enum rt_code apply_stream(struct file *file)
{
    enum rt_code code = read_settings(file);

    if (code == RT_OK)
        code = check_settings(file);
    if (code == RT_OK) {
        apply_rank(file, RT_OPTION_COMMON);
        apply_rank(file, RT_OPTION_OWN);
    } else if (file->err) {
        (void)rt_wrap(file->err, "%s:%d", file->options->file, file->line);
    }
    for (size_t i = 0; i < file->n_settings; i++) {
        (void)rt_free(file->settings[i].section);
        (void)rt_free(file->settings[i].name);
        (void)rt_free(file->settings[i].text);
    }
    (void)rt_free(file->settings);
    return code;
}

/* ---- finding ---- */

/* Takes the path. A default place without a file is none. */
static enum rt_code open_file(struct file *file, char *path, bool is_default)
{
    file->stream = fopen(path, "re");
    if (file->stream) {
        file->options->file = path;
        return RT_OK;
    }
    if (!is_default || (errno != ENOENT && errno != ENOTDIR)) {
        (void)rt_fail_errno(file->err, errno, "opening configuration file '%s'", path);
        if (file->err)
            file->err->code = RT_INVALID_ARGUMENT;
        (void)rt_free(path);
        return RT_INVALID_ARGUMENT;
    }
    (void)rt_free(path);
    return RT_OK;
}

/* Variables that are no absolute paths do not count, as the XDG base directories have it. */
static char *user_path(char *const *environment)
{
    const char *config = rt_option_look_up(environment, "XDG_CONFIG_HOME");
    const char *home = rt_option_look_up(environment, "HOME");

    if (*config == '/')
        return rt_xasprintf("%s/redistinto/redistinto.ini", config);
    return *home == '/' ? rt_xasprintf("%s/.config/redistinto/redistinto.ini", home) : NULL;
}

static enum rt_code open_default(struct file *file)
{
    char *const *environment = file->setup->environment;
    char *path = environment ? user_path(environment) : NULL;
    enum rt_code code = RT_OK;

    if (path)
        code = open_file(file, path, true);
    if (code == RT_OK && !file->stream && environment)
        code = open_file(file, rt_xstrdup(RT_OPTION_SYSTEM_FILE), true);
    return code;
}

enum rt_code rt_option_file_apply(struct rt_options *options, const struct rt_option_setup *setup,
                                  const char *path, struct rt_error *err)
{
    struct file file = {.setup = setup, .options = options, .err = err};
    enum rt_code code = path ? open_file(&file, rt_xstrdup(path), false) : open_default(&file);

    if (code != RT_OK || !file.stream)
        return code;
    code = apply_stream(&file);
    (void)fclose(file.stream);
    return code;
}
