/*
 * Private to runtime/wire: text that leaves the process has to be valid UTF-8 for other languages'
 * decoders, whatever bytes it quotes.
 */
#ifndef WIRE_TEXT_H
#define WIRE_TEXT_H

/* Everything but printable ASCII becomes '?'. */
static inline void wire_text_clean(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

#endif
