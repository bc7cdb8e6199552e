/*
 * Expansions: parts in order, what is none, numbers at their limits.
 */
#include "runtime/model/template.h"

#include "runtime/base/compiler.h"
#include "tests/support/check.h"

TestSuite(template, .fini = test_alloc_expect_none);

#define TEXT RT_BYTES_LITERAL

/* One part, and nothing behind it. */
static struct model_part only(struct rt_bytes text)
{
    struct model_template_error error = {0};
    struct model_part part;

    cr_assert(model_template_next(&text, &part, &error), "%s", error.expected);
    cr_assert_eq(text.size, 0);
    return part;
}

static void refuse(struct rt_bytes text, size_t at, const char *said)
{
    const uint8_t *start = text.data;
    struct model_template_error error = {0};
    struct model_part part;

    while (text.size > 0 && model_template_next(&text, &part, &error))
        ;
    cr_assert_not_null(error.expected, "'%.*s' was taken", (int)text.size, (const char *)start);
    cr_assert_eq((size_t)(error.at - start), at);
    cr_assert_not_null(strstr(error.expected, said), "%s", error.expected);
}

Test(template, parts_in_order)
{
    static const enum model_part_kind kinds[] = {MODEL_PART_TEXT, MODEL_PART_ROUND, MODEL_PART_TEXT,
                                                 MODEL_PART_ZIPF, MODEL_PART_RANDOM};
    struct rt_bytes rest = TEXT("a$b${i}$${zipf 7}${rand 0 3}");
    struct model_template_error error;
    struct model_part parts[RT_ARRAY_SIZE(kinds)];

    for (size_t i = 0; i < RT_ARRAY_SIZE(kinds); i++) {
        cr_assert(model_template_next(&rest, &parts[i], &error));
        cr_assert_eq(parts[i].kind, kinds[i], "part %zu", i);
    }
    cr_assert_eq(rest.size, 0);
    cr_assert(rt_bytes_equal(parts[0].text, TEXT("a$b")));
    cr_assert(rt_bytes_equal(parts[2].text, TEXT("$")));
    cr_assert(parts[3].low == 1 && parts[3].high == 7);
    cr_assert(parts[4].low == 0 && parts[4].high == 3);
}

Test(template, a_dollar_sign)
{
    cr_assert(rt_bytes_equal(only(TEXT("${$}")).text, TEXT("$")));
    cr_assert(rt_bytes_equal(only(TEXT("$")).text, TEXT("$")));
    cr_assert(rt_bytes_equal(only(TEXT("$$ {i} $")).text, TEXT("$$ {i} $")));
}

Test(template, what_is_none)
{
    static const char any[] = "${i}, ${rand a b}, ${zipf n}";

    refuse(TEXT("${}"), 0, any);
    refuse(TEXT("x${I}"), 1, any);
    refuse(TEXT("${ i}"), 0, any);
    refuse(TEXT("${i }"), 0, any);
    refuse(TEXT("${i 1}"), 0, any);
    refuse(TEXT("${$ 1}"), 0, any);
    refuse(TEXT("${${i}}"), 0, any);
    refuse(TEXT("${rand 1 2 3}"), 0, any);
    refuse(TEXT("${i}${"), 4, "a closing brace");
    refuse(TEXT("${rand}"), 0, "${rand a b}, a and b whole numbers");
    refuse(TEXT("${rand 1}"), 0, "${rand a b}, a and b whole numbers");
    refuse(TEXT("${rand 2 1}"), 0, "a not above b");
    refuse(TEXT("${rand -1 1}"), 0, "from 0 to 999999999999999999");
    refuse(TEXT("${rand 0 0x1}"), 0, "from 0 to 999999999999999999");
    refuse(TEXT("${zipf}"), 0, "${zipf n}, n a whole number");
    refuse(TEXT("${zipf 1 2}"), 0, "${zipf n}, n a whole number");
}

Test(template, numbers_at_their_limits_and_past_them)
{
    cr_assert_eq(only(TEXT("${rand 0 999999999999999999}")).high, MODEL_TEMPLATE_NUMBER_MAX);
    cr_assert_eq(only(TEXT("${rand 5 5}")).low, 5);
    refuse(TEXT("${rand 0 1000000000000000000}"), 0, "from 0 to 999999999999999999");
    refuse(TEXT("${rand 0 99999999999999999999999999}"), 0, "from 0 to 999999999999999999");
    cr_assert_eq(only(TEXT("${zipf 1}")).high, 1);
    cr_assert_eq(only(TEXT("${zipf 1000000000}")).high, MODEL_TEMPLATE_RANKS_MAX);
    refuse(TEXT("${zipf 0}"), 0, "from 1 to 1000000000");
    refuse(TEXT("${zipf 1000000001}"), 0, "from 1 to 1000000000");
}

Test(template, an_expansion_has_a_size_limit)
{
    char text[MODEL_TEMPLATE_EXPANSION_MAX + 2];

    (void)snprintf(text, sizeof(text), "${zipf %*d}", MODEL_TEMPLATE_EXPANSION_MAX - 8, 1);
    cr_assert_eq(only(rt_bytes_of_string(text)).kind, MODEL_PART_ZIPF);
    (void)snprintf(text, sizeof(text), "${zipf %*d}", MODEL_TEMPLATE_EXPANSION_MAX - 7, 1);
    cr_assert_eq(strlen(text), MODEL_TEMPLATE_EXPANSION_MAX + 1);
    refuse(rt_bytes_of_string(text), 0, "within 64 bytes");
}
