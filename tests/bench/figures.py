"""The figures: what is measured, beside what, and the bar. A figure is a generator of one side: it
yields the measurement of one round each time it is asked; the rounds of both sides take turns.
"""
import itertools
import pathlib
import random
import shutil
import struct
import tempfile

import clients
import servers

IN_FLIGHT = 64
WARM_UP = 2000
N_LOAD_KEYS = 1000
REDIS_PIPELINE = 64


class Side:
    """One of two things that are compared: its name, and a function that measures it once."""

    def __init__(self, name, measure):
        self.name = name
        self.measure = measure


class Figure:
    """`key` of the measurements is compared: ours divided by the peer's. `bar` is what the ratio
    (or ours, without a peer) is to reach; `is_upper`: at most, else at least. None: no bar."""

    def __init__(self, name, key, unit, bar=None, is_upper=False):
        self.name, self.key, self.unit = name, key, unit
        self.bar, self.is_upper = bar, is_upper

    def meets(self, value):
        if self.bar is None:
            return None
        return value <= self.bar if self.is_upper else value >= self.bar


class Group:
    """Figures that come out of the same rounds. `sides(stack, seconds)` starts what they need on
    an ExitStack and returns the sides, ours first."""

    def __init__(self, figures, sides):
        self.figures, self.sides = figures, sides


def temporary(stack):
    return pathlib.Path(stack.enter_context(
        tempfile.TemporaryDirectory(prefix="redistinto-bench-")))


# ---- unary, h2load ----

def _unary(stack, seconds):
    ours = stack.enter_context(servers.Ours())
    request = ours.set_request(b"bench")
    echo = stack.enter_context(servers.RawEcho(ours.set(request)))
    path = temporary(stack) / "request"
    path.write_bytes(clients.grpc_frame(request.SerializeToString()))

    def measure(server, address, n):
        before = server.cpu_s()
        got = clients.h2load({"server": pid_of(server)}, address, path, n, IN_FLIGHT)
        return {**got, "cpu_us": (server.cpu_s() - before) * 1e6 / n}

    rate = measure(ours, ours.address, WARM_UP)["rate"]
    measure(echo, echo.address, WARM_UP)
    n = int(max(rate, 10000) * seconds)

    def measure_ours():
        before = ours.n_operations()
        got = measure(ours, ours.address, n)
        done = ours.n_operations() - before
        if done != n:
            raise clients.Failed(f"the instance carried out {done} of {n} SETs")
        return got

    return [Side("SET", measure_ours),
            Side("raw echo", lambda: measure(echo, echo.address, n))]


def _unary_redis(stack, seconds):
    redis = _redis_side(stack, seconds, False, 1)
    ours = stack.enter_context(servers.Ours())
    path = temporary(stack) / "request"
    path.write_bytes(clients.grpc_frame(ours.set_request(b"bench").SerializeToString()))

    def measure(n):
        return clients.h2load({"server": pid_of(ours)}, ours.address, path, n, IN_FLIGHT)

    n = int(measure(WARM_UP)["rate"] * seconds)
    return [Side("SET", lambda: measure(n)), redis]


def pid_of(server):
    if isinstance(server, servers.Ours):
        return server.fleet.services["a"].pid
    return server.process.pid


# ---- unary, C client ----

def _keys(stack, ours):
    """Placed keys, as the load program wants them."""
    path = temporary(stack) / "keys"
    with open(path, "w", encoding="ascii") as file:
        for i in range(N_LOAD_KEYS):
            key = f"bench-{i:06}"
            file.write(f"{key} {ours.place(key.encode())}\n")
    # The first SET of a key after a PUT waits for a durable mark, the others do not.
    while clients.load({}, "set", ours.address, IN_FLIGHT, 1, path,
                       *_route(ours))["calls"] < 2 * N_LOAD_KEYS:
        pass
    return path


def _route(ours):
    return "a", ours.incarnation, ours.cluster_id.hex()


def _idle(stack, seconds):
    ours = stack.enter_context(servers.Ours())
    keys, route = _keys(stack, ours), _route(ours)
    echo = stack.enter_context(servers.RawEcho(ours.set(ours.set_request(b"bench"))))

    def side(name, server):
        return Side(name, lambda: clients.load({"server": pid_of(server)}, "set", server.address,
                                               1, seconds, keys, *route))

    return [side("SET, 1 in flight", ours), side("raw echo", echo)]


