// What every JavaScript client does here, whatever library carries it. A client has two functions:
//
//   call(address, method, request, { timeoutMs })  the response of a unary RPC
//   stream(address, method)                        { send(request), end(), next(), cancel() } of
//                                                  any stream; next() gives null at its end
//
// `method` is "package.Service/Method". Requests and responses are proto3 JSON: lowerCamelCase,
// bytes as base64, numbers of 64 bits as text, names of enumerators; fields with their default
// value are absent. Failures are RpcErrors.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';

export const COORDINATOR_SERVICE = 'redistinto.v1.CoordinatorService';
const INSTANCE_SERVICE = 'redistinto.v1.InstanceService';
const HEALTH = 'grpc.health.v1.Health';
const CANCELLED = 1, INVALID_ARGUMENT = 3, DEADLINE_EXCEEDED = 4, NOT_FOUND = 5;
const FAILED_PRECONDITION = 9, UNAVAILABLE = 14;
const TIMEOUT_MS = 10000;

// `details` are the unpacked details of google.rpc.Status by type name.
export class RpcError extends Error {
  constructor(code, message, details) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

const bytes = (text) => Buffer.from(text).toString('base64');

class StatementFailed extends Error {
  constructor(error) {
    super(`${error.routing.reason}: ${error.message}`);
    this.error = error;
  }
}

class Session {
  static async open(client, address, name) {
    const session = new Session();
    session.client = client;
    session.address = address;
    session.name = name;
    session.clientId = randomBytes(16).toString('base64');
    session.seq = 0;
    session.opened = await client.call(address, `${COORDINATOR_SERVICE}/OpenSession`,
      { name, requestId: session.nextId() }, { timeoutMs: TIMEOUT_MS });
    session.id = session.opened.sessionId;
    session.leases = client.stream(address, `${COORDINATOR_SERVICE}/KeepAlive`);
    session.statements = client.stream(address, `${COORDINATOR_SERVICE}/Execute`);
    session.exchanges = 0;
    return session;
  }

  nextId() {
    this.seq += 1;
    return { clientId: this.clientId, seq: String(this.seq) };
  }

  // The length of the lease in milliseconds.
  async keepAlive() {
    this.exchanges += 1;
    this.leases.send({ exchangeId: String(this.exchanges), sessionId: this.id });
    const answer = await this.leases.next();
    assert.equal(answer.exchangeId, String(this.exchanges));
    if (answer.error) throw new StatementFailed(answer.error);
    return Number(answer.result.leaseMs);
  }

  // Sends a statement; finish() gives its result. The answers come in the order of the statements.
  begin(statement, timeoutMs = TIMEOUT_MS) {
    const requestId = this.nextId();
    this.statements.send({ statementId: requestId.seq, timeoutMs, sessionId: this.id, requestId,
      doneBelow: requestId.seq, ...statement });
    return requestId.seq;
  }

  async finish(statementId) {
    const answer = await this.statements.next();
    assert.equal(answer.statementId, statementId);
    if (answer.error) throw new StatementFailed(answer.error);
    return answer.result;
  }

  run(statement, timeoutMs) {
    return this.finish(this.begin(statement, timeoutMs));
  }

  get(key) { return this.run({ get: { key: bytes(key) } }); }

  read(key) { return this.run({ read: { key: bytes(key) } }); }

  set(key, value, lockToken) {
    return this.run({ set: { key: bytes(key), value: bytes(value), lockToken } });
  }

  store(key, lockToken = '0', lastSet = null) {
    return this.run({ store: { key: bytes(key), lockToken, ...(lastSet && { lastSet }) } });
  }

  ask(method, request, timeoutMs = TIMEOUT_MS) {
    return this.client.call(this.address, `${COORDINATOR_SERVICE}/${method}`,
      { sessionId: this.id, ...request }, { timeoutMs });
  }

  lock(key, more, timeoutMs) {
    return this.ask('Lock', { key: bytes(key), requestId: this.nextId(), ...more }, timeoutMs);
  }

  unlock(key, lockToken) { return this.ask('Unlock', { key: bytes(key), lockToken }); }

  async route(key, operation) {
    return (await this.ask('Route',
      { key: bytes(key), operation: `ROUTE_OPERATION_${operation}` })).route;
  }

