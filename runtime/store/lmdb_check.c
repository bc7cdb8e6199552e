/*
 * Looks at the pages of a store before LMDB does: LMDB trusts them, and a file that was cut off or
 * damaged would end the process (SIGBUS, assertion) or hand out pages twice. Invariant: every page
 * is used at most once, by the tree of the rows, by the tree of the free pages or as free, and keys
 * are in order. Values are not read; their checksums are for ranges. The opening thread, blocking.
 *
 * The format is that of LMDB 0.9: pages of {number, flags, lower, upper or length, offsets}, nodes
 * of {two halves of a length or page number, flags, key size, key, data}.
 */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/store/lmdb_internal.h"

enum {
    META_VERSION = 1,
    META_MAGIC_OFFSET = 16,
    META_VERSION_OFFSET = 20,
    META_TREES_OFFSET = 40, /* free pages, then rows */
    TREE_SIZE = 48,
    TREE_FLAGS_OFFSET = 4,
    TREE_HEIGHT_OFFSET = 6,
    TREE_ROWS_OFFSET = 32,
    TREE_ROOT_OFFSET = 40,
    META_LAST_OFFSET = META_TREES_OFFSET + 2 * TREE_SIZE,
    META_TXN_OFFSET = META_LAST_OFFSET + 8,
    META_SIZE = META_TXN_OFFSET + 8,

    PAGE_SIZE_MIN = 512,
    PAGE_SIZE_MAX = 65536,
    MISSING_MAX = 65536,
    PAGE_HEADER = 16,
    PAGE_FLAGS_OFFSET = 10,
    PAGE_LOWER_OFFSET = 12,
    PAGE_UPPER_OFFSET = 14,
    PAGE_LENGTH_OFFSET = 12, /* of an overflow page, in pages */
    PAGE_BRANCH = 1,
    PAGE_LEAF = 2,
    PAGE_OVERFLOW = 4,
    PAGE_META = 8,

    NODE_HEADER = 8,
    NODE_ELSEWHERE = 1, /* the data are a page number */
    DEPTH_MAX = 32,     /* LMDB's */
};

#define META_MAGIC 0xbeefc0deu
#define NO_PAGE    UINT64_MAX

struct check {
    int fd;
    size_t page_size;
    uint64_t n_pages; /* in use or free, by the meta page */
    uint64_t n_there; /* by the size of the file */
    uint8_t *used;    /* owned, a bit a page */
    uint64_t n_rows;  /* of the tree, so far */
    uint8_t previous[STORE_KEY_MAX];
    size_t previous_size;
    bool may_be_equal; /* `previous` came from a branch */
    bool is_free_tree;
    struct rt_error *err;
};

struct node {
    struct rt_bytes key;
    struct rt_bytes data;
    uint64_t child;    /* in a branch */
    size_t data_size;  /* in a leaf */
    bool is_elsewhere; /* in a leaf: `child` is the first page of the data */
};

static uint64_t read_number(const uint8_t *bytes, size_t width)
{
    uint64_t value = 0;

    memcpy(&value, bytes, width);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value >>= 8 * (sizeof(value) - width);
#endif
    return value;
}

static enum rt_code fail_page(struct check *check, uint64_t page, const char *problem)
{
    return rt_fail(check->err, RT_DATA_LOSS, "page %llu %s", (unsigned long long)page, problem);
}

static enum rt_code read_pages(struct check *check, uint64_t page, size_t n, uint8_t *ret_content)
{
    size_t size = n * check->page_size;
    ssize_t got = pread(check->fd, ret_content, size, (off_t)(page * check->page_size));

    if (got < 0)
        return rt_fail_errno(check->err, errno, "reading page %llu", (unsigned long long)page);
    return (size_t)got == size ? RT_OK : fail_page(check, page, "is cut off");
}

