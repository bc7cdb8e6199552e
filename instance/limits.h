/*
 * Limits of the instance, for whatever a peer sizes or counts. Each has a test at the limit and one
 * past it, in the suite of the module that enforces it.
 */
#ifndef INST_LIMITS_H
#define INST_LIMITS_H

enum {
    INST_DEDUP_PER_CLIENT_MAX = 100000,   /* remembered requests of one client; the oldest go */
    INST_DEDUP_CLIENTS_MAX = 65536,       /* clients with remembered requests; least used goes */
    INST_DEDUP_ENTRIES_MAX = 1048576,     /* remembered requests in all */
    INST_DEDUP_VOLATILE_MAX = 4096,       /* of one key between two of its transactions */
    INST_DEDUP_PRUNE_MAX = 1024,          /* rows that one pruning transaction deletes */
    INST_WAITS_PER_KEY_MAX = 1024,        /* calls behind one key's transaction */
    INST_WAITS_MAX = 65536,               /* waiting calls in all */
    INST_DUMP_INTERVAL_MS_MAX = 86400000, /* a day */
    INST_DUMP_IN_FLIGHT_MAX = 64,         /* values that a dump writes at once */
    INST_PULLS_MAX = 256,                 /* keys being asked about at the coordinator at once */
};

#endif