  async close() {
    this.statements.end();
    this.leases.end();
    assert.equal(await this.statements.next(), null);
    assert.equal(await this.leases.next(), null);
    await this.client.call(this.address, `${COORDINATOR_SERVICE}/CloseSession`,
      { sessionId: this.id }, { timeoutMs: TIMEOUT_MS });
  }
}

// What a failed call said, after a look at what all of them have in common.
async function failure(promise, code, reason) {
  const error = await promise.then(() => assert.fail(`no ${reason}`), (thrown) => thrown);
  assert.ok(error instanceof RpcError, String(error.stack));
  assert.equal(error.code, code, error.message);
  const info = error.details['google.rpc.ErrorInfo'];
  const routing = error.details['redistinto.v1.RoutingError'];
  assert.deepEqual([info.reason, info.domain], [reason, 'redistinto']);
  assert.equal(routing.reason, reason);
  return routing;
}

async function statementFailure(promise, code, reason) {
  const thrown = await promise.then(() => assert.fail(`no ${reason}`), (error) => error);
  assert.ok(thrown instanceof StatementFailed, String(thrown.stack));
  assert.deepEqual([thrown.error.code, thrown.error.routing.reason], [code, reason]);
  return thrown.error.routing;
}

// The route to the key of a statement's result, as an operation's header begins.
function routeOf(session, key, result) {
  return { clusterId: session.opened.clusterId, key: bytes(key), epoch: result.epoch,
    owner: result.instance, incarnation: result.key.version.incarnation };
}

function watchRoutes(client, cluster, prefix) {
  const watch = client.stream(cluster.coordinator, `${COORDINATOR_SERVICE}/WatchRoutes`);
  watch.send({ prefix: bytes(prefix) });
  watch.end();
  return watch;
}

async function watchThroughDrain(client, address, service, pid) {
  const watch = client.stream(address, `${HEALTH}/Watch`);
  watch.send({ service });
  watch.end();
  assert.equal((await watch.next()).status, 'SERVING');
  process.kill(pid, 'SIGTERM');
  assert.equal((await watch.next()).status, 'NOT_SERVING');
  const error = await watch.next().then(() => assert.fail('no end'), (thrown) => thrown);
  assert.equal(error.code, UNAVAILABLE);
}

// cluster: { coordinator, instances: { name: address }, pids: { name: pid } }
const steps = {
  'a session is kept alive': async ({ a }) => {
    assert.ok(await a.keepAlive() > 0);
    assert.ok(await a.keepAlive() > 0);
  },

  'a script of statements': async ({ a }) => {
    const held = await a.get('script');
    assert.equal(held.outcome, 'STATEMENT_OUTCOME_DONE');
    const written = await a.set('script', 'one', held.lockToken);
    assert.ok(['a', 'b'].includes(written.instance));
    const stored = await a.store('script', held.lockToken, written.key.version);
    assert.equal(stored.key.stored, true);
    const read = await a.read('script');
    assert.deepEqual([read.key.value, read.key.version], [bytes('one'), stored.key.version]);
  },

  'a GET that waits': async ({ a, b }) => {
    const held = await a.get('shared');
    const waiting = await b.get('shared');
    assert.deepEqual([waiting.outcome, waiting.holder], ['STATEMENT_OUTCOME_WAITING', a.name]);
    const turn = b.begin({ awaitTurn: { key: bytes('shared') } });
    const written = await a.set('shared', 'from a', held.lockToken);
    await a.store('shared', held.lockToken, written.key.version);
    assert.equal((await b.finish(turn)).outcome, 'STATEMENT_OUTCOME_READY');
    const got = await b.get('shared');
    assert.deepEqual([got.outcome, got.key.value], ['STATEMENT_OUTCOME_DONE', bytes('from a')]);
    await b.store('shared', got.lockToken);
  },

  'details of a failed call': async ({ client, cluster }) => {
    const routing = await failure(client.call(cluster.instances.a, `${INSTANCE_SERVICE}/Set`,
      { header: {} }, { timeoutMs: TIMEOUT_MS }), INVALID_ARGUMENT, 'KEY_EMPTY');
    assert.equal(routing.applied, 'APPLIED_NO');
  },

  'details of a failed statement': async ({ a }) => {
    const routing = await statementFailure(a.store('unheard of'), NOT_FOUND, 'KEY_NOT_IDENTIFIED');
    assert.equal(routing.applied, 'APPLIED_NO');
    assert.equal(routing.key, bytes('unheard of'));
    assert.equal((await a.read('script')).key.value, bytes('one'));
  },

  'a stale route, and its hint': async ({ client, cluster, a }) => {
    const held = await a.get('direct');
    const written = await a.set('direct', 'routed', held.lockToken);
    const set = (header) => client.call(cluster.instances[written.instance],
      `${INSTANCE_SERVICE}/Set`, { value: bytes('direct'),
        header: { ...header, lockToken: held.lockToken, requestId: a.nextId() } },
      { timeoutMs: TIMEOUT_MS });
    const route = routeOf(a, 'direct', written);
    const { applied, hint } = await failure(
      set({ ...route, epoch: String(BigInt(route.epoch) - 1n) }),
      FAILED_PRECONDITION, 'STALE_EPOCH');
    assert.equal(applied, 'APPLIED_NO');
    assert.equal(hint.address, cluster.instances[written.instance]);
    const done = await set({ ...route, owner: hint.name, epoch: hint.epoch,
      incarnation: hint.incarnation });
    assert.equal((await a.read('direct')).key.value, bytes('direct'));
    await a.store('direct', held.lockToken, done.result.version);
  },

  'a statement past its deadline': async ({ a, b }) => {
    const held = await a.get('late');
    assert.equal((await b.get('late')).outcome, 'STATEMENT_OUTCOME_WAITING');
    const routing = await statementFailure(
      b.run({ awaitTurn: { key: bytes('late') } }, 100), DEADLINE_EXCEEDED, 'DEADLINE_EXCEEDED');
    assert.equal(routing.applied, 'APPLIED_NO');
    const written = await a.set('late', 'v', held.lockToken);
    await a.store('late', held.lockToken, written.key.version);
  },

  'a lock that waits for its deadline': async ({ client, cluster, a, b }) => {
    const held = await a.lock('lock');
    assert.deepEqual([held.outcome, held.route], ['STATEMENT_OUTCOME_DONE', undefined]);
    const told = await b.lock('lock', { noWait: true });
    assert.deepEqual([told.outcome, told.holder], ['STATEMENT_OUTCOME_WAITING', a.name]);
    const late = await b.lock('lock', {}, 200).then(() => assert.fail('it is held'), (e) => e);
    assert.equal(late.code, DEADLINE_EXCEEDED);
    const written = await a.set('lock', 'v', held.lockToken);
    const turn = b.lock('lock');
    await a.unlock('lock', held.lockToken);
    const got = await turn;
    assert.deepEqual([got.outcome, got.key.value, got.route.owner],
      ['STATEMENT_OUTCOME_DONE', bytes('v'), written.instance]);
    assert.equal(got.route.address, cluster.instances[written.instance]);
    await a.unlock('lock', held.lockToken);
    assert.equal((await a.lock('lock', { noWait: true })).holder, b.name);
    await b.unlock('lock', got.lockToken);
    await b.unlock('lock', got.lockToken);
    const again = await a.lock('lock');
    assert.equal(again.outcome, 'STATEMENT_OUTCOME_DONE');
    await a.unlock('lock', again.lockToken);
  },

  'a route, followed and asked for again': async ({ client, a }) => {
    await failure(a.route('routed', 'READ'), NOT_FOUND, 'KEY_NOT_IDENTIFIED');
    const route = await a.route('routed', 'PUT');
    const operate = (method, { address, ...named }, request = {}) =>
      client.call(address, `${INSTANCE_SERVICE}/${method}`, { ...request,
        header: { ...named, key: bytes('routed'), requestId: a.nextId() } },
      { timeoutMs: TIMEOUT_MS });
    const put = await operate('Put', route, { value: bytes('put') });
    assert.equal(put.result.stored, true);
    await operate('Set', route, { value: bytes('set') });
    const read = await operate('Read', await a.route('routed', 'READ'));
    assert.equal(read.result.value, bytes('set'));
    const stale = { ...route, epoch: String(BigInt(route.epoch) - 1n) };
    const { applied, hint } = await failure(
      operate('Set', stale, { value: bytes('late') }), FAILED_PRECONDITION, 'STALE_EPOCH');
    const fresh = await a.route('routed', 'SET');
    assert.deepEqual([applied, hint.name, hint.address, hint.incarnation, hint.epoch],
      ['APPLIED_NO', fresh.owner, fresh.address, fresh.incarnation, fresh.epoch]);
    await operate('Set', fresh, { value: bytes('late') });
    assert.equal((await a.read('routed')).key.value, bytes('late'));
  },

  'routes are watched': async ({ client, cluster, a }) => {
    const watch = watchRoutes(client, cluster, 'watched');
    const first = await watch.next();
    assert.equal(first.reset, true);
    assert.deepEqual(first.instances.map(({ name, address }) => [name, address]).sort(),
      Object.entries(cluster.instances).sort());
    const route = await a.route('watched', 'PUT');
    let change;
    do change = (await watch.next()).keys?.find(({ key }) => key === bytes('watched'));
    while (!change?.owner);
    assert.deepEqual([change.owner, change.epoch], [route.owner, route.epoch]);
    watch.cancel();
    await watch.next().then(() => assert.fail('it is cancelled'),
      ({ code }) => assert.equal(code, CANCELLED));
  },

  'batches of operations': async ({ client, cluster, a }) => {
    const held = await a.get('batch');
    const route = routeOf(a, 'batch', await a.set('batch', '0', held.lockToken));
    await a.store('batch', held.lockToken);
    const batches = client.stream(cluster.instances[route.owner], `${INSTANCE_SERVICE}/Pipeline`);
    const operation = (kind, more) => ({ kind: `PIPELINE_OPERATION_KIND_${kind}`,
      key: bytes('batch'), epoch: route.epoch, ...more });
    const send = (batchId, operations) => batches.send({ batchId, clusterId: route.clusterId,
      owner: route.owner, incarnation: route.incarnation, operations });
    send('1', [operation('SET', { value: bytes('1') }), operation('SET', { key: '' }),
      operation('READ')]);
    send('2', [operation('STORE'), operation('READ')]);
    const first = await batches.next();
    const [set, refused, read] = first.result.results;
    assert.equal(first.batchId, '1');
    assert.deepEqual([refused.error.code, refused.error.routing.reason],
      [INVALID_ARGUMENT, 'KEY_EMPTY']);
    assert.deepEqual([read.value, read.seq], [bytes('1'), set.seq]);
    const second = await batches.next();
    assert.deepEqual([second.batchId, second.result.results.map(({ stored }) => stored)],
      ['2', [true, true]]);
    batches.end();
    assert.equal(await batches.next(), null);
  },

  'an instance drains': ({ client, cluster }) =>
    watchThroughDrain(client, cluster.instances.b, '', cluster.pids.b),

  'sessions are closed': async ({ a, b }) => {
    await a.close();
    await b.close();
  },

  'the coordinator drains': async ({ client, cluster }) => {
    const routes = watchRoutes(client, cluster, 'watched');
    assert.equal((await routes.next()).reset, true);
    await watchThroughDrain(client, cluster.coordinator, COORDINATOR_SERVICE,
      cluster.pids.coordinator);
    const rest = async () => { while (await routes.next()); };
    await failure(rest(), UNAVAILABLE, 'DRAINING');
  },
};

// Runs the steps in order and prints TAP; a step needs what those before it left.
export async function run(client) {
  const cluster = JSON.parse(process.env.CLUSTER);
  const a = await Session.open(client, cluster.coordinator, 'a');
  const b = await Session.open(client, cluster.coordinator, 'b');
  const beat = setInterval(() => {
    for (const session of [a, b]) session.keepAlive().catch(() => {});
  }, Number(a.opened.leaseMs) / 3);
  let n = 0, failed = 0;
  for (const [name, step] of Object.entries(steps)) {
    n += 1;
    try {
      if (name.startsWith('sessions')) clearInterval(beat);
      await step({ client, cluster, a, b });
      console.log(`ok ${n} - ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`not ok ${n} - ${name}`);
      for (const line of String(error.stack).split('\n')) console.log(`# ${line}`);
    }
  }
  clearInterval(beat);
  console.log(`1..${n}`);
  process.exit(failed ? 1 : 0);
}
