'use strict';
// The load of a server, as its clients ask for it by ORCA.

const grpc = require('@grpc/grpc-js');

// Load counts RPCs: a handler calls begin, and end once when its RPC is over.
class Load {
  inFlight = 0;
  begun = 0;
  recorder = new grpc.ServerMetricRecorder();

  register(server) {
    this.count(0);
    this.recorder.addToServer(server);
    let was = 0;
    setInterval(() => {
      this.recorder.setQpsMetric(this.begun - was);
      was = this.begun;
    }, 1000).unref();
  }

  begin() {
    this.begun++;
    this.count(1);
  }

  end() {
    this.count(-1);
  }

  count(by) {
    this.inFlight += by;
    this.recorder.putUtilizationMetric('in_flight_ppm', this.inFlight / 1e6);
  }
}

module.exports = { Load };
