/*
 * What happened, as fixed records in a ring, and a hash over all of them: equal seeds give equal
 * hashes. Text is made only when somebody wants to read it.
 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/model/message.h"

enum {
    SIM_TRACE_RING = 4096,
    SIM_NO_KEY = 255,
    SIM_NO_NODE = 255,
};

/* SIM_EVENT(name, text) */
#define SIM_TRACE_EVENTS(EVENT)                                                                    \
    EVENT(SEND, "sends")                                                                           \
    EVENT(LOST, "message lost")                                                                    \
    EVENT(ARRIVE, "receives")                                                                      \
    EVENT(REFUSE, "refused, node is down")                                                         \
    EVENT(REPLY, "answers")                                                                        \
    EVENT(ANSWER, "gets the answer")                                                               \
    EVENT(TIMEOUT, "gets no answer in time")                                                       \
    EVENT(CANCEL, "learns that the caller is gone")                                                \
    EVENT(COMMIT, "disk commits")                                                                  \
    EVENT(DURABLE, "learns the outcome of a transaction")                                          \
    EVENT(HEARTBEAT, "heartbeat written")                                                          \
    EVENT(START, "starts")                                                                         \
    EVENT(CRASH, "crashes")                                                                        \
    EVENT(PAUSE, "pauses")                                                                         \
    EVENT(RESUME, "resumes")                                                                       \
    EVENT(FAULT, "fault")                                                                          \
    EVENT(MEMBER, "member state changes")                                                          \
    EVENT(INVOKE, "begins a statement")                                                            \
    EVENT(RETURN, "ends a statement")                                                              \
    EVENT(SESSION, "session changes")                                                              \
    EVENT(VIOLATION, "VIOLATION")

enum sim_trace_event {
#define SIM_TRACE_ENUMERATOR(name, text) SIM_TRACE_##name,
    SIM_TRACE_EVENTS(SIM_TRACE_ENUMERATOR)
#undef SIM_TRACE_ENUMERATOR
};

struct sim_trace_record {
    uint64_t at_us;
    uint64_t number; /* of the simulation's event */
    uint8_t event;   /* enum sim_trace_event */
    uint8_t node;
    uint8_t peer;
    uint8_t key;      /* index or SIM_NO_KEY */
    uint8_t has_call; /* call is valid */
    uint8_t call;     /* enum model_call_kind */
    uint8_t code;
    uint8_t reason;
    uint8_t statement; /* of an EXECUTE: 1 + enum model_statement_kind */
    uint8_t outcome;   /* of an EXECUTE that was answered */
    uint64_t id;       /* of the message, transaction, operation, fault */
    uint64_t epoch;
    uint64_t incarnation;
    uint64_t seq;
    uint64_t token;
    uint64_t value;
};

struct sim_trace {
    struct sim_trace_record *ring; /* owned */
    uint64_t n_records;
    uint64_t hash;
    FILE *live; /* every record is printed here at once; NULL = none */
    const char *(*name_of)(void *ctx, uint8_t node);
    void *ctx;
};

void sim_trace_init(struct sim_trace *trace);
void sim_trace_deinit(struct sim_trace *trace);

void sim_trace_add(struct sim_trace *trace, const struct sim_trace_record *record);

/* The last `n_max` records that concern the key (or no key at all), oldest first. */
void sim_trace_print(const struct sim_trace *trace, FILE *out, uint8_t key, unsigned n_max);

#endif
