/*
 * Requests from any bytes: the first byte chooses the kind, the rest is the message. What is
 * accepted can be written again and then reads the same; what is refused has a reason.
 */
#include <stdlib.h>

#include "runtime/wire/request.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/wire/rig.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_again(struct model_request *request, struct rt_arena *arena)
{
    const struct wire_method *method = wire_method_of(request->kind);
    struct model_request again;
    ProtobufCMessage *message;

    check(wire_request_encode(request, arena, &message, NULL) == RT_OK);
    message = rig_transfer(message, arena);
    check(wire_request_decode(method, message, arena, &again, NULL) == RT_OK);
    check(strcmp(rig_request_text(request, arena), rig_request_text(&again, arena)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rt_arena arena = {0};
    struct rt_error err = RT_ERROR_INIT;
    const struct wire_method *method;
    struct model_request request;
    ProtobufCMessage *message;

    if (size == 0)
        return 0;
    method = wire_method_of((enum model_call_kind)(data[0] % MODEL_N_CALL_KINDS));
    message = rig_unpack(method->request, rt_bytes_of(data + 1, size - 1), &arena);
    if (message) {
        if (wire_request_decode(method, message, &arena, &request, &err) == RT_OK)
            check_again(&request, &arena);
        else
            check(err.reason && err.message[0]);
    }
    rt_arena_reset(&arena);
    return 0;
}
