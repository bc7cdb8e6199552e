/*
 * A session in front of a coordinator played by hand, for the session suites. The fixture must not
 * move between init and deinit.
 */
#ifndef TESTS_UNIT_ESI_SESSION_FIXTURE_H
#define TESTS_UNIT_ESI_SESSION_FIXTURE_H

#include "esi-client/session.h"
#include "tests/unit/esi/scripted_coordinator.h"

enum {
    SESSION_FIXTURE_TIMEOUT_US = 8 * 1000 * 1000
};

struct session_fixture {
    struct scripted_coordinator scripted;
    struct esi_session *session; /* owned */
};

/* A new session, not opened. */
void session_fixture_init(struct session_fixture *fixture);

/* A new session in state OPEN. */
void session_fixture_open(struct session_fixture *fixture);

void session_fixture_deinit(struct session_fixture *fixture);

/* Starts a statement at line 1; key and value are literals. */
void session_fixture_execute(struct session_fixture *fixture, enum model_statement_kind kind,
                             const char *key, const char *value);

/* One statement on key "k" that succeeds with this token and version. */
void session_fixture_run(struct session_fixture *fixture, enum model_statement_kind kind,
                         uint64_t lock_token, uint64_t seq);

void session_fixture_answer_waiting(struct session_fixture *fixture, struct model_call *call,
                                    const char *holder);
void session_fixture_answer_ready(struct session_fixture *fixture, struct model_call *call);

/* The next result has this outcome. */
void session_fixture_expect(struct session_fixture *fixture, enum esi_outcome outcome);

/* … this outcome and reason, and says so also in `applied`. */
void session_fixture_expect_failure(struct session_fixture *fixture, enum esi_outcome outcome,
                                    enum model_reason reason);

#endif
