/*
 * Limits that the services share. Every one of them is checked at the edge where the quantity
 * arrives, and has a test at the limit and one past it.
 */
#ifndef MODEL_LIMITS_H
#define MODEL_LIMITS_H

enum {
    MODEL_KEY_MAX = 255,                  /* bytes; keys have at least 1 */
    MODEL_KEY_MAX_CLASSIC = 40,           /* bytes, under the classic profile */
    MODEL_VALUE_MAX = 1024 * 1024,        /* bytes */
    MODEL_NAME_MAX = 63,                  /* bytes of an instance or session name, [A-Za-z0-9._-] */
    MODEL_ADDRESS_MAX = 255,              /* bytes of "host:port" or "unix:path" */
    MODEL_RECONCILE_ROWS_MAX = 512,       /* rows of one Reconcile message, either direction */
    MODEL_PIPELINE_OPERATIONS_MAX = 1024, /* of one batch */
    MODEL_PIPELINE_BATCHES_MAX = 64,      /* under way on one stream; then it is not read */
    MODEL_PIPELINE_BYTES_MAX = 8 * 1024 * 1024,  /* the same, their operations and results */
    MODEL_PIPELINE_VALUES_MAX = 2 * 1024 * 1024, /* bytes of values read in one response */
    MODEL_PAGE_MAX = 1000,                       /* items of one page of a listing */
    MODEL_DELAY_MS_MAX = 10000,                  /* of one statement, to be looked at */
    MODEL_WATCH_KEYS_MAX = 512,                  /* keys of one message of WatchRoutes */
    MODEL_MEMBERS_MAX = 1024,                    /* instances the coordinator remembers */
    MODEL_SESSIONS_MAX = 65536,                  /* sessions alive at once */
    MODEL_WAITERS_MAX = 1024,                    /* sessions waiting for one key */
    MODEL_ESI_SCRIPT_MAX = 1024 * 1024,          /* bytes of one submitted script */
    MODEL_ESI_MESSAGE_MAX = 255,                 /* bytes of why an ESI ended */
    MODEL_EVICTED_MAX = 1024,                    /* evicted keys that one answer names */
};

#endif
