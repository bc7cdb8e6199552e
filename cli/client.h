/*
 * Blocking calls for verbs: one at a time, all within one deadline that starts with the client.
 * SIGINT, SIGTERM or SIGHUP ends the call under way and all later ones with CANCELLED, but those
 * that tidy up (cli_client_wind_up).
 *
 * Used by one thread. The runtime behind it has threads of its own, and a process can have one
 * client at a time.
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "cli/context.h"
#include "runtime/base/env.h"
#include "runtime/model/call.h"
#include "runtime/model/exit.h"

enum {
    CLI_CLIENT_WIND_UP_MS = 2000
};

struct cli_client;

/* To the coordinator, and within the timeout, of the context, which must outlive the client. */
struct cli_client *cli_client_new(struct cli_context *context);

/* Accepts NULL, returns NULL. */
struct cli_client *cli_client_free(struct cli_client *client);

/* Any kind of call, streaming ones too. call->address NULL means the coordinator; call->deadline_us
 * may end it before the client's time is over. Fills call->response, whose data is in call->arena.
 * False when response.code is not RT_OK. */
RT_MUST_USE bool cli_client_call(struct cli_client *client, struct model_call *call);

/* grpc.health.v1 Check of the server as a whole, within its share of the time that is left when
 * `n_left` such checks are to come, this one included. OK: it answered, and *ret_is_serving says
 * what. */
RT_MUST_USE enum rt_code cli_client_check_health(struct cli_client *client, const char *address,
                                                 size_t n_left, bool *ret_is_serving,
                                                 struct rt_error *err);

/* Reports the failure of a call; the exit code for it. */
enum model_exit cli_client_report(const struct cli_client *client,
                                  const struct model_response *response);

/* The same of a call that changes something: what may have been applied is an unknown outcome,
 * whatever kept its answer away. */
enum model_exit cli_client_report_change(const struct cli_client *client,
                                         const struct model_response *response);

/* Waits; false at once when that would go past the deadline, and early when it is interrupted. */
RT_MUST_USE bool cli_client_pause(struct cli_client *client, uint64_t duration_us);

/* From now on calls only tidy up: they have CLI_CLIENT_WIND_UP_MS, whatever time was left, and an
 * interrupt that came before does not keep them from being made. */
void cli_client_wind_up(struct cli_client *client);

/* A new id for requests, whose seq the caller counts. */
struct model_id cli_client_new_id(const struct cli_client *client);

/* The clock of deadlines, and randomness. */
const struct rt_env *cli_client_env(const struct cli_client *client);

/* Ever. */
bool cli_client_is_interrupted(const struct cli_client *client);

#endif
