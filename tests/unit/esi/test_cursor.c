/*
 * Cursor: rounds, expansions, seeds; and random scripts against one that is unrolled by hand.
 */
#include "esi-client/cursor.h"

#include "runtime/base/zipf.h"
#include "tests/support/check.h"
#include "tests/support/property.h"

TestSuite(cursor, .fini = test_alloc_expect_none);

static struct esi_script_errors errors;

static struct esi_script *parse(const char *text)
{
    struct esi_script *script;
    struct rt_error err;

    cr_assert_eq(esi_script_parse("a.esi", rt_bytes_of_string(text), MODEL_DIALECT_EXTENDED,
                                  &script, &errors, &err),
                 RT_OK, "%s", err.message);
    return script;
}

/* "line/round STATEMENT key value" of each, a line each. */
static void append_all(struct esi_cursor *cursor, struct rt_buffer *text)
{
    struct esi_statement statement;

    while (!esi_cursor_is_done(cursor)) {
        cr_assert_eq(esi_cursor_next(cursor, &statement, NULL), RT_OK);
        rt_buffer_printf(text, "%u/%llu %s ", (unsigned int)statement.line,
                         (unsigned long long)statement.round, esi_statement_name(&statement));
        rt_buffer_append(text, statement.key);
        rt_buffer_append_byte(text, ' ');
        rt_buffer_append(text, statement.value);
        rt_buffer_append_byte(text, '\n');
    }
}

/* What a run with this seed executes; the buffer is the caller's. */
static struct rt_buffer unroll(const char *text, uint64_t seed)
{
    struct esi_script *script = parse(text);
    struct rt_buffer result = {0};
    struct esi_cursor cursor;

    esi_cursor_init(&cursor, script, seed);
    append_all(&cursor, &result);
    esi_cursor_deinit(&cursor);
    (void)esi_script_free(script);
    return result;
}

static void expect(const char *text, const char *expected)
{
    struct rt_buffer result = unroll(text, 1);

    cr_assert_str_eq(rt_buffer_string(&result), expected);
    rt_buffer_deinit(&result);
}

Test(cursor, statements_in_order)
{
    expect("", "");
    expect("# nothing\n", "");
    expect("GET k\nset k a b\nSTORE k\nREAD k\nEXPECT a b\nSLEEP 5\nDEL k\nPUT k v",
           "1/0 GET k \n2/0 SET k a b\n3/0 STORE k \n4/0 READ k \n5/0 EXPECT  a b\n6/0 SLEEP  \n"
           "7/0 DEL k \n8/0 PUT k v\n");
}

Test(cursor, rounds_count_from_one_and_the_innermost_counts)
{
    expect("REPEAT 2\n"
           "GET a${i}\n"
           "REPEAT 3\n"
           "GET b${i}\n"
           "END\n"
           "GET c${i}\n"
           "END\n"
           "GET d\n",
           "2/1 GET a1 \n4/1 GET b1 \n4/2 GET b2 \n4/3 GET b3 \n6/1 GET c1 \n"
           "2/2 GET a2 \n4/1 GET b1 \n4/2 GET b2 \n4/3 GET b3 \n6/2 GET c2 \n8/0 GET d \n");
    expect("REPEAT 2\nREPEAT 1\nREPEAT 2\nGET ${i}\nEND\nEND\nEND",
           "4/1 GET 1 \n4/2 GET 2 \n4/1 GET 1 \n4/2 GET 2 \n");
}

Test(cursor, expansions_in_keys_and_values)
{
    expect("REPEAT 1\nSET a${i}b${$}{i} <${i}${i}> $ {i}\nEXPECT ${i}\nEND",
           "2/1 SET a1b${i} <11> $ {i}\n3/1 EXPECT  1\n");
    expect("SET k${rand 7 7} ${zipf 1}${rand 999999999999999999 999999999999999999}",
           "1/0 SET k7 1999999999999999999\n");
}

Test(cursor, equal_seeds_give_equal_statements)
{
    static const char text[] = "REPEAT 50\nSET k${rand 0 999999999} ${zipf 1000000}\nEND";
    struct rt_buffer a = unroll(text, 5), b = unroll(text, 5), c = unroll(text, 6);

    cr_assert(rt_bytes_equal(rt_buffer_bytes(&a), rt_buffer_bytes(&b)));
    cr_assert_not(rt_bytes_equal(rt_buffer_bytes(&a), rt_buffer_bytes(&c)));
    rt_buffer_deinit(&a);
    rt_buffer_deinit(&b);
    rt_buffer_deinit(&c);
}

Test(cursor, each_script_of_a_run_has_a_seed_of_its_own)
{
    uint64_t seeds[100];

    for (size_t i = 0; i < RT_ARRAY_SIZE(seeds); i++) {
        seeds[i] = esi_cursor_seed(42, i);
        cr_assert_eq(seeds[i], esi_cursor_seed(42, i));
        for (size_t k = 0; k < i; k++)
            cr_assert_neq(seeds[i], seeds[k]);
    }
    cr_assert_neq(esi_cursor_seed(43, 0), seeds[0]);
}

