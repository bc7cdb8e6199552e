/*
 * Verbs of one key: see data.h. Everything that the user typed is understood before anything is
 * asked of the coordinator. One thread.
 */
#include "cli/data.h"

#include "cli/escape.h"
#include "cli/file.h"
#include "cli/inspect.h"
#include "cli/report.h"
#include "cli/statement.h"
#include "cli/text.h"

/* Of all six; each has the options that it knows. */
struct config {
    const char *session;
    bool is_escaped;
    bool must_not_wait;
    const char *value_file;
    const char *last_set;
    const char *if_version;
};

/* What was typed, understood. */
struct input {
    struct cli_statement statement; /* borrows the rest */
    struct model_id session_id;
    struct rt_buffer key;
    struct rt_buffer value;
};

static void input_deinit(struct input *input)
{
    rt_buffer_deinit(&input->key);
    rt_buffer_deinit(&input->value);
}

/* ---- what was typed -------------------------------------------------------------------------- */

static enum rt_code read_value(const char *path, struct rt_buffer *buffer, struct rt_error *err)
{
    enum rt_code code = cli_file_read(path, MODEL_VALUE_MAX, buffer, err);

    if (code != RT_OUT_OF_RANGE)
        return code;
    err->code = model_reason_code(MODEL_REASON_VALUE_TOO_LARGE);
    err->reason = model_reason_name(MODEL_REASON_VALUE_TOO_LARGE);
    return err->code;
}

static enum rt_code take_value(const char *word, const struct config *config,
                               struct rt_buffer *buffer, struct rt_error *err)
{
    if (word != NULL && config->value_file != NULL)
        return rt_fail(err, RT_INVALID_ARGUMENT, "VALUE and --value-file exclude each other");
    if (config->value_file != NULL)
        return read_value(config->value_file, buffer, err);
    if (word == NULL)
        return rt_fail(err, RT_INVALID_ARGUMENT, "VALUE or --value-file is missing (see --help)");
    if (strcmp(word, "-") == 0)
        return read_value(word, buffer, err);
    return cli_escape_take_word(word, config->is_escaped, buffer, err);
}

static enum rt_code take_versions(const struct config *config, struct cli_statement *statement,
                                  struct rt_error *err)
{
    enum rt_code code = RT_OK;

    statement->has_last_set = config->last_set != NULL;
    statement->has_if_version = config->if_version != NULL;
    if (statement->has_last_set)
        code = cli_text_parse_version(config->last_set, &statement->last_set, err);
    if (code == RT_OK && statement->has_if_version)
        code = cli_text_parse_version(config->if_version, &statement->if_version, err);
    return code;
}

static bool has_value(enum model_statement_kind kind)
{
    return kind == MODEL_STATEMENT_SET || kind == MODEL_STATEMENT_PUT;
}

static enum rt_code understand(enum model_statement_kind kind, const char *const *arguments,
                               const struct config *config, struct input *input,
                               struct rt_error *err)
{
    struct cli_statement *statement = &input->statement;
    enum rt_code code = cli_escape_take_word(arguments[0], config->is_escaped, &input->key, err);

    *statement = (struct cli_statement){.kind = kind, .must_not_wait = config->must_not_wait};
    if (code == RT_OK && has_value(kind))
        code = take_value(arguments[1], config, &input->value, err);
    if (code == RT_OK)
        code = take_versions(config, statement, err);
    if (code == RT_OK && config->session != NULL) {
        statement->session_id = &input->session_id;
        code = cli_text_parse_id(config->session, &input->session_id, err);
    }
    statement->key = rt_buffer_bytes(&input->key);
    statement->value = rt_buffer_bytes(&input->value);
    return code;
}

/* ---- what it came to ------------------------------------------------------------------------- */

static void append_json(const struct cli_statement *statement,
                        const struct model_execute_response *response, struct rt_buffer *buffer)
{
    struct rt_json json;

    rt_json_init(&json, buffer);
    rt_json_object_begin(&json, NULL);
    rt_json_string(&json, "statement", model_statement_kind_name(statement->kind));
    rt_json_string(&json, "outcome", "ok");
    rt_json_bytes(&json, "key", statement->key);
    cli_inspect_write_result(&json, statement->kind, response);
    rt_json_object_end(&json);
    rt_buffer_append_byte(buffer, '\n');
}

static bool is_reading(enum model_statement_kind kind)
{
    return kind == MODEL_STATEMENT_GET || kind == MODEL_STATEMENT_READ;
}

