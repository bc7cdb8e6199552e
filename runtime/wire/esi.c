/*
 * EsiService: see codec.h. Any thread; no state.
 */
#include "redistinto/v1/esi.pb-c.h"
#include "runtime/wire/codec.h"
#include "runtime/wire/text.h"

WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServiceSubmitResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServiceStatusResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServiceListResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServiceKillResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServicePauseResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServiceResumeResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServiceBlockResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServiceUnblockResponse);
WIRE_ASSERT_UNARY_RESPONSE(Redistinto__V1__EsiServiceDeadlockResponse);

/* Requests and answers about one ESI say the same. */
_Static_assert(offsetof(Redistinto__V1__EsiServiceStatusRequest, id) ==
                   offsetof(Redistinto__V1__EsiServiceKillRequest, id),
               "id");
#define ASSERT_ESI_RESPONSE(type)                                                                  \
    _Static_assert(sizeof(type) == sizeof(Redistinto__V1__EsiServiceSubmitResponse) &&             \
                       offsetof(type, esi) ==                                                      \
                           offsetof(Redistinto__V1__EsiServiceSubmitResponse, esi),                \
                   #type)
ASSERT_ESI_RESPONSE(Redistinto__V1__EsiServiceStatusResponse);
ASSERT_ESI_RESPONSE(Redistinto__V1__EsiServiceKillResponse);
ASSERT_ESI_RESPONSE(Redistinto__V1__EsiServiceBlockResponse);

static void take_esi_id(struct wire_input *in, uint64_t id, struct model_esi_request *ret_esi)
{
    if (id == 0)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "id", "is 0, valid are 1 and above");
    ret_esi->id = id;
}

/* ---- one ESI ---- */

static Redistinto__V1__EsiState put_state(enum model_esi_state state)
{
    return (Redistinto__V1__EsiState)(REDISTINTO__V1__ESI_STATE__ESI_STATE_NEW + (int)state);
}

static enum model_esi_state take_state(struct wire_input *in, Redistinto__V1__EsiState state)
{
    int number = (int)state - REDISTINTO__V1__ESI_STATE__ESI_STATE_NEW;

    if (number >= 0 && number < MODEL_N_ESI_STATES)
        return (enum model_esi_state)number;
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "state", "is %d, valid are 1 to %d", (int)state,
                    MODEL_N_ESI_STATES);
    return MODEL_ESI_NEW;
}

_Static_assert((int)REDISTINTO__V1__ESI_STATE__ESI_STATE_FINISHED ==
                       REDISTINTO__V1__ESI_STATE__ESI_STATE_NEW + (int)MODEL_ESI_FINISHED &&
                   (int)REDISTINTO__V1__ESI_END__ESI_END_SESSION_LOST ==
                       (int)MODEL_ESI_END_SESSION_LOST,
               "both count alike");

static enum model_esi_end take_end(struct wire_input *in, Redistinto__V1__EsiEnd end)
{
    if ((int)end >= 0 && (int)end < MODEL_N_ESI_ENDS)
        return (enum model_esi_end)end;
    wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "end", "is %d, valid are 0 to %d", (int)end,
                    MODEL_N_ESI_ENDS - 1);
    return MODEL_ESI_END_NONE;
}

static bool put_esi(Redistinto__V1__EsiInfo *ret_message, const struct model_esi_info *esi,
                    struct rt_arena *arena)
{
    struct rt_bytes message;

    if (!rt_arena_copy(arena, esi->message, &message))
        return false;
    wire_text_clean((char *)message.data);
    ret_message->id = esi->id;
    ret_message->name = (char *)esi->name;
    ret_message->state = put_state(esi->state);
    ret_message->end = (Redistinto__V1__EsiEnd)esi->end;
    ret_message->line = esi->line;
    ret_message->n_statements = esi->n_statements;
    ret_message->n_ok = esi->n_ok;
    ret_message->estimate_milli = esi->estimate_milli;
    ret_message->waits_for = wire_put_bytes(esi->waits_for);
    if (esi->reason != MODEL_REASON_NONE)
        ret_message->reason = (char *)model_reason_name(esi->reason);
    ret_message->message = (char *)message.data;
    return true;
}

