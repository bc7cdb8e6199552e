/*
 * Intrusive list.
 */
#include "runtime/base/list.h"

#include "tests/support/check.h"

struct item {
    char name;
    struct rt_list link;
};

static struct item a = {.name = 'a'};
static struct item b = {.name = 'b'};
static struct item c = {.name = 'c'};
static struct rt_list list;

static void set_up(void)
{
    rt_list_init(&list);
    rt_list_init(&a.link);
    rt_list_init(&b.link);
    rt_list_init(&c.link);
}

TestSuite(list, .init = set_up, .fini = test_alloc_expect_none);

/* Walks both ways. */
static const char *names(const struct rt_list *of)
{
    static char text[8];
    size_t n = 0;

    rt_list_for_each (node, of)
        text[n++] = RT_LIST_ENTRY(node, struct item, link)->name;
    text[n] = 0;
    for (const struct rt_list *node = of->previous; node != of; node = node->previous)
        cr_assert_eq(RT_LIST_ENTRY(node, struct item, link)->name, text[--n]);
    cr_assert_eq(n, 0);
    return text;
}

Test(list, empty)
{
    struct rt_list fresh = RT_LIST_INIT(fresh);

    cr_assert(rt_list_is_empty(&fresh));
    cr_assert_null(rt_list_pop_front(&fresh));
    cr_assert_str_eq(names(&list), "");
}

Test(list, push_and_pop)
{
    rt_list_push_back(&list, &b.link);
    rt_list_push_back(&list, &c.link);
    rt_list_push_front(&list, &a.link);
    cr_assert_str_eq(names(&list), "abc");
    cr_assert_eq(rt_list_pop_front(&list), &a.link);
    cr_assert(rt_list_is_empty(&a.link), "points to itself");
    cr_assert_str_eq(names(&list), "bc");
}

Test(list, insert_before)
{
    rt_list_push_back(&list, &a.link);
    rt_list_push_back(&list, &c.link);
    rt_list_insert_before(&c.link, &b.link);
    cr_assert_str_eq(names(&list), "abc");
}

Test(list, remove_from_anywhere_and_twice)
{
    rt_list_push_back(&list, &a.link);
    rt_list_push_back(&list, &b.link);
    rt_list_push_back(&list, &c.link);
    rt_list_remove(&b.link);
    rt_list_remove(&b.link);
    cr_assert_str_eq(names(&list), "ac");
    rt_list_remove(&a.link);
    rt_list_remove(&c.link);
    cr_assert(rt_list_is_empty(&list));
}

Test(list, remove_while_walking)
{
    rt_list_push_back(&list, &a.link);
    rt_list_push_back(&list, &b.link);
    rt_list_push_back(&list, &c.link);
    rt_list_for_each_safe (node, &list) {
        if (node != &b.link)
            rt_list_remove(node);
    }
    cr_assert_str_eq(names(&list), "b");
}

Test(list, splice_keeps_the_order)
{
    struct rt_list other = RT_LIST_INIT(other);

    rt_list_push_back(&list, &a.link);
    rt_list_splice_back(&list, &other);
    cr_assert_str_eq(names(&list), "a");
    rt_list_push_back(&other, &b.link);
    rt_list_push_back(&other, &c.link);
    rt_list_splice_back(&list, &other);
    cr_assert_str_eq(names(&list), "abc");
    cr_assert(rt_list_is_empty(&other));
    rt_list_splice_back(&other, &list);
    cr_assert_str_eq(names(&other), "abc");
}