/* Claims pages for one use; `must_exist` unless they are free. */
static enum rt_code claim(struct check *check, uint64_t page, uint64_t n, bool must_exist)
{
    if (page < 2 || page >= check->n_pages || n > check->n_pages - page)
        return fail_page(check, page, "is out of range");
    if (must_exist && page + n > check->n_there)
        return fail_page(check, page, "is cut off");
    for (uint64_t i = page; i < page + n; i++) {
        if (check->used[i / 8] & 1u << (i % 8))
            return fail_page(check, i, "is used twice");
        check->used[i / 8] |= (uint8_t)(1u << (i % 8));
    }
    return RT_OK;
}

static enum rt_code check_header(struct check *check, uint64_t page, const uint8_t *content,
                                 uint64_t flags)
{
    if (read_number(content, 8) != page)
        return fail_page(check, page, "is another page");
    if (read_number(content + PAGE_FLAGS_OFFSET, 2) != flags)
        return fail_page(check, page, "is of the wrong kind");
    return RT_OK;
}

static size_t n_nodes(const uint8_t *content)
{
    return (size_t)(read_number(content + PAGE_LOWER_OFFSET, 2) - PAGE_HEADER) / 2;
}

/* false when the node does not lie inside the page. */
static bool read_node(const struct check *check, const uint8_t *content, size_t index, bool is_leaf,
                      struct node *ret_node)
{
    size_t offset = read_number(content + PAGE_HEADER + 2 * index, 2);
    const uint8_t *node = content + offset;
    uint64_t low;
    uint64_t flags;
    size_t key_size;
    size_t stored;

    if (offset < read_number(content + PAGE_UPPER_OFFSET, 2) ||
        offset + NODE_HEADER > check->page_size)
        return false;
    low = read_number(node, 4);
    flags = read_number(node + 4, 2);
    key_size = read_number(node + 6, 2);
    *ret_node = (struct node){.data_size = low, .child = low | flags << 32};
    if (is_leaf && flags > NODE_ELSEWHERE)
        return false;
    ret_node->is_elsewhere = is_leaf && flags == NODE_ELSEWHERE;
    stored = !is_leaf ? 0 : ret_node->is_elsewhere ? sizeof(uint64_t) : low;
    if (key_size > STORE_KEY_MAX || stored > check->page_size ||
        offset + NODE_HEADER + key_size + stored > check->page_size)
        return false;
    ret_node->key = rt_bytes_of(node + NODE_HEADER, key_size);
    ret_node->data = rt_bytes_of(node + NODE_HEADER + key_size, stored);
    if (ret_node->is_elsewhere)
        ret_node->child = read_number(ret_node->data.data, sizeof(uint64_t));
    return true;
}

/* Keys of free pages are numbers in the machine's byte order. */
static int compare_keys(const struct check *check, struct rt_bytes key)
{
    uint64_t a = 0;
    uint64_t b = 0;

    if (!check->is_free_tree)
        return rt_bytes_compare(key, rt_bytes_of(check->previous, check->previous_size));
    if (check->previous_size == 0)
        return 1;
    memcpy(&a, key.data, sizeof(a));
    memcpy(&b, check->previous, sizeof(b));
    return a < b ? -1 : a > b;
}

static bool take_key(struct check *check, struct rt_bytes key, bool is_leaf)
{
    int order;

    if (key.size == 0 || (check->is_free_tree && key.size != sizeof(uint64_t)))
        return false;
    order = compare_keys(check, key);
    if (order < 0 || (order == 0 && !check->may_be_equal))
        return false;
    memcpy(check->previous, key.data, key.size);
    check->previous_size = key.size;
    check->may_be_equal = !is_leaf;
    return true;
}

/* A list of free pages: count, then page numbers. */
static enum rt_code check_free_list(struct check *check, uint64_t page, struct rt_bytes list)
{
    uint64_t n = list.size >= 8 ? read_number(list.data, 8) : UINT64_MAX;
    enum rt_code code = RT_OK;

    if (n > list.size / 8 - 1)
        return fail_page(check, page, "has a damaged list of free pages");
    for (uint64_t i = 1; i <= n && code == RT_OK; i++)
        code = claim(check, read_number(list.data + 8 * i, 8), 1, false);
    return code;
}

