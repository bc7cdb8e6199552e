/*
 * Completion scripts: see completion.h. The script's functions are the same whatever the tables
 * say; what the tables say is in its case statements. One thread.
 */
#include "docs/generator/completion.h"

#include <ctype.h>
#include <string.h>

#include "cli/esi_action.h"
#include "cli/verb.h"
#include "docs/generator/commands.h"

/* What completes a value, in the script: words, or one of these, or nothing. */
#define FILES       "@files"
#define DIRECTORIES "@directories"

/* ---- what the tables say --------------------------------------------------------------------- */

/* Those of the verb `esi`. */
static void append_actions(struct rt_buffer *kind)
{
    for (size_t i = 0; i < cli_esi_n_actions; i++) {
        const char *alias = cli_esi_actions[i].alias;

        rt_buffer_printf(kind, "%s ", cli_esi_actions[i].name);
        if (alias)
            rt_buffer_printf(kind, "%s ", alias);
    }
    rt_buffer_append_string(kind, "console");
}

void docs_completion_append_kind_of_word(const char *word, size_t size, struct rt_buffer *kind)
{
    static const struct {
        const char *word;
        const char *kind;
    } known[] = {
        {"FILE", FILES},
        {"SCRIPT", FILES},
        {"DIR", DIRECTORIES},
    };

    for (size_t i = 0; i < RT_ARRAY_SIZE(known); i++)
        if (strlen(known[i].word) == size && strncmp(word, known[i].word, size) == 0)
            rt_buffer_append_string(kind, known[i].kind);
    if (strlen("ACTION") == size && strncmp(word, "ACTION", size) == 0)
        append_actions(kind);
    if (!islower((unsigned char)*word))
        return;
    for (size_t i = 0; i < size; i++)
        rt_buffer_append_byte(kind, (uint8_t)(word[i] == '|' ? ' ' : word[i]));
}

void docs_completion_append_kind(const struct rt_option *option, struct rt_buffer *kind)
{
    const char *argument = rt_option_argument(option);

    if (option->type != RT_OPTION_ENUM) {
        if (!islower((unsigned char)*argument))
            docs_completion_append_kind_of_word(argument, strlen(argument), kind);
        return;
    }
    for (size_t i = 0; option->names[i]; i++)
        rt_buffer_printf(kind, "%s%s", i > 0 ? " " : "", option->names[i]);
}

static void append_flags(const struct rt_option_command *command, void *ctx)
{
    const struct rt_option *list[RT_OPTION_COMMAND_OPTIONS_MAX];
    size_t n_list = rt_option_command_list(command, list);
    struct rt_buffer *script = ctx;

    rt_buffer_printf(script, "    '%s') flags='", command->name);
    for (size_t i = 0; i < n_list; i++) {
        if (list[i]->letter)
            rt_buffer_printf(script, "-%c ", list[i]->letter);
        rt_buffer_printf(script, "--%s%s", list[i]->name, i + 1 < n_list ? " " : "");
    }
    rt_buffer_append_string(script, "' ;;\n");
}

static void append_values(const struct rt_option_command *command, void *ctx)
{
    const struct rt_option *list[RT_OPTION_COMMAND_OPTIONS_MAX];
    size_t n_list = rt_option_command_list(command, list);
    struct rt_buffer *script = ctx;

    for (size_t i = 0; i < n_list; i++) {
        if (list[i]->type == RT_OPTION_FLAG)
            continue;
        rt_buffer_printf(script, "    '%s --%s'", command->name, list[i]->name);
        if (list[i]->letter)
            rt_buffer_printf(script, " | '%s -%c'", command->name, list[i]->letter);
        rt_buffer_append_string(script, ") kind='");
        docs_completion_append_kind(list[i], script);
        rt_buffer_append_string(script, "' ;;\n");
    }
}

/* Of "run SCRIPT..." or "[KEY]", one case a word; the last may stand for all that follow. */
static void append_arguments(const struct rt_option_command *command, void *ctx)
{
    const char *word = command->usage + strspn(command->usage, " [");
    struct rt_buffer *script = ctx;
    unsigned number = 0;

    while (*word) {
        size_t size = strcspn(word, " [].");

        if (strncmp(word + size, "...", 3) == 0)
            rt_buffer_printf(script, "    '%s '[0-9]*) kind='", command->name);
        else
            rt_buffer_printf(script, "    '%s %u') kind='", command->name, number++);
        docs_completion_append_kind_of_word(word, size, script);
        rt_buffer_append_string(script, "' ;;\n");
        word += strcspn(word, " ");
        word += strspn(word, " [");
    }
}

/* ---- the script ------------------------------------------------------------------------------ */

