// The load of a server, as its clients ask for it by ORCA.

import io.grpc.Metadata;
import io.grpc.ServerBuilder;
import io.grpc.ServerStreamTracer;
import io.grpc.Status;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import xds.service.orca.v3.OpenRcaServiceGrpc;
import xds.service.orca.v3.Orca.OrcaLoadReport;
import xds.service.orca.v3.Orca.OrcaLoadReportRequest;

/** Load counts a server's RPCs of all services but its own, health checks and reflection. */
final class Load extends OpenRcaServiceGrpc.OpenRcaServiceImplBase {
  private final AtomicLong begun = new AtomicLong();
  private final AtomicLong ended = new AtomicLong();
  private final ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor(task -> {
    Thread thread = new Thread(task, "load");
    thread.setDaemon(true);
    return thread;
  });

  /** Has a server that is being built count, and report to clients that ask. */
  void addTo(ServerBuilder<?> server) {
    server.addService(this).addStreamTracerFactory(new ServerStreamTracer.Factory() {
      @Override
      public ServerStreamTracer newServerStreamTracer(String method, Metadata headers) {
        if (method.startsWith("xds.service.orca.") || method.startsWith("grpc.health.") || method.startsWith("grpc.reflection.")) {
          return new ServerStreamTracer() {};
        }
        begun.incrementAndGet();
        return new ServerStreamTracer() {
          @Override
          public void streamClosed(Status status) { // once, however the RPC ends
            ended.incrementAndGet();
          }
        };
      }
    });
  }

  long inFlight() {
    long over = ended.get(); // first: the other is never below it
    return begun.get() - over;
  }

  @Override
  public void streamCoreMetrics(OrcaLoadReportRequest request, StreamObserver<OrcaLoadReport> client) {
    double asked = request.getReportInterval().getSeconds() + request.getReportInterval().getNanos() / 1e9;
    double interval = asked > 0 ? Math.max(asked, 0.1) : 30;
    ServerCallStreamObserver<OrcaLoadReport> call = (ServerCallStreamObserver<OrcaLoadReport>) client;
    Runnable report = new Runnable() {
      private long was = -1; // not known yet

      @Override
      public void run() {
        if (!call.isReady() && was >= 0) { // the client does not read
          return;
        }
        long now = begun.get();
        double rps = was < 0 ? 0 : (now - was) / interval;
        was = now;
        call.onNext(OrcaLoadReport.newBuilder().putNamedMetrics("in_flight", inFlight()).setRpsFractional(rps).build());
      }
    };
    Future<?> task = clock.scheduleAtFixedRate(report, 0, (long) (interval * 1e6), TimeUnit.MICROSECONDS);
    call.setOnCancelHandler(() -> task.cancel(false));
  }
}
