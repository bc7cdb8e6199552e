/*
 * Intrusive doubly linked list with a sentinel. A node belongs to at most one list; a node that is
 * in no list points to itself.
 */
#ifndef RT_BASE_LIST_H
#define RT_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/compiler.h"

struct rt_list {
    struct rt_list *next;
    struct rt_list *previous;
};

#define RT_LIST_INIT(name)                                                                         \
    {                                                                                              \
        &(name), &(name)                                                                           \
    }

#define RT_LIST_ENTRY(node, type, member) RT_CONTAINER_OF(node, type, member)

/* NOLINTBEGIN(bugprone-macro-parentheses): `node` is declared here. */
#define rt_list_for_each(node, list)                                                               \
    for (struct rt_list *node = (list)->next; node != (list); node = node->next)

/* `node` may be removed, and freed, inside the loop. */
#define rt_list_for_each_safe(node, list)                                                          \
    for (struct rt_list *node = (list)->next, *node##_next = node->next; node != (list);           \
         node = node##_next, node##_next = node->next)
/* NOLINTEND(bugprone-macro-parentheses) */

static inline void rt_list_init(struct rt_list *node)
{
    node->next = node;
    node->previous = node;
}

static inline bool rt_list_is_empty(const struct rt_list *list)
{
    return list->next == list;
}

static inline void rt_list_insert_before(struct rt_list *position, struct rt_list *node)
{
    node->previous = position->previous;
    node->next = position;
    position->previous->next = node;
    position->previous = node;
}

static inline void rt_list_push_back(struct rt_list *list, struct rt_list *node)
{
    rt_list_insert_before(list, node);
}

static inline void rt_list_push_front(struct rt_list *list, struct rt_list *node)
{
    rt_list_insert_before(list->next, node);
}

/* Leaves the node pointing to itself; harmless on a node that is in no list. */
static inline void rt_list_remove(struct rt_list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    rt_list_init(node);
}

/* NULL when the list is empty. */
static inline struct rt_list *rt_list_pop_front(struct rt_list *list)
{
    struct rt_list *node = list->next;

    if (node == list)
        return NULL;
    rt_list_remove(node);
    return node;
}

/* Moves everything from `source` to the end of `target`, in order. */
static inline void rt_list_splice_back(struct rt_list *target, struct rt_list *source)
{
    if (rt_list_is_empty(source))
        return;
    source->next->previous = target->previous;
    target->previous->next = source->next;
    source->previous->next = target;
    target->previous = source->previous;
    rt_list_init(source);
}

#endif