static const char bash_title[] =
    "# bash completion of the commands of Redistinto, made from their option tables.\n\n";

static const char head[] = "# _redistinto_flags COMMAND: all of its options, in `flags`.\n"
                           "_redistinto_flags() {\n"
                           "    case $1 in\n";

static const char before_values[] = "    *) flags='' ;;\n"
                                    "    esac\n"
                                    "}\n"
                                    "\n"
                                    "# _redistinto_value COMMAND OPTION: what completes its value, "
                                    "in `kind`; fails when the option\n"
                                    "# takes none or is unknown.\n"
                                    "_redistinto_value() {\n"
                                    "    case \"$1 $2\" in\n";

static const char before_arguments[] =
    "    *) return 1 ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "# _redistinto_argument COMMAND N: what completes its word number N, in `kind`.\n"
    "_redistinto_argument() {\n"
    "    case \"$1 $2\" in\n";

static const char before_verbs[] = "    *) kind='' ;;\n"
                                   "    esac\n"
                                   "}\n"
                                   "\n"
                                   "_redistinto_verbs='";

static const char bash_tail[] =
    "# _redistinto_reply KIND CURRENT\n"
    "_redistinto_reply() {\n"
    "    case $1 in\n"
    "    @files)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$2\")\n"
    "        ;;\n"
    "    @directories)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -d -- \"$2\")\n"
    "        ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$2\") ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "# The words before the cursor: which command it is, how many of its words are there, and\n"
    "# whether an option waits for its value. bash makes three words of --option=value and of\n"
    "# host:port; an address is put together again.\n"
    "_redistinto() {\n"
    "    local command=${COMP_WORDS[0]##*/} current=${COMP_WORDS[COMP_CWORD]}\n"
    "    local verb='' only_words='' flags='' kind='' word colon=''\n"
    "    local -a given=()\n"
    "    local -i i=0 n=0\n"
    "    COMPREPLY=()\n"
    "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
    "        if [[ ($colon || $word =~ ^:+$) && ${#given[@]} -gt 0 ]]; then\n"
    "            given[-1]+=$word\n"
    "        else\n"
    "            given+=(\"$word\")\n"
    "        fi\n"
    "        [[ $word =~ ^:+$ ]] && colon=yes || colon=''\n"
    "    done\n"
    "    [[ $colon || $current =~ ^:+$ ]] && return\n"
    "    [[ $current == '=' ]] && current=''\n"
    "    [[ $command == redistinto ]] || verb=none\n"
    "    while ((i < ${#given[@]})); do\n"
    "        word=${given[i]}\n"
    "        i+=1\n"
    "        if [[ $only_words || $word != -?* ]]; then\n"
    "            if [[ $verb ]]; then\n"
    "                n+=1\n"
    "            else\n"
    "                verb=$word command+=\" $word\"\n"
    "            fi\n"
    "        elif [[ $word == -- ]]; then\n"
    "            only_words=yes\n"
    "        elif _redistinto_value \"$command\" \"$word\"; then\n"
    "            [[ ${given[i]} == '=' ]] && i+=1\n"
    "            if ((i >= ${#given[@]})); then\n"
    "                _redistinto_reply \"$kind\" \"$current\"\n"
    "                return\n"
    "            fi\n"
    "            i+=1\n"
    "        elif [[ ${given[i]} == '=' ]]; then\n"
    "            i+=2\n"
    "        fi\n"
    "    done\n"
    "    if [[ $current == -* && ! $only_words ]]; then\n"
    "        _redistinto_flags \"$command\"\n"
    "        _redistinto_reply \"$flags\" \"$current\"\n"
    "    elif [[ ! $verb ]]; then\n"
    "        _redistinto_reply \"$_redistinto_verbs\" \"$current\"\n"
    "    else\n"
    "        _redistinto_argument \"$command\" \"$n\"\n"
    "        _redistinto_reply \"$kind\" \"$current\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "complete -F _redistinto";

static const char zsh_title[] =
    " redistinto-coordinator redistinto-instance redistinto-esi\n"
    "# zsh completion of the commands of Redistinto, made from their option tables.\n\n";

