/*
 * What the instance checks before it does anything for a key, in this order (design: "What the
 * Instance checks"); 9 is the application itself, 11 the answer.
 *
 *   0 deadline, cancellation   1 sizes, cluster      2 owner's name and incarnation
 *   3 serving                  4 lease               5 the key's row and epoch
 *   6 phase                    7 seen before         8 lock token
 *   10 lease again, after it was applied and before the answer leaves
 *
 * Pure functions over a const view of live state; re-entrant. The view borrows everything.
 */
#ifndef INST_CHECKS_H
#define INST_CHECKS_H

#include "instance/dedup.h"
#include "instance/membership.h"
#include "instance/rows.h"
#include "runtime/model/call.h"

enum {
    INST_CHECK_FIRST = 0,
    INST_CHECK_LEASE = 4, /* 0..4 do not look at the key's row */
    INST_CHECK_ROW = 5,
    INST_CHECK_LAST = 8,
};

enum inst_access {
    INST_ACCESS_WRITE = 1,
    INST_ACCESS_READ = 2,       /* linearizable */
    INST_ACCESS_STALE_READ = 4, /* whatever is in memory */
};

struct inst_view {
    const struct model_call *call; /* a data call: its header is what is checked */
    const char *name;              /* mine */
    const struct model_id *cluster_id;
    const struct inst_membership *membership;
    const struct inst_row *row; /* NULL: none; looked at from check 5 on */
    const struct inst_dedup *dedup;
    uint64_t now_us;
    uint32_t key_max;
    enum inst_access access;
    bool read_only;
    bool pulled; /* the coordinator was asked about this key on behalf of this call */
};

enum inst_check_result {
    INST_CHECK_PASS,
    INST_CHECK_REFUSE, /* with reason */
    INST_CHECK_PULL,   /* ask the coordinator once; `reason` if that does not help */
    INST_CHECK_REPLAY, /* answer as recorded */
};

struct inst_verdict {
    enum inst_check_result result;
    enum model_reason reason;
    unsigned number; /* of the check that decided; INST_CHECK_LAST + 1 when all passed */
    bool renew_now;  /* there may be a later incarnation of me */
    struct inst_dedup_result recorded; /* REPLAY */
};

/* Runs the checks first..last and stops at the first that decides. */
void inst_checks_run(const struct inst_view *view, unsigned first, unsigned last,
                     struct inst_verdict *ret_verdict);

/* Check 10. `incarnation` is the one under which the operation passed the checks. */
bool inst_checks_post(const struct inst_membership *membership, uint64_t incarnation,
                      uint64_t now_us);

/* The access that a data call wants. */
enum inst_access inst_checks_access(const struct model_request *request);

#endif
