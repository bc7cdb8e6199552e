/*
 * The verb `dev`: see dev.h. Starts no gRPC runtime; what the processes say through their pipes and
 * exit statuses is all it knows of them. Nothing of a run is left behind but what the user named
 * with --data-dir. Loop thread.
 */
#include "cli/dev.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "cli/cluster.h"
#include "cli/file.h"
#include "cli/report.h"
#include "cli/summary.h"
#include "runtime/base/alloc.h"
#include "runtime/base/log.h"
#include "runtime/model/lease.h"
#include "runtime/model/limits.h"
#include "runtime/model/message.h"

struct config {
    uint64_t instances;
    uint64_t entries;
    uint64_t entry_size;
    uint64_t lease_ms;
    uint64_t base_port;
    int profile;
    int distribution;
    int key_ranges;
    int compaction;
    int replacement;
    int store;
    int log_level;
    uint64_t delay_ms;
    uint64_t dump_interval_ms;
    int planner;
    const char *alpha;
    const char *initial_estimate;
    const char *blocked;
    const char *operation_log;
    const char *data_dir;
    const char *ready_file;
};

static const char *const profiles[] = {"default", "classic", NULL};

static const char *const planners[] = {"none",   "parallel", "fifo", "sjf-sd",
                                       "sjf-cd", "hrrn",     NULL};
static const char *const key_ranges[] = {"even", "ceil", NULL};
static const char *const compactions[] = {"profile", "local", "global", NULL};
static const char *const replacements[] = {"CIRC", "LRU", "BSU", NULL};
static const char *const stores[] = {"profile", "lmdb", "files", NULL};

