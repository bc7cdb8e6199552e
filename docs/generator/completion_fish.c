/*
 * The completion script for fish: see completion.h. As in the one for bash, the functions are the
 * same whatever the tables say, and what they say is in switch statements. One thread.
 */
#include <string.h>

#include "docs/generator/commands.h"
#include "docs/generator/completion.h"

static void append_flags(const struct rt_option_command *command, void *ctx)
{
    const struct rt_option *list[RT_OPTION_COMMAND_OPTIONS_MAX];
    size_t n_list = rt_option_command_list(command, list);
    struct rt_buffer *script = ctx;

    rt_buffer_printf(script, "        case '%s'\n            printf '%%s\\n'", command->name);
    for (size_t i = 0; i < n_list; i++) {
        if (list[i]->letter)
            rt_buffer_printf(script, " -%c", list[i]->letter);
        rt_buffer_printf(script, " --%s", list[i]->name);
    }
    rt_buffer_append_byte(script, '\n');
}

static void append_values(const struct rt_option_command *command, void *ctx)
{
    const struct rt_option *list[RT_OPTION_COMMAND_OPTIONS_MAX];
    size_t n_list = rt_option_command_list(command, list);
    struct rt_buffer *script = ctx;

    for (size_t i = 0; i < n_list; i++) {
        if (list[i]->type == RT_OPTION_FLAG)
            continue;
        rt_buffer_printf(script, "        case '%s --%s'", command->name, list[i]->name);
        if (list[i]->letter)
            rt_buffer_printf(script, " '%s -%c'", command->name, list[i]->letter);
        rt_buffer_append_string(script, "\n            echo '");
        docs_completion_append_kind(list[i], script);
        rt_buffer_append_string(script, "'\n");
    }
}

/* One case a word; the last, with "..." for its number, may stand for all that follow. */
static void append_arguments(const struct rt_option_command *command, void *ctx)
{
    const char *word = command->usage + strspn(command->usage, " [");
    struct rt_buffer *script = ctx;
    unsigned number = 0;

    while (*word) {
        size_t size = strcspn(word, " [].");

        if (strncmp(word + size, "...", 3) == 0)
            rt_buffer_printf(script, "        case '%s ...'", command->name);
        else
            rt_buffer_printf(script, "        case '%s %u'", command->name, number++);
        rt_buffer_append_string(script, "\n            echo '");
        docs_completion_append_kind_of_word(word, size, script);
        rt_buffer_append_string(script, "'\n");
        word += strcspn(word, " ");
        word += strspn(word, " [");
    }
}

static const char head[] =
    "# fish completion of the commands of Redistinto, made from their option tables.\n"
    "\n"
    "# COMMAND: all of its options.\n"
    "function __redistinto_flags\n"
    "    switch \"$argv[1]\"\n";

static const char before_values[] = "    end\n"
                                    "end\n"
                                    "\n"
                                    "# COMMAND OPTION: what completes its value; fails when it "
                                    "takes none or is unknown.\n"
                                    "function __redistinto_value\n"
                                    "    switch \"$argv[1] $argv[2]\"\n";

static const char before_arguments[] =
    "        case '*'\n"
    "            return 1\n"
    "    end\n"
    "end\n"
    "\n"
    "# COMMAND N: what completes its word number N, or \"...\", each that follows.\n"
    "function __redistinto_argument\n"
    "    switch \"$argv[1] $argv[2]\"\n";

static const char before_verbs[] = "        case '*'\n"
                                   "            return 1\n"
                                   "    end\n"
                                   "end\n"
                                   "\n"
                                   "set -g __redistinto_verbs '";

static const char tail[] =
    "'\n"
    "\n"
    "# KIND CURRENT [PREFIX]\n"
    "function __redistinto_reply\n"
    "    switch \"$argv[1]\"\n"
    "        case ''\n"
    "        case @files\n"
    "            for path in (__fish_complete_path \"$argv[2]\")\n"
    "                echo \"$argv[3]$path\"\n"
    "            end\n"
    "        case @directories\n"
    "            for path in (__fish_complete_directories \"$argv[2]\" '')\n"
    "                echo \"$argv[3]$path\"\n"
    "            end\n"
    "        case '*'\n"
    "            for word in (string split ' ' -- $argv[1])\n"
    "                echo \"$argv[3]$word\"\n"
    "            end\n"
    "    end\n"
    "end\n"
    "\n"
    "# The words before the cursor: which command it is, how many of its words are there, and\n"
    "# whether an option waits for its value.\n"
    "function __redistinto_complete\n"
    "    set -l given (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l command (string replace -r '.*/' '' -- $given[1])\n"
    "    set -l verb ''\n"
    "    set -l only_words ''\n"
    "    set -l kind ''\n"
    "    set -l i 2\n"
    "    set -l n 0\n"
    "    test \"$command\" = redistinto; or set verb none\n"
    "    while test $i -le (count $given)\n"
    "        set -l word $given[$i]\n"
    "        set i (math $i + 1)\n"
    "        if test -n \"$only_words\"; or not string match -qr '^-.' -- \"$word\"\n"
    "            if test -n \"$verb\"\n"
    "                set n (math $n + 1)\n"
    "            else\n"
    "                set verb $word\n"
    "                set command \"$command $word\"\n"
    "            end\n"
    "        else if test \"$word\" = --\n"
    "            set only_words yes\n"
    "        else if set kind (__redistinto_value \"$command\" \"$word\")\n"
    "            if test $i -gt (count $given)\n"
    "                __redistinto_reply \"$kind\" \"$current\"\n"
    "                return\n"
    "            end\n"
    "            set i (math $i + 1)\n"
    "        end\n"
    "    end\n"
    "    if test -z \"$only_words\"; and string match -qr '^--.*=' -- \"$current\"\n"
    "        set -l option (string replace -r '=.*' '' -- $current)\n"
    "        if set kind (__redistinto_value \"$command\" \"$option\")\n"
    "            __redistinto_reply \"$kind\" (string replace -r '^[^=]*=' '' -- $current) "
    "\"$option=\"\n"
    "        end\n"
    "    else if test -z \"$only_words\"; and string match -qr '^-' -- \"$current\"\n"
    "        __redistinto_flags \"$command\"\n"
    "    else if test -z \"$verb\"\n"
    "        __redistinto_reply \"$__redistinto_verbs\" \"$current\"\n"
    "    else\n"
    "        set kind (__redistinto_argument \"$command\" $n)\n"
    "        or set kind (__redistinto_argument \"$command\" ...)\n"
    "        __redistinto_reply \"$kind\" \"$current\"\n"
    "    end\n"
    "end\n"
    "\n";

void docs_completion_append_fish(struct rt_buffer *script)
{
    rt_buffer_append_string(script, head);
    docs_commands_each(append_flags, script);
    rt_buffer_append_string(script, before_values);
    docs_commands_each(append_values, script);
    rt_buffer_append_string(script, before_arguments);
    docs_commands_each(append_arguments, script);
    rt_buffer_append_string(script, before_verbs);
    docs_completion_append_verbs(script);
    rt_buffer_append_string(script, tail);
    for (size_t i = 0; i < DOCS_N_BINARIES; i++)
        rt_buffer_printf(script, "complete -c %s -f -a '(__redistinto_complete)'\n",
                         docs_commands_binaries[i]->name);
}
