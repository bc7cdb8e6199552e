/*
 * Visits one field of a message, of the name that the text gives it; see walk.h. For walk.c.
 */
#ifndef TESTS_UNIT_WIRE_WALK_VISIT_H
#define TESTS_UNIT_WIRE_WALK_VISIT_H

#include "tests/unit/wire/walk.h"

void visit_u64(struct walk *walk, const char *field, uint64_t *value);
void visit_u32(struct walk *walk, const char *field, uint32_t *value);
void visit_bool(struct walk *walk, const char *field, bool *value);
void visit_choice(struct walk *walk, const char *field, int *value, unsigned n);
void visit_bytes(struct walk *walk, const char *field, struct rt_bytes *bytes, size_t min,
                 size_t max);
void visit_text(struct walk *walk, const char *field, char *text, const char *alphabet, size_t min,
                size_t max);
void visit_name(struct walk *walk, const char *field, char *name, size_t min);
void visit_address(struct walk *walk, const char *field, char *address);
void visit_name_bytes(struct walk *walk, const char *field, struct rt_bytes *name, size_t min);
void visit_id(struct walk *walk, const char *field, struct model_id *id, bool required);
void visit_key(struct walk *walk, struct rt_bytes *key);
void visit_value(struct walk *walk, struct rt_bytes *value);
void visit_version(struct walk *walk, struct model_version *version);
void visit_optional_version(struct walk *walk, const char *field, bool *has,
                            struct model_version *version);
void visit_request_id(struct walk *walk, struct model_request_id *id);
void visit_list(struct walk *walk, const char *field, void **items, size_t *n, size_t item_size);
void visit_row(struct walk *walk, struct model_row *row);
void visit_rows(struct walk *walk, struct model_row **rows, size_t *n);

#endif
