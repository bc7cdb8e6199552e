/*
 * grpc.reflection v1 and v1alpha on the same tables as every other service. The two are one
 * protocol under two names, so both are served with the messages of v1.
 *
 * Invariant: whoever takes a stream out of the list ends it, so a drain and the client's half-close
 * never both do. The next request is read when the answer to the one before is in the queue, and
 * that holds one: what clients that do not read can pile up is bounded by
 * RPC_REFLECTION_STREAMS_MAX. Any thread.
 */
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/descriptors.h"
#include "runtime/rpc/own_descriptors.h"
#include "runtime/rpc/reflection.pb-c.h"
#include "runtime/rpc/server_internal.h"

#define ASKED(kind)  GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##kind
#define ANSWER(kind) GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##kind

/* The user area of a stream. */
struct reflection_stream {
    struct rt_list link; /* in the list while it has not ended */
    struct rpc_call *call;
    const ProtobufCMessage *refused; /* the request whose answer found no room */
    bool is_counted;
};

struct rpc_reflection {
    struct rpc_server *server;
    struct rpc_descriptors descriptors; /* const after start */
    ProtobufCServiceDescriptor v1alpha;

    pthread_mutex_t lock; /* guards what follows */
    struct rt_list streams;
    unsigned n_streams; /* whose calls are not over */
    bool is_draining;
};

/* A response and whatever one of its kinds points to. */
struct answer {
    Grpc__Reflection__V1__ServerReflectionResponse response;
    Grpc__Reflection__V1__ErrorResponse error;
    Grpc__Reflection__V1__FileDescriptorResponse files;
    Grpc__Reflection__V1__ExtensionNumberResponse numbers;
    Grpc__Reflection__V1__ListServiceResponse services;
    ProtobufCBinaryData file_data[RPC_DESCRIPTOR_FILES_MAX];
    int32_t *number_data;                                  /* owned */
    Grpc__Reflection__V1__ServiceResponse *service_data;   /* owned */
    Grpc__Reflection__V1__ServiceResponse **service_table; /* owned */
};

static void lock_reflection(struct rpc_reflection *reflection)
{
    (void)pthread_mutex_lock(&reflection->lock);
}

static void unlock_reflection(struct rpc_reflection *reflection)
{
    (void)pthread_mutex_unlock(&reflection->lock);
}

/* ---- answers ---- */

static void answer_error(struct answer *answer, enum rt_code code, const char *text)
{
    grpc__reflection__v1__error_response__init(&answer->error);
    answer->error.error_code = (int32_t)code;
    answer->error.error_message = (char *)text;
    answer->response.message_response_case = ANSWER(ERROR_RESPONSE);
    answer->response.error_response = &answer->error;
}

static void push_file(struct answer *answer, const struct rpc_descriptor_file *file)
{
    ProtobufCBinaryData *slot = &answer->file_data[answer->files.n_file_descriptor_proto++];

    slot->data = file->data;
    slot->len = file->size;
}

/* The file itself first, then all that it imports. */
static void answer_file(const struct rpc_descriptors *descriptors,
                        const struct rpc_descriptor_file *file, struct answer *answer)
{
    if (!file) {
        answer_error(answer, RT_NOT_FOUND, "no file of this server has it");
        return;
    }
    grpc__reflection__v1__file_descriptor_response__init(&answer->files);
    answer->files.file_descriptor_proto = answer->file_data;
    push_file(answer, file);
    for (unsigned i = 0; i < descriptors->n_files; i++) {
        if (&descriptors->files[i] != file && (file->closure >> i & 1))
            push_file(answer, &descriptors->files[i]);
    }
    answer->response.message_response_case = ANSWER(FILE_DESCRIPTOR_RESPONSE);
    answer->response.file_descriptor_response = &answer->files;
}

static void answer_numbers(const struct rpc_descriptors *descriptors, const char *type,
                           struct answer *answer)
{
    size_t n = rpc_descriptors_extension_numbers(descriptors, type, NULL, 0);

    if (!rpc_descriptors_has_message(descriptors, type)) {
        answer_error(answer, RT_NOT_FOUND, "no such message");
        return;
    }
    answer->number_data = rt_xalloc(n * sizeof(*answer->number_data));
    (void)rpc_descriptors_extension_numbers(descriptors, type, answer->number_data, n);
    grpc__reflection__v1__extension_number_response__init(&answer->numbers);
    answer->numbers.base_type_name = (char *)type;
    answer->numbers.n_extension_number = n;
    answer->numbers.extension_number = answer->number_data;
    answer->response.message_response_case = ANSWER(ALL_EXTENSION_NUMBERS_RESPONSE);
    answer->response.all_extension_numbers_response = &answer->numbers;
}

static size_t count_services(const struct rpc_server *server)
{
    size_t n = 0;

    rt_list_for_each (node, &server->services)
        n++;
    return n;
}

