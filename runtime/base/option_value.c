/*
 * Options as text and as values: see option_internal.h. Invariant: what is formatted parses to the
 * same value. No state, any thread.
 */
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/option_describe.h"
#include "runtime/base/option_internal.h"

struct unit {
    const char *name;
    uint64_t factor;
};

/* Smallest first. */
static const struct unit duration_units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000},
};

static const struct unit size_units[] = {
    {"B", 1},
    {"KiB", (uint64_t)1 << 10},
    {"MiB", (uint64_t)1 << 20},
    {"GiB", (uint64_t)1 << 30},
    {"TiB", (uint64_t)1 << 40},
};

static const char *const flag_words[][2] = {
    {"false", "true"},
    {"no", "yes"},
    {"off", "on"},
    {"0", "1"},
};

/* Digits up to the first other character; false without any or past UINT64_MAX. */
static bool parse_digits(const char *text, uint64_t *ret_value, const char **ret_end)
{
    uint64_t value = 0;
    const char *end = text;

    for (; *end >= '0' && *end <= '9'; end++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*end - '0'), &value))
            return false;
    }
    *ret_value = value;
    *ret_end = end;
    return end != text;
}

static bool parse_with_unit(const char *text, const struct unit *units, size_t n_units,
                            bool needs_unit, uint64_t *ret_value)
{
    const char *end;
    uint64_t value;

    if (!parse_digits(text, &value, &end))
        return false;
    if (*end == 0 && (!needs_unit || value == 0)) {
        *ret_value = value;
        return true;
    }
    for (size_t i = 0; i < n_units; i++)
        if (strcmp(end, units[i].name) == 0)
            return !__builtin_mul_overflow(value, units[i].factor, ret_value);
    return false;
}

static bool parse_number(enum rt_option_type type, const char *text, uint64_t *ret_value)
{
    if (type == RT_OPTION_DURATION)
        return parse_with_unit(text, duration_units, RT_ARRAY_SIZE(duration_units), true,
                               ret_value);
    if (type == RT_OPTION_SIZE)
        return parse_with_unit(text, size_units, RT_ARRAY_SIZE(size_units), false, ret_value);
    return parse_with_unit(text, NULL, 0, false, ret_value);
}

/* With the largest unit that leaves no rest. */
static void format_with_unit(uint64_t value, const struct unit *units, size_t n_units,
                             struct rt_buffer *buffer)
{
    size_t i = n_units - 1;

    while (i > 0 && (value == 0 || value % units[i].factor != 0))
        i--;
    rt_buffer_printf(buffer, "%llu%s", (unsigned long long)(value / units[i].factor),
                     units[i].name);
}

static void format_number(enum rt_option_type type, uint64_t value, struct rt_buffer *buffer)
{
    if (type == RT_OPTION_DURATION)
        format_with_unit(value, duration_units, RT_ARRAY_SIZE(duration_units), buffer);
    else if (type == RT_OPTION_SIZE)
        format_with_unit(value, size_units, RT_ARRAY_SIZE(size_units), buffer);
    else
        rt_buffer_printf(buffer, "%llu", (unsigned long long)value);
}

static uint64_t max_of(const struct rt_option *option)
{
    return option->max ? option->max : UINT64_MAX;
}

void rt_option_format_range(const struct rt_option *option, struct rt_buffer *buffer)
{
    switch (option->type) {
    case RT_OPTION_STRING:
    case RT_OPTION_ADDRESS:
    case RT_OPTION_FLAG:
        break;
    case RT_OPTION_ENUM:
        for (size_t i = 0; option->names[i]; i++)
            rt_buffer_printf(buffer, "%s%s", i > 0 ? " | " : "", option->names[i]);
        break;
    case RT_OPTION_U64:
    case RT_OPTION_DURATION:
    case RT_OPTION_SIZE:
        if (option->min == 0 && option->max == 0)
            break;
        format_number(option->type, option->min, buffer);
        rt_buffer_append_string(buffer, option->max ? ".." : " or more");
        if (option->max)
            format_number(option->type, option->max, buffer);
        break;
    }
}

static const char *kind_of(enum rt_option_type type)
{
    switch (type) {
    case RT_OPTION_STRING:
        return "a text";
    case RT_OPTION_ADDRESS:
        return "an address like 127.0.0.1:7400, [::1]:7400 or unix:/path";
    case RT_OPTION_ENUM:
        return "one of the names";
    case RT_OPTION_FLAG:
        return "true or false";
    case RT_OPTION_U64:
        return "a whole number";
    case RT_OPTION_DURATION:
        return "a duration like 500ms, 10s, 5m, 2h or 1d";
    case RT_OPTION_SIZE:
        return "a size like 4096, 64KiB or 1MiB";
    }
    return "";
}

/* "'x' is not a whole number (1..10)" */
static enum rt_code fail_value(const struct rt_option *option, const char *text, const char *wrong,
                               struct rt_error *err)
{
    struct rt_buffer range = {0};
    enum rt_code code;

    rt_option_format_range(option, &range);
    code = rt_fail(err, RT_INVALID_ARGUMENT, "'%s' is %s%s%s%s", text, wrong,
                   range.size > 0 ? " (" : "", rt_buffer_string(&range), range.size > 0 ? ")" : "");
    rt_buffer_deinit(&range);
    return code;
}