static const struct rt_option options[] = {
    {.name = "instances",
     .type = RT_OPTION_U64,
     .help = "How many instances to start.",
     .initial = "3",
     .min = 1,
     .max = CLI_CLUSTER_INSTANCES_MAX,
     .offset = offsetof(struct config, instances)},
    {.name = "entries",
     .type = RT_OPTION_U64,
     .help = "Entries of each instance.",
     .initial = "65536",
     .min = 1,
     .max = UINT32_MAX,
     .offset = offsetof(struct config, entries)},
    {.name = "entry-size",
     .type = RT_OPTION_SIZE,
     .help = "Size of one entry.",
     .initial = "128",
     .min = 1,
     .max = MODEL_VALUE_MAX,
     .offset = offsetof(struct config, entry_size)},
    {.name = "replacement",
     .type = RT_OPTION_ENUM,
     .help = "Which value of an instance makes room for another one.",
     .names = replacements,
     .initial = "CIRC",
     .offset = offsetof(struct config, replacement)},
    {.name = "store",
     .type = RT_OPTION_ENUM,
     .help = "Where stored values of the instances are. files: each also in the file "
             "DATA-DIR/NAME/files/KEY; profile: as the profile says.",
     .names = stores,
     .initial = "profile",
     .offset = offsetof(struct config, store)},
    {.name = "dump-interval",
     .type = RT_OPTION_DURATION,
     .help = "The instances store SET values that have changed every so often. 0: as the profile "
             "says.",
     .initial = "0",
     .max = 86400000,
     .offset = offsetof(struct config, dump_interval_ms)},
    {.name = "distribution",
     .type = RT_OPTION_ENUM,
     .help = "How the coordinator chooses the instance of a new key.",
     .names = model_distribution_names,
     .initial = "equitable-load",
     .offset = offsetof(struct config, distribution)},
    {.name = "key-ranges",
     .type = RT_OPTION_ENUM,
     .help = "How the distribution key-explicit cuts the alphabet.",
     .names = key_ranges,
     .initial = "even",
     .offset = offsetof(struct config, key_ranges)},
    {.name = "compaction",
     .type = RT_OPTION_ENUM,
     .help = "Who moves values together to make room: the instance that needs it, every connected "
             "one while no statement runs, or as the profile says.",
     .names = compactions,
     .initial = "profile",
     .offset = offsetof(struct config, compaction)},
    {.name = "delay-ms",
     .type = RT_OPTION_U64,
     .help = "Each statement waits this long in the coordinator, to be looked at.",
     .argument = "MS",
     .initial = "0",
     .max = MODEL_DELAY_MS_MAX,
     .offset = offsetof(struct config, delay_ms)},
    {.name = "operation-log",
     .type = RT_OPTION_STRING,
     .help = "The coordinator appends a line for each statement to this file.",
     .argument = "FILE",
     .offset = offsetof(struct config, operation_log)},
    {.name = "planner",
     .type = RT_OPTION_ENUM,
     .help =
         "Start `redistinto-esi serve` with this planner too, for `redistinto esi`; its port is "
         "higher than the coordinator's by 70.",
     .names = planners,
     .initial = "none",
     .offset = offsetof(struct config, planner)},
    {.name = "alpha",
     .type = RT_OPTION_STRING,
     .help = "Of --planner: weight of the last burst in the next estimate, 0 to 1.",
     .argument = "FRACTION",
     .offset = offsetof(struct config, alpha)},
    {.name = "initial-estimate",
     .type = RT_OPTION_STRING,
     .help = "Of --planner: estimate of a new ESI.",
     .argument = "LINES",
     .offset = offsetof(struct config, initial_estimate)},
    {.name = "blocked",
     .type = RT_OPTION_STRING,
     .help = "Of --planner: keys with commas between them that are locked from the start.",
     .argument = "KEYS",
     .offset = offsetof(struct config, blocked)},
    {.name = "profile",
     .type = RT_OPTION_ENUM,
     .help = "The set of rules of all processes.",
     .names = profiles,
     .initial = "default",
     .offset = offsetof(struct config, profile)},
    {.name = "lease",
     .type = RT_OPTION_DURATION,
     .help = "Membership lease: how long an instance may be silent.",
     .initial = "10s",
     .min = MODEL_LEASE_MS_MIN,
     .max = MODEL_LEASE_MS_MAX,
     .offset = offsetof(struct config, lease_ms)},
    {.name = "base-port",
     .type = RT_OPTION_U64,
     .help = "Port of the coordinator; the first instance's is higher by 10. A port that is taken "
             "gives way to any free one. 0: any free ports.",
     .argument = "PORT",
     .initial = "7400",
     .max = CLI_CLUSTER_BASE_PORT_MAX,
     .offset = offsetof(struct config, base_port)},
    {.name = "data-dir",
     .type = RT_OPTION_STRING,
     .help = "Keep data and logs here; the directory is made if it is absent. Without this option "
             "they are in a temporary directory that is removed at the end.",
     .argument = "DIR",
     .offset = offsetof(struct config, data_dir)},
    {.name = "ready-file",
     .type = RT_OPTION_STRING,
     .help = "Write names, addresses and process ids to this file as JSON once everything serves; "
             "removed at the end.",
     .argument = "FILE",
     .offset = offsetof(struct config, ready_file)},
    {.name = "log-level",
     .type = RT_OPTION_ENUM,
     .help = "What the processes log, each to NAME.log in the data directory.",
     .names = rt_log_level_names,
     .initial = "info",
     .offset = offsetof(struct config, log_level)},
};

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

enum {
    N_STOP_SIGNALS = RT_ARRAY_SIZE(stop_signals)
};

struct dev {
    struct cli_context *context;
    const struct config *config;
    uv_loop_t loop;
    uv_signal_t signals[N_STOP_SIGNALS];
    struct cli_cluster *cluster; /* owned */
    char *data_dir;              /* owned */
    char **environment;          /* owned array, borrowed words */
    bool is_interrupted;         /* before it served */
    enum model_exit announced;   /* what telling the user came to */
};

/* ---- what it starts -------------------------------------------------------------------------- */

static struct cli_command_options command_options(const struct dev *dev)
{
    const struct config *config = dev->config;