static void answer_services(const struct rpc_server *server, struct answer *answer)
{
    size_t n = count_services(server);
    size_t i = 0;

    answer->service_data = rt_xalloc(n * sizeof(*answer->service_data));
    answer->service_table = rt_xalloc(n * sizeof(void *));
    rt_list_for_each (node, &server->services) {
        grpc__reflection__v1__service_response__init(&answer->service_data[i]);
        answer->service_data[i].name =
            (char *)RT_LIST_ENTRY(node, struct rpc_server_service, link)->descriptor->name;
        answer->service_table[i] = &answer->service_data[i];
        i++;
    }
    grpc__reflection__v1__list_service_response__init(&answer->services);
    answer->services.n_service = n;
    answer->services.service = answer->service_table;
    answer->response.message_response_case = ANSWER(LIST_SERVICES_RESPONSE);
    answer->response.list_services_response = &answer->services;
}

static void answer_request(const struct rpc_reflection *reflection,
                           const Grpc__Reflection__V1__ServerReflectionRequest *request,
                           struct answer *answer)
{
    const struct rpc_descriptors *d = &reflection->descriptors;
    const Grpc__Reflection__V1__ExtensionRequest *extension;

    switch (request->message_request_case) {
    case ASKED(FILE_BY_FILENAME):
        answer_file(d, rpc_descriptors_by_name(d, request->file_by_filename), answer);
        return;
    case ASKED(FILE_CONTAINING_SYMBOL):
        answer_file(d, rpc_descriptors_by_symbol(d, request->file_containing_symbol), answer);
        return;
    case ASKED(FILE_CONTAINING_EXTENSION):
        extension = request->file_containing_extension;
        answer_file(d,
                    rpc_descriptors_by_extension(d, extension->containing_type,
                                                 extension->extension_number),
                    answer);
        return;
    case ASKED(ALL_EXTENSION_NUMBERS_OF_TYPE):
        answer_numbers(d, request->all_extension_numbers_of_type, answer);
        return;
    case ASKED(LIST_SERVICES):
        answer_services(reflection->server, answer);
        return;
    case ASKED(_NOT_SET):
    case _GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST__CASE_IS_INT_SIZE:
        break;
    }
    answer_error(answer, RT_INVALID_ARGUMENT, "the request asks for nothing");
}

/* ---- requests ---- */

static const char *name_in(const Grpc__Reflection__V1__ServerReflectionRequest *request)
{
    switch (request->message_request_case) {
    case ASKED(FILE_CONTAINING_EXTENSION):
        return request->file_containing_extension->containing_type;
    case ASKED(FILE_BY_FILENAME):
    case ASKED(FILE_CONTAINING_SYMBOL):
    case ASKED(ALL_EXTENSION_NUMBERS_OF_TYPE):
    case ASKED(LIST_SERVICES):
        return request->file_by_filename; /* they share the place */
    case ASKED(_NOT_SET):
    case _GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST__CASE_IS_INT_SIZE:
        break;
    }
    return "";
}

static bool is_printable(const char *text)
{
    while (*text >= ' ' && *text <= '~')
        text++;
    return *text == '\0';
}

/* The response repeats the request, so it has to be valid text for every decoder. */
static bool may_repeat(const Grpc__Reflection__V1__ServerReflectionRequest *request)
{
    return is_printable(request->host) && is_printable(name_in(request));
}

static enum rt_code answer(const struct rpc_reflection *reflection, struct rpc_call *call,
                           const ProtobufCMessage *message)
{
    Grpc__Reflection__V1__ServerReflectionRequest *request =
        (Grpc__Reflection__V1__ServerReflectionRequest *)message;
    struct answer answer = {0};
    enum rt_code code;

    grpc__reflection__v1__server_reflection_response__init(&answer.response);
    if (may_repeat(request)) {
        answer.response.valid_host = request->host;
        answer.response.original_request = request;
        answer_request(reflection, request, &answer);
    } else {
        answer_error(&answer, RT_INVALID_ARGUMENT, "the request is not ASCII");
    }
    code = rpc_call_send(call, &answer.response.base);
    (void)rt_free(answer.number_data);
    (void)rt_free(answer.service_data);
    (void)rt_free(answer.service_table);
    return code;
}

/* ---- the stream ---- */

/* Takes the stream out of the list; true for one caller. */
static bool claim_end(struct rpc_reflection *reflection, struct reflection_stream *stream)
{
    bool is_first;

    lock_reflection(reflection);
    is_first = !rt_list_is_empty(&stream->link);
    rt_list_remove(&stream->link);
    unlock_reflection(reflection);
    return is_first;
}