/* What a value on standard output cannot say. */
static void append_remarks(const struct cli_context *context, const struct cli_statement *statement,
                           const struct model_execute_response *response, struct rt_buffer *buffer)
{
    if (statement->kind == MODEL_STATEMENT_GET && statement->session_id != NULL) {
        rt_buffer_printf(buffer, "redistinto: %s: locked ", context->verb);
        cli_inspect_append_result(statement->kind, response, buffer);
        rt_buffer_append_byte(buffer, '\n');
    }
    if (response->data.stale)
        rt_buffer_printf(buffer,
                         "redistinto: %s: the owner's lease had run out: the value may be "
                         "old\n",
                         context->verb);
    if (response->data.sets_lost)
        rt_buffer_printf(buffer,
                         "redistinto: %s: SETs of this key were lost with an earlier "
                         "process of its owner\n",
                         context->verb);
    if (response->lock_lost)
        rt_buffer_printf(buffer,
                         "redistinto: %s: stored, but the lock had gone to another "
                         "session\n",
                         context->verb);
}

static void append_text(const struct cli_context *context, const struct cli_statement *statement,
                        const struct model_execute_response *response, struct rt_buffer *buffer)
{
    if (!is_reading(statement->kind)) {
        cli_inspect_append_result(statement->kind, response, buffer);
        rt_buffer_append_byte(buffer, '\n');
        return;
    }
    rt_buffer_append(buffer, response->data.value);
    if (response->data.has_value && context->out_is_terminal)
        rt_buffer_append_byte(buffer, '\n');
}

static enum model_exit print(struct cli_context *context, const struct cli_statement *statement,
                             const struct model_execute_response *response)
{
    struct rt_buffer result = {0};
    struct rt_buffer remarks = {0};
    enum model_exit code;

    if (context->common.output == CLI_OUTPUT_JSON) {
        append_json(statement, response, &result);
    } else {
        append_text(context, statement, response, &result);
        append_remarks(context, statement, response, &remarks);
        if (remarks.size > 0)
            (void)fwrite(remarks.data, 1, remarks.size, context->err);
    }
    code = cli_report_result(context, &result);
    rt_buffer_deinit(&result);
    rt_buffer_deinit(&remarks);
    return code;
}

static enum model_exit report_no_value(struct cli_context *context, struct rt_bytes key)
{
    struct rt_error err = RT_ERROR_INIT;
    struct rt_buffer shown = {0};

    cli_escape_append(key, &shown);
    (void)rt_fail(&err, RT_NOT_FOUND, "key '%s' has no value", rt_buffer_string(&shown));
    rt_buffer_deinit(&shown);
    return cli_report_error(context, &err);
}

/* A lock is a result even when there is nothing to read; in a session of its own it is over. */
static enum model_exit conclude(struct cli_context *context, const struct cli_statement *statement,
                                struct model_execute_response *response)
{
    bool is_locked = statement->kind == MODEL_STATEMENT_GET && statement->session_id != NULL;

    if (!is_locked)
        response->lock_token = 0;
    if (is_reading(statement->kind) && !response->data.has_value && !is_locked)
        return report_no_value(context, statement->key);
    return print(context, statement, response);
}

/* ---- the verbs ------------------------------------------------------------------------------- */

static enum model_exit execute(struct cli_context *context, const struct cli_statement *statement)
{
    struct cli_client *client = cli_client_new(context);
    struct model_call *call = cli_statement_run(context, client, statement);
    enum model_exit result;

    if (call->response.code == RT_OK)
        result = conclude(context, statement, &call->response.execute);
    else
        result = cli_statement_report(client, statement, &call->response);
    (void)model_call_free(call);
    (void)cli_client_free(client);
    return result;
}

static enum model_exit run(struct cli_context *context, enum model_statement_kind kind,
                           const char *const *arguments, const void *config)
{
    struct input input = {.key.limit = 0};
    struct rt_error err = RT_ERROR_INIT;
    enum model_exit result;

    if (understand(kind, arguments, config, &input, &err) == RT_OK)
        result = execute(context, &input.statement);
    else
        result = cli_report_usage(context, &err);
    input_deinit(&input);
    return result;
}

static enum model_exit run_get(struct cli_context *context, const char *const *arguments,
                               const void *config)
{
    return run(context, MODEL_STATEMENT_GET, arguments, config);
}