static void take_esi(struct wire_input *in, const Redistinto__V1__EsiInfo *message,
                     struct model_esi_info *ret_esi)
{
    ret_esi->id = message->id;
    wire_take_name(in, "name", message->name, WIRE_REQUIRED, ret_esi->name);
    ret_esi->state = take_state(in, message->state);
    ret_esi->end = take_end(in, message->end);
    ret_esi->line = message->line;
    ret_esi->n_statements = message->n_statements;
    ret_esi->n_ok = message->n_ok;
    ret_esi->estimate_milli = message->estimate_milli;
    wire_take_key_part(in, "waits_for", &message->waits_for, &ret_esi->waits_for);
    ret_esi->reason = model_reason_parse(rt_bytes_of_string(message->reason));
    ret_esi->message = rt_bytes_of_string(message->message);
    if (ret_esi->message.size > MODEL_ESI_MESSAGE_MAX) {
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "message",
                        "has %zu bytes, valid are 0 to %d", ret_esi->message.size,
                        MODEL_ESI_MESSAGE_MAX);
        ret_esi->message = (struct rt_bytes){0};
    }
}

static bool fill_esi_response(const struct model_response *response, struct rt_arena *arena,
                              void *pointer)
{
    Redistinto__V1__EsiServiceSubmitResponse *message = pointer;

    message->esi = wire_message_new(&redistinto__v1__esi_info__descriptor, arena);
    return message->esi && put_esi(message->esi, &response->esi.esi, arena);
}

static void take_esi_response(struct wire_input *in, const void *pointer,
                              struct model_response *response)
{
    const Redistinto__V1__EsiServiceSubmitResponse *message = pointer;

    if (message->esi)
        take_esi(in, message->esi, &response->esi.esi);
    else
        wire_input_missing(in, "esi");
}

/* ---- Submit ---- */

static bool fill_submit_request(const struct model_request *request, struct rt_arena *arena,
                                void *pointer)
{
    const struct model_esi_submit_request *submit = &request->esi_submit;
    Redistinto__V1__EsiServiceSubmitRequest *message = pointer;
    Redistinto__V1__RequestId *id =
        wire_message_new(&redistinto__v1__request_id__descriptor, arena);

    if (!id)
        return false;
    message->name = (char *)submit->name;
    message->script = wire_put_bytes(submit->script);
    message->request_id = wire_put_request_id(id, &submit->request_id);
    return true;
}

static void take_submit_request(struct wire_input *in, const void *pointer,
                                struct model_request *request)
{
    const Redistinto__V1__EsiServiceSubmitRequest *message = pointer;
    struct model_esi_submit_request *submit = &request->esi_submit;
    size_t size = message->script.len;

    *submit = (struct model_esi_submit_request){0};
    wire_take_name(in, "name", message->name, WIRE_REQUIRED, submit->name);
    if (size < 1 || size > MODEL_ESI_SCRIPT_MAX)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "script",
                        "has %zu bytes, valid are 1 to %d", size, MODEL_ESI_SCRIPT_MAX);
    else
        submit->script = rt_bytes_of(message->script.data, size);
    wire_take_request_id(in, "request_id.client_id", "request_id.seq", message->request_id,
                         &submit->request_id);
}

/* ---- Status, Kill ---- */

static bool fill_status_request(const struct model_request *request, struct rt_arena *arena,
                                void *pointer)
{
    Redistinto__V1__EsiServiceStatusRequest *message = pointer;

    (void)arena;
    message->id = request->esi.id;
    message->wait = request->esi.wait;
    return true;
}

static void take_status_request(struct wire_input *in, const void *pointer,
                                struct model_request *request)
{
    const Redistinto__V1__EsiServiceStatusRequest *message = pointer;

    request->esi = (struct model_esi_request){.wait = message->wait};
    take_esi_id(in, message->id, &request->esi);
}

static bool fill_kill_request(const struct model_request *request, struct rt_arena *arena,
                              void *pointer)
{
    Redistinto__V1__EsiServiceKillRequest *message = pointer;

    (void)arena;
    message->id = request->esi.id;
    return true;
}

