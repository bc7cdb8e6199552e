/*
 * A local cluster: see cluster.h. Invariant: a member's process is set exactly while its child may
 * be alive, and the cluster is stopped when none is left. Loop thread; one timer, whose meaning
 * follows from the state.
 */
#include "cli/cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/alloc.h"

enum cluster_state {
    CLUSTER_NEW,
    CLUSTER_STARTING, /* the timer: first step, then the start's deadline */
    CLUSTER_SERVING,
    CLUSTER_STOPPING_INSTANCES, /* the timer: the deadline of this step */
    CLUSTER_STOPPING_COORDINATOR,
    CLUSTER_STOPPED,
};

struct member {
    struct cli_cluster_member public;
    char *name;    /* owned */
    char *address; /* owned */
    struct cli_process *process;
};

struct cli_cluster {
    uv_loop_t *loop;
    uv_timer_t timer;
    struct cli_cluster_options options;
    enum cluster_state state;
    bool has_served;
    struct member *members; /* owned */
    size_t n_members;
    size_t n_started;
    struct rt_error error;
    struct rt_buffer log_tail;
};

static void on_member_ready(struct cli_process *process, void *ctx);
static void on_member_exit(struct cli_process *process, void *ctx);
static void on_timer(uv_timer_t *timer);

static struct member *member_of(struct cli_cluster *cluster, const struct cli_process *process)
{
    for (size_t i = 0; i < cluster->n_members; i++)
        if (cluster->members[i].process == process)
            return &cluster->members[i];
    rt_assert(!"process of no member");
    return NULL;
}

static size_t n_alive(const struct cli_cluster *cluster, size_t first)
{
    size_t n = 0;

    for (size_t i = first; i < cluster->n_members; i++)
        n += cluster->members[i].process != NULL;
    return n;
}

static void signal_members(struct cli_cluster *cluster, size_t first, size_t end, int signum)
{
    for (size_t i = first; i < end; i++)
        if (cluster->members[i].process != NULL)
            cli_process_kill(cluster->members[i].process, signum);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *handle)
{
    struct cli_cluster *cluster = handle->data;

    cluster->options.on_stopped(cluster, cluster->options.ctx);
}

/* Takes the next step of the stop if it is due. */
static void advance_stop(struct cli_cluster *cluster)
{
    if (cluster->state == CLUSTER_STOPPING_INSTANCES && n_alive(cluster, 1) == 0) {
        cluster->state = CLUSTER_STOPPING_COORDINATOR;
        (void)uv_timer_start(&cluster->timer, on_timer, cluster->options.stop_timeout_ms, 0);
        signal_members(cluster, 0, 1, SIGTERM);
    }
    if (cluster->state == CLUSTER_STOPPING_COORDINATOR && n_alive(cluster, 0) == 0) {
        cluster->state = CLUSTER_STOPPED;
        uv_close((uv_handle_t *)&cluster->timer, on_timer_closed);
    }
}

static void begin_stop(struct cli_cluster *cluster)
{
    cluster->state = CLUSTER_STOPPING_INSTANCES;
    (void)uv_timer_start(&cluster->timer, on_timer, cluster->options.stop_timeout_ms, 0);
    signal_members(cluster, 1, cluster->n_members, SIGTERM);
    advance_stop(cluster);
}

void cli_cluster_stop(struct cli_cluster *cluster)
{
    switch (cluster->state) {
    case CLUSTER_STARTING:
    case CLUSTER_SERVING:
        begin_stop(cluster);
        break;
    case CLUSTER_STOPPING_INSTANCES:
    case CLUSTER_STOPPING_COORDINATOR:
        signal_members(cluster, 0, cluster->n_members, SIGKILL);
        break;
    case CLUSTER_NEW:
    case CLUSTER_STOPPED:
        break;
    }
}

/* ---- starting -------------------------------------------------------------------------------- */

