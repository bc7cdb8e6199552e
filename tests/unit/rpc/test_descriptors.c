/*
 * The index of descriptors: what is found, and sets that are refused.
 */
#include "runtime/rpc/descriptors.h"

#include <stdio.h>

#include "runtime/base/alloc.h"
#include "runtime/rpc/descriptor.pb-c.h"
#include "runtime/rpc/own_descriptors.h"
#include "test_descriptors.h"
#include "tests/support/check.h"

TestSuite(descriptors, .fini = test_alloc_expect_none);

static struct rpc_descriptors index_;
static struct rt_error err;

static enum rt_code add(const uint8_t *data, size_t size)
{
    return rpc_descriptors_add(&index_, rt_bytes_of(data, size), &err);
}

static void setup(void)
{
    cr_assert_eq(add(test_descriptor_set, sizeof(test_descriptor_set)), RT_OK, "%s", err.message);
}

static const char *name_of(const struct rpc_descriptor_file *file)
{
    return file ? file->name : "-";
}

static void expect_symbol(const char *symbol, const char *file)
{
    const char *found = name_of(rpc_descriptors_by_symbol(&index_, symbol));

    cr_assert_str_eq(found, file, "%s: %s", symbol, found);
}

Test(descriptors, finds_every_sort_of_symbol)
{
    setup();
    expect_symbol("rpctest.v1.EchoService", "echo.proto");
    expect_symbol("rpctest.v1.EchoService.Unary", "echo.proto");
    expect_symbol("rpctest.v1.Item", "echo.proto");
    expect_symbol("rpctest.v1.Item.words", "echo.proto");
    expect_symbol("rpctest.reflected.Outer.Inner", "reflected.proto");
    expect_symbol("rpctest.reflected.Outer.Inner.colour", "reflected.proto");
    expect_symbol("rpctest.reflected.Outer.Inner.Colour", "reflected.proto");
    expect_symbol("rpctest.reflected.Outer.Inner.RED", "reflected.proto");
    expect_symbol("rpctest.reflected.Outer.Inner.inner_extension", "reflected.proto");
    expect_symbol("rpctest.reflected.Outer.choice", "reflected.proto");
    expect_symbol("rpctest.reflected.Size", "reflected.proto");
    expect_symbol("rpctest.reflected.SMALL", "reflected.proto");
    expect_symbol("rpctest.reflected.outer_extension", "reflected.proto");
    expect_symbol("rpctest.reflected.Idle.Rest", "reflected.proto");
    rpc_descriptors_deinit(&index_);
}

Test(descriptors, finds_nothing_else)
{
    setup();
    expect_symbol("", "-");
    expect_symbol("rpctest", "-");
    expect_symbol("rpctest.v1", "-");
    expect_symbol("Item", "-");
    expect_symbol(".rpctest.v1.Item", "-");
    expect_symbol("rpctest.v1.Item.", "-");
    expect_symbol("rpctest.v1.item", "-");
    cr_assert_null(rpc_descriptors_by_name(&index_, "echo"));
    cr_assert_null(rpc_descriptors_by_name(&index_, ""));
    rpc_descriptors_deinit(&index_);
}

Test(descriptors, a_file_knows_its_imports)
{
    const struct rpc_descriptor_file *echo, *reflected;

    setup();
    echo = rpc_descriptors_by_name(&index_, "echo.proto");
    reflected = rpc_descriptors_by_name(&index_, "reflected.proto");
    cr_assert(echo && reflected);
    cr_assert_eq(echo->closure, (uint64_t)1 << (echo - index_.files));
    cr_assert_eq(reflected->closure, echo->closure | (uint64_t)1 << (reflected - index_.files));
    rpc_descriptors_deinit(&index_);
}

