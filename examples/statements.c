/*
 * Runs statements from standard input with the client library:
 *
 *   example-statements ADDRESS [TIMEOUT_MS]
 *
 * A line is SET, STORE, PUT, READ, DELETE, LOCK or UNLOCK, a key, and for SET and PUT the rest of
 * the line as value. Lines up to an empty one are started together. Every statement gives one line:
 * "ok" and for READ and LOCK the value if there is one, or "failed" or "unknown" with reason and
 * message. Exit code 1 when one was not ok, 2 for wrong usage.
 */
#include <redistinto/client.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_MAX = 4096
};

struct batch {
    struct esi_client_operation operations[BATCH_MAX];
    char *lines[BATCH_MAX]; /* owned; operations point into them */
    size_t n;
};

static const struct {
    const char *name;
    enum esi_client_kind kind;
} verbs[] = {
    {"SET", ESI_CLIENT_SET},       {"STORE", ESI_CLIENT_STORE}, {"PUT", ESI_CLIENT_PUT},
    {"READ", ESI_CLIENT_READ},     {"LOCK", ESI_CLIENT_LOCK},   {"UNLOCK", ESI_CLIENT_UNLOCK},
    {"DELETE", ESI_CLIENT_DELETE},
};

static int parse(char *line, struct esi_client_operation *ret_operation)
{
    char *rest = line;
    char *verb = strsep(&rest, " ");
    const char *key = rest ? strsep(&rest, " ") : "";

    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verb, verbs[i].name) != 0)
            continue;
        *ret_operation = (struct esi_client_operation){
            .kind = verbs[i].kind,
            .key = {key, strlen(key)},
            .value = {rest ? rest : "", rest ? strlen(rest) : 0},
        };
        return 0;
    }
    return -1;
}

static int print(const struct esi_client_operation *operation,
                 const struct esi_client_result *result)
{
    int is_read = operation->kind == ESI_CLIENT_READ || operation->kind == ESI_CLIENT_LOCK;

    if (result->outcome == ESI_CLIENT_OK && is_read && result->has_value) {
        printf("ok %.*s\n", (int)result->value.size, (const char *)result->value.data);
        return 0;
    }
    if (result->outcome == ESI_CLIENT_OK) {
        puts("ok");
        return 0;
    }
    printf("%s %s %s\n", result->outcome == ESI_CLIENT_FAILED ? "failed" : "unknown",
           result->reason, result->message);
    return 1;
}

static int run(struct esi_client *client, struct batch *batch)
{
    struct esi_client_results *results = esi_client_run(client, batch->operations, batch->n);
    int worst = 0;

    for (size_t i = 0; i < results->n_items; i++)
        worst |= print(&batch->operations[i], &results->items[i]);
    (void)fflush(stdout);
    esi_client_results_free(results);
    while (batch->n > 0)
        free(batch->lines[--batch->n]);
    return worst;
}

static int run_all(struct esi_client *client, struct batch *batch)
{
    char *line = NULL;
    size_t size = 0;
    int worst = 0;

    while (getline(&line, &size, stdin) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '\0' || batch->n == BATCH_MAX)
            worst |= run(client, batch);
        if (line[0] == '\0')
            continue;
        if (parse(line, &batch->operations[batch->n]) != 0) {
            fprintf(stderr, "not a statement: %s\n", line);
            free(line);
            (void)run(client, batch);
            return 2;
        }
        batch->lines[batch->n++] = line;
        line = NULL;
    }
    free(line);
    return run(client, batch) | worst;
}

int main(int argc, char **argv)
{
    struct esi_client_options options = {
        .coordinator = argc > 1 ? argv[1] : NULL,
        .timeout_ms = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0,
    };
    const char *problem;
    struct esi_client *client = esi_client_new(&options, &problem);
    struct batch *batch;
    int worst;

    if (!client) {
        fprintf(stderr, "%s\n", problem);
        return 2;
    }
    batch = calloc(1, sizeof(*batch));
    if (!batch)
        abort();
    worst = run_all(client, batch);
    free(batch);
    esi_client_free(client);
    return worst;
}
