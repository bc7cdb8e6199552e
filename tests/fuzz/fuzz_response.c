/*
 * Answers from any bytes: the first byte chooses the kind, the rest is the message. Whatever comes,
 * the decoded answer obeys the limits: it can be written again and then reads the same.
 */
#include <stdlib.h>

#include "runtime/wire/response.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/wire/rig.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_again(struct model_response *response, enum model_call_kind kind,
                        struct rt_arena *arena)
{
    struct rt_error err = RT_ERROR_INIT;
    struct model_response again;
    ProtobufCMessage *message;

    if (wire_response_encode(kind, response, arena, &message, &err) == RT_OK)
        wire_response_decode(kind, rig_transfer(message, arena), NULL, arena, &again);
    else
        wire_response_decode(kind, NULL, &err, arena, &again);
    check(again.code == response->code);
    check(strcmp(rig_response_text(response, kind, arena),
                 rig_response_text(&again, kind, arena)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rt_arena arena = {0};
    struct model_response response;
    enum model_call_kind kind;
    ProtobufCMessage *message;

    if (size == 0)
        return 0;
    kind = (enum model_call_kind)(data[0] % MODEL_N_CALL_KINDS);
    message = rig_unpack(wire_method_of(kind)->response, rt_bytes_of(data + 1, size - 1), &arena);
    if (message) {
        wire_response_decode(kind, message, NULL, &arena, &response);
        check_again(&response, kind, &arena);
    }
    rt_arena_reset(&arena);
    return 0;
}