Test(descriptors, finds_extensions)
{
    const char *type = "rpctest.reflected.Outer";
    int32_t numbers[1] = {0};

    setup();
    cr_assert_str_eq(name_of(rpc_descriptors_by_extension(&index_, type, 100)), "reflected.proto");
    cr_assert_str_eq(name_of(rpc_descriptors_by_extension(&index_, type, 101)), "reflected.proto");
    cr_assert_null(rpc_descriptors_by_extension(&index_, type, 102));
    cr_assert_null(rpc_descriptors_by_extension(&index_, "rpctest.v1.Item", 100));
    cr_assert_eq(rpc_descriptors_extension_numbers(&index_, type, NULL, 0), 2);
    cr_assert_eq(rpc_descriptors_extension_numbers(&index_, type, numbers, 1), 2);
    cr_assert(numbers[0] == 100 || numbers[0] == 101);
    cr_assert_eq(rpc_descriptors_extension_numbers(&index_, "rpctest.v1.Item", NULL, 0), 0);
    cr_assert(rpc_descriptors_has_message(&index_, type));
    cr_assert(rpc_descriptors_has_message(&index_, "rpctest.reflected.Outer.Inner"));
    cr_assert_not(rpc_descriptors_has_message(&index_, "rpctest.reflected.Size"));
    cr_assert_not(rpc_descriptors_has_message(&index_, "rpctest.reflected.Idle"));
    rpc_descriptors_deinit(&index_);
}

Test(descriptors, sets_may_share_files)
{
    unsigned n_files;

    setup();
    n_files = index_.n_files;
    setup();
    cr_assert_eq(index_.n_files, n_files);
    cr_assert_eq(add(rpc_own_descriptors, sizeof(rpc_own_descriptors)), RT_OK);
    cr_assert_eq(index_.n_files, n_files + 3);
    expect_symbol("grpc.reflection.v1alpha.ServerReflection",
                  "grpc/reflection/v1alpha/reflection.proto");
    rpc_descriptors_deinit(&index_);
}

/* Adds a set of one file made of these. */
static enum rt_code add_one(const char *name, const char *package, const char *import)
{
    Google__Protobuf__FileDescriptorSet set;
    Google__Protobuf__FileDescriptorProto file;
    Google__Protobuf__FileDescriptorProto *files[] = {&file};
    char *imports[] = {(char *)import};
    uint8_t data[256];

    google__protobuf__file_descriptor_set__init(&set);
    google__protobuf__file_descriptor_proto__init(&file);
    file.name = (char *)name;
    file.package = (char *)package;
    file.dependency = imports;
    file.n_dependency = import ? 1 : 0;
    set.file = files;
    set.n_file = 1;
    err = (struct rt_error)RT_ERROR_INIT;
    return add(data, google__protobuf__file_descriptor_set__pack(&set, data));
}

Test(descriptors, bad_sets_are_refused)
{
    static const uint8_t garbage[] = {0xff, 0xff, 0xff};

    cr_assert_eq(add(garbage, sizeof(garbage)), RT_INVALID_ARGUMENT);
    cr_assert_eq(add_one(NULL, "p", NULL), RT_INVALID_ARGUMENT);
    cr_assert_eq(add_one("a.proto", "p", "absent.proto"), RT_INVALID_ARGUMENT);
    cr_assert(strstr(err.message, "absent.proto"), "%s", err.message);
    cr_assert_eq(add_one("a.proto", "p", "a.proto"), RT_INVALID_ARGUMENT);
    cr_assert_eq(index_.n_files, 0);
    cr_assert_eq(add_one("a.proto", "p", NULL), RT_OK);
    cr_assert_eq(add_one("a.proto", "q", NULL), RT_ALREADY_EXISTS);
    cr_assert_eq(add_one("b.proto", NULL, "a.proto"), RT_OK);
    rpc_descriptors_deinit(&index_);
}

Test(descriptors, number_of_files_has_a_limit)
{
    char name[32];

    for (int i = 0; i < RPC_DESCRIPTOR_FILES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "%d.proto", i);
        cr_assert_eq(add_one(name, "p", i > 0 ? "0.proto" : NULL), RT_OK, "%s", err.message);
    }
    cr_assert_eq(index_.files[RPC_DESCRIPTOR_FILES_MAX - 1].closure, (uint64_t)1 << 63 | 1);
    cr_assert_eq(add_one("one.proto", "p", NULL), RT_RESOURCE_EXHAUSTED);
    rpc_descriptors_deinit(&index_);
}