    return (struct cli_command_options){
        .binaries_dir = dev->context->binaries_dir,
        .data_dir = dev->data_dir,
        .profile = profiles[config->profile],
        .distribution = model_distribution_names[config->distribution],
        .key_ranges = key_ranges[config->key_ranges],
        .compaction = config->compaction == 0 ? NULL : compactions[config->compaction],
        .replacement = replacements[config->replacement],
        .store = config->store == 0 ? NULL : stores[config->store],
        .operation_log = config->operation_log,
        .planner = planners[config->planner],
        .alpha = config->alpha,
        .initial_estimate = config->initial_estimate,
        .blocked = config->blocked,
        .log_level = rt_log_level_names[config->log_level],
        .delay_ms = config->delay_ms,
        .dump_interval_ms = config->dump_interval_ms,
        .lease_ms = config->lease_ms,
        .entries = config->entries,
        .entry_size = config->entry_size,
    };
}

/* ---- what it says ---------------------------------------------------------------------------- */

static void fill_member(const struct cli_cluster_member *member,
                        struct cli_summary_member *ret_member)
{
    *ret_member = (struct cli_summary_member){
        .name = member->name,
        .address = member->address,
        .pid = member->pid,
    };
}

static enum model_exit write_ready_file(struct dev *dev, const struct cli_summary *summary)
{
    struct rt_error err = RT_ERROR_INIT;
    struct rt_buffer buffer = {0};
    enum rt_code code;

    if (dev->config->ready_file == NULL)
        return MODEL_EXIT_OK;
    cli_summary_append_json(summary, &buffer);
    code = rt_buffer_check(&buffer, &err);
    if (code == RT_OK)
        code = cli_file_replace(dev->config->ready_file, rt_buffer_bytes(&buffer), &err);
    rt_buffer_deinit(&buffer);
    return code == RT_OK ? MODEL_EXIT_OK : cli_report_error(dev->context, &err);
}

static enum model_exit print_summary(struct dev *dev, const struct cli_summary *summary)
{
    struct rt_buffer buffer = {0};
    enum model_exit result;

    if (dev->context->common.output == CLI_OUTPUT_JSON)
        cli_summary_append_json(summary, &buffer);
    else
        cli_summary_append_box(summary, dev->context->is_utf8, &buffer);
    result = cli_report_result(dev->context, &buffer);
    rt_buffer_deinit(&buffer);
    return result;
}

static void on_serving(struct cli_cluster *cluster, void *ctx)
{
    struct dev *dev = ctx;
    const struct cli_command_options command = command_options(dev);
    struct cli_summary_member instances[CLI_CLUSTER_INSTANCES_MAX];
    struct cli_summary summary = {
        .instances = instances,
        .n_instances = (size_t)dev->config->instances,
        .pid = getpid(),
        .data_dir = dev->data_dir,
        .is_temporary = dev->config->data_dir == NULL,
        .profile = profiles[dev->config->profile],
        .distribution = model_distribution_names[dev->config->distribution],
    };

    fill_member(cli_cluster_member(cluster, 0), &summary.coordinator);
    for (size_t i = 0; i < summary.n_instances; i++)
        fill_member(cli_cluster_member(cluster, i + 1), &instances[i]);
    if (dev->config->planner > 0)
        fill_member(cli_cluster_member(cluster, summary.n_instances + 1), &summary.esi);
    cli_rules_fill(&command, summary.rules);
    dev->announced = write_ready_file(dev, &summary);
    if (dev->announced == MODEL_EXIT_OK)
        dev->announced = print_summary(dev, &summary);
    if (dev->announced != MODEL_EXIT_OK)
        cli_cluster_stop(cluster);
}

static void on_lost(struct cli_cluster *cluster, const struct cli_cluster_member *member,
                    const struct cli_process *process, void *ctx)
{
    struct dev *dev = ctx;
    struct rt_buffer text = {0};

    (void)cluster;
    rt_buffer_printf(&text, "redistinto: dev: %s (pid %ld) ", member->name, (long)member->pid);
    cli_process_describe_end(process, &text);
    rt_buffer_append_string(&text, "; to start it again by hand:\n  ");
    cli_command_append(&member->command, &text);
    rt_buffer_append_byte(&text, '\n');
    (void)fputs(rt_buffer_string(&text), dev->context->err);
    (void)fflush(dev->context->err);
    rt_buffer_deinit(&text);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *signal, int signum)
{
    struct dev *dev = signal->data;

    (void)signum;
    if (!cli_cluster_has_served(dev->cluster))
        dev->is_interrupted = true;
    cli_cluster_stop(dev->cluster);
}