static enum model_exit run_set(struct cli_context *context, const char *const *arguments,
                               const void *config)
{
    return run(context, MODEL_STATEMENT_SET, arguments, config);
}

static enum model_exit run_store(struct cli_context *context, const char *const *arguments,
                                 const void *config)
{
    return run(context, MODEL_STATEMENT_STORE, arguments, config);
}

static enum model_exit run_put(struct cli_context *context, const char *const *arguments,
                               const void *config)
{
    return run(context, MODEL_STATEMENT_PUT, arguments, config);
}

static enum model_exit run_read(struct cli_context *context, const char *const *arguments,
                                const void *config)
{
    return run(context, MODEL_STATEMENT_READ, arguments, config);
}

static enum model_exit run_del(struct cli_context *context, const char *const *arguments,
                               const void *config)
{
    return run(context, MODEL_STATEMENT_DELETE, arguments, config);
}

#define SESSION_OPTION                                                                             \
    {                                                                                              \
        .name = "session", .type = RT_OPTION_STRING,                                               \
        .help = "Use this session, which somebody else keeps alive, and leave it open.",           \
        .argument = "ID", .offset = offsetof(struct config, session)                               \
    }
#define ESCAPED_OPTION                                                                             \
    {                                                                                              \
        .name = "escaped", .letter = 'e', .type = RT_OPTION_FLAG,                                  \
        .help = "In KEY and VALUE \\xNN stands for a byte and \\\\ for a backslash.",              \
        .offset = offsetof(struct config, is_escaped)                                              \
    }
#define NO_WAIT_OPTION                                                                             \
    {                                                                                              \
        .name = "no-wait", .type = RT_OPTION_FLAG,                                                 \
        .help = "Fail when another session holds the key's lock, with exit code 4.",               \
        .offset = offsetof(struct config, must_not_wait)                                           \
    }
#define VALUE_FILE_OPTION                                                                          \
    {                                                                                              \
        .name = "value-file", .type = RT_OPTION_STRING,                                            \
        .help = "Take the value from this file, - is standard input.", .argument = "FILE",         \
        .offset = offsetof(struct config, value_file)                                              \
    }
#define IF_VERSION_OPTION                                                                          \
    {                                                                                              \
        .name = "if-version", .type = RT_OPTION_STRING,                                            \
        .help = "Only while this is the key's version; 0.0.0: only while it has no value.",        \
        .argument = "E.I.S", .offset = offsetof(struct config, if_version)                         \
    }

#define WITHOUT_SESSION_TEXT                                                                       \
    "Without --session the verb opens a session, takes the key's lock if it must, waiting for it " \
    "within --timeout, and ends the session with all its locks. "
#define EXIT_TEXT                                                                                  \
    "Exit codes: 3 unknown key, 4 not locked, fenced or another version, 5 unavailable or timed "  \
    "out, 7 exhausted, 8 may have been applied."

static const struct rt_option get_options[] = {SESSION_OPTION, NO_WAIT_OPTION, ESCAPED_OPTION};
static const struct rt_option set_options[] = {SESSION_OPTION, NO_WAIT_OPTION, ESCAPED_OPTION,
                                               VALUE_FILE_OPTION};
static const struct rt_option store_options[] = {
    SESSION_OPTION,
    NO_WAIT_OPTION,
    ESCAPED_OPTION,
    {.name = "last-set",
     .type = RT_OPTION_STRING,
     .help = "Version that the last SET answered: fails with SET_LOST if the owner lost it.",
     .argument = "E.I.S",
     .offset = offsetof(struct config, last_set)},
};
static const struct rt_option put_options[] = {SESSION_OPTION, NO_WAIT_OPTION, ESCAPED_OPTION,
                                               VALUE_FILE_OPTION, IF_VERSION_OPTION};
static const struct rt_option read_options[] = {SESSION_OPTION, ESCAPED_OPTION};
static const struct rt_option del_options[] = {SESSION_OPTION, NO_WAIT_OPTION, ESCAPED_OPTION,
                                               IF_VERSION_OPTION};

static const char *const get_examples[] = {
    "redistinto get orders/17                # waits for whoever works on it",
    "redistinto get orders/17 --no-wait      # exit code 4 when it is locked",
    "redistinto get orders/17 --session 0123456789abcdef0123456789abcdef    # and keeps the lock",
    NULL,
};

