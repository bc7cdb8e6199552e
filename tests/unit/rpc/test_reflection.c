/*
 * grpc.reflection, v1 and v1alpha: every sort of request, bad ones, many streams, drain.
 */
#include <stdio.h>
#include <string.h>

#include "descriptor.pb-c.h"
#include "reflection.pb-c.h"
#include "runtime/base/alloc.h"
#include "runtime/rpc/server_internal.h"
#include "tests/support/check.h"
#include "tests/unit/rpc/rig.h"

TestSuite(reflection, .fini = test_alloc_expect_none, .timeout = 50);

#define ASKS(kind)    GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##kind
#define ANSWERS(kind) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##kind

static struct rig rig;

/* One stream and the answers to it. */
struct asked {
    struct rpc_client_stream *stream;
    struct latch answers;
    struct latch done;
    enum rt_code code;
    char text[4096];    /* the last answer; see show() */
    bool has_original;  /* it repeats the request */
    bool stops_reading; /* after the first answer */
};

static void append(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);

    (void)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", word);
}

static void append_file(char *text, size_t size, const ProtobufCBinaryData *data)
{
    Google__Protobuf__FileDescriptorProto *file =
        google__protobuf__file_descriptor_proto__unpack(NULL, data->len, data->data);

    append(text, size, file ? file->name : "garbage");
    google__protobuf__file_descriptor_proto__free_unpacked(file, NULL);
}

/* "files a.proto b.proto", "services a b", "numbers type 1 2", "error 5". */
static void show(const Grpc__Reflection__V1__ServerReflectionResponse *response, char *text,
                 size_t size)
{
    char number[16];

    text[0] = '\0';
    if (response->message_response_case == ANSWERS(FILE_DESCRIPTOR_RESPONSE)) {
        append(text, size, "files");
        for (size_t i = 0; i < response->file_descriptor_response->n_file_descriptor_proto; i++)
            append_file(text, size, &response->file_descriptor_response->file_descriptor_proto[i]);
    } else if (response->message_response_case == ANSWERS(LIST_SERVICES_RESPONSE)) {
        append(text, size, "services");
        for (size_t i = 0; i < response->list_services_response->n_service; i++)
            append(text, size, response->list_services_response->service[i]->name);
    } else if (response->message_response_case == ANSWERS(ALL_EXTENSION_NUMBERS_RESPONSE)) {
        append(text, size, "numbers");
        append(text, size, response->all_extension_numbers_response->base_type_name);
        for (size_t i = 0; i < response->all_extension_numbers_response->n_extension_number; i++) {
            (void)snprintf(number, sizeof(number), "%d",
                           response->all_extension_numbers_response->extension_number[i]);
            append(text, size, number);
        }
    } else if (response->message_response_case == ANSWERS(ERROR_RESPONSE)) {
        (void)snprintf(text, size, "error %d", response->error_response->error_code);
    }
}

static void on_message(struct rpc_client_stream *stream, const ProtobufCMessage *message, void *ctx)
{
    const Grpc__Reflection__V1__ServerReflectionResponse *response =
        (const Grpc__Reflection__V1__ServerReflectionResponse *)message;
    struct asked *asked = ctx;

    show(response, asked->text, sizeof(asked->text));
    asked->has_original = response->original_request != NULL;
    latch_add(&asked->answers);
    if (!asked->stops_reading)
        rpc_client_stream_read_next(stream);
}

static void on_done(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx)
{
    struct asked *asked = ctx;

    (void)stream;
    asked->code = err ? err->code : RT_OK;
    latch_add(&asked->done);
}

static const struct rpc_client_stream_handlers handlers = {
    .on_message = on_message,
    .on_done = on_done,
};

static void open_version(struct asked *asked, const char *version)
{
    struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT};
    struct rpc_client_method method = {
        .response = &grpc__reflection__v1__server_reflection_response__descriptor};

    (void)snprintf(method.path, sizeof(method.path),
                   "/grpc.reflection.%s.ServerReflection/ServerReflectionInfo", version);
    latch_init(&asked->answers);
    latch_init(&asked->done);
    asked->stream = rpc_client_stream_open(rig.channel, &method, &options, &handlers, asked);
    rpc_client_stream_read_next(asked->stream);
}

