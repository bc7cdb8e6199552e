/*
 * The checks: see checks.h. Invariant: they run in the order of the table, and none changes
 * anything. Pure; callers hold the core's lock.
 */
#include "instance/checks.h"

enum {
    ALL = INST_ACCESS_WRITE | INST_ACCESS_READ | INST_ACCESS_STALE_READ,
    OWNED = INST_ACCESS_WRITE | INST_ACCESS_READ,
};

static const struct model_header *header_of(const struct inst_view *view)
{
    return &view->call->request.data.header;
}

static enum model_reason check_caller(const struct inst_view *view, struct inst_verdict *verdict)
{
    (void)verdict;
    if (view->call->cancelled)
        return MODEL_REASON_CANCELLED;
    if (view->now_us >= view->call->deadline_us)
        return MODEL_REASON_DEADLINE_EXCEEDED;
    return MODEL_REASON_NONE;
}

static bool request_id_is_valid(const struct model_header *header)
{
    const struct model_request_id *id = &header->request_id;

    if (id->seq == 0)
        return true;
    return !model_id_is_none(&id->client) && header->done_below <= id->seq;
}

static enum model_reason check_sizes(const struct inst_view *view, struct inst_verdict *verdict)
{
    const struct model_header *header = header_of(view);

    (void)verdict;
    if (header->key.size == 0)
        return MODEL_REASON_KEY_EMPTY;
    if (header->key.size > view->key_max)
        return MODEL_REASON_KEY_TOO_LONG;
    if (view->access == INST_ACCESS_WRITE && view->call->request.data.value.size > MODEL_VALUE_MAX)
        return MODEL_REASON_VALUE_TOO_LARGE;
    if (view->access == INST_ACCESS_WRITE && !request_id_is_valid(header))
        return MODEL_REASON_INVALID_FIELD;
    if (!model_id_is_none(view->cluster_id) &&
        !model_id_equal(view->cluster_id, &header->cluster_id))
        return MODEL_REASON_WRONG_CLUSTER;
    return MODEL_REASON_NONE;
}

static enum model_reason check_owner(const struct inst_view *view, struct inst_verdict *verdict)
{
    const struct model_header *header = header_of(view);
    uint64_t mine = view->membership->incarnation;

    if (strcmp(header->owner, view->name) != 0)
        return MODEL_REASON_NOT_OWNER;
    if (mine == 0 || header->incarnation == mine)
        return MODEL_REASON_NONE;
    if (header->incarnation < mine)
        return MODEL_REASON_STALE_INCARNATION;
    verdict->renew_now = true;
    return MODEL_REASON_SUPERSEDED;
}

static enum model_reason check_serving(const struct inst_view *view, struct inst_verdict *verdict)
{
    enum inst_membership_state state = view->membership->state;

    (void)verdict;
    if (view->access == INST_ACCESS_STALE_READ && state >= INST_MEMBERSHIP_LEASING)
        return MODEL_REASON_NONE;
    if (state > INST_MEMBERSHIP_SERVING)
        return MODEL_REASON_DRAINING;
    if (state < INST_MEMBERSHIP_SERVING)
        return MODEL_REASON_NOT_SERVING;
    if (view->read_only && view->access == INST_ACCESS_WRITE)
        return MODEL_REASON_READ_ONLY;
    return MODEL_REASON_NONE;
}

static enum model_reason check_lease(const struct inst_view *view, struct inst_verdict *verdict)
{
    (void)verdict;
    if (inst_membership_is_fenced(view->membership, view->now_us))
        return MODEL_REASON_LEASE_EXPIRED;
    return MODEL_REASON_NONE;
}

static enum model_reason ahead(const struct inst_view *view, struct inst_verdict *verdict,
                               enum model_reason reason)
{
    if (!view->pulled)
        verdict->result = INST_CHECK_PULL;
    return reason;
}

static enum model_reason check_row(const struct inst_view *view, struct inst_verdict *verdict)
{
    const struct inst_row *row = view->row;
    uint64_t epoch = header_of(view)->epoch;

    if (!row || row->phase == INST_ROW_ABSENT || row->phase == INST_ROW_QUARANTINED)
        return MODEL_REASON_NOT_OWNER;
    if (view->access != INST_ACCESS_STALE_READ && epoch < row->live.epoch)
        return MODEL_REASON_STALE_EPOCH;
    if (view->access != INST_ACCESS_STALE_READ && epoch > row->live.epoch)
        return ahead(view, verdict, MODEL_REASON_EPOCH_AHEAD);
    return MODEL_REASON_NONE;
}

