/*
 * Prints what is made from the code's own tables: reference pages, manual pages, completion.
 */
#include <stdio.h>
#include <string.h>

#include "docs/generator/commands.h"
#include "docs/generator/completion.h"
#include "docs/generator/limits.h"
#include "docs/generator/manual.h"
#include "docs/generator/reference.h"

static bool append(int argc, char **argv, struct rt_buffer *text)
{
    static const struct {
        const char *word;
        void (*append)(struct rt_buffer *text);
    } pages[] = {
        {"reasons", docs_reference_append_reasons},
        {"limits", docs_limits_append},
        {"completion", docs_completion_append_bash},
        {"completion-zsh", docs_completion_append_zsh},
        {"completion-fish", docs_completion_append_fish},
        {"completion-source", docs_completion_append_source},
    };
    const struct rt_option_command *command;

    for (size_t i = 0; argc == 2 && i < RT_ARRAY_SIZE(pages); i++) {
        if (strcmp(argv[1], pages[i].word) == 0) {
            pages[i].append(text);
            return true;
        }
    }
    if (argc != 3 || strcmp(argv[1], "manual") != 0)
        return false;
    command = docs_commands_find(argv[2]);
    if (command)
        docs_manual_append(command, text);
    return command;
}

int main(int argc, char **argv)
{
    struct rt_buffer text = {0};
    bool is_good = append(argc, argv, &text) && rt_buffer_check(&text, NULL) == RT_OK &&
                   fwrite(text.data, 1, text.size, stdout) == text.size && fflush(stdout) == 0;

    rt_buffer_deinit(&text);
    return is_good ? 0 : 2;
}
