/*
 * Prepared batches over one Pipeline stream, so many at a time, for a number of seconds, as
 * redis-benchmark sends prepared commands: neither makes its requests while it measures. Prints one
 * JSON object.
 *
 *   bench_pipeline ADDRESS BATCHES_FILE BATCHES_IN_FLIGHT SECONDS
 *
 * The file holds serialized InstanceServicePipelineRequests of equally many operations, each behind
 * its size (4 bytes, little endian); they are sent in turn, and for 0 seconds each once. What is
 * finished in the first fifth of the time warms up and is not counted. Every operation of every
 * answer must have succeeded.
 *
 * Callbacks run on the queue thread and touch what is under `lock`. Requests and answers are
 * messages without known fields, whose unknown ones are bytes that protobuf-c copies as they are.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redistinto/v1/instance.pb-c.h"
#include "runtime/base/alloc.h"
#include "runtime/base/bytes.h"
#include "runtime/rpc/client.h"

enum {
    IN_FLIGHT_MAX = 64,
    SECONDS_MAX = 600,
    BATCH_BYTES_MAX = 4 * 1024 * 1024,
    FIELD_BATCH_ID = 1,     /* of the request */
    FIELD_RESULT = 3,       /* of the response */
    FIELD_RESULTS = 1,      /* of PipelineResults */
    FIELD_RESULT_ERROR = 9, /* of PipelineResult */
};

struct batch {
    uint8_t *bytes; /* owned */
    size_t size;
};

struct load {
    struct batch *batches; /* owned */
    size_t n_batches;
    size_t n_in_flight;
    struct rpc_runtime *runtime;
    struct rpc_client_stream *stream;
    pthread_t loop_thread;

    pthread_mutex_t lock;
    pthread_cond_t over;
    bool is_over;
    uint64_t n_sent;
    uint64_t n_answered;
    uint64_t n_counted; /* operations */
    uint64_t count_from_ns;
    uint64_t end_ns;
    char failure[RT_ERROR_MESSAGE_MAX + 1];
};

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

RT_NORETURN static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_pipeline: %s\n", what);
    exit(1);
}

