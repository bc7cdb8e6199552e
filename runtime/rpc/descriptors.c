/*
 * The index of descriptors: see descriptors.h. Invariant: every file's imports have lower indexes
 * than the file itself, so its closure is known when it is added.
 */
#include "runtime/rpc/descriptors.h"

#include "runtime/base/map.h"
#include "runtime/rpc/descriptor.pb-c.h"

struct rpc_descriptor_symbol {
    char *name; /* owned; the key */
    unsigned file;
    bool is_message;
    UT_hash_handle hh;
};

struct rpc_descriptor_extension {
    struct rpc_descriptor_extension *next;
    char *type; /* owned: the extended message */
    int32_t number;
    unsigned file;
};

/* ---- symbols of a file ---- */

/* The names inside this scope begin with prefix and a dot, if it is not empty. */
struct scope {
    struct rpc_descriptors *descriptors;
    unsigned file;
    const char *prefix;
};

static struct rpc_descriptor_symbol *find_symbol(const struct rpc_descriptors *descriptors,
                                                 const char *name)
{
    struct rpc_descriptor_symbol *symbol;

    HASH_FIND_STR(descriptors->symbols, name, symbol);
    return symbol;
}

/* Returns the full name, which lives as long as the index. */
static const char *add_symbol(const struct scope *scope, const char *name, bool is_message)
{
    struct rpc_descriptors *descriptors = scope->descriptors;
    struct rpc_descriptor_symbol *symbol = rt_xalloc(sizeof(*symbol));

    symbol->name = rt_xasprintf("%s%s%s", scope->prefix, *scope->prefix ? "." : "", name);
    symbol->file = scope->file;
    symbol->is_message = is_message;
    HASH_ADD_KEYPTR(hh, descriptors->symbols, symbol->name, strlen(symbol->name), symbol);
    return symbol->name;
}

/* Values of an enumeration belong to the scope around it. */
static void add_enum(const struct scope *scope, const Google__Protobuf__EnumDescriptorProto *type)
{
    (void)add_symbol(scope, type->name, false);
    for (size_t i = 0; i < type->n_value; i++)
        (void)add_symbol(scope, type->value[i]->name, false);
}

static void add_extension(const struct scope *scope,
                          const Google__Protobuf__FieldDescriptorProto *field)
{
    struct rpc_descriptors *descriptors = scope->descriptors;
    struct rpc_descriptor_extension *extension = rt_xalloc(sizeof(*extension));
    const char *type = field->extendee;

    (void)add_symbol(scope, field->name, false);
    extension->type = rt_xstrdup(*type == '.' ? type + 1 : type);
    extension->number = field->number;
    extension->file = scope->file;
    extension->next = descriptors->extensions;
    descriptors->extensions = extension;
}

static void add_message(const struct scope *scope, const Google__Protobuf__DescriptorProto *type)
{
    struct scope inner = *scope;

    inner.prefix = add_symbol(scope, type->name, true);
    for (size_t i = 0; i < type->n_field; i++)
        (void)add_symbol(&inner, type->field[i]->name, false);
    for (size_t i = 0; i < type->n_oneof_decl; i++)
        (void)add_symbol(&inner, type->oneof_decl[i]->name, false);
    for (size_t i = 0; i < type->n_enum_type; i++)
        add_enum(&inner, type->enum_type[i]);
    for (size_t i = 0; i < type->n_extension; i++)
        add_extension(&inner, type->extension[i]);
    for (size_t i = 0; i < type->n_nested_type; i++)
        add_message(&inner, type->nested_type[i]);
}

static void add_service(const struct scope *scope,
                        const Google__Protobuf__ServiceDescriptorProto *service)
{
    struct scope inner = *scope;

    inner.prefix = add_symbol(scope, service->name, false);
    for (size_t i = 0; i < service->n_method; i++)
        (void)add_symbol(&inner, service->method[i]->name, false);
}

static void add_symbols(const struct scope *scope,
                        const Google__Protobuf__FileDescriptorProto *file)
{
    for (size_t i = 0; i < file->n_message_type; i++)
        add_message(scope, file->message_type[i]);
    for (size_t i = 0; i < file->n_enum_type; i++)
        add_enum(scope, file->enum_type[i]);
    for (size_t i = 0; i < file->n_extension; i++)
        add_extension(scope, file->extension[i]);
    for (size_t i = 0; i < file->n_service; i++)
        add_service(scope, file->service[i]);
}

/* ---- files ---- */

static enum rt_code find_closure(const struct rpc_descriptors *descriptors,
                                 const Google__Protobuf__FileDescriptorProto *proto,
                                 uint64_t *ret_closure, struct rt_error *err)
{
    const struct rpc_descriptor_file *import;

    *ret_closure = (uint64_t)1 << descriptors->n_files;
    for (size_t i = 0; i < proto->n_dependency; i++) {
        import = rpc_descriptors_by_name(descriptors, proto->dependency[i]);
        if (!import)
            return rt_fail(err, RT_INVALID_ARGUMENT, "descriptors: %s imports %s, which is missing",
                           proto->name, proto->dependency[i]);
        *ret_closure |= import->closure;
    }
    return RT_OK;
}