static void start_signals(struct dev *dev)
{
    for (size_t i = 0; i < N_STOP_SIGNALS; i++) {
        (void)uv_signal_init(&dev->loop, &dev->signals[i]);
        dev->signals[i].data = dev;
        (void)uv_signal_start(&dev->signals[i], on_signal, stop_signals[i]);
    }
}

/* From here on signals have nothing left to stop, and must not end this process before it has
 * removed its traces: they stay blocked to its end. */
static void on_stopped(struct cli_cluster *cluster, void *ctx)
{
    struct dev *dev = ctx;
    sigset_t signals;

    (void)cluster;
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < N_STOP_SIGNALS; i++)
        (void)sigaddset(&signals, stop_signals[i]);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    for (size_t i = 0; i < N_STOP_SIGNALS; i++)
        uv_close((uv_handle_t *)&dev->signals[i], NULL);
}

/* Without variables of ours: they are options of this process, and the children get all of theirs
 * on their command lines. */
static char **child_environment(char *const *environment)
{
    static const char prefix[] = "REDISTINTO_";
    size_t n = 0;
    char **kept;

    for (char *const *word = environment; *word != NULL; word++)
        n++;
    kept = rt_xalloc((n + 1) * sizeof(*kept));
    n = 0;
    for (char *const *word = environment; *word != NULL; word++)
        if (strncmp(*word, prefix, sizeof(prefix) - 1) != 0)
            kept[n++] = *word;
    return kept;
}

static struct cli_cluster *new_cluster(struct dev *dev)
{
    const struct config *config = dev->config;
    struct cli_cluster_options cluster_options = {
        .command = command_options(dev),
        .environment = dev->environment,
        .n_instances = (unsigned)config->instances,
        .has_esi = config->planner > 0,
        .base_port = (uint16_t)config->base_port,
        .start_timeout_ms = CLI_CLUSTER_START_TIMEOUT_MS,
        .stop_timeout_ms = CLI_CLUSTER_STOP_TIMEOUT_MS,
        .on_serving = on_serving,
        .on_lost = on_lost,
        .on_stopped = on_stopped,
        .ctx = dev,
    };

    return cli_cluster_new(&dev->loop, &cluster_options);
}

/* What the whole run came to, reported. */
static enum model_exit conclude(struct dev *dev)
{
    const struct rt_error *error = cli_cluster_error(dev->cluster);
    struct rt_bytes tail = cli_cluster_log_tail(dev->cluster);
    enum model_exit result;

    if (dev->is_interrupted)
        return MODEL_EXIT_INTERRUPTED;
    if (dev->announced != MODEL_EXIT_OK || error->code == RT_OK)
        return dev->announced;
    result = cli_report_error(dev->context, error);
    if (tail.size > 0)
        (void)fprintf(dev->context->err, "Its log ends with:\n%.*s", (int)tail.size, tail.data);
    (void)fflush(dev->context->err);
    return cli_cluster_has_served(dev->cluster) ? MODEL_EXIT_FAILED : result;
}

static enum model_exit run_cluster(struct dev *dev)
{
    int loop_result = uv_loop_init(&dev->loop);
    enum model_exit result;

    rt_assert(loop_result == 0);
    dev->cluster = new_cluster(dev);
    start_signals(dev);
    cli_cluster_start(dev->cluster);
    (void)uv_run(&dev->loop, UV_RUN_DEFAULT);
    loop_result = uv_loop_close(&dev->loop);
    rt_assert(loop_result == 0);
    result = conclude(dev);
    dev->cluster = cli_cluster_free(dev->cluster);
    return result;
}

/* ---- what it needs --------------------------------------------------------------------------- */

/* What an option names cannot be used: the option has to be changed, or the machine. */
static enum rt_code refuse_option(const char *option, enum rt_code code, struct rt_error *err)
{
    if (code != RT_NOT_FOUND && code != RT_PERMISSION_DENIED && code != RT_FAILED_PRECONDITION)
        return code;
    (void)rt_wrap(err, "%s", option);
    err->code = RT_INVALID_ARGUMENT;
    return RT_INVALID_ARGUMENT;
}