static bool port_is_free(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_free;

    if (fd < 0)
        return false;
    /* As the servers do it: connections that linger from an earlier run do not count. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    is_free = bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    (void)close(fd);
    return is_free;
}

static bool is_esi(const struct cli_cluster *cluster, size_t i)
{
    return cluster->options.has_esi && i == cluster->n_members - 1;
}

/* Owned by the caller. */
static char *choose_address(const struct cli_cluster *cluster, size_t i)
{
    size_t offset = i == 0 ? 0 : CLI_CLUSTER_FIRST_INSTANCE + i - 1;
    size_t port = cluster->options.base_port + (is_esi(cluster, i) ? CLI_CLUSTER_ESI : offset);

    if (cluster->options.base_port == 0 || !port_is_free((uint16_t)port))
        port = 0;
    return rt_xasprintf("127.0.0.1:%zu", port);
}

static void init_command(const struct cli_cluster *cluster, size_t i, const char *listen,
                         struct cli_command *ret_command)
{
    if (i == 0)
        cli_command_init_coordinator(ret_command, &cluster->options.command, listen);
    else if (is_esi(cluster, i))
        cli_command_init_esi(ret_command, &cluster->options.command, listen,
                             cluster->members[0].address);
    else
        cli_command_init_instance(ret_command, &cluster->options.command, cluster->members[i].name,
                                  listen, cluster->members[0].address);
}

static enum rt_code spawn_member(struct cli_cluster *cluster, size_t i)
{
    struct member *member = &cluster->members[i];
    RT_CLEANUP(rt_freep) char *listen = choose_address(cluster, i);
    RT_CLEANUP(rt_freep)
    char *log_path = rt_xasprintf("%s/%s.log", cluster->options.command.data_dir, member->name);
    struct cli_command command;
    struct cli_process_options options = {
        .name = member->name,
        .log_path = log_path,
        .environment = cluster->options.environment,
        .on_ready = on_member_ready,
        .on_exit = on_member_exit,
        .ctx = cluster,
    };
    enum rt_code code;

    init_command(cluster, i, listen, &command);
    cli_command_supervise(&command);
    options.argv = (const char *const *)command.arguments;
    code = cli_process_spawn(cluster->loop, &options, &member->process, &cluster->error);
    cli_command_deinit(&command);
    if (code == RT_OK)
        member->public.pid = cli_process_pid(member->process);
    return code;
}

static void start_next(struct cli_cluster *cluster)
{
    if (cluster->n_started == cluster->n_members) {
        cluster->state = CLUSTER_SERVING;
        cluster->has_served = true;
        (void)uv_timer_stop(&cluster->timer);
        cluster->options.on_serving(cluster, cluster->options.ctx);
        return;
    }
    if (spawn_member(cluster, cluster->n_started) == RT_OK)
        cluster->n_started++;
    else
        begin_stop(cluster);
}

static void on_member_ready(struct cli_process *process, void *ctx)
{
    struct cli_cluster *cluster = ctx;
    struct member *member = member_of(cluster, process);

    if (cluster->state != CLUSTER_STARTING)
        return;
    member->address = rt_xstrdup(cli_process_address(process));
    member->public.address = member->address;
    init_command(cluster, (size_t)(member - cluster->members), member->address,
                 &member->public.command);
    start_next(cluster);
}

static void fail_start(struct cli_cluster *cluster, struct cli_process *process)
{
    struct rt_buffer end = {0};
    int status = cli_process_exit_status(process);
    enum rt_code code = RT_UNAVAILABLE;

    if (status == 2)
        code = RT_INVALID_ARGUMENT;
    else if (status == 4)
        code = RT_FAILED_PRECONDITION;
    cli_process_describe_end(process, &end);
    (void)rt_fail(&cluster->error, code, "%s %s before the cluster served",
                  cli_process_name(process), rt_buffer_string(&end));
    rt_buffer_deinit(&end);
    cli_process_append_log_tail(process, CLI_CLUSTER_LOG_TAIL_LINES, &cluster->log_tail);
}

static void note_unclean_stop(struct cli_cluster *cluster, const struct cli_process *process)
{
    struct rt_buffer end = {0};

    if (cli_process_exited_cleanly(process) || cluster->error.code != RT_OK)
        return;
    cli_process_describe_end(process, &end);
    (void)rt_fail(&cluster->error, RT_ABORTED, "%s %s while stopping", cli_process_name(process),
                  rt_buffer_string(&end));
    rt_buffer_deinit(&end);
}

static void on_member_exit(struct cli_process *process, void *ctx)
{
    struct cli_cluster *cluster = ctx;
    struct member *member = member_of(cluster, process);

    member->process = NULL;
    switch (cluster->state) {
    case CLUSTER_STARTING:
        fail_start(cluster, process);
        begin_stop(cluster);
        break;
    case CLUSTER_SERVING:
        cluster->options.on_lost(cluster, &member->public, process, cluster->options.ctx);
        break;
    case CLUSTER_STOPPING_INSTANCES:
    case CLUSTER_STOPPING_COORDINATOR:
        note_unclean_stop(cluster, process);
        advance_stop(cluster);
        break;
    case CLUSTER_NEW:
    case CLUSTER_STOPPED:
        rt_assert(!"a process outlived the cluster");
        break;
    }
    cli_process_close(process);
}

static void time_out_start(struct cli_cluster *cluster)
{
    struct cli_process *process = cluster->members[cluster->n_started - 1].process;

    (void)rt_fail(&cluster->error, RT_DEADLINE_EXCEEDED, "%s does not serve after %u ms",
                  cli_process_name(process), cluster->options.start_timeout_ms);
    cli_process_append_log_tail(process, CLI_CLUSTER_LOG_TAIL_LINES, &cluster->log_tail);
    begin_stop(cluster);
}

static void on_timer(uv_timer_t *timer)
{
    struct cli_cluster *cluster = timer->data;

    switch (cluster->state) {
    case CLUSTER_STARTING:
        if (cluster->n_started > 0) {
            time_out_start(cluster);
            break;
        }
        (void)uv_timer_start(timer, on_timer, cluster->options.start_timeout_ms, 0);
        start_next(cluster);
        break;
    case CLUSTER_STOPPING_INSTANCES:
        signal_members(cluster, 1, cluster->n_members, SIGKILL);
        break;
    case CLUSTER_STOPPING_COORDINATOR:
        signal_members(cluster, 0, 1, SIGKILL);
        break;
    case CLUSTER_NEW:
    case CLUSTER_SERVING:
    case CLUSTER_STOPPED:
        break;
    }
}

void cli_cluster_start(struct cli_cluster *cluster)
{
    rt_assert(cluster->state == CLUSTER_NEW);
    cluster->state = CLUSTER_STARTING;
    (void)uv_timer_init(cluster->loop, &cluster->timer);
    cluster->timer.data = cluster;
    (void)uv_timer_start(&cluster->timer, on_timer, 0, 0);
}

/* ---- the object ------------------------------------------------------------------------------ */

struct cli_cluster *cli_cluster_new(uv_loop_t *loop, const struct cli_cluster_options *options)
{
    struct cli_cluster *cluster = rt_xalloc(sizeof(*cluster));

    rt_assert(options->n_instances >= 1 && options->n_instances <= CLI_CLUSTER_INSTANCES_MAX);
    cluster->loop = loop;
    cluster->options = *options;
    cluster->n_members = 1 + options->n_instances + (options->has_esi ? 1 : 0);
    cluster->members = rt_xalloc(cluster->n_members * sizeof(*cluster->members));
    for (size_t i = 0; i < cluster->n_members; i++) {
        struct member *member = &cluster->members[i];

        if (i == 0)
            member->name = rt_xstrdup("coordinator");
        else
            member->name = is_esi(cluster, i) ? rt_xstrdup("esi") : rt_xasprintf("instance-%zu", i);
        member->public.name = member->name;
    }
    return cluster;
}

struct cli_cluster *cli_cluster_free(struct cli_cluster *cluster)
{
    if (cluster == NULL)
        return NULL;
    for (size_t i = 0; i < cluster->n_members; i++) {
        cli_command_deinit(&cluster->members[i].public.command);
        rt_free(cluster->members[i].name);
        rt_free(cluster->members[i].address);
    }
    rt_free(cluster->members);
    rt_buffer_deinit(&cluster->log_tail);
    return rt_free(cluster);
}

bool cli_cluster_has_served(const struct cli_cluster *cluster)
{
    return cluster->has_served;
}

size_t cli_cluster_n_members(const struct cli_cluster *cluster)
{
    return cluster->n_members;
}

const struct cli_cluster_member *cli_cluster_member(const struct cli_cluster *cluster, size_t i)
{
    return &cluster->members[i].public;
}

const struct rt_error *cli_cluster_error(const struct cli_cluster *cluster)
{
    return &cluster->error;
}

struct rt_bytes cli_cluster_log_tail(const struct cli_cluster *cluster)
{
    return rt_buffer_bytes(&cluster->log_tail);
}
