/*
 * A nuisance on HTTP/2: see raw_peer.h. Frames are written by hand: 3 bytes of length, type, flags,
 * 4 bytes of stream; headers are HPACK literals that are never indexed.
 */
#include "tests/unit/rpc/raw_peer.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "echo.pb-c.h"
#include "runtime/base/compiler.h"
#include "tests/unit/rpc/rig.h"

enum {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_SETTINGS = 4,
    FRAME_WINDOW_UPDATE = 8,
    FLAG_END_STREAM = 1,
    FLAG_END_HEADERS = 4,
    SETTING_INITIAL_WINDOW = 4,
    WINDOW_MAX = INT32_MAX,
    WINDOW_DEFAULT = 65535,
    RECEIVE_BUFFER = 4096,
    DATA_MAX = 16000,
};

struct frame {
    uint8_t bytes[9 + 5 + 16 + DATA_MAX];
    size_t size; /* of the payload */
};

static void put(struct frame *frame, const void *data, size_t size)
{
    rt_assert(9 + frame->size + size <= sizeof(frame->bytes));
    memcpy(frame->bytes + 9 + frame->size, data, size);
    frame->size += size;
}

static void put_number(struct frame *frame, uint32_t number, unsigned n_bytes)
{
    for (unsigned i = n_bytes; i > 0; i--) {
        uint8_t byte = (uint8_t)(number >> (8 * (i - 1)));

        put(frame, &byte, 1);
    }
}

static void put_header(struct frame *frame, const char *name, const char *value)
{
    put_number(frame, 0, 1);
    put_number(frame, (uint32_t)strlen(name), 1);
    put(frame, name, strlen(name));
    put_number(frame, (uint32_t)strlen(value), 1);
    put(frame, value, strlen(value));
}

static void send_all(int fd, const void *data, size_t size)
{
    rt_assert(send(fd, data, size, MSG_NOSIGNAL) == (ssize_t)size);
}

static void send_frame(int fd, struct frame *frame, int type, int flags, int stream)
{
    uint8_t head[9] = {(uint8_t)(frame->size >> 16), (uint8_t)(frame->size >> 8),
                       (uint8_t)frame->size, (uint8_t)type, (uint8_t)flags};

    head[8] = (uint8_t)stream;
    memcpy(frame->bytes, head, sizeof(head));
    send_all(fd, frame->bytes, 9 + frame->size);
    frame->size = 0;
}

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    rt_assert(result == 0);
    return fd;
}

static int connect_tcp(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int buffer = RECEIVE_BUFFER;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int result;

    address.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    result = connect(fd, (const struct sockaddr *)&address, sizeof(address));
    rt_assert(result == 0);
    return fd;
}

int raw_peer_connect(const char *address)
{
    if (strncmp(address, "unix:", 5) == 0)
        return connect_unix(address + 5);
    return connect_tcp(strrchr(address, ':') + 1);
}

static void greet(int fd, uint32_t window)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct frame frame = {0};

    send_all(fd, preface, strlen(preface));
    put_number(&frame, SETTING_INITIAL_WINDOW, 2);
    put_number(&frame, window, 4);
    send_frame(fd, &frame, FRAME_SETTINGS, 0, 0);
}

void raw_peer_greet_shut(int fd)
{
    greet(fd, 0);
}

void raw_peer_greet(int fd)
{
    struct frame frame = {0};

    greet(fd, WINDOW_MAX);
    put_number(&frame, WINDOW_MAX - WINDOW_DEFAULT, 4);
    send_frame(fd, &frame, FRAME_WINDOW_UPDATE, 0, 0);
}

static void open_call(int fd, const char *path)
{
    struct frame frame = {0};

    put_header(&frame, ":method", "POST");
    put_header(&frame, ":scheme", "http");
    put_header(&frame, ":path", path);
    put_header(&frame, ":authority", "localhost");
    put_header(&frame, "te", "trailers");
    put_header(&frame, "content-type", "application/grpc");
    send_frame(fd, &frame, FRAME_HEADERS, FLAG_END_HEADERS, 1);
}

static void send_item(int fd, uint32_t number, uint32_t size, int flags)
{
    uint8_t data[DATA_MAX] = {0};
    uint8_t packed[DATA_MAX + 16];
    struct frame frame = {0};
    Rpctest__V1__Item item;
    size_t packed_size;

    rt_assert(size <= DATA_MAX);
    item_init(&item, number, data, size);
    packed_size = rpctest__v1__item__pack(&item, packed);
    put_number(&frame, 0, 1);
    put_number(&frame, (uint32_t)packed_size, 4);
    put(&frame, packed, packed_size);
    send_frame(fd, &frame, FRAME_DATA, flags, 1);
}

void raw_peer_expand(int fd, uint32_t number, uint32_t size)
{
    open_call(fd, "/rpctest.v1.EchoService/Expand");
    send_item(fd, number, size, FLAG_END_STREAM);
}

void raw_peer_open_chat(int fd)
{
    open_call(fd, "/rpctest.v1.EchoService/Chat");
}

void raw_peer_say(int fd, uint32_t size)
{
    send_item(fd, 1, size, 0);
}