Test(cursor, numbers_stay_in_their_ranges_and_reach_the_ends)
{
    struct esi_script *script = parse("REPEAT 2000\nSET ${rand 3 6} ${zipf 4}\nEND");
    size_t n_random[10] = {0}, n_zipf[10] = {0};
    struct esi_cursor cursor;
    struct esi_statement statement;

    esi_cursor_init(&cursor, script, 9);
    while (!esi_cursor_is_done(&cursor)) {
        cr_assert_eq(esi_cursor_next(&cursor, &statement, NULL), RT_OK);
        cr_assert(statement.key.size == 1 && statement.value.size == 1);
        n_random[statement.key.data[0] - '0']++;
        n_zipf[statement.value.data[0] - '0']++;
    }
    for (size_t i = 0; i < RT_ARRAY_SIZE(n_random); i++) {
        /* A quarter each, five deviations around it. */
        cr_assert(i < 3 || i > 6 ? n_random[i] == 0 : n_random[i] > 400 && n_random[i] < 600);
        cr_assert_eq(n_zipf[i] > 0, i >= 1 && i <= 4);
    }
    cr_assert(n_zipf[1] > n_zipf[2] && n_zipf[2] > n_zipf[4]);
    esi_cursor_deinit(&cursor);
    (void)esi_script_free(script);
}

Test(cursor, a_hundred_million_rounds_take_no_memory)
{
    struct esi_script *script = parse("REPEAT 100000000\nGET k${i}\nEND");
    struct esi_cursor cursor;
    struct esi_statement statement;

    esi_cursor_init(&cursor, script, 1);
    for (size_t i = 0; i < 1000; i++)
        cr_assert_eq(esi_cursor_next(&cursor, &statement, NULL), RT_OK);
    cr_assert(rt_bytes_equal(statement.key, RT_BYTES_LITERAL("k1000")));
    cr_assert_leq(cursor.text.capacity, 64);
    esi_cursor_deinit(&cursor);
    (void)esi_script_free(script);
}

Test(cursor, without_memory_it_stays_where_it_is)
{
    struct esi_script *script = parse("SET k${rand 1 1000000} v");
    struct rt_error err = RT_ERROR_INIT;
    struct esi_statement with, without;
    struct esi_cursor cursor;

    esi_cursor_init(&cursor, script, 3);
    cr_assert_eq(esi_cursor_next(&cursor, &without, NULL), RT_OK);
    cr_assert(esi_cursor_is_expanded(&cursor));
    cr_assert(rt_bytes_equal(esi_cursor_as_written(&cursor)->key,
                             RT_BYTES_LITERAL("k${rand 1 1000000}")));

    struct esi_cursor again;

    esi_cursor_init(&again, script, 3);
    test_alloc_fail_after(0, 1);
    cr_assert_eq(esi_cursor_next(&again, &with, &err), RT_RESOURCE_EXHAUSTED);
    test_alloc_fail_never();
    cr_assert_not(esi_cursor_is_done(&again));
    cr_assert_eq(esi_cursor_next(&again, &with, NULL), RT_OK);
    cr_assert(rt_bytes_equal(with.key, without.key));
    esi_cursor_deinit(&cursor);
    esi_cursor_deinit(&again);
    (void)esi_script_free(script);
}

/* ---- against a script that is unrolled ------------------------------------------------------- */

enum {
    UNROLLED_MAX = 4000,
    N_LINES_MAX = 2 * TEST_PROPERTY_STEPS_MAX + ESI_SCRIPT_DEPTH_MAX,
};

enum naive_op {
    OP_READ,  /* READ k */
    OP_ROUND, /* GET k<round> */
    OP_DRAW,  /* SET k<random> <rank> */
    OP_REPEAT,
    OP_END,
    N_OPS
};

struct naive_line {
    enum naive_op op;
    unsigned number; /* rounds, or the range that is drawn from */
};

struct naive {
    struct naive_line lines[N_LINES_MAX];
    size_t n_lines;
    struct rt_rng rng;
    struct rt_buffer text; /* as append_all() has it */
};

static void add(struct naive *naive, enum naive_op op, unsigned number)
{
    naive->lines[naive->n_lines++] = (struct naive_line){op, number};
}

