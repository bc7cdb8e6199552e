/*
 * Core's log lines become rt_log lines: its errors as warnings (they concern one connection or
 * call and each has its own status), all else as debug. Any thread; no state.
 */
#include "runtime/rpc/log.h"

#include <grpc/support/log.h>
#include <string.h>

#include "runtime/base/log.h"

static void on_core_log(gpr_log_func_args *args)
{
    enum rt_log_level level =
        args->severity == GPR_LOG_SEVERITY_ERROR ? RT_LOG_WARNING : RT_LOG_DEBUG;
    const char *slash = strrchr(args->file, '/');
    const char *file = slash ? slash + 1 : args->file;

    rt_log(level, "event=grpc_core at=%s:%d text=\"%s\"", file, args->line, args->message);
}

void rpc_log_route(void)
{
    gpr_set_log_verbosity(rt_log_enabled(RT_LOG_DEBUG) ? GPR_LOG_SEVERITY_INFO
                                                       : GPR_LOG_SEVERITY_ERROR);
    gpr_set_log_function(on_core_log);
}