static const char zsh_tail[] =
    "# _redistinto_reply KIND\n"
    "_redistinto_reply() {\n"
    "    case $1 in\n"
    "    @files) _files ;;\n"
    "    @directories) _files -/ ;;\n"
    "    *) compadd -- ${=1} ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "# The words before the cursor: which command it is, how many of its words are there, and\n"
    "# whether an option waits for its value.\n"
    "_redistinto_complete() {\n"
    "    emulate -L zsh\n"
    "    local command=${words[1]:t} verb='' only_words='' flags='' kind='' word\n"
    "    local -i i=2 n=0\n"
    "    [[ $command == redistinto ]] || verb=none\n"
    "    while ((i < CURRENT)); do\n"
    "        word=${words[i]}\n"
    "        ((i += 1))\n"
    "        if [[ -n $only_words || $word != -?* ]]; then\n"
    "            if [[ -n $verb ]]; then\n"
    "                ((n += 1))\n"
    "            else\n"
    "                verb=$word command+=\" $word\"\n"
    "            fi\n"
    "        elif [[ $word == -- ]]; then\n"
    "            only_words=yes\n"
    "        elif [[ $word != *=* ]] && _redistinto_value \"$command\" \"$word\"; then\n"
    "            if ((i >= CURRENT)); then\n"
    "                _redistinto_reply \"$kind\"\n"
    "                return\n"
    "            fi\n"
    "            ((i += 1))\n"
    "        fi\n"
    "    done\n"
    "    word=${words[CURRENT]}\n"
    "    if [[ -z $only_words && $word == --*=* ]]; then\n"
    "        _redistinto_value \"$command\" \"${word%%=*}\" && compset -P '*=' &&\n"
    "            _redistinto_reply \"$kind\"\n"
    "    elif [[ -z $only_words && $word == -* ]]; then\n"
    "        _redistinto_flags \"$command\"\n"
    "        _redistinto_reply \"$flags\"\n"
    "    elif [[ -z $verb ]]; then\n"
    "        _redistinto_reply \"$_redistinto_verbs\"\n"
    "    else\n"
    "        _redistinto_argument \"$command\" \"$n\"\n"
    "        _redistinto_reply \"$kind\"\n"
    "    fi\n"
    "}\n"
    "\n"
    "# Loaded by its name from $fpath, or read with `source`.\n"
    "if [[ ${funcstack[1]} == _redistinto ]]; then\n"
    "    _redistinto_complete \"$@\"\n"
    "else\n"
    "    compdef _redistinto_complete redistinto redistinto-coordinator redistinto-instance \\\n"
    "        redistinto-esi\n"
    "fi\n";

/* What both shells read alike. */
static void append_tables(struct rt_buffer *script)
{
    rt_buffer_append_string(script, head);
    docs_commands_each(append_flags, script);
    rt_buffer_append_string(script, before_values);
    docs_commands_each(append_values, script);
    rt_buffer_append_string(script, before_arguments);
    docs_commands_each(append_arguments, script);
    rt_buffer_append_string(script, before_verbs);
    docs_completion_append_verbs(script);
    rt_buffer_append_string(script, "'\n\n");
}

void docs_completion_append_verbs(struct rt_buffer *script)
{
    for (size_t i = 0; i < cli_n_verbs; i++)
        rt_buffer_printf(script, "%s%s", i > 0 ? " " : "", cli_verbs[i]->name);
}

void docs_completion_append_bash(struct rt_buffer *script)
{
    rt_buffer_append_string(script, bash_title);
    append_tables(script);
    rt_buffer_append_string(script, bash_tail);
    for (size_t i = 0; i < DOCS_N_BINARIES; i++)
        rt_buffer_printf(script, " %s", docs_commands_binaries[i]->name);
    rt_buffer_append_byte(script, '\n');
}

void docs_completion_append_zsh(struct rt_buffer *script)
{
    rt_buffer_append_string(script, "#compdef redistinto");
    rt_buffer_append_string(script, zsh_title);
    append_tables(script);
    rt_buffer_append_string(script, zsh_tail);
}

static void append_literal(struct rt_bytes text, struct rt_buffer *source)
{
    bool is_open = false;

    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];

        rt_buffer_append_string(source, is_open ? "" : "\n    \"");
        is_open = byte != '\n';
        if (byte == '\n')
            rt_buffer_append_string(source, "\\n\"");
        else if (byte == '"' || byte == '\\')
            rt_buffer_printf(source, "\\%c", byte);
        else
            rt_buffer_append_byte(source, byte);
    }
    if (is_open)
        rt_buffer_append_byte(source, '"');
}

static void append_script(const char *name, void (*append)(struct rt_buffer *script),
                          struct rt_buffer *source)
{
    struct rt_buffer script = {0};

    append(&script);
    rt_buffer_printf(source, "\nconst char cli_completion_%s[] =", name);
    append_literal(rt_buffer_bytes(&script), source);
    rt_buffer_append_string(source, ";\n");
    rt_buffer_deinit(&script);
}

void docs_completion_append_source(struct rt_buffer *source)
{
    rt_buffer_append_string(source, "#include \"cli/completion.h\"\n");
    append_script("bash", docs_completion_append_bash, source);
    append_script("zsh", docs_completion_append_zsh, source);
    append_script("fish", docs_completion_append_fish, source);
}