static void wait_done(struct asked *asked)
{
    latch_wait(&asked->done, 1);
    asked->stream = rpc_client_stream_unref(asked->stream);
}

static void half_close(struct asked *asked)
{
    rpc_client_stream_finish_writes(asked->stream);
    wait_done(asked);
    cr_assert_eq(asked->code, RT_OK);
}

static void send_request(struct asked *asked,
                         const Grpc__Reflection__V1__ServerReflectionRequest *request)
{
    unsigned before = latch_count(&asked->answers);

    cr_assert_eq(rpc_client_stream_send(asked->stream, &request->base), RT_OK);
    latch_wait(&asked->answers, before + 1);
}

/* The answer to a request of this kind. */
static const char *ask(struct asked *asked,
                       Grpc__Reflection__V1__ServerReflectionRequest__MessageRequestCase kind,
                       const char *name)
{
    Grpc__Reflection__V1__ServerReflectionRequest request;

    grpc__reflection__v1__server_reflection_request__init(&request);
    request.host = (char *)"localhost";
    request.message_request_case = kind;
    request.file_by_filename = (char *)name;
    send_request(asked, &request);
    return asked->text;
}

static const char *ask_extension(struct asked *asked, const char *type, int32_t number)
{
    Grpc__Reflection__V1__ServerReflectionRequest request;
    Grpc__Reflection__V1__ExtensionRequest extension;

    grpc__reflection__v1__server_reflection_request__init(&request);
    grpc__reflection__v1__extension_request__init(&extension);
    extension.containing_type = (char *)type;
    extension.extension_number = number;
    request.message_request_case = ASKS(FILE_CONTAINING_EXTENSION);
    request.file_containing_extension = &extension;
    send_request(asked, &request);
    return asked->text;
}

static void answers_everything(const char *version)
{
    static struct asked asked;

    rig_init(&rig, NULL);
    open_version(&asked, version);
    cr_assert_str_eq(ask(&asked, ASKS(LIST_SERVICES), ""),
                     "services grpc.reflection.v1.ServerReflection "
                     "grpc.reflection.v1alpha.ServerReflection grpc.health.v1.Health "
                     "rpctest.v1.EchoService");
    cr_assert(asked.has_original);
    cr_assert_str_eq(ask(&asked, ASKS(FILE_BY_FILENAME), "echo.proto"), "files echo.proto");
    cr_assert_str_eq(ask(&asked, ASKS(FILE_CONTAINING_SYMBOL), "rpctest.v1.EchoService"),
                     "files echo.proto");
    cr_assert_str_eq(ask(&asked, ASKS(FILE_CONTAINING_SYMBOL), "rpctest.reflected.Idle.Rest"),
                     "files reflected.proto echo.proto");
    cr_assert_str_eq(ask(&asked, ASKS(FILE_CONTAINING_SYMBOL), "grpc.health.v1.Health"),
                     "files grpc/health/v1/health.proto");
    cr_assert_str_eq(ask_extension(&asked, "rpctest.reflected.Outer", 101),
                     "files reflected.proto echo.proto");
    cr_assert_str_eq(ask(&asked, ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE), "rpctest.reflected.Outer"),
                     "numbers rpctest.reflected.Outer 100 101");
    cr_assert_str_eq(ask(&asked, ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE), "rpctest.v1.Item"),
                     "numbers rpctest.v1.Item");
    half_close(&asked);
    rig_deinit(&rig);
}

Test(reflection, v1_answers_everything)
{
    answers_everything("v1");
}

Test(reflection, v1alpha_answers_everything)
{
    answers_everything("v1alpha");
}