static enum rt_code check_elsewhere(struct check *check, const struct node *node)
{
    uint64_t n = (PAGE_HEADER + node->data_size + check->page_size - 1) / check->page_size;
    size_t n_read = check->is_free_tree ? n : 1;
    uint8_t *content;
    enum rt_code code = claim(check, node->child, n, true);

    if (code != RT_OK)
        return code;
    content = rt_alloc(n_read * check->page_size);
    if (!content)
        return rt_fail(check->err, RT_RESOURCE_EXHAUSTED, "out of memory");
    code = read_pages(check, node->child, n_read, content);
    if (code == RT_OK)
        code = check_header(check, node->child, content, PAGE_OVERFLOW);
    if (code == RT_OK && read_number(content + PAGE_LENGTH_OFFSET, 4) != n)
        code = fail_page(check, node->child, "has the wrong length");
    if (code == RT_OK && check->is_free_tree)
        code = check_free_list(check, node->child,
                               rt_bytes_of(content + PAGE_HEADER, node->data_size));
    (void)rt_free(content);
    return code;
}

static enum rt_code check_leaf_node(struct check *check, uint64_t page, const struct node *node)
{
    check->n_rows++;
    if (node->is_elsewhere)
        return check_elsewhere(check, node);
    return check->is_free_tree ? check_free_list(check, page, node->data) : RT_OK;
}

static enum rt_code check_page(struct check *check, uint64_t page, unsigned int height);

/* The first key of a branch says nothing. */
static enum rt_code check_node(struct check *check, uint64_t page, const uint8_t *content,
                               size_t index, unsigned int height)
{
    bool is_leaf = height == 1;
    struct node node;

    if (!read_node(check, content, index, is_leaf, &node))
        return fail_page(check, page, "has a damaged row");
    if ((is_leaf || index > 0) && !take_key(check, node.key, is_leaf))
        return fail_page(check, page, "has keys out of order");
    return is_leaf ? check_leaf_node(check, page, &node)
                   : check_page(check, node.child, height - 1);
}

static enum rt_code check_content(struct check *check, uint64_t page, const uint8_t *content,
                                  unsigned int height)
{
    uint64_t lower = read_number(content + PAGE_LOWER_OFFSET, 2);
    uint64_t upper = read_number(content + PAGE_UPPER_OFFSET, 2);
    enum rt_code code = check_header(check, page, content, height == 1 ? PAGE_LEAF : PAGE_BRANCH);

    if (code == RT_OK &&
        (lower < PAGE_HEADER + 2 || lower % 2 != 0 || lower > upper || upper > check->page_size))
        return fail_page(check, page, "has damaged bounds");
    for (size_t i = 0; code == RT_OK && i < n_nodes(content); i++)
        code = check_node(check, page, content, i, height);
    return code;
}

/* A page and what hangs on it; leaves have height 1. Recursion is as deep as the tree, which the
 * caller limits. */
static enum rt_code check_page(struct check *check, uint64_t page, unsigned int height)
{
    uint8_t *content;
    enum rt_code code = claim(check, page, 1, true);

    if (code != RT_OK)
        return code;
    content = rt_xalloc(check->page_size);
    code = read_pages(check, page, 1, content);
    if (code == RT_OK)
        code = check_content(check, page, content, height);
    (void)rt_free(content);
    return code;
}

static enum rt_code check_tree(struct check *check, const uint8_t *tree, bool is_free_tree)
{
    uint64_t height = read_number(tree + TREE_HEIGHT_OFFSET, 2);
    uint64_t root = read_number(tree + TREE_ROOT_OFFSET, 8);
    uint64_t n_rows = read_number(tree + TREE_ROWS_OFFSET, 8);
    enum rt_code code;

    check->is_free_tree = is_free_tree;
    check->n_rows = 0;
    check->previous_size = 0;
    check->may_be_equal = false;
    if (root == NO_PAGE && height == 0 && n_rows == 0)
        return RT_OK;
    if (height < 1 || height > DEPTH_MAX)
        return rt_fail(check->err, RT_DATA_LOSS, "a tree of height %llu",
                       (unsigned long long)height);
    code = check_page(check, root, (unsigned int)height);
    if (code == RT_OK && check->n_rows != n_rows)
        code = rt_fail(check->err, RT_DATA_LOSS, "%llu rows instead of %llu",
                       (unsigned long long)check->n_rows, (unsigned long long)n_rows);
    return code;
}

