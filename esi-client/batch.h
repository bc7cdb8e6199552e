/*
 * Puts the calls that a core makes in one step to one owner into PIPELINE calls, and takes their
 * answers apart again. The core knows nothing of it.
 *
 * Calls go together, in their order, when owner, address and deadline are the same; up to
 * MODEL_PIPELINE_OPERATIONS_MAX of them, and ESI_BATCH_BYTES_MAX of keys and values. One that would
 * be alone is left as it is.
 *
 * Pure, not thread safe; the core's lock. Aborts when memory is out: what is added to the calls is
 * a few words for each.
 */
#ifndef ESI_BATCH_H
#define ESI_BATCH_H

#include "runtime/model/call.h"

enum {
    ESI_BATCH_BYTES_MAX = 2 * 1024 * 1024 /* with the rest, well below a message's 4 MiB */
};

/* The batches that are under way. */
struct esi_batches {
    struct rt_list under_way;
};

void esi_batches_init(struct esi_batches *batches);

/* Frees those that have not come back; the calls in them are their core's. */
void esi_batches_deinit(struct esi_batches *batches);

/* `calls` (model_call.link) as a core's effects have them: replaced by what is to be sent. */
void esi_batches_gather(struct esi_batches *batches, struct rt_list *calls);

/* A PIPELINE call is back, and is freed. Its calls are appended to `ret_done` with their responses;
 * READs for whose values the answer had no room to `ret_again`, to be gathered once more, or to
 * `ret_alone` when it had none for any of them, to be sent as they are. */
void esi_batches_scatter(struct model_call *batch, struct rt_list *ret_done,
                         struct rt_list *ret_again, struct rt_list *ret_alone);

#endif