static void refuse(struct rpc_call *call, enum rt_code code, const char *why)
{
    struct rt_error err = RT_ERROR_INIT;

    (void)rt_fail(&err, code, "%s", why);
    rpc_call_finish(call, &err);
}

static enum rt_code enter(struct rpc_reflection *reflection, struct reflection_stream *stream)
{
    enum rt_code code = RT_OK;

    lock_reflection(reflection);
    if (reflection->is_draining) {
        code = RT_UNAVAILABLE;
    } else if (reflection->n_streams == RPC_REFLECTION_STREAMS_MAX) {
        code = RT_RESOURCE_EXHAUSTED;
    } else {
        rt_list_push_back(&reflection->streams, &stream->link);
        stream->is_counted = true;
        reflection->n_streams++;
    }
    unlock_reflection(reflection);
    return code;
}

static void on_open(struct rpc_call *call, const ProtobufCMessage *request, void *ctx)
{
    struct reflection_stream *stream = rpc_call_user(call);
    enum rt_code code;

    (void)request;
    stream->call = call;
    rt_list_init(&stream->link);
    code = enter(ctx, stream);
    if (code == RT_OK)
        rpc_call_read_next(call);
    else
        refuse(call, code,
               code == RT_UNAVAILABLE ? "the server is going down" : "too many reflection streams");
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *ctx)
{
    struct reflection_stream *stream = rpc_call_user(call);

    if (answer(ctx, call, message) == RT_RESOURCE_EXHAUSTED)
        stream->refused = message;
    else
        rpc_call_read_next(call);
}

static void on_writable(struct rpc_call *call, void *ctx)
{
    struct reflection_stream *stream = rpc_call_user(call);

    on_message(call, RT_TAKE(stream->refused), ctx);
}

static void on_half_close(struct rpc_call *call, void *ctx)
{
    if (claim_end(ctx, rpc_call_user(call)))
        rpc_call_finish(call, NULL);
}

static void on_done(struct rpc_call *call, void *ctx)
{
    struct rpc_reflection *reflection = ctx;
    struct reflection_stream *stream = rpc_call_user(call);

    lock_reflection(reflection);
    rt_list_remove(&stream->link);
    reflection->n_streams -= stream->is_counted;
    unlock_reflection(reflection);
}

static const struct rpc_stream_handlers handlers = {
    .on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_writable = on_writable,
    .on_done = on_done,
};

static const struct rpc_method methods[] = {
    {"ServerReflectionInfo", RPC_BIDI, .stream = &handlers, .queue_messages = 1,
     .max_message_bytes = RPC_SMALL_REQUEST_MAX, .user_size = sizeof(struct reflection_stream)},
};

/* ---- for the server ---- */

struct rpc_reflection *rpc_reflection_new(struct rpc_server *server)
{
    struct rpc_reflection *reflection = rt_xalloc(sizeof(*reflection));
    enum rt_code code;

    reflection->server = server;
    (void)pthread_mutex_init(&reflection->lock, NULL);
    rt_list_init(&reflection->streams);
    reflection->v1alpha = grpc__reflection__v1__server_reflection__descriptor;
    reflection->v1alpha.name = "grpc.reflection.v1alpha.ServerReflection";
    reflection->v1alpha.package = "grpc.reflection.v1alpha";
    code = rpc_server_add_service(server, &grpc__reflection__v1__server_reflection__descriptor,
                                  methods, RT_ARRAY_SIZE(methods), reflection, NULL);
    rt_assert(code == RT_OK);
    code = rpc_server_add_service(server, &reflection->v1alpha, methods, RT_ARRAY_SIZE(methods),
                                  reflection, NULL);
    rt_assert(code == RT_OK);
    code = rpc_descriptors_add(&reflection->descriptors,
                               rt_bytes_of(rpc_own_descriptors, sizeof(rpc_own_descriptors)), NULL);
    rt_assert(code == RT_OK);
    return reflection;
}

struct rpc_reflection *rpc_reflection_free(struct rpc_reflection *reflection)
{
    if (!reflection)
        return NULL;
    rpc_descriptors_deinit(&reflection->descriptors);
    (void)pthread_mutex_destroy(&reflection->lock);
    return rt_free(reflection);
}

enum rt_code rpc_server_add_descriptors(struct rpc_server *server, struct rt_bytes set,
                                        struct rt_error *err)
{
    rt_assert(server->state == RPC_SERVER_NEW);
    return rpc_descriptors_add(&server->reflection->descriptors, set, err);
}

void rpc_reflection_drain(struct rpc_reflection *reflection)
{
    struct rt_list *first;

    lock_reflection(reflection);
    reflection->is_draining = true;
    while ((first = rt_list_pop_front(&reflection->streams)))
        refuse(RT_LIST_ENTRY(first, struct reflection_stream, link)->call, RT_UNAVAILABLE,
               "the server is going down");
    unlock_reflection(reflection);
}
