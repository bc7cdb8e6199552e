// @grpc/grpc-js with @grpc/proto-loader: reads the .proto files at run time, generates nothing.
import { readdirSync } from 'node:fs';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';
import { RpcError, run } from './scenario.mjs';

const roots = [process.env.PROTO, process.env.GRPC_PROTO];
const files = readdirSync(`${process.env.PROTO}/redistinto/v1`)
  .filter((name) => name.endsWith('.proto')).map((name) => `redistinto/v1/${name}`);
const definition = loader.loadSync(
  [...files, 'google/rpc/status.proto', 'google/rpc/error_details.proto',
    'grpc/health/v1/health.proto'],
  { includeDirs: roots, longs: String, enums: String, bytes: String });
const clients = new Map();

function clientOf(address, service) {
  const key = `${address} ${service}`;
  if (!clients.has(key)) {
    const Client = grpc.makeGenericClientConstructor(definition[service], service);
    clients.set(key, new Client(address, grpc.credentials.createInsecure()));
  }
  return clients.get(key);
}

function detailsOf(metadata) {
  const packed = metadata?.get('grpc-status-details-bin')[0];
  const details = {};
  for (const any of packed ? definition['google.rpc.Status'].deserialize(packed).details : []) {
    const name = any.type_url.split('/').pop();
    details[name] = definition[name].deserialize(Buffer.from(any.value, 'base64'));
  }
  return details;
}

const rpcError = (error) => new RpcError(error.code, error.details, detailsOf(error.metadata));

run({
  call(address, path, request, { timeoutMs }) {
    const [service, method] = path.split('/');
    return new Promise((resolve, reject) => {
      clientOf(address, service)[method](request, { deadline: Date.now() + timeoutMs },
        (error, response) => (error ? reject(rpcError(error)) : resolve(response)));
    });
  },

  stream(address, path) {
    const [service, method] = path.split('/');
    const client = clientOf(address, service);
    let call, responses;
    const start = (request) => {
      call = request ? client[method](request) : client[method]();
      responses = call[Symbol.asyncIterator]();
    };
    const isBidi = definition[service][method].requestStream;
    if (isBidi) start();
    return {
      send(request) {
        if (isBidi) call.write(request);
        else start(request);
      },
      end() {
        if (isBidi) call.end();
      },
      cancel() {
        call.cancel();
      },
      async next() {
        try {
          const { done, value } = await responses.next();
          return done ? null : value;
        } catch (error) {
          throw rpcError(error);
        }
      },
    };
  },
});
