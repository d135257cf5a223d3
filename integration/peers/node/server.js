'use strict';
// A server of gRPC's test service for tests: see ../README.md.

const path = require('node:path');
const readline = require('node:readline');
const { parseArgs } = require('node:util');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');
const { Load } = require('./load');

const DAY_MS = 24 * 60 * 60 * 1000;

function refuse(why) {
  console.error(`server: ${why}`);
  process.exit(2);
}

function number(flag, text, most) {
  if (!/^\d+$/.test(text) || Number(text) > most) {
    refuse(`--${flag} is "${text}": allowed are 0 to ${most}`);
  }
  return Number(text);
}

function parseFlags() {
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        port: { type: 'string', default: '0' },
        name: { type: 'string', default: 'node' },
        'max-age-ms': { type: 'string', default: '0' },
        'max-age-grace-ms': { type: 'string', default: '0' },
      },
    }));
  } catch (err) {
    refuse(err.message);
  }
  if (values.name === '') {
    refuse('--name is "": a name is needed');
  }
  return {
    port: number('port', values.port, 65535),
    name: values.name,
    maxAgeMs: number('max-age-ms', values['max-age-ms'], DAY_MS),
    maxAgeGraceMs: number('max-age-grace-ms', values['max-age-grace-ms'], DAY_MS),
  };
}

// Service answers RPCs, and ends those that are held.
class Service {
  load = new Load();
  held = new Set(); // a function for each, which ends it with a code

  constructor(name) {
    this.name = name;
  }

  endHeld(code) {
    for (const end of [...this.held]) {
      end(code);
    }
  }

  // begin tells the client at once who handles the RPC, which is over when it
  // is cancelled or by finish(status), which it returns. That calls
  // send(error), with null for OK.
  begin(call, send) {
    if (asked(call, 'throw')) {
      throw new Error('the handler throws on request');
    }
    const header = new grpc.Metadata();
    header.set('node', this.name);
    echo(call, 'x-grpc-test-echo-initial', header);
    call.sendMetadata(header);

    let over = false;
    const leave = () => {
      if (over) {
        return false;
      }
      over = true;
      this.load.end();
      this.held.delete(end);
      return true;
    };
    const finish = (status) => {
      if (leave()) {
        send(failure(status));
      }
    };
    const end = (code) => finish({ code, message: 'ended on request' });
    this.load.begin();
    if (asked(call, 'hold')) {
      this.held.add(end);
    }
    call.on('cancelled', leave);
    return finish;
  }

  beginResponses(call) {
    return this.begin(call, (error) => (error ? call.emit('error', error) : call.end(trailer(call))));
  }

  unaryCall(call, callback) {
    const body = Buffer.alloc(call.request.responseSize);
    const response = { username: this.name, serverId: this.name, payload: { body } };
    const finish = this.begin(call, (error) => callback(error, response, trailer(call)));
    if (!asked(call, 'hold')) {
      finish(call.request.responseStatus);
    }
  }

  streamingOutputCall(call) {
    const finish = this.beginResponses(call);
    respond(call, call.request);
    if (!asked(call, 'hold')) {
      finish();
    }
  }

  streamingInputCall(call, callback) {
    let sum = 0;
    const finish = this.begin(call, (error) => callback(error, { aggregatedPayloadSize: sum }, trailer(call)));
    call.on('data', (request) => {
      sum += request.payload ? request.payload.body.length : 0;
    });
    call.on('end', () => finish());
  }

  fullDuplexCall(call) {
    const finish = this.beginResponses(call);
    if (asked(call, 'hold')) {
      respond(call);
    }
    call.on('data', (request) => {
      if (failure(request.responseStatus)) {
        finish(request.responseStatus);
      } else {
        respond(call, request);
      }
    });
    call.on('end', () => finish());
  }
}

const asked = (call, key) => call.metadata.get(key).length > 0;

function echo(call, key, into) {
  for (const value of call.metadata.get(key)) {
    into.set(key, value);
  }
}

function trailer(call) {
  const metadata = new grpc.Metadata();
  echo(call, 'x-grpc-test-echo-trailing-bin', metadata);
  return metadata;
}

// failure is the error for a status of the test service, or null for OK.
const failure = (status) => (status && status.code !== 0 ? { code: status.code, details: status.message } : null);

// respond sends what the request asks for; a held RPC, one empty response.
function respond(call, request) {
  const sizes = asked(call, 'hold') ? [0] : request.responseParameters.map((p) => p.size);
  for (const size of sizes) {
    call.write({ payload: { body: Buffer.alloc(size) } });
  }
}

// obey does what standard input says, and ends the process with it.
function obey(service) {
  const lines = readline.createInterface({ input: process.stdin });
  lines.on('line', (line) => {
    const [verb, code] = line.split(' ');
    if (verb === 'end') {
      service.endHeld(Number(code));
    }
    console.log('live', service.load.inFlight);
  });
  lines.on('close', () => process.exit(0));
}

function main() {
  if (Number.parseInt(process.versions.node, 10) < 20) {
    // Older ones cut off the last response on a connection that has had its GOAWAY.
    refuse(`this is Node ${process.versions.node}: needed is Node 20 or newer`);
  }
  const flags = parseFlags();
  const proto = path.join(__dirname, '..', 'testservice.proto');
  const loaded = grpc.loadPackageDefinition(protoLoader.loadSync(proto, { defaults: true }));
  const service = new Service(flags.name);
  const server = new grpc.Server({
    'grpc.max_connection_age_ms': flags.maxAgeMs || undefined,
    'grpc.max_connection_age_grace_ms': flags.maxAgeGraceMs || undefined,
  });
  server.addService(loaded.grpc.testing.TestService.service, {
    emptyCall: (call, callback) => callback(null, {}),
    unaryCall: service.unaryCall.bind(service),
    streamingOutputCall: service.streamingOutputCall.bind(service),
    streamingInputCall: service.streamingInputCall.bind(service),
    fullDuplexCall: service.fullDuplexCall.bind(service),
  });
  service.load.register(server);
  server.bindAsync(`127.0.0.1:${flags.port}`, grpc.ServerCredentials.createInsecure(), (err, port) => {
    if (err) {
      console.error(`server: cannot listen on 127.0.0.1:${flags.port}: ${err.message}`);
      process.exit(1);
    }
    process.on('SIGTERM', () => server.tryShutdown(() => process.exit(0)));
    console.log('listening', port);
    obey(service);
  });
}

main();