/* Under the lock. */
static void give_up(struct load *load, const char *why)
{
    if (load->failure[0] == '\0')
        (void)snprintf(load->failure, sizeof(load->failure), "%s", why);
    load->is_over = true;
    (void)pthread_cond_signal(&load->over);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

static uint64_t read_varint(struct reader *reader)
{
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    fail("an answer is cut off");
}

/* The content of the next field if it has one, else nothing; *ret_field is its number. */
static struct reader read_field(struct reader *reader, uint64_t *ret_field)
{
    uint64_t tag = read_varint(reader);
    struct reader content = {NULL, NULL};
    uint64_t size;

    *ret_field = tag >> 3;
    if ((tag & 7) == 0) {
        (void)read_varint(reader);
        return content;
    }
    size = (tag & 7) == 2 ? read_varint(reader) : UINT64_MAX;
    if (size > (uint64_t)(reader->end - reader->at))
        fail("an answer is cut off");
    content = (struct reader){reader->at, reader->at + size};
    reader->at += size;
    return content;
}

static bool has_error(struct reader result)
{
    uint64_t field;

    while (result.at < result.end) {
        (void)read_field(&result, &field);
        if (field == FIELD_RESULT_ERROR)
            return true;
    }
    return false;
}

/* How many operations succeeded; 0 when one of them did not. */
static uint64_t n_done(const ProtobufCMessage *response)
{
    struct reader results = {NULL, NULL};
    uint64_t n = 0;
    uint64_t field;

    for (unsigned i = 0; i < response->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *unknown = &response->unknown_fields[i];

        if (unknown->tag == FIELD_RESULT)
            results = (struct reader){unknown->data, unknown->data + unknown->len};
    }
    if (results.at != NULL)
        (void)read_varint(&results); /* its own size */
    while (results.at < results.end) {
        struct reader result = read_field(&results, &field);

        if (field != FIELD_RESULTS)
            continue;
        if (has_error(result))
            return 0;
        n++;
    }
    return n;
}

/* ---- the load -------------------------------------------------------------------------------- */

/* Under the lock. A batch begins with the tag of batch_id, which protobuf-c writes itself. */
static void send_next(struct load *load)
{
    const struct batch *batch = &load->batches[load->n_sent++ % load->n_batches];
    Redistinto__V1__InstanceServiceStatusRequest message =
        REDISTINTO__V1__INSTANCE_SERVICE_STATUS_REQUEST__INIT;
    ProtobufCMessageUnknownField field = {
        .tag = FIELD_BATCH_ID,
        .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT,
        .len = batch->size - 1,
        .data = batch->bytes + 1,
    };

    message.base.n_unknown_fields = 1;
    message.base.unknown_fields = &field;
    if (rpc_client_stream_send(load->stream, &message.base) != RT_OK)
        give_up(load, "a batch cannot be sent");
}

static bool may_send(const struct load *load, uint64_t at_ns)
{
    if (load->end_ns == load->count_from_ns)
        return !load->is_over && load->n_sent < load->n_batches;
    return !load->is_over && at_ns < load->end_ns;
}

static void on_message(struct rpc_client_stream *stream, const ProtobufCMessage *message, void *ctx)
{
    struct load *load = ctx;
    uint64_t n = n_done(message);
    uint64_t at_ns = now_ns();

    rpc_client_stream_read_next(stream);
    (void)pthread_mutex_lock(&load->lock);
    load->n_answered++;
    if (n == 0)
        give_up(load, "an operation failed");
    if (at_ns >= load->count_from_ns && at_ns < load->end_ns)
        load->n_counted += n;
    if (may_send(load, at_ns)) {
        send_next(load);
    } else if (load->n_answered == load->n_sent) {
        load->is_over = true;
        (void)pthread_cond_signal(&load->over);
    }
    (void)pthread_mutex_unlock(&load->lock);
}

static void on_stream_done(struct rpc_client_stream *stream, const struct rt_error *err, void *ctx)
{
    struct load *load = ctx;

    (void)stream;
    (void)pthread_mutex_lock(&load->lock);
    if (!load->is_over)
        give_up(load, err == NULL ? "the stream was ended" : err->message);
    (void)pthread_mutex_unlock(&load->lock);
}

static void *run_loop(void *ctx)
{
    struct load *load = ctx;

    rpc_runtime_run(load->runtime);
    return NULL;
}

/* Answers are taken as messages without known fields. */
static void open_stream(struct load *load, const char *address)
{
    static const struct rpc_client_stream_handlers handlers = {.on_message = on_message,
                                                               .on_done = on_stream_done};
    static const struct rpc_client_options options = {.timeout_ms = RPC_NO_TIMEOUT,
                                                      .wait_for_ready = true};
    struct rpc_client_method method;

    rpc_client_method_of(&redistinto__v1__instance_service__descriptor, "Pipeline", &method);
    method.response = &redistinto__v1__instance_service_status_request__descriptor;
    load->stream = rpc_client_stream_open(rpc_channel_new(load->runtime, address, NULL), &method,
                                          &options, &handlers, load);
}

static void run(struct load *load, const char *address, double seconds)
{
    uint64_t begin_ns = now_ns();
    uint64_t length_ns = (uint64_t)(seconds * 1e9);

    load->runtime = rpc_runtime_new(NULL);
    load->count_from_ns = begin_ns + length_ns / 5;
    load->end_ns = begin_ns + length_ns;
    if (pthread_create(&load->loop_thread, NULL, run_loop, load) != 0)
        fail("no thread");
    (void)pthread_mutex_lock(&load->lock);
    open_stream(load, address);
    for (size_t i = 0; i < load->n_in_flight && may_send(load, begin_ns); i++)
        send_next(load);
    rpc_client_stream_read_next(load->stream);
    while (!load->is_over)
        (void)pthread_cond_wait(&load->over, &load->lock);
    (void)pthread_mutex_unlock(&load->lock);
    rpc_runtime_stop(load->runtime);
    (void)pthread_join(load->loop_thread, NULL);
    load->stream = rpc_client_stream_unref(load->stream);
    load->runtime = rpc_runtime_free(load->runtime);
}

static void print(const struct load *load)
{
    double seconds = (double)(load->end_ns - load->count_from_ns) / 1e9;

    (void)printf("{\"batches\": %" PRIu64 ", \"rate\": %.1f}\n", load->n_answered,
                 seconds > 0 ? (double)load->n_counted / seconds : 0);
    if (load->failure[0] != '\0')
        (void)fprintf(stderr, "bench_pipeline: %s\n", load->failure);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool read_size(FILE *file, size_t *ret_size)
{
    uint8_t bytes[4];

    if (fread(bytes, sizeof(bytes), 1, file) != 1)
        return false;
    *ret_size = bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
    return true;
}

static void read_batches(struct load *load, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t size;

    if (file == NULL)
        fail("the file of batches cannot be read");
    while (read_size(file, &size)) {
        struct batch batch = {.size = size};

        if (size == 0 || size > BATCH_BYTES_MAX)
            fail("a batch has 1 byte to 4 MiB");
        batch.bytes = rt_xalloc(size);
        if (fread(batch.bytes, size, 1, file) != 1 || batch.bytes[0] != FIELD_BATCH_ID << 3)
            fail("the file of batches is damaged");
        load->batches = rt_xrealloc(load->batches, (load->n_batches + 1) * sizeof(*load->batches));
        load->batches[load->n_batches++] = batch;
    }
    (void)fclose(file);
    if (load->n_batches == 0)
        fail("the file of batches is empty");
}

int main(int argc, char **argv)
{
    struct load load = {0};
    long n_in_flight = argc == 5 ? strtol(argv[3], NULL, 10) : 0;
    double seconds = argc == 5 ? strtod(argv[4], NULL) : 0;

    if (argc != 5)
        fail("ADDRESS BATCHES_FILE BATCHES_IN_FLIGHT SECONDS");
    if (n_in_flight < 1 || n_in_flight > IN_FLIGHT_MAX)
        fail("batches in flight: 1..64");
    if (!(seconds >= 0 && seconds <= SECONDS_MAX))
        fail("seconds: 0..600");
    load.n_in_flight = (size_t)n_in_flight;
    read_batches(&load, argv[2]);
    (void)pthread_mutex_init(&load.lock, NULL);
    (void)pthread_cond_init(&load.over, NULL);
    run(&load, argv[1], seconds);
    print(&load);
    for (size_t i = 0; i < load.n_batches; i++)
        (void)rt_free(load.batches[i].bytes);
    (void)rt_free(load.batches);
    return load.failure[0] != '\0';
}