static enum model_reason check_phase(const struct inst_view *view, struct inst_verdict *verdict)
{
    (void)verdict;
    if (view->row->phase != INST_ROW_ACTIVE)
        return MODEL_REASON_MOVING;
    if (view->row->live.key_lost && view->call->request.kind != MODEL_CALL_DELETE)
        return MODEL_REASON_KEY_LOST;
    return MODEL_REASON_NONE;
}

static enum model_reason check_seen(const struct inst_view *view, struct inst_verdict *verdict)
{
    const struct model_header *header = header_of(view);
    uint64_t first_epoch = header->first_epoch ? header->first_epoch : header->epoch;
    const struct inst_dedup_entry *entry;

    if (header->request_id.seq == 0)
        return MODEL_REASON_NONE;
    entry = inst_dedup_find(view->dedup, view->row, &header->request_id);
    if (entry && !entry->result.unknown) {
        verdict->result = INST_CHECK_REPLAY;
        verdict->recorded = entry->result;
        return MODEL_REASON_NONE;
    }
    if (!entry && inst_dedup_is_anothers(view->dedup, view->row, &header->request_id))
        return MODEL_REASON_INVALID_FIELD;
    if (entry || first_epoch < view->row->live.dedup_since ||
        inst_dedup_is_forgotten(view->dedup, &header->request_id))
        return MODEL_REASON_OUTCOME_UNKNOWN;
    return MODEL_REASON_NONE;
}

static enum model_reason check_no_token(const struct inst_row *row)
{
    switch (row->live.locking) {
    case MODEL_LOCKING_REQUIRED:
        return MODEL_REASON_KEY_NOT_LOCKED;
    case MODEL_LOCKING_OPTIONAL:
        return inst_row_is_locked(row) ? MODEL_REASON_KEY_NOT_LOCKED : MODEL_REASON_NONE;
    case MODEL_LOCKING_NONE:
        break;
    }
    return MODEL_REASON_NONE;
}

static enum model_reason check_token(const struct inst_view *view, struct inst_verdict *verdict)
{
    const struct inst_row *row = view->row;
    uint64_t token = header_of(view)->lock_token;

    if (token == 0)
        return check_no_token(row);
    if (token <= row->live.closed && row->live.locking != MODEL_LOCKING_NONE)
        return MODEL_REASON_KEY_NOT_LOCKED;
    if (token < row->live.floor)
        return MODEL_REASON_LOCK_FENCED;
    if (token > row->live.floor)
        return ahead(view, verdict, MODEL_REASON_TOKEN_AHEAD);
    if (row->live.locking != MODEL_LOCKING_NONE && !inst_row_is_locked(row))
        return MODEL_REASON_KEY_NOT_LOCKED;
    return MODEL_REASON_NONE;
}

static const struct {
    enum model_reason (*run)(const struct inst_view *view, struct inst_verdict *verdict);
    int access;
} checks[INST_CHECK_LAST + 1] = {
    [0] = {check_caller, ALL},
    [1] = {check_sizes, ALL},
    [2] = {check_owner, OWNED},
    [3] = {check_serving, ALL},
    [INST_CHECK_LEASE] = {check_lease, OWNED},
    [INST_CHECK_ROW] = {check_row, ALL},
    [6] = {check_phase, ALL},
    [7] = {check_seen, INST_ACCESS_WRITE},
    [INST_CHECK_LAST] = {check_token, INST_ACCESS_WRITE},
};

void inst_checks_run(const struct inst_view *view, unsigned first, unsigned last,
                     struct inst_verdict *ret_verdict)
{
    struct inst_verdict *verdict = ret_verdict;

    verdict->result = INST_CHECK_PASS;
    verdict->reason = MODEL_REASON_NONE;
    verdict->renew_now = false;
    for (unsigned i = first; i <= last; i++) {
        if (!(checks[i].access & (int)view->access))
            continue;
        verdict->number = i;
        verdict->reason = checks[i].run(view, verdict);
        if (verdict->reason != MODEL_REASON_NONE && verdict->result == INST_CHECK_PASS)
            verdict->result = INST_CHECK_REFUSE;
        if (verdict->result != INST_CHECK_PASS)
            return;
    }
    verdict->number = INST_CHECK_LAST + 1;
}

bool inst_checks_post(const struct inst_membership *membership, uint64_t incarnation,
                      uint64_t now_us)
{
    return membership->incarnation == incarnation && incarnation != 0 &&
           (membership->state == INST_MEMBERSHIP_SERVING ||
            membership->state == INST_MEMBERSHIP_LEAVING) &&
           !inst_membership_is_fenced(membership, now_us);
}

enum inst_access inst_checks_access(const struct model_request *request)
{
    if (request->kind != MODEL_CALL_READ)
        return INST_ACCESS_WRITE;
    return request->data.consistency == MODEL_READ_STALE_OK ? INST_ACCESS_STALE_READ
                                                            : INST_ACCESS_READ;
}
