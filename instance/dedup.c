/*
 * Remembered requests: see dedup.h. Invariant: an entry with a client is in the hash table, in its
 * client's list and in a list of its row; a condemned one only in `condemned` and in its row's
 * list. Under the lock of the core that owns it.
 */
#include "instance/dedup.h"

#include <xxhash.h>

#include "instance/limits.h"
#include "runtime/base/map.h"

enum {
    CHUNK_ENTRIES = 256,
    FIRST_BUCKETS = 256,
};

struct inst_dedup_client {
    UT_hash_handle hh;
    struct model_id id;
    struct rt_list link;
    struct rt_list entries; /* inst_dedup_entry.client_link, oldest first */
    size_t n_entries;
    uint64_t watermark;
};

struct inst_dedup_chunk {
    struct inst_dedup_chunk *next;
    struct inst_dedup_entry entries[CHUNK_ENTRIES];
};

void inst_dedup_init(struct inst_dedup *dedup)
{
    *dedup = (struct inst_dedup){0};
    rt_list_init(&dedup->by_use);
    rt_list_init(&dedup->condemned);
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
void inst_dedup_deinit(struct inst_dedup *dedup)
{
    struct inst_dedup_client *client;
    struct inst_dedup_client *next;

    HASH_ITER (hh, dedup->clients, client, next) {
        HASH_DEL(dedup->clients, client);
        (void)rt_free(client);
    }
    while (dedup->chunks) {
        struct inst_dedup_chunk *chunk = dedup->chunks;

        dedup->chunks = chunk->next;
        (void)rt_free(chunk);
    }
    dedup->buckets = rt_free(dedup->buckets);
    dedup->n_buckets = 0;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct inst_dedup_client *find_client(const struct inst_dedup *dedup,
                                             const struct model_id *id)
{
    struct inst_dedup_client *client;

    HASH_FIND(hh, dedup->clients, id, sizeof(*id), client);
    return client;
}

/* Whatever the key: an id that comes with another one is found too. */
static size_t bucket_of(const struct inst_dedup *dedup, const struct model_request_id *id)
{
    uint64_t words[3] = {0, 0, id->seq};

    memcpy(words, id->client.bytes, sizeof(id->client.bytes));
    return XXH3_64bits(words, sizeof(words)) & (dedup->n_buckets - 1);
}

static bool has_id(const struct inst_dedup_entry *entry, const struct model_request_id *id)
{
    return entry->id.seq == id->seq && model_id_equal(&entry->id.client, &id->client);
}

const struct inst_dedup_entry *inst_dedup_find(const struct inst_dedup *dedup,
                                               const struct inst_row *row,
                                               const struct model_request_id *id)
{
    const struct inst_dedup_entry *entry;

    if (dedup->n_buckets == 0)
        return NULL;
    entry = dedup->buckets[bucket_of(dedup, id)];
    while (entry && (entry->row != row || !has_id(entry, id)))
        entry = entry->next;
    return entry;
}

bool inst_dedup_is_anothers(const struct inst_dedup *dedup, const struct inst_row *row,
                            const struct model_request_id *id)
{
    const struct inst_dedup_entry *entry;

    if (dedup->n_buckets == 0)
        return false;
    entry = dedup->buckets[bucket_of(dedup, id)];
    while (entry && (entry->row == row || !has_id(entry, id)))
        entry = entry->next;
    return entry != NULL;
}

bool inst_dedup_is_forgotten(const struct inst_dedup *dedup, const struct model_request_id *id)
{
    const struct inst_dedup_client *client = find_client(dedup, &id->client);

    return client && id->seq < client->watermark;
}

/* Memory that does not come keeps the chains longer. */
static void grow_buckets(struct inst_dedup *dedup)
{
    size_t n_old = dedup->n_buckets;
    struct inst_dedup_entry **old = dedup->buckets;
    size_t n_new = n_old ? n_old * 2 : FIRST_BUCKETS;
    struct inst_dedup_entry **buckets = rt_alloc(n_new * sizeof(void *));

    if (!buckets)
        return;
    memset(buckets, 0, n_new * sizeof(void *));
    dedup->buckets = buckets;
    dedup->n_buckets = n_new;
    for (size_t i = 0; i < n_old; i++) {
        while (old[i]) {
            struct inst_dedup_entry *entry = old[i];
            size_t bucket = bucket_of(dedup, &entry->id);

            old[i] = entry->next;
            entry->next = buckets[bucket];
            buckets[bucket] = entry;
        }
    }
    (void)rt_free(old);
}

static void unhash(struct inst_dedup *dedup, struct inst_dedup_entry *entry)
{
    struct inst_dedup_entry **link = &dedup->buckets[bucket_of(dedup, &entry->id)];

    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
}

void inst_dedup_discard(struct inst_dedup *dedup, struct inst_dedup_entry *entry)
{
    entry->next = dedup->unused;
    dedup->unused = entry;
    dedup->n_entries--;
}

static void forget(struct inst_dedup *dedup, struct inst_dedup_entry *entry)
{
    unhash(dedup, entry);
    rt_list_remove(&entry->client_link);
    entry->client->n_entries--;
    entry->client = NULL;
    if (!entry->durable)
        entry->row->n_volatile--;
    rt_list_remove(&entry->row_link);
    if (!entry->written) {
        inst_dedup_discard(dedup, entry);
        return;
    }
    entry->durable = true;
    rt_list_push_back(&entry->row->dedup, &entry->row_link);
    rt_list_push_back(&dedup->condemned, &entry->client_link);
    dedup->n_condemned++;
}

static void forget_oldest(struct inst_dedup *dedup, struct inst_dedup_client *client)
{
    struct inst_dedup_entry *entry =
        RT_LIST_ENTRY(client->entries.next, struct inst_dedup_entry, client_link);

    if (client->watermark <= entry->id.seq)
        client->watermark = entry->id.seq + 1;
    forget(dedup, entry);
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static void forget_client(struct inst_dedup *dedup, struct inst_dedup_client *client)
{
    while (!rt_list_is_empty(&client->entries))
        forget_oldest(dedup, client);
    rt_list_remove(&client->link);
    HASH_DEL(dedup->clients, client);
    dedup->n_clients--;
    (void)rt_free(client);
}

/* Makes room for one entry at the cost of the clients that were heard of least recently. */
static bool make_room(struct inst_dedup *dedup)
{
    rt_list_for_each_safe (node, &dedup->by_use) {
        struct inst_dedup_client *client = RT_LIST_ENTRY(node, struct inst_dedup_client, link);

        while (!rt_list_is_empty(&client->entries)) {
            forget_oldest(dedup, client);
            if (dedup->n_entries < INST_DEDUP_ENTRIES_MAX)
                return true;
        }
    }
    return false;
}

static bool add_chunk(struct inst_dedup *dedup)
{
    struct inst_dedup_chunk *chunk = rt_alloc(sizeof(*chunk));

    if (!chunk)
        return false;
    chunk->next = dedup->chunks;
    dedup->chunks = chunk;
    for (size_t i = 0; i < CHUNK_ENTRIES; i++) {
        chunk->entries[i].next = dedup->unused;
        dedup->unused = &chunk->entries[i];
    }
    return true;
}

struct inst_dedup_entry *inst_dedup_prepare(struct inst_dedup *dedup)
{
    struct inst_dedup_entry *entry;

    if (dedup->n_entries >= INST_DEDUP_ENTRIES_MAX && !make_room(dedup))
        return NULL;
    if (dedup->n_entries >= dedup->n_buckets)
        grow_buckets(dedup);
    if (dedup->n_buckets == 0 || (!dedup->unused && !add_chunk(dedup)))
        return NULL;
    entry = dedup->unused;
    dedup->unused = entry->next;
    dedup->n_entries++;
    entry->client = NULL;
    return entry;
}

/* NOLINTNEXTLINE(readability-function-size): the macros of uthash nest */
static struct inst_dedup_client *get_client(struct inst_dedup *dedup, const struct model_id *id)
{
    struct inst_dedup_client *client = find_client(dedup, id);

    if (client) {
        rt_list_remove(&client->link);
        rt_list_push_back(&dedup->by_use, &client->link);
        return client;
    }
    if (dedup->n_clients == INST_DEDUP_CLIENTS_MAX)
        forget_client(dedup, RT_LIST_ENTRY(dedup->by_use.next, struct inst_dedup_client, link));
    client = rt_xalloc(sizeof(*client));
    client->id = *id;
    rt_list_init(&client->entries);
    rt_list_push_back(&dedup->by_use, &client->link);
    HASH_ADD(hh, dedup->clients, id, sizeof(client->id), client);
    dedup->n_clients++;
    return client;
}

void inst_dedup_record(struct inst_dedup *dedup, struct inst_dedup_entry *entry,
                       struct inst_row *row, const struct model_request_id *id,
                       const struct inst_dedup_result *result, bool durable)
{
    struct inst_dedup_client *client = get_client(dedup, &id->client);
    size_t bucket;

    if (client->n_entries == INST_DEDUP_PER_CLIENT_MAX)
        forget_oldest(dedup, client);
    entry->client = client;
    entry->row = row;
    entry->id = *id;
    entry->result = *result;
    entry->durable = durable;
    entry->written = durable;
    bucket = bucket_of(dedup, id);
    entry->next = dedup->buckets[bucket];
    dedup->buckets[bucket] = entry;
    rt_list_push_back(&client->entries, &entry->client_link);
    client->n_entries++;
    rt_list_push_back(durable ? &row->dedup : &row->dedup_volatile, &entry->row_link);
    row->n_volatile += durable ? 0 : 1;
}

void inst_dedup_done_below(struct inst_dedup *dedup, const struct model_id *client_id, uint64_t seq)
{
    struct inst_dedup_client *client = find_client(dedup, client_id);

    if (!client || seq <= client->watermark)
        return;
    client->watermark = seq;
    while (!rt_list_is_empty(&client->entries)) {
        struct inst_dedup_entry *entry =
            RT_LIST_ENTRY(client->entries.next, struct inst_dedup_entry, client_link);

        if (entry->id.seq >= seq)
            break;
        forget(dedup, entry);
    }
}

void inst_dedup_row_written(struct inst_row *row)
{
    rt_list_for_each (node, &row->dedup_volatile)
        RT_LIST_ENTRY(node, struct inst_dedup_entry, row_link)->written = true;
}

void inst_dedup_row_committed(struct inst_row *row)
{
    rt_list_for_each (node, &row->dedup_volatile)
        RT_LIST_ENTRY(node, struct inst_dedup_entry, row_link)->durable = true;
    rt_list_splice_back(&row->dedup, &row->dedup_volatile);
    row->n_volatile = 0;
}

/* An unreadable one may be of any epoch. */
static bool is_older(const struct inst_dedup_entry *entry, uint64_t epoch)
{
    if (epoch == UINT64_MAX)
        return true;
    return !entry->result.unknown && entry->result.version.epoch < epoch;
}

static void forget_list(struct inst_dedup *dedup, struct rt_list *list, uint64_t below_epoch)
{
    struct rt_list taken;

    rt_list_init(&taken);
    rt_list_splice_back(&taken, list);
    while (!rt_list_is_empty(&taken)) {
        struct inst_dedup_entry *entry =
            RT_LIST_ENTRY(taken.next, struct inst_dedup_entry, row_link);

        if (entry->client && is_older(entry, below_epoch)) {
            forget(dedup, entry);
        } else {
            rt_list_remove(&entry->row_link);
            rt_list_push_back(list, &entry->row_link);
        }
    }
}

void inst_dedup_forget_row(struct inst_dedup *dedup, struct inst_row *row)
{
    forget_list(dedup, &row->dedup_volatile, UINT64_MAX);
    forget_list(dedup, &row->dedup, UINT64_MAX);
}

void inst_dedup_forget_older(struct inst_dedup *dedup, struct inst_row *row)
{
    forget_list(dedup, &row->dedup, row->live.dedup_since);
}

bool inst_dedup_take_condemned(struct inst_dedup *dedup, struct inst_row **ret_row,
                               struct model_request_id *ret_id)
{
    struct rt_list *node = rt_list_pop_front(&dedup->condemned);
    struct inst_dedup_entry *entry;

    if (!node)
        return false;
    entry = RT_LIST_ENTRY(node, struct inst_dedup_entry, client_link);
    *ret_row = entry->row;
    *ret_id = entry->id;
    rt_list_remove(&entry->row_link);
    dedup->n_condemned--;
    inst_dedup_discard(dedup, entry);
    return true;
}