def _put(stack, seconds):
    etcd = stack.enter_context(servers.Etcd())
    ours = stack.enter_context(servers.Ours())
    keys, route = _keys(stack, ours), _route(ours)
    return [Side("PUT", lambda: clients.load({"server": pid_of(ours)}, "put", ours.address,
                                             IN_FLIGHT, seconds, keys, *route)),
            Side("etcd Put", lambda: clients.load({"server": pid_of(etcd)}, "etcd", etcd.address,
                                                  IN_FLIGHT, seconds, keys))]


# ---- batches ----

def _batches(stack, ours, kind, size):
    """Prepared batches, as the pipeline program wants them: every key once in random order."""
    path = temporary(stack) / "batches"
    epochs = ours.place_many(clients.N_KEYS)
    names = list(epochs)
    random.Random(1).shuffle(names)
    with open(path, "wb") as file:
        for i in range(0, len(names) - size + 1, size):
            batch = ours.batch(kind, epochs, names[i:i + size])
            file.write(struct.pack("<I", len(batch)) + batch)
    return path


def _redis_side(stack, seconds, is_durable, pipeline):
    redis = stack.enter_context(servers.Redis(is_durable))

    def measure(n):
        return clients.redis_benchmark({"server": pid_of(redis)}, redis.port, n, pipeline)

    n = int(measure(WARM_UP * pipeline)["rate"] * seconds)
    n = int(measure(n)["rate"] * seconds)
    return Side(f"{redis.name} -P {pipeline}", lambda: measure(n))


def _pipelined(kind, size, is_durable):
    def sides(stack, seconds):
        redis = _redis_side(stack, seconds, is_durable, REDIS_PIPELINE)
        ours = stack.enter_context(servers.Ours())
        batches = _batches(stack, ours, kind, size)
        in_flight = clients.REDIS_CLIENTS * REDIS_PIPELINE // size

        def measure():
            return clients.pipeline({"server": pid_of(ours)}, ours.address, batches, in_flight,
                                    seconds)

        clients.pipeline({"server": pid_of(ours)}, ours.address, batches, in_flight, 0)
        return [Side(f"{kind}, {size} a batch", measure), redis]

    return sides


# ---- routed ----

def _routed(stack, seconds):
    ours = stack.enter_context(servers.Ours())

    def side(path):
        return Side(f"{path} SET", lambda: clients.bench(
            ours.pids, ours.coordinator, seconds, "--path", path, "--reads", 0, "--concurrency",
            IN_FLIGHT, "--keys", N_LOAD_KEYS, "--warmup", f"{round(seconds * 500)}ms"))

    return [side("routed"), side("direct")]


# ---- without a network ----

def _checks(_stack, _seconds):
    return [Side("checks of one write",
                 lambda: {"ns": clients.instance_checks()["checks"], "busy": {}})]


def _stores(group):
    def sides(stack, seconds):
        path, number = temporary(stack), itertools.count()

        def measure(engine):
            directory = path / f"{engine}-{next(number)}"
            try:
                return clients.store(engine, directory, group, seconds)
            except clients.Failed as failed:
                if "librocksdb-dev" in str(failed):
                    raise servers.Missing(str(failed)) from failed
                raise
            finally:
                shutil.rmtree(directory, ignore_errors=True)

        return [Side("LMDB", lambda: measure("lmdb")), Side("RocksDB", lambda: measure("rocksdb"))]

    return sides


OPS = "operations/s"
STORE_GROUPS = [1, 16, 64, 256]
GROUPS = [
    Group([Figure("unary_set_vs_raw_echo", "rate", OPS, 0.85),
           Figure("unary_set_cpu_vs_raw_echo", "cpu_us", "µs of server CPU", 1.20, True)], _unary),
    Group([Figure("unary_set_vs_redis_p1", "rate", OPS)], _unary_redis),
    Group([Figure("idle_p50_vs_raw_echo", "p50_us", "µs", 1.25, True)], _idle),
    Group([Figure("pipelined_set_64_vs_redis_p64", "rate", OPS, 1.5)],
          _pipelined("SET", 64, False)),
    Group([Figure("pipelined_set_256_vs_redis_p64", "rate", OPS, 2.5)],
          _pipelined("SET", 256, False)),
    Group([Figure("durable_put_64_vs_redis_always_p64", "rate", OPS, 0.15)],
          _pipelined("PUT", 64, True)),
    Group([Figure("unary_put_vs_etcd_put", "rate", OPS, 1.0)], _put),
    Group([Figure("routed_vs_direct", "rate", OPS, 0.45)], _routed),
    Group([Figure("check_ns", "ns", "ns", 100, True)], _checks),
    *(Group([Figure(f"store_{group}_lmdb_vs_rocksdb", "rate", "durable writes/s")],
            _stores(group)) for group in STORE_GROUPS),
]
