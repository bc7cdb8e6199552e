/*
 * Scripts in files: see script_file.h. A file is read to its limit and not past it. One thread.
 */
#include "esi-client/script_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"

static enum rt_code read_all(int fd, const char *path, struct rt_buffer *text, struct rt_error *err)
{
    char chunk[16384];
    ssize_t n_read;

    while ((n_read = read(fd, chunk, sizeof(chunk))) != 0) {
        if (n_read < 0 && errno == EINTR)
            continue;
        if (n_read < 0)
            return rt_fail_errno(err, errno, "reading %s", path);
        if (text->size + (size_t)n_read > ESI_SCRIPT_SIZE_MAX)
            return rt_fail(err, RT_INVALID_ARGUMENT, "%s is larger than %d bytes", path,
                           ESI_SCRIPT_SIZE_MAX);
        rt_buffer_append(text, rt_bytes_of(chunk, (size_t)n_read));
    }
    return RT_OK;
}

static enum rt_code read_file(const char *path, struct rt_buffer *text, struct rt_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    enum rt_code code;

    if (fd < 0)
        return rt_fail_errno(err, errno, "%s", path);
    code = read_all(fd, path, text, err);
    if (!is_stdin)
        (void)close(fd);
    return code;
}

enum rt_code esi_script_file_load(const char *path, enum model_dialect dialect,
                                  struct esi_script **ret_script, struct rt_buffer *failure)
{
    struct esi_script_errors *errors = rt_xalloc(sizeof(*errors));
    struct rt_buffer text = {0};
    struct rt_error err = RT_ERROR_INIT;
    enum rt_code code = read_file(path, &text, &err);

    if (code == RT_OK)
        code = esi_script_parse(path, rt_buffer_bytes(&text), dialect, ret_script, errors, &err);
    if (code != RT_OK && errors->n_errors > 0)
        esi_script_errors_format(path, errors, failure);
    else if (code != RT_OK)
        rt_buffer_printf(failure, "redistinto-esi: %s\n", err.message);
    rt_buffer_deinit(&text);
    (void)rt_free(errors);
    return code;
}
