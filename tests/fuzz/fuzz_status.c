/*
 * grpc-status-details-bin from any bytes: ignored as a whole, or read into an error that can be
 * written again within its size and then reads the same.
 */
#include <stdlib.h>

#include "runtime/wire/status.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/wire/rig.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_again(struct model_response *response, struct rt_arena *arena)
{
    struct model_response again = {.code = response->code};
    uint8_t bytes[WIRE_STATUS_MAX];
    size_t size = wire_status_build(response, bytes);

    check(size <= sizeof(bytes));
    check(wire_status_parse(rt_bytes_of(bytes, size), arena, &again.error, &again.responder));
    check(strcmp(rig_response_text(response, MODEL_CALL_SET, arena),
                 rig_response_text(&again, MODEL_CALL_SET, arena)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rt_arena arena = {0};
    struct model_response response = {.code = RT_UNAVAILABLE};

    if (wire_status_parse(rt_bytes_of(data, size), &arena, &response.error, &response.responder))
        check_again(&response, &arena);
    else
        check(response.error.applied == MODEL_APPLIED_MAYBE && arena.used == 0);
    rt_arena_reset(&arena);
    return 0;
}
