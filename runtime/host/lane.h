/*
 * A lane carries calls of one streaming kind (Execute, KeepAlive, Reconcile, Pipeline) to one
 * address over a bidi stream, matched with their answers by exchange id. The stream is opened when
 * a call needs it and again after it broke; a call that was under way then fails with the stream's
 * error. What the stream has no room for waits in its order. A call that is not answered by its
 * deadline fails, a late answer is dropped.
 *
 * Any thread; completions leave through host_call_done().
 */
#ifndef HOST_LANE_H
#define HOST_LANE_H

#include "runtime/host/internal.h"

/* Under the outbound lock. Takes the call, unless it fails: RESOURCE_EXHAUSTED when the request
 * cannot be encoded. */
RT_MUST_USE enum rt_code host_lane_start(struct host *host, struct model_call *call,
                                         const struct host_time *time, struct rt_error *err);

/* Fails what is past its deadline; returns when to look again, RT_NEVER when nothing is out. */
uint64_t host_lane_expire(struct host *host, uint64_t at_us);

/* After the runtime has ended, which closed their streams. */
void host_lane_free_all(struct host *host);

#endif