const struct cli_verb cli_get_verb = {
    .name = "get",
    .arguments = "KEY",
    .n_arguments = 1,
    .summary = "lock a key and print its value",
    .description =
        "Locks the key, waiting for it within --timeout, and prints its value: the bytes as they "
        "are, with a newline behind them only on a terminal; JSON has a string, or {\"base64\": "
        "...} where the bytes are no UTF-8. With --session the key stays locked for that session, "
        "standard error tells the token, and an unknown key is created without a value. Without "
        "it the lock ends with the verb: the value is one that nobody was working on. Unknown key "
        "or no value: exit code 3. Waiting took too long: 5.",
    .examples = get_examples,
    .options = get_options,
    .n_options = RT_ARRAY_SIZE(get_options),
    .config_size = sizeof(struct config),
    .run = run_get,
};

static const char *const set_examples[] = {
    "redistinto set orders/17 paid",
    "redistinto set -e 'key\\x00with\\x00nul' 'a\\x0ab'",
    "redistinto set photos/1 --value-file photo.jpg",
    NULL,
};

const struct cli_verb cli_set_verb = {
    .name = "set",
    .arguments = "KEY [VALUE]",
    .n_arguments = 1,
    .n_optional = 1,
    .summary = "write a value that lives as long as its owner's process",
    .description =
        "Writes VALUE, which is not durable before store or put; the first SET of a key "
        "places it. VALUE - is read from standard input. " WITHOUT_SESSION_TEXT EXIT_TEXT,
    .examples = set_examples,
    .options = set_options,
    .n_options = RT_ARRAY_SIZE(set_options),
    .config_size = sizeof(struct config),
    .run = run_set,
};

static const char *const store_examples[] = {
    "redistinto store orders/17",
    "redistinto store orders/17 --last-set 7.3.12    # only if that SET is still there",
    NULL,
};

const struct cli_verb cli_store_verb = {
    .name = "store",
    .arguments = "KEY",
    .n_arguments = 1,
    .summary = "make a key's value durable",
    .description =
        "Makes the value durable and releases the session's lock. " WITHOUT_SESSION_TEXT EXIT_TEXT,
    .examples = store_examples,
    .options = store_options,
    .n_options = RT_ARRAY_SIZE(store_options),
    .config_size = sizeof(struct config),
    .run = run_store,
};

static const char *const put_examples[] = {
    "redistinto put orders/17 paid",
    "redistinto put photos/1 - <photo.jpg",
    "redistinto put orders/17 paid --if-version 0.0.0    # only while it has no value",
    NULL,
};

const struct cli_verb cli_put_verb = {
    .name = "put",
    .arguments = "KEY [VALUE]",
    .n_arguments = 1,
    .n_optional = 1,
    .summary = "write a durable value",
    .description = "SET and STORE in one: writes VALUE durably and releases the session's lock. "
                   "VALUE - is read from standard input. " WITHOUT_SESSION_TEXT EXIT_TEXT,
    .examples = put_examples,
    .options = put_options,
    .n_options = RT_ARRAY_SIZE(put_options),
    .config_size = sizeof(struct config),
    .run = run_put,
};

static const char *const read_examples[] = {
    "redistinto read orders/17",
    "redistinto read photos/1 >photo.jpg",
    "redistinto read orders/17 -o json",
    NULL,
};

const struct cli_verb cli_read_verb = {
    .name = "read",
    .arguments = "KEY",
    .n_arguments = 1,
    .summary = "print a key's value without locking it",
    .description =
        "Prints the value as its owner has it now. In text form its bytes are printed as "
        "they are, with a newline behind them only on a terminal; JSON has a string, or "
        "{\"base64\": ...} where the bytes are no UTF-8. A key that is unknown or has no "
        "value: exit code 3.",
    .examples = read_examples,
    .options = read_options,
    .n_options = RT_ARRAY_SIZE(read_options),
    .config_size = sizeof(struct config),
    .run = run_read,
};

static const char *const del_examples[] = {
    "redistinto del orders/17",
    "redistinto del orders/17 --if-version 7.3.12",
    NULL,
};

const struct cli_verb cli_del_verb = {
    .name = "del",
    .arguments = "KEY",
    .n_arguments = 1,
    .summary = "remove a key's value, durably",
    .description =
        "Removes the value; a key that nobody has locked is forgotten. " WITHOUT_SESSION_TEXT
            EXIT_TEXT,
    .examples = del_examples,
    .options = del_options,
    .n_options = RT_ARRAY_SIZE(del_options),
    .config_size = sizeof(struct config),
    .run = run_del,
};
