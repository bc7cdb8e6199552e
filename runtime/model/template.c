/*
 * Expansions: see template.h. Invariant: parts come in order and are what the template is made of,
 * byte for byte. Pure.
 */
#include "runtime/model/template.h"

#include "runtime/base/compiler.h"

_Static_assert(MODEL_TEMPLATE_NUMBER_MAX == UINT64_C(999999999999999999), "the texts name it");
_Static_assert(MODEL_TEMPLATE_RANKS_MAX == UINT64_C(1000000000), "the texts name it");
_Static_assert(MODEL_TEMPLATE_EXPANSION_MAX == 64, "the text names it");

enum {
    N_WORDS_MAX = 3
};

/* Between the braces. */
struct words {
    struct rt_bytes items[N_WORDS_MAX];
    size_t n;
    bool is_well_formed; /* that many, blanks only between them */
};

static bool is_blank(uint8_t c)
{
    return c == ' ' || c == '\t';
}

const uint8_t *model_template_find(struct rt_bytes text)
{
    const uint8_t *at = text.data, *end = text.data + text.size;

    while (at < end) {
        at = memchr(at, '$', (size_t)(end - at));
        if (!at)
            return end;
        if (at + 1 < end && at[1] == '{')
            return at;
        at++;
    }
    return end;
}

static struct words split(struct rt_bytes inside)
{
    struct words words = {0};
    size_t at = 0;

    while (at < inside.size && words.n < N_WORDS_MAX) {
        size_t start = at;

        while (at < inside.size && !is_blank(inside.data[at]))
            at++;
        words.items[words.n++] = rt_bytes_of(inside.data + start, at - start);
        if (at == inside.size)
            break;
        while (at < inside.size && is_blank(inside.data[at]))
            at++;
        if (at == inside.size) /* a blank before the brace */
            return words;
    }
    words.is_well_formed = at == inside.size && words.n > 0 && words.items[0].size > 0;
    return words;
}

static bool is_word(struct rt_bytes bytes, const char *word)
{
    return rt_bytes_equal(bytes, rt_bytes_of(word, strlen(word)));
}

bool model_template_parse_number(struct rt_bytes text, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (text.size == 0)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (text.data[i] - '0');
        if (number > max)
            return false;
    }
    *ret_number = number;
    return true;
}

/* NULL when it is what the words are, else what was expected. */
static const char *parse_random(const struct words *words, struct model_part *ret_part)
{
    if (words->n != 3 ||
        !model_template_parse_number(words->items[1], MODEL_TEMPLATE_NUMBER_MAX, &ret_part->low) ||
        !model_template_parse_number(words->items[2], MODEL_TEMPLATE_NUMBER_MAX, &ret_part->high) ||
        ret_part->low > ret_part->high)
        return "${rand a b}, a and b whole numbers from 0 to 999999999999999999, a not above b";
    ret_part->kind = MODEL_PART_RANDOM;
    return NULL;
}

static const char *parse_zipf(const struct words *words, struct model_part *ret_part)
{
    ret_part->low = 1;
    if (words->n != 2 ||
        !model_template_parse_number(words->items[1], MODEL_TEMPLATE_RANKS_MAX, &ret_part->high) ||
        ret_part->high == 0)
        return "${zipf n}, n a whole number from 1 to 1000000000";
    ret_part->kind = MODEL_PART_ZIPF;
    return NULL;
}

static const char *parse_inside(struct rt_bytes inside, struct model_part *ret_part)
{
    struct words words = split(inside);

    if (words.is_well_formed && is_word(words.items[0], "rand"))
        return parse_random(&words, ret_part);
    if (words.is_well_formed && is_word(words.items[0], "zipf"))
        return parse_zipf(&words, ret_part);
    if (words.is_well_formed && words.n == 1 && is_word(words.items[0], "i")) {
        ret_part->kind = MODEL_PART_ROUND;
        return NULL;
    }
    if (words.is_well_formed && words.n == 1 && is_word(words.items[0], "$")) {
        ret_part->kind = MODEL_PART_TEXT;
        ret_part->text = inside;
        return NULL;
    }
    return "${i}, ${rand a b}, ${zipf n}, or ${$} for a dollar sign";
}

static struct rt_bytes behind(struct rt_bytes bytes, const uint8_t *at)
{
    return rt_bytes_of(at, (size_t)(bytes.data + bytes.size - at));
}

bool model_template_next(struct rt_bytes *rest, struct model_part *ret_part,
                         struct model_template_error *ret_error)
{
    const uint8_t *start = model_template_find(*rest);
    const uint8_t *brace;
    size_t reach;

    *ret_part = (struct model_part){.kind = MODEL_PART_TEXT};
    if (start > rest->data) {
        ret_part->text = rt_bytes_of(rest->data, (size_t)(start - rest->data));
        *rest = behind(*rest, start);
        return true;
    }
    ret_error->at = start;
    /* Only so far, or a line full of "${" would take the square of its size. */
    reach = rest->size < MODEL_TEMPLATE_EXPANSION_MAX ? rest->size : MODEL_TEMPLATE_EXPANSION_MAX;
    brace = memchr(start, '}', reach);
    ret_error->expected =
        brace ? parse_inside(rt_bytes_of(start + 2, (size_t)(brace - start) - 2), ret_part)
              : "a closing brace within 64 bytes from \"${\"; ${$} is a dollar sign";
    if (ret_error->expected)
        return false;
    *rest = behind(*rest, brace + 1);
    return true;
}
