/*
 * The client library without a cluster: options at their limits, and how everything ends when the
 * coordinator is absent, or takes connections and says nothing.
 */
#include "esi-client/client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/model/limits.h"
#include "tests/support/check.h"

TestSuite(client, .fini = test_alloc_expect_none);

enum {
    SOON_MS = 20,
    CODE_CANCELLED = 1,
    CODE_INVALID_ARGUMENT = 3,
    CODE_DEADLINE_EXCEEDED = 4,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_UNAVAILABLE = 14
};

static const uint8_t bytes[ESI_CLIENT_VALUE_MAX + 1];

/* Its connections are in the backlog for ever. */
struct silent {
    char folder[32];
    char path[48];
    char address[64];
    int socket;
    struct esi_client *client;
};

static void open_silent(struct silent *silent, uint32_t timeout_ms)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct esi_client_options options = {.coordinator = silent->address, .timeout_ms = timeout_ms};

    (void)snprintf(silent->folder, sizeof(silent->folder), "/tmp/redistinto-XXXXXX");
    cr_assert_not_null(mkdtemp(silent->folder));
    (void)snprintf(silent->path, sizeof(silent->path), "%s/socket", silent->folder);
    (void)snprintf(silent->address, sizeof(silent->address), "unix:%s", silent->path);
    memcpy(address.sun_path, silent->path, sizeof(silent->path));
    silent->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(silent->socket, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(silent->socket, 8), 0);
    silent->client = esi_client_new(&options, NULL);
    cr_assert_not_null(silent->client);
}

/* The client first: its connection is to that socket. */
static void close_silent(struct silent *silent)
{
    esi_client_free(silent->client);
    (void)close(silent->socket);
    (void)unlink(silent->path);
    (void)rmdir(silent->folder);
}

/* Reason NULL: any. At a deadline gRPC or the client may be the first to notice. */
static void expect(struct esi_client *client, const struct esi_client_operation *operation,
                   int code, const char *reason)
{
    struct esi_client_results *results = esi_client_run(client, operation, 1);

    cr_expect_eq(results->n_items, 1);
    cr_expect_eq(results->items[0].outcome, ESI_CLIENT_FAILED);
    cr_expect_eq(results->items[0].code, code, "%d", results->items[0].code);
    cr_expect(!reason || strcmp(results->items[0].reason, reason) == 0, "%s",
              results->items[0].reason);
    cr_expect_neq(results->items[0].message[0], '\0');
    esi_client_results_free(results);
}

/* ---- options --------------------------------------------------------------------------------- */

static void expect_options(const struct esi_client_options *options, const char *option)
{
    const char *problem = NULL;
    struct esi_client *client = esi_client_new(options, &problem);

    if (option) {
        cr_expect_null(client);
        cr_expect(problem && strncmp(problem, option, strlen(option)) == 0, "%s", problem);
        cr_expect_null(esi_client_new(options, NULL));
    } else {
        cr_expect_not_null(client, "%s", problem);
    }
    esi_client_free(client);
}

static void fill(char *text, size_t n)
{
    memset(text, 'a', n);
    text[n] = '\0';
}

Test(client, takes_options_up_to_their_limits)
{
    char address[MODEL_ADDRESS_MAX + 2];
    char name[MODEL_NAME_MAX + 2];
    struct esi_client_options options = {.coordinator = address, .name = name};

    fill(address, MODEL_ADDRESS_MAX);
    fill(name, MODEL_NAME_MAX);
    options.timeout_ms = ESI_CLIENT_TIMEOUT_MS_MAX;
    options.routes_max = 1;
    expect_options(&options, NULL);

    options.timeout_ms++;
    expect_options(&options, "timeout_ms:");
    options.timeout_ms = 0;
    fill(name, MODEL_NAME_MAX + 1);
    expect_options(&options, "name:");
    options.name = "";
    expect_options(&options, "name:");
    options.name = "a b";
    expect_options(&options, "name:");
    options.name = NULL;
    expect_options(&options, NULL);
    fill(address, MODEL_ADDRESS_MAX + 1);
    expect_options(&options, "coordinator:");
    address[0] = '\0';
    expect_options(&options, "coordinator:");
    options.coordinator = NULL;
    expect_options(&options, "coordinator:");
}

Test(client, freeing_nothing_is_nothing)
{
    esi_client_free(NULL);
    esi_client_results_free(NULL);
}

/* ---- operations ------------------------------------------------------------------------------ */

Test(client, nobody_there_means_not_applied)
{
    struct esi_client_options options = {.coordinator = "unix:/nonexistent/redistinto"};
    struct esi_client_operation put = {
        .kind = ESI_CLIENT_PUT, .key = {"k", 1}, .value = {"v", 1}, .timeout_ms = 60000};
    struct esi_client *client = esi_client_new(&options, NULL);

    expect(client, &put, CODE_UNAVAILABLE, "NONE");
    esi_client_free(client);
}

