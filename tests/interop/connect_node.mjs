// @connectrpc/connect-node over its gRPC transport: messages by reflection from a descriptor set,
// generates nothing.
import { readFileSync } from 'node:fs';
import { createFileRegistry, fromBinary, fromJson, toJson } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { RpcError, run } from './scenario.mjs';

const registry = createFileRegistry(
  fromBinary(FileDescriptorSetSchema, readFileSync(process.env.DESCRIPTOR_SET)));
const transports = new Map();

function methodOf(address, path) {
  const [service, name] = path.split('/');
  if (!transports.has(address))
    transports.set(address, createGrpcTransport({ baseUrl: `http://${address}` }));
  const descriptor = registry.getService(service);
  const method = descriptor.methods.find((candidate) => candidate.name === name);
  const client = createClient(descriptor, transports.get(address));
  return { method, invoke: client[method.localName] };
}

function rpcError(thrown) {
  const error = ConnectError.from(thrown);
  const details = {};
  for (const name of ['google.rpc.ErrorInfo', 'redistinto.v1.RoutingError']) {
    const type = registry.getMessage(name);
    for (const detail of error.findDetails(type)) details[name] = toJson(type, detail);
  }
  return new RpcError(error.code ?? Code.Unknown, error.rawMessage, details);
}

// What is pushed comes out as an async iterable.
class Requests {
  #queue = [];
  #wake = () => {};

  push(item) {
    this.#queue.push(item);
    this.#wake();
  }

  async* [Symbol.asyncIterator]() {
    for (;;) {
      while (this.#queue.length === 0) await new Promise((wake) => { this.#wake = wake; });
      const item = this.#queue.shift();
      if (item === null) return;
      yield item;
    }
  }
}

run({
  async call(address, path, request, { timeoutMs }) {
    const { method, invoke } = methodOf(address, path);
    try {
      return toJson(method.output, await invoke(fromJson(method.input, request), { timeoutMs }));
    } catch (error) {
      throw rpcError(error);
    }
  },

  stream(address, path) {
    const { method, invoke } = methodOf(address, path);
    const isBidi = method.methodKind === 'bidi_streaming';
    const requests = new Requests();
    const controller = new AbortController();
    const { signal } = controller;
    let responses = isBidi ? invoke(requests, { signal })[Symbol.asyncIterator]() : null;
    return {
      send(json) {
        const request = fromJson(method.input, json);
        if (isBidi) requests.push(request);
        else responses = invoke(request, { signal })[Symbol.asyncIterator]();
      },
      end() {
        if (isBidi) requests.push(null);
      },
      cancel() {
        controller.abort();
      },
      async next() {
        try {
          const { done, value } = await responses.next();
          return done ? null : toJson(method.output, value);
        } catch (error) {
          throw rpcError(error);
        }
      },
    };
  },
});