/* The directory as an absolute path, since it is shown in commands to be typed elsewhere. */
static enum rt_code open_data_dir(struct dev *dev, struct rt_error *err)
{
    const char *path = dev->config->data_dir;
    enum rt_code code;

    if (path == NULL)
        return cli_file_make_temporary_directory(dev->context->temporary_dir, &dev->data_dir, err);
    code = cli_file_make_directory(path, err);
    if (code == RT_OK)
        code = cli_file_resolve(path, &dev->data_dir, err);
    return refuse_option("--data-dir", code, err);
}

static enum rt_code check_program(const struct dev *dev, const char *name, struct rt_error *err)
{
    RT_CLEANUP(rt_freep) char *path = rt_xasprintf("%s/%s", dev->context->binaries_dir, name);

    if (access(path, X_OK) == 0)
        return RT_OK;
    return rt_fail(err, RT_INVALID_ARGUMENT,
                   "%s cannot be run: the services must be installed beside this command", path);
}

/* Before processes are started that would have to be stopped again. */
static enum rt_code check_ready_file(const struct dev *dev, struct rt_error *err)
{
    const char *path = dev->config->ready_file;
    RT_CLEANUP(rt_freep) char *directory = NULL;
    char *slash;

    if (path == NULL)
        return RT_OK;
    directory = rt_xasprintf("./%s", path);
    slash = strrchr(directory, '/');
    *slash = '\0';
    if (access(*path == '/' ? directory + 2 : directory, W_OK | X_OK) == 0)
        return RT_OK;
    return refuse_option("--ready-file", rt_fail_errno(err, errno, "%s", path), err);
}

static enum rt_code check(struct dev *dev, struct rt_error *err)
{
    enum rt_code code = check_program(dev, "redistinto-coordinator", err);

    if (code == RT_OK)
        code = check_program(dev, "redistinto-instance", err);
    if (code == RT_OK && dev->config->planner > 0)
        code = check_program(dev, "redistinto-esi", err);
    if (code == RT_OK)
        code = check_ready_file(dev, err);
    if (code == RT_OK)
        code = open_data_dir(dev, err);
    return code;
}

static void remove_traces(struct dev *dev)
{
    struct rt_error err = RT_ERROR_INIT;

    if (dev->config->ready_file != NULL)
        (void)unlink(dev->config->ready_file);
    if (dev->config->data_dir == NULL && cli_file_remove_directory(dev->data_dir, &err) != RT_OK)
        (void)fprintf(dev->context->err, "redistinto: dev: %s\n", err.message);
}

static enum model_exit run(struct cli_context *context, const char *const *arguments,
                           const void *config)
{
    struct rt_error err = RT_ERROR_INIT;
    struct dev *dev = rt_xalloc(sizeof(*dev));
    enum model_exit result;

    (void)arguments;
    dev->context = context;
    dev->config = config;
    dev->environment = child_environment(context->environment);
    if (check(dev, &err) == RT_OK) {
        /* One of an earlier run that was killed says nothing about this one. */
        if (dev->config->ready_file != NULL)
            (void)unlink(dev->config->ready_file);
        result = run_cluster(dev);
        remove_traces(dev);
    } else {
        result = cli_report_error(context, &err);
    }
    rt_free(dev->environment);
    rt_free(dev->data_dir);
    rt_free(dev);
    return result;
}

static const char *const dev_examples[] = {
    "redistinto dev",
    "redistinto dev --instances 5 --profile classic --data-dir /tmp/cluster",
    "redistinto dev --base-port 0 --ready-file cluster.json    # for scripts: any ports, and where",
    NULL,
};

const struct cli_verb cli_dev_verb = {
    .name = "dev",
    .arguments = "",
    .summary = "start a cluster of real processes on this machine, for development",
    .description = "Starts a coordinator and instances on this machine, shows where they are, and "
                   "stops them all on Ctrl-C. Not for production: nothing is replicated, nothing "
                   "is restarted, and everything listens on the loopback interface only.",
    .examples = dev_examples,
    .options = options,
    .n_options = RT_ARRAY_SIZE(options),
    .config_size = sizeof(struct config),
    .run = run,
};
