/*
 * A verb's context that writes into memory.
 */
#ifndef TESTS_UNIT_CLI_STREAMS_H
#define TESTS_UNIT_CLI_STREAMS_H

#include <stdio.h>
#include <stdlib.h>

#include "cli/context.h"

struct streams {
    struct cli_context context;
    char *out; /* after streams_flush(): what was written */
    char *err;
    size_t n_out;
    size_t n_err;
};

static inline void streams_open(struct streams *streams)
{
    static char *const environment[] = {NULL};

    *streams = (struct streams){0};
    streams->context.out = open_memstream(&streams->out, &streams->n_out);
    streams->context.err = open_memstream(&streams->err, &streams->n_err);
    streams->context.version = "1.2.3";
    streams->context.binaries_dir = "/nowhere";
    streams->context.temporary_dir = "/tmp";
    streams->context.environment = environment;
}

static inline void streams_flush(struct streams *streams)
{
    (void)fflush(streams->context.out);
    (void)fflush(streams->context.err);
}

static inline void streams_close(struct streams *streams)
{
    (void)fclose(streams->context.out);
    (void)fclose(streams->context.err);
    free(streams->out);
    free(streams->err);
}

#endif