Test(reflection, what_is_unknown_is_an_answer)
{
    static struct asked asked;

    rig_init(&rig, NULL);
    open_version(&asked, "v1");
    cr_assert_str_eq(ask(&asked, ASKS(FILE_BY_FILENAME), "absent.proto"), "error 5");
    cr_assert_str_eq(ask(&asked, ASKS(FILE_CONTAINING_SYMBOL), "absent.Service"), "error 5");
    cr_assert_str_eq(ask(&asked, ASKS(FILE_CONTAINING_SYMBOL), ""), "error 5");
    cr_assert_str_eq(ask(&asked, ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE), "absent.Type"), "error 5");
    cr_assert_str_eq(ask_extension(&asked, "rpctest.reflected.Outer", 99), "error 5");
    cr_assert_str_eq(ask_extension(&asked, "absent.Type", 100), "error 5");
    cr_assert(asked.has_original);
    half_close(&asked);
    rig_deinit(&rig);
}

Test(reflection, bad_requests_are_answered)
{
    static struct asked asked;
    Grpc__Reflection__V1__ServerReflectionRequest request;

    rig_init(&rig, NULL);
    open_version(&asked, "v1");
    grpc__reflection__v1__server_reflection_request__init(&request);
    send_request(&asked, &request);
    cr_assert_str_eq(asked.text, "error 3");
    cr_assert(asked.has_original);

    cr_assert_str_eq(ask(&asked, ASKS(FILE_CONTAINING_SYMBOL), "rpctest.v1.\xff"), "error 3");
    cr_assert_not(asked.has_original);
    cr_assert_str_eq(ask(&asked, ASKS(LIST_SERVICES), "\n"), "error 3");
    cr_assert_str_eq(ask_extension(&asked, "\x7f", 1), "error 3");
    request.host = (char *)"\xc3";
    send_request(&asked, &request);
    cr_assert_str_eq(asked.text, "error 3");
    cr_assert_not(asked.has_original);
    cr_assert_str_eq(ask(&asked, ASKS(FILE_BY_FILENAME), "echo.proto"), "files echo.proto");
    half_close(&asked);
    rig_deinit(&rig);
}

Test(reflection, length_of_a_request_has_a_limit)
{
    static struct asked asked;
    Grpc__Reflection__V1__ServerReflectionRequest request;
    char name[RPC_SMALL_REQUEST_MAX] = "";
    size_t frame;

    rig_init(&rig, NULL);
    open_version(&asked, "v1");
    grpc__reflection__v1__server_reflection_request__init(&request);
    request.message_request_case = ASKS(FILE_BY_FILENAME);
    request.file_by_filename = name;
    memset(name, 'x', 500);
    frame = protobuf_c_message_get_packed_size(&request.base) - 500;
    memset(name, 'x', RPC_SMALL_REQUEST_MAX - frame);
    send_request(&asked, &request);
    cr_assert_str_eq(asked.text, "error 5");
    name[RPC_SMALL_REQUEST_MAX - frame] = 'x';
    cr_assert_eq(rpc_client_stream_send(asked.stream, &request.base), RT_OK);
    wait_done(&asked);
    cr_assert_eq(asked.code, RT_RESOURCE_EXHAUSTED);
    rig_deinit(&rig);
}

/* A client may leave its stream open while it calls what it found. */
Test(reflection, does_not_hold_up_calls)
{
    static struct asked asked;
    struct answer answer;

    rig_init(&rig, NULL);
    open_version(&asked, "v1");
    (void)ask(&asked, ASKS(FILE_CONTAINING_SYMBOL), "rpctest.v1.EchoService.Unary");
    cr_assert_eq(rig_command(&rig, ECHO_REPLY, "", &answer), RT_OK);
    (void)ask(&asked, ASKS(LIST_SERVICES), "");
    half_close(&asked);
    rig_deinit(&rig);
}