/* Any numbers become a script that is in order and not too long. */
static void read_steps(struct naive *naive, const uint64_t *steps, size_t n_steps)
{
    size_t starts[ESI_SCRIPT_DEPTH_MAX], depth = 0, product[ESI_SCRIPT_DEPTH_MAX + 1] = {1};
    size_t n_executed = 0;

    for (size_t i = 0; i < n_steps && n_executed < UNROLLED_MAX; i++) {
        enum naive_op op = (enum naive_op)(steps[i] % N_OPS);
        unsigned number = 1 + (unsigned)(steps[i] / N_OPS % 4);

        if (op == OP_REPEAT && depth < ESI_SCRIPT_DEPTH_MAX) {
            if (product[depth] * number > UNROLLED_MAX / 10)
                number = 1;
            product[depth + 1] = product[depth] * number;
            starts[depth++] = naive->n_lines;
            add(naive, OP_REPEAT, number);
        } else if (op == OP_END && depth > 0) {
            if (naive->n_lines == starts[--depth] + 1)
                add(naive, OP_READ, 0);
            add(naive, OP_END, 0);
        } else if (op < OP_REPEAT && (op != OP_ROUND || depth > 0)) {
            add(naive, op, number);
            n_executed += product[depth];
        }
    }
    while (depth-- > 0) {
        if (naive->n_lines == starts[depth] + 1)
            add(naive, OP_READ, 0);
        add(naive, OP_END, 0);
    }
}

static void append_source(const struct naive *naive, struct rt_buffer *text)
{
    for (size_t i = 0; i < naive->n_lines; i++) {
        unsigned number = naive->lines[i].number;

        switch (naive->lines[i].op) {
        case OP_READ:
            rt_buffer_append_string(text, "READ k\n");
            break;
        case OP_ROUND:
            rt_buffer_append_string(text, "GET k${i}\n");
            break;
        case OP_DRAW:
            rt_buffer_printf(text, "SET k${rand 0 %u} ${zipf %u}\n", number, number);
            break;
        case OP_REPEAT:
            rt_buffer_printf(text, "REPEAT %u\n", number);
            break;
        case OP_END:
        case N_OPS:
            rt_buffer_append_string(text, "END\n");
            break;
        }
    }
}

static size_t end_of(const struct naive *naive, size_t repeat)
{
    size_t depth = 0;

    for (size_t i = repeat;; i++) {
        depth += naive->lines[i].op == OP_REPEAT;
        depth -= naive->lines[i].op == OP_END;
        if (depth == 0)
            return i;
    }
}

static void run(struct naive *naive, size_t from, size_t to, unsigned round);

static size_t run_line(struct naive *naive, size_t i, unsigned round)
{
    const struct naive_line *line = &naive->lines[i];
    unsigned drawn;
    struct rt_zipf zipf;

    switch (line->op) {
    case OP_READ:
        rt_buffer_printf(&naive->text, "%zu/%u READ k \n", i + 1, round);
        return i + 1;
    case OP_ROUND:
        rt_buffer_printf(&naive->text, "%zu/%u GET k%u \n", i + 1, round, round);
        return i + 1;
    case OP_DRAW:
        drawn = (unsigned)rt_rng_below(&naive->rng, line->number + 1);
        rt_zipf_init(&zipf, line->number, 0.99);
        rt_buffer_printf(&naive->text, "%zu/%u SET k%u %u\n", i + 1, round, drawn,
                         (unsigned)rt_zipf_draw(&zipf, &naive->rng));
        return i + 1;
    case OP_REPEAT:
        for (unsigned r = 1; r <= line->number; r++)
            run(naive, i + 1, end_of(naive, i), r);
        return end_of(naive, i) + 1;
    case OP_END:
    case N_OPS:
        break;
    }
    return i + 1;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the script's blocks. */
static void run(struct naive *naive, size_t from, size_t to, unsigned round)
{
    while (from < to)
        from = run_line(naive, from, round);
}

static bool agrees(const uint64_t *steps, size_t n_steps)
{
    static struct naive naive;
    struct rt_buffer source = {0}, result = {0};
    struct esi_script *script = NULL;
    struct esi_cursor cursor;
    bool is_equal = false;

    naive.n_lines = 0;
    read_steps(&naive, steps, n_steps);
    append_source(&naive, &source);
    rt_rng_seed(&naive.rng, 11);
    run(&naive, 0, naive.n_lines, 0);
    if (esi_script_parse("a", rt_buffer_bytes(&source), MODEL_DIALECT_EXTENDED, &script, &errors,
                         NULL) == RT_OK) {
        size_t n_lines = 0;

        esi_cursor_init(&cursor, script, 11);
        append_all(&cursor, &result);
        esi_cursor_deinit(&cursor);
        for (size_t i = 0; i < result.size; i++)
            n_lines += result.data[i] == '\n';
        is_equal = n_lines == script->n_executed &&
                   rt_bytes_equal(rt_buffer_bytes(&result), rt_buffer_bytes(&naive.text));
        (void)esi_script_free(script);
    }
    rt_buffer_deinit(&naive.text);
    rt_buffer_deinit(&source);
    rt_buffer_deinit(&result);
    return is_equal;
}

Test(cursor, random_scripts_are_what_unrolling_gives)
{
    const char *failure = test_property_fails(agrees, 1, 300);

    cr_assert_null(failure, "%s", failure);
}
