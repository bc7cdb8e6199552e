/*
 * A peer that speaks just enough HTTP/2 to be a nuisance: it connects, says hello, asks for a
 * stream, and never reads.
 */
#ifndef TESTS_UNIT_RPC_RAW_PEER_H
#define TESTS_UNIT_RPC_RAW_PEER_H

#include <stdint.h>

/* A connection to "127.0.0.1:port" or "unix:/path" with a small receive buffer; nothing was sent
 * yet. Close it with close(2). Aborts when it cannot be made, as the functions below do. */
int raw_peer_connect(const char *address);

/* The client preface; it allows the server to send without bound. */
void raw_peer_greet(int fd);

/* The same, but it does not allow a single byte of an answer. */
void raw_peer_greet_shut(int fd);

/* EchoService.Expand: `number` answers of `size` bytes, `size` <= 16000. After a greeting. */
void raw_peer_expand(int fd, uint32_t number, uint32_t size);

/* EchoService.Chat, after a greeting; then as often as wanted a message of `size` bytes, `size` <=
 * 16000, which is answered by its like. */
void raw_peer_open_chat(int fd);
void raw_peer_say(int fd, uint32_t size);

#endif