static enum rt_code fail_kind(const struct rt_option *option, const char *text,
                              struct rt_error *err)
{
    RT_CLEANUP(rt_freep) char *wrong = rt_xasprintf("not %s", kind_of(option->type));

    return fail_value(option, text, wrong, err);
}

/* Without brackets a host has no colon, else nobody could tell where the port begins. */
static bool is_host(const char *text, size_t size)
{
    if (size > 2 && text[0] == '[')
        return text[size - 1] == ']' && !memchr(text, ']', size - 1);
    return size > 0 && !memchr(text, ':', size) && !memchr(text, '[', size);
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

static enum rt_code check_address(const struct rt_option *option, const char *text,
                                  struct rt_error *err)
{
    const char *colon = strrchr(text, ':');
    uint64_t max = option->max ? option->max : UINT16_MAX;
    uint64_t port;

    if (strlen(text) > RT_OPTION_ADDRESS_MAX)
        return rt_fail(err, RT_INVALID_ARGUMENT, "an address has at most %d bytes",
                       RT_OPTION_ADDRESS_MAX);
    if (!colon || !is_printable(text))
        return fail_kind(option, text, err);
    if (strncmp(text, "unix:", 5) == 0)
        return text[5] ? RT_OK : fail_kind(option, text, err);
    if (!is_host(text, (size_t)(colon - text)) || !parse_number(RT_OPTION_U64, colon + 1, &port))
        return fail_kind(option, text, err);
    if (port < option->min || port > max)
        return rt_fail(err, RT_INVALID_ARGUMENT, "the port of '%s' is out of range (%u..%u)", text,
                       (unsigned)option->min, (unsigned)max);
    return RT_OK;
}

static enum rt_code set_number(struct rt_option_entry *entry, const char *text,
                               struct rt_error *err)
{
    const struct rt_option *option = entry->option;
    uint64_t value;

    if (!parse_number(option->type, text, &value))
        return fail_kind(option, text, err);
    if (value < option->min || value > max_of(option))
        return fail_value(option, text, "out of range", err);
    memcpy(entry->field, &value, sizeof(value));
    return RT_OK;
}

static enum rt_code set_flag(struct rt_option_entry *entry, const char *text, struct rt_error *err)
{
    for (size_t i = 0; i < RT_ARRAY_SIZE(flag_words); i++) {
        for (size_t value = 0; value < 2; value++) {
            if (strcmp(text, flag_words[i][value]) == 0) {
                *(bool *)entry->field = value == 1;
                return RT_OK;
            }
        }
    }
    return fail_kind(entry->option, text, err);
}

static enum rt_code set_enum(struct rt_option_entry *entry, const char *text, struct rt_error *err)
{
    for (int i = 0; entry->option->names[i]; i++) {
        if (strcmp(text, entry->option->names[i]) == 0) {
            memcpy(entry->field, &i, sizeof(i));
            return RT_OK;
        }
    }
    return fail_kind(entry->option, text, err);
}

static void set_text(struct rt_option_entry *entry, const char *text)
{
    char *copy = rt_xstrdup(text);

    (void)rt_free(entry->text);
    entry->text = copy;
    if (entry->option->type == RT_OPTION_STRING || entry->option->type == RT_OPTION_ADDRESS)
        memcpy(entry->field, &copy, sizeof(copy));
}

enum rt_code rt_option_value_set(struct rt_option_entry *entry, const char *text,
                                 struct rt_error *err)
{
    enum rt_code code = RT_OK;

    switch (entry->option->type) {
    case RT_OPTION_STRING:
        break;
    case RT_OPTION_ADDRESS:
        code = check_address(entry->option, text, err);
        break;
    case RT_OPTION_ENUM:
        code = set_enum(entry, text, err);
        break;
    case RT_OPTION_FLAG:
        code = set_flag(entry, text, err);
        break;
    case RT_OPTION_U64:
    case RT_OPTION_DURATION:
    case RT_OPTION_SIZE:
        code = set_number(entry, text, err);
        break;
    }
    if (code == RT_OK)
        set_text(entry, text);
    return code;
}

enum rt_code rt_option_value_check(const struct rt_option *option, const char *text,
                                   struct rt_error *err)
{
    union {
        const char *text;
        uint64_t number;
        int index;
        bool flag;
    } field;
    struct rt_option_entry scratch = {.option = option, .field = &field};
    enum rt_code code = rt_option_value_set(&scratch, text, err);

    (void)rt_free(scratch.text);
    return code;
}

void rt_option_value_format(const struct rt_option_entry *entry, struct rt_buffer *buffer)
{
    uint64_t value;
    int index;

    switch (entry->option->type) {
    case RT_OPTION_STRING:
    case RT_OPTION_ADDRESS:
        rt_buffer_append_string(buffer, entry->text ? entry->text : "");
        break;
    case RT_OPTION_ENUM:
        memcpy(&index, entry->field, sizeof(index));
        rt_buffer_append_string(buffer, entry->option->names[index]);
        break;
    case RT_OPTION_FLAG:
        rt_buffer_append_string(buffer, *(const bool *)entry->field ? "true" : "false");
        break;
    case RT_OPTION_U64:
    case RT_OPTION_DURATION:
    case RT_OPTION_SIZE:
        memcpy(&value, entry->field, sizeof(value));
        format_number(entry->option->type, value, buffer);
        break;
    }
}