/* false when it is not a meta page that this version writes. */
static bool read_meta(int fd, size_t page_size, uint64_t page, uint8_t *ret_meta)
{
    const uint8_t *free_tree = ret_meta + META_TREES_OFFSET;

    return pread(fd, ret_meta, META_SIZE, (off_t)(page * page_size)) == META_SIZE &&
           read_number(ret_meta, 8) == page &&
           read_number(ret_meta + PAGE_FLAGS_OFFSET, 2) == PAGE_META &&
           read_number(ret_meta + META_MAGIC_OFFSET, 4) == META_MAGIC &&
           read_number(ret_meta + META_VERSION_OFFSET, 4) == META_VERSION &&
           read_number(free_tree + TREE_FLAGS_OFFSET, 2) == MDB_INTEGERKEY &&
           read_number(free_tree + TREE_SIZE + TREE_FLAGS_OFFSET, 2) == 0 &&
           read_number(free_tree, 4) == page_size;
}

/* The first meta page says how long a page is. */
static size_t read_page_size(int fd)
{
    uint8_t size[4];

    if (pread(fd, size, sizeof(size), META_TREES_OFFSET) != (ssize_t)sizeof(size))
        return 0;
    return read_number(size, sizeof(size));
}

static enum rt_code check_trees(struct check *check, const uint8_t *meta)
{
    enum rt_code code;

    check->n_pages = read_number(meta + META_LAST_OFFSET, 8) + 1;
    /* Pages are only missing at the end, and few: more is nonsense not worth a large table. */
    if (check->n_pages < 2 || check->n_pages > check->n_there + MISSING_MAX)
        return rt_fail(check->err, RT_DATA_LOSS, "it is cut off");
    check->used = rt_alloc(check->n_pages / 8 + 1);
    if (!check->used)
        return rt_fail(check->err, RT_RESOURCE_EXHAUSTED, "out of memory");
    memset(check->used, 0, check->n_pages / 8 + 1);
    code = check_tree(check, meta + META_TREES_OFFSET, true);
    if (code == RT_OK)
        code = check_tree(check, meta + META_TREES_OFFSET + TREE_SIZE, false);
    (void)rt_free(check->used);
    return code;
}

static enum rt_code check_file(struct check *check)
{
    uint8_t metas[2][META_SIZE];
    struct stat file;
    bool is_second_newer;

    if (fstat(check->fd, &file) < 0)
        return rt_fail_errno(check->err, errno, "reading its size");
    if (file.st_size == 0)
        return RT_OK;
    check->page_size = read_page_size(check->fd);
    if (check->page_size < PAGE_SIZE_MIN || check->page_size > PAGE_SIZE_MAX ||
        !read_meta(check->fd, check->page_size, 0, metas[0]) ||
        !read_meta(check->fd, check->page_size, 1, metas[1]))
        return rt_fail(check->err, RT_DATA_LOSS, "its first pages are not those of a store");
    check->n_there = (uint64_t)file.st_size / check->page_size;
    is_second_newer =
        read_number(metas[1] + META_TXN_OFFSET, 8) > read_number(metas[0] + META_TXN_OFFSET, 8);
    return check_trees(check, metas[is_second_newer ? 1 : 0]);
}

enum rt_code store_lmdb_check(int directory_fd, struct rt_error *err)
{
    struct check check = {.err = err};
    enum rt_code code;

    check.fd = openat(directory_fd, "data.mdb", O_RDONLY | O_CLOEXEC);
    if (check.fd < 0)
        return errno == ENOENT ? RT_OK : rt_fail_errno(err, errno, "opening data.mdb");
    code = check_file(&check);
    (void)close(check.fd);
    return code != RT_OK && err ? rt_wrap(err, "data.mdb") : code;
}