static void take_kill_request(struct wire_input *in, const void *pointer,
                              struct model_request *request)
{
    const Redistinto__V1__EsiServiceKillRequest *message = pointer;

    request->esi = (struct model_esi_request){0};
    take_esi_id(in, message->id, &request->esi);
}

/* ---- List, Deadlock ---- */

static bool fill_list_request(const struct model_request *request, struct rt_arena *arena,
                              void *pointer)
{
    Redistinto__V1__EsiServiceListRequest *message = pointer;

    (void)arena;
    message->waits_for = wire_put_bytes(request->esi_list.waits_for);
    message->after = request->esi_list.after;
    message->page_size = request->esi_list.page_size;
    return true;
}

static void take_list_request(struct wire_input *in, const void *pointer,
                              struct model_request *request)
{
    const Redistinto__V1__EsiServiceListRequest *message = pointer;

    wire_take_key_part(in, "waits_for", &message->waits_for, &request->esi_list.waits_for);
    request->esi_list.after = message->after;
    request->esi_list.page_size = message->page_size;
    if (message->page_size > MODEL_PAGE_MAX)
        wire_input_fail(in, MODEL_REASON_INVALID_FIELD, "page_size", "is %u, valid are 0 to %d",
                        message->page_size, MODEL_PAGE_MAX);
}

static bool put_esis(const struct model_esi_list_response *list, struct rt_arena *arena,
                     size_t *ret_n, Redistinto__V1__EsiInfo ***ret_messages)
{
    if (list->n_esis == 0)
        return true;
    *ret_messages = wire_put_list(arena, &redistinto__v1__esi_info__descriptor, list->n_esis);
    if (!*ret_messages)
        return false;
    *ret_n = list->n_esis;
    for (size_t i = 0; i < list->n_esis; i++)
        if (!put_esi((*ret_messages)[i], &list->esis[i], arena))
            return false;
    return true;
}

static void take_esis(struct wire_input *in, size_t n, Redistinto__V1__EsiInfo *const *messages,
                      struct model_esi_list_response *list)
{
    list->esis = wire_list_begin(in, "esis", n, MODEL_PAGE_MAX, sizeof(*list->esis));
    list->n_esis = list->esis ? n : 0;
    for (in->index = 0; in->index < list->n_esis; in->index++)
        take_esi(in, messages[in->index], &list->esis[in->index]);
    wire_list_end(in);
}

static bool fill_list_response(const struct model_response *response, struct rt_arena *arena,
                               void *pointer)
{
    Redistinto__V1__EsiServiceListResponse *message = pointer;

    message->more = response->esi_list.more;
    message->planner = (char *)response->esi_list.planner;
    message->paused = response->esi_list.paused;
    return put_esis(&response->esi_list, arena, &message->n_esis, &message->esis);
}

static void take_list_response(struct wire_input *in, const void *pointer,
                               struct model_response *response)
{
    const Redistinto__V1__EsiServiceListResponse *message = pointer;
    struct model_esi_list_response *list = &response->esi_list;

    list->more = message->more;
    wire_take_name(in, "planner", message->planner, WIRE_REQUIRED, list->planner);
    list->paused = message->paused;
    take_esis(in, message->n_esis, message->esis, list);
}

static bool fill_deadlock_response(const struct model_response *response, struct rt_arena *arena,
                                   void *pointer)
{
    Redistinto__V1__EsiServiceDeadlockResponse *message = pointer;

    return put_esis(&response->esi_list, arena, &message->n_esis, &message->esis);
}

static void take_deadlock_response(struct wire_input *in, const void *pointer,
                                   struct model_response *response)
{
    const Redistinto__V1__EsiServiceDeadlockResponse *message = pointer;

    take_esis(in, message->n_esis, message->esis, &response->esi_list);
}

/* ---- Block, Unblock ---- */

static bool fill_block_request(const struct model_request *request, struct rt_arena *arena,
                               void *pointer)
{
    Redistinto__V1__EsiServiceBlockRequest *message = pointer;

    (void)arena;
    message->key = wire_put_bytes(request->esi.key);
    message->id = request->esi.id;
    return true;
}

