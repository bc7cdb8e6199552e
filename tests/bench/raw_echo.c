/*
 * The yardstick of unary calls: a server of plain gRPC C core that answers every call of one method
 * with the bytes of a file, inline on its one queue thread. No call costs less here, so what a
 * service costs beside it is its own.
 *
 *   bench_raw_echo PATH RESPONSE_FILE     prints "ready ADDRESS"; ends with its standard input
 *
 * Call objects are used again and never freed; each waits in core or is being answered.
 */
#include <errno.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    N_POSTED = 128,
    RESPONSE_MAX = 4 * 1024 * 1024,
};

struct echo {
    grpc_server *server;
    grpc_completion_queue *queue;
    void *method;
    grpc_slice response;
};

struct call {
    struct echo *echo;
    grpc_call *core;
    gpr_timespec deadline;
    grpc_metadata_array metadata;
    grpc_byte_buffer *request;
    grpc_byte_buffer *response;
    int cancelled;
    bool is_answered;
};

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "bench_raw_echo: %s\n", what);
    exit(1);
}

static void post(struct call *call)
{
    struct echo *echo = call->echo;

    call->is_answered = false;
    call->metadata.count = 0;
    must(grpc_server_request_registered_call(echo->server, echo->method, &call->core,
                                             &call->deadline, &call->metadata, &call->request,
                                             echo->queue, echo->queue, call) == GRPC_CALL_OK,
         "no call can be asked for");
}

static void answer(struct call *call)
{
    grpc_op ops[4] = {
        {.op = GRPC_OP_SEND_INITIAL_METADATA},
        {.op = GRPC_OP_SEND_MESSAGE},
        {.op = GRPC_OP_SEND_STATUS_FROM_SERVER},
        {.op = GRPC_OP_RECV_CLOSE_ON_SERVER},
    };

    call->is_answered = true;
    call->response = grpc_raw_byte_buffer_create(&call->echo->response, 1);
    ops[1].data.send_message.send_message = call->response;
    ops[2].data.send_status_from_server.status = GRPC_STATUS_OK;
    ops[3].data.recv_close_on_server.cancelled = &call->cancelled;
    must(grpc_call_start_batch(call->core, ops, 4, call, NULL) == GRPC_CALL_OK,
         "an answer cannot be sent");
}

static void finish(struct call *call)
{
    grpc_byte_buffer_destroy(call->response);
    if (call->request != NULL)
        grpc_byte_buffer_destroy(call->request);
    grpc_call_unref(call->core);
    post(call);
}

static void serve(struct echo *echo)
{
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(echo->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        struct call *call = event.tag;

        if (event.type != GRPC_OP_COMPLETE)
            return;
        if (call->is_answered)
            finish(call);
        else if (event.success)
            answer(call);
    }
}

/* Whoever started this process is gone, or wants it gone. */
static void *end_with_input(void *ctx)
{
    char byte;
    ssize_t n;

    (void)ctx;
    do
        n = read(STDIN_FILENO, &byte, 1);
    while (n > 0 || (n < 0 && errno == EINTR));
    _exit(0);
}

static grpc_slice slice_of_file(const char *path)
{
    static const size_t limit = RESPONSE_MAX;
    grpc_slice slice = grpc_slice_malloc(limit);
    FILE *file = fopen(path, "rb");
    size_t size;

    must(file != NULL, "the file of the response cannot be read");
    size = fread(GRPC_SLICE_START_PTR(slice), 1, limit, file);
    must(feof(file) && !ferror(file), "the response is too long");
    (void)fclose(file);
    return grpc_slice_sub_no_ref(slice, 0, size);
}

static void listen_on_any_port(struct echo *echo)
{
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    int port = grpc_server_add_http2_port(echo->server, "127.0.0.1:0", credentials);

    grpc_server_credentials_release(credentials);
    must(port > 0, "no port is free");
    grpc_server_start(echo->server);
    (void)printf("ready 127.0.0.1:%d\n", port);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    struct echo echo = {0};
    struct call *calls = calloc(N_POSTED, sizeof(*calls));
    pthread_t watcher;

    must(argc == 3 && argv[1][0] == '/', "usage: bench_raw_echo PATH RESPONSE_FILE");
    must(calls != NULL && pthread_create(&watcher, NULL, end_with_input, NULL) == 0, "no memory");
    grpc_init();
    echo.queue = grpc_completion_queue_create_for_next(NULL);
    echo.server = grpc_server_create(NULL, NULL);
    grpc_server_register_completion_queue(echo.server, echo.queue, NULL);
    echo.method = grpc_server_register_method(echo.server, argv[1], NULL,
                                              GRPC_SRM_PAYLOAD_READ_INITIAL_BYTE_BUFFER, 0);
    echo.response = slice_of_file(argv[2]);
    listen_on_any_port(&echo);
    for (size_t i = 0; i < N_POSTED; i++) {
        calls[i].echo = &echo;
        grpc_metadata_array_init(&calls[i].metadata);
        post(&calls[i]);
    }
    serve(&echo);
    return 0;
}