Test(client, ends_at_the_deadline)
{
    struct esi_client_operation operation = {.key = {"k", 1}};
    static const enum esi_client_kind kinds[] = {ESI_CLIENT_SET,    ESI_CLIENT_STORE,
                                                 ESI_CLIENT_PUT,    ESI_CLIENT_READ,
                                                 ESI_CLIENT_DELETE, ESI_CLIENT_LOCK};
    struct silent silent;

    open_silent(&silent, SOON_MS);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        operation.kind = kinds[i];
        expect(silent.client, &operation, CODE_DEADLINE_EXCEEDED, NULL);
    }
    close_silent(&silent);
}

Test(client, unlock_without_a_lock_does_nothing)
{
    struct esi_client_operation unlock = {.kind = ESI_CLIENT_UNLOCK, .key = {"k", 1}};
    struct esi_client_results *results;
    struct silent silent;

    open_silent(&silent, 0);
    results = esi_client_run(silent.client, &unlock, 1);
    cr_expect_eq(results->items[0].outcome, ESI_CLIENT_OK);
    cr_expect_not(results->items[0].has_value);
    esi_client_results_free(results);
    close_silent(&silent);
}

Test(client, sizes_at_their_limits_and_past_them)
{
    struct esi_client_operation put = {.kind = ESI_CLIENT_PUT, .key = {bytes, ESI_CLIENT_KEY_MAX}};
    struct silent silent;

    open_silent(&silent, SOON_MS);
    put.value = (struct esi_client_bytes){bytes, ESI_CLIENT_VALUE_MAX};
    expect(silent.client, &put, CODE_DEADLINE_EXCEEDED, NULL);
    put.value.size++;
    expect(silent.client, &put, CODE_INVALID_ARGUMENT, "VALUE_TOO_LARGE");
    put.value = (struct esi_client_bytes){NULL, 0};
    put.key.size++;
    expect(silent.client, &put, CODE_INVALID_ARGUMENT, "KEY_TOO_LONG");
    put.key = (struct esi_client_bytes){NULL, 0};
    expect(silent.client, &put, CODE_INVALID_ARGUMENT, "KEY_EMPTY");
    close_silent(&silent);
}

Test(client, a_run_of_nothing_has_no_results)
{
    struct esi_client_results *results;
    struct silent silent;

    open_silent(&silent, 0);
    results = esi_client_run(silent.client, NULL, 0);
    cr_expect_eq(results->n_items, 0);
    esi_client_results_free(results);
    close_silent(&silent);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* What a callback saw; the one that frees the client has waited for it. */
struct seen {
    struct esi_client *client;
    size_t n_callbacks;
    size_t n_cancelled;
    bool goes_on; /* the first callback starts one more */
};

static void on_ended(struct esi_client_results *results, void *ctx)
{
    static const struct esi_client_operation read = {.kind = ESI_CLIENT_READ, .key = {"k", 1}};
    struct seen *seen = ctx;

    seen->n_callbacks++;
    for (size_t i = 0; i < results->n_items; i++)
        seen->n_cancelled += results->items[i].outcome == ESI_CLIENT_FAILED &&
                             results->items[i].code == CODE_CANCELLED;
    esi_client_results_free(results);
    if (seen->goes_on) {
        seen->goes_on = false;
        esi_client_start(seen->client, &read, 1, on_ended, seen);
    }
}

Test(client, a_callback_for_nothing_comes)
{
    struct seen seen = {0};
    struct silent silent;

    open_silent(&silent, 0);
    esi_client_start(silent.client, NULL, 0, on_ended, &seen);
    close_silent(&silent);
    cr_expect_eq(seen.n_callbacks, 1);
    cr_expect_eq(seen.n_cancelled, 0);
}

Test(client, takes_operations_up_to_the_limit_and_gives_them_up)
{
    struct esi_client_operation *puts = calloc(ESI_CLIENT_OPERATIONS_MAX, sizeof(*puts));
    struct esi_client_operation read = {.kind = ESI_CLIENT_READ, .key = {"k", 1}};
    struct seen seen = {.goes_on = true};
    struct silent silent;

    cr_assert_not_null(puts);
    for (size_t i = 0; i < ESI_CLIENT_OPERATIONS_MAX; i++)
        puts[i] = (struct esi_client_operation){
            .kind = ESI_CLIENT_PUT,
            .key = {"k", 1},
            .value = {"v", 1},
            .timeout_ms = ESI_CLIENT_TIMEOUT_MS_MAX,
        };
    open_silent(&silent, 0);
    seen.client = silent.client;
    esi_client_start(silent.client, puts, ESI_CLIENT_OPERATIONS_MAX, on_ended, &seen);
    free(puts);
    expect(silent.client, &read, CODE_RESOURCE_EXHAUSTED, "LIMIT_REACHED");
    close_silent(&silent);
    cr_expect_eq(seen.n_callbacks, 2);
    cr_expect_eq(seen.n_cancelled, ESI_CLIENT_OPERATIONS_MAX + 1);
}

Test(client, two_clients_live_side_by_side)
{
    struct esi_client_operation read = {.kind = ESI_CLIENT_READ, .key = {"k", 1}};
    struct silent first;
    struct silent second;

    open_silent(&first, SOON_MS);
    open_silent(&second, SOON_MS);
    expect(first.client, &read, CODE_DEADLINE_EXCEEDED, NULL);
    close_silent(&first);
    expect(second.client, &read, CODE_DEADLINE_EXCEEDED, NULL);
    close_silent(&second);
}