static void take_block_request(struct wire_input *in, const void *pointer,
                               struct model_request *request)
{
    const Redistinto__V1__EsiServiceBlockRequest *message = pointer;

    request->esi = (struct model_esi_request){0};
    wire_take_key(in, "key", &message->key, &request->esi.key);
    take_esi_id(in, message->id, &request->esi);
}

static bool fill_unblock_request(const struct model_request *request, struct rt_arena *arena,
                                 void *pointer)
{
    Redistinto__V1__EsiServiceUnblockRequest *message = pointer;

    (void)arena;
    message->key = wire_put_bytes(request->esi.key);
    return true;
}

static void take_unblock_request(struct wire_input *in, const void *pointer,
                                 struct model_request *request)
{
    const Redistinto__V1__EsiServiceUnblockRequest *message = pointer;

    request->esi = (struct model_esi_request){0};
    wire_take_key(in, "key", &message->key, &request->esi.key);
}

static bool fill_unblock_response(const struct model_response *response, struct rt_arena *arena,
                                  void *pointer)
{
    Redistinto__V1__EsiServiceUnblockResponse *message = pointer;

    (void)arena;
    message->woken = response->esi_unblock.woken;
    message->n_waiting = response->esi_unblock.n_waiting;
    return true;
}

static void take_unblock_response(struct wire_input *in, const void *pointer,
                                  struct model_response *response)
{
    const Redistinto__V1__EsiServiceUnblockResponse *message = pointer;

    (void)in;
    response->esi_unblock.woken = message->woken;
    response->esi_unblock.n_waiting = message->n_waiting;
}

static const struct wire_codec submit_codec = {fill_submit_request, take_submit_request,
                                               fill_esi_response, take_esi_response};
static const struct wire_codec status_codec = {fill_status_request, take_status_request,
                                               fill_esi_response, take_esi_response};
static const struct wire_codec list_codec = {fill_list_request, take_list_request,
                                             fill_list_response, take_list_response};
static const struct wire_codec kill_codec = {fill_kill_request, take_kill_request,
                                             fill_esi_response, take_esi_response};
static const struct wire_codec empty_codec = {0};
static const struct wire_codec block_codec = {fill_block_request, take_block_request,
                                              fill_esi_response, take_esi_response};
static const struct wire_codec unblock_codec = {fill_unblock_request, take_unblock_request,
                                                fill_unblock_response, take_unblock_response};
static const struct wire_codec deadlock_codec = {.fill_response = fill_deadlock_response,
                                                 .take_response = take_deadlock_response};

const struct wire_method wire_esi_methods[9] = {
    WIRE_METHOD(MODEL_CALL_ESI_SUBMIT, esi_service, "Submit", esi_service_submit, WIRE_UNARY,
                &submit_codec),
    WIRE_METHOD(MODEL_CALL_ESI_STATUS, esi_service, "Status", esi_service_status, WIRE_UNARY,
                &status_codec),
    WIRE_METHOD(MODEL_CALL_ESI_LIST, esi_service, "List", esi_service_list, WIRE_UNARY,
                &list_codec),
    WIRE_METHOD(MODEL_CALL_ESI_KILL, esi_service, "Kill", esi_service_kill, WIRE_UNARY,
                &kill_codec),
    WIRE_METHOD(MODEL_CALL_ESI_PAUSE, esi_service, "Pause", esi_service_pause, WIRE_UNARY,
                &empty_codec),
    WIRE_METHOD(MODEL_CALL_ESI_RESUME, esi_service, "Resume", esi_service_resume, WIRE_UNARY,
                &empty_codec),
    WIRE_METHOD(MODEL_CALL_ESI_BLOCK, esi_service, "Block", esi_service_block, WIRE_UNARY,
                &block_codec),
    WIRE_METHOD(MODEL_CALL_ESI_UNBLOCK, esi_service, "Unblock", esi_service_unblock, WIRE_UNARY,
                &unblock_codec),
    WIRE_METHOD(MODEL_CALL_ESI_DEADLOCK, esi_service, "Deadlock", esi_service_deadlock, WIRE_UNARY,
                &deadlock_codec),
};