/* Answers that are not read hold up the requests behind them; none is lost. */
Test(reflection, every_request_of_a_slow_client_is_answered)
{
    enum {
        N_REQUESTS = 2000
    };
    static struct asked asked = {.stops_reading = true};
    Grpc__Reflection__V1__ServerReflectionRequest request;
    enum rt_code code;
    unsigned n_sent = 0;

    rig_init(&rig, NULL);
    open_version(&asked, "v1");
    grpc__reflection__v1__server_reflection_request__init(&request);
    request.message_request_case = ASKS(FILE_CONTAINING_SYMBOL);
    request.file_by_filename = (char *)"rpctest.reflected.Idle";
    do {
        code = rpc_client_stream_send(asked.stream, &request.base);
        n_sent += code == RT_OK;
    } while (code == RT_OK && n_sent < N_REQUESTS);
    latch_wait(&asked.answers, 1);
    asked.stops_reading = false;
    rpc_client_stream_read_next(asked.stream);
    latch_wait(&asked.answers, n_sent);
    half_close(&asked);
    cr_assert_eq(latch_count(&asked.answers), n_sent);
    rig_deinit(&rig);
}

Test(reflection, number_of_streams_has_a_limit)
{
    static struct asked asked[RPC_REFLECTION_STREAMS_MAX + 1];

    rig_init(&rig, NULL);
    for (int i = 0; i < RPC_REFLECTION_STREAMS_MAX; i++) {
        open_version(&asked[i], i % 2 == 0 ? "v1" : "v1alpha");
        cr_assert_str_eq(ask(&asked[i], ASKS(FILE_BY_FILENAME), "-"), "error 5");
    }
    open_version(&asked[RPC_REFLECTION_STREAMS_MAX], "v1");
    wait_done(&asked[RPC_REFLECTION_STREAMS_MAX]);
    cr_assert_eq(asked[RPC_REFLECTION_STREAMS_MAX].code, RT_RESOURCE_EXHAUSTED);

    half_close(&asked[0]);
    do {
        open_version(&asked[0], "v1");
        rpc_client_stream_finish_writes(asked[0].stream);
        wait_done(&asked[0]);
    } while (asked[0].code == RT_RESOURCE_EXHAUSTED);
    cr_assert_eq(asked[0].code, RT_OK);
    for (int i = 1; i < RPC_REFLECTION_STREAMS_MAX; i++)
        half_close(&asked[i]);
    rig_deinit(&rig);
}

Test(reflection, drain_ends_an_open_stream)
{
    static struct asked asked;

    rig_init(&rig, NULL);
    open_version(&asked, "v1");
    (void)ask(&asked, ASKS(LIST_SERVICES), "");
    rig_drain(&rig, 60000);
    wait_done(&asked);
    cr_assert_eq(asked.code, RT_UNAVAILABLE);
    rig_deinit(&rig);
}

Test(reflection, streams_that_end_in_a_drain_end_once)
{
    static struct asked asked[64];

    rig_init(&rig, NULL);
    for (size_t i = 0; i < RT_ARRAY_SIZE(asked); i++) {
        open_version(&asked[i], "v1");
        (void)ask(&asked[i], ASKS(FILE_BY_FILENAME), "-");
    }
    for (size_t i = 0; i < RT_ARRAY_SIZE(asked); i++)
        rpc_client_stream_finish_writes(asked[i].stream);
    rig_drain(&rig, 60000);
    for (size_t i = 0; i < RT_ARRAY_SIZE(asked); i++) {
        wait_done(&asked[i]);
        cr_assert(asked[i].code == RT_OK || asked[i].code == RT_UNAVAILABLE, "%d", asked[i].code);
    }
    rig_deinit(&rig);
}

Test(reflection, descriptors_are_checked)
{
    static const uint8_t garbage[] = {0xff};
    struct rpc_runtime *runtime = rpc_runtime_new(NULL);
    struct rpc_server *server = rpc_server_new(runtime, NULL);
    struct rt_error err = RT_ERROR_INIT;

    cr_assert_eq(rpc_server_add_descriptors(server, rt_bytes_of(garbage, sizeof(garbage)), &err),
                 RT_INVALID_ARGUMENT);
    (void)rpc_runtime_free(runtime);
}