static enum rt_code insert_file(struct rpc_descriptors *descriptors,
                                const Google__Protobuf__FileDescriptorProto *proto, uint8_t *data,
                                size_t size, struct rt_error *err)
{
    struct rpc_descriptor_file *file = &descriptors->files[descriptors->n_files];
    struct scope scope = {descriptors, descriptors->n_files, proto->package ? proto->package : ""};
    uint64_t closure;
    enum rt_code code;

    if (descriptors->n_files == RPC_DESCRIPTOR_FILES_MAX)
        return rt_fail(err, RT_RESOURCE_EXHAUSTED, "descriptors: more than %d files",
                       RPC_DESCRIPTOR_FILES_MAX);
    code = find_closure(descriptors, proto, &closure, err);
    if (code != RT_OK)
        return code;
    file->name = rt_xstrdup(proto->name);
    file->data = rt_xmemdup(data, size);
    file->size = size;
    file->closure = closure;
    descriptors->n_files++;
    add_symbols(&scope, proto);
    return RT_OK;
}

static enum rt_code add_file(struct rpc_descriptors *descriptors,
                             const Google__Protobuf__FileDescriptorProto *proto,
                             struct rt_error *err)
{
    const struct rpc_descriptor_file *there;
    size_t size = google__protobuf__file_descriptor_proto__get_packed_size(proto);
    RT_CLEANUP(rt_freep) uint8_t *data = rt_xalloc(size);

    if (!proto->name)
        return rt_fail(err, RT_INVALID_ARGUMENT, "descriptors: a file without a name");
    (void)google__protobuf__file_descriptor_proto__pack(proto, data);
    there = rpc_descriptors_by_name(descriptors, proto->name);
    if (!there)
        return insert_file(descriptors, proto, data, size, err);
    if (!rt_bytes_equal(rt_bytes_of(there->data, there->size), rt_bytes_of(data, size)))
        return rt_fail(err, RT_ALREADY_EXISTS, "descriptors: two files named %s", proto->name);
    return RT_OK;
}

enum rt_code rpc_descriptors_add(struct rpc_descriptors *descriptors, struct rt_bytes set,
                                 struct rt_error *err)
{
    Google__Protobuf__FileDescriptorSet *parsed =
        google__protobuf__file_descriptor_set__unpack(NULL, set.size, set.data);
    enum rt_code code = RT_OK;

    if (!parsed)
        return rt_fail(err, RT_INVALID_ARGUMENT, "descriptors: no FileDescriptorSet");
    for (size_t i = 0; i < parsed->n_file && code == RT_OK; i++)
        code = add_file(descriptors, parsed->file[i], err);
    google__protobuf__file_descriptor_set__free_unpacked(parsed, NULL);
    return code;
}

void rpc_descriptors_deinit(struct rpc_descriptors *descriptors)
{
    struct rpc_descriptor_symbol *symbol, *next;
    struct rpc_descriptor_extension *extension;

    HASH_ITER (hh, descriptors->symbols, symbol, next) {
        HASH_DEL(descriptors->symbols, symbol);
        (void)rt_free(symbol->name);
        (void)rt_free(symbol);
    }
    while ((extension = descriptors->extensions)) {
        descriptors->extensions = extension->next;
        (void)rt_free(extension->type);
        (void)rt_free(extension);
    }
    for (unsigned i = 0; i < descriptors->n_files; i++) {
        (void)rt_free(descriptors->files[i].name);
        (void)rt_free(descriptors->files[i].data);
    }
    descriptors->n_files = 0;
}

/* ---- looking up ---- */

const struct rpc_descriptor_file *rpc_descriptors_by_name(const struct rpc_descriptors *descriptors,
                                                          const char *name)
{
    for (unsigned i = 0; i < descriptors->n_files; i++) {
        if (strcmp(descriptors->files[i].name, name) == 0)
            return &descriptors->files[i];
    }
    return NULL;
}

const struct rpc_descriptor_file *rpc_descriptors_by_symbol(
    const struct rpc_descriptors *descriptors, const char *name)
{
    const struct rpc_descriptor_symbol *symbol = find_symbol(descriptors, name);

    return symbol ? &descriptors->files[symbol->file] : NULL;
}

bool rpc_descriptors_has_message(const struct rpc_descriptors *descriptors, const char *type)
{
    const struct rpc_descriptor_symbol *symbol = find_symbol(descriptors, type);

    return symbol && symbol->is_message;
}

const struct rpc_descriptor_file *rpc_descriptors_by_extension(
    const struct rpc_descriptors *descriptors, const char *type, int32_t number)
{
    const struct rpc_descriptor_extension *e = descriptors->extensions;

    while (e && !(e->number == number && strcmp(e->type, type) == 0))
        e = e->next;
    return e ? &descriptors->files[e->file] : NULL;
}

size_t rpc_descriptors_extension_numbers(const struct rpc_descriptors *descriptors,
                                         const char *type, int32_t *ret_numbers, size_t max)
{
    size_t n = 0;

    for (const struct rpc_descriptor_extension *e = descriptors->extensions; e; e = e->next) {
        if (strcmp(e->type, type) != 0)
            continue;
        if (n < max)
            ret_numbers[n] = e->number;
        n++;
    }
    return n;
}
