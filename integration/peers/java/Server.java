// A server of gRPC's test service for tests of reports: see ../README.md.

import grpc.testing.TestServiceGrpc;
import grpc.testing.Testservice.SimpleRequest;
import grpc.testing.Testservice.SimpleResponse;
import grpc.testing.Testservice.StreamingOutputCallRequest;
import grpc.testing.Testservice.StreamingOutputCallResponse;
import io.grpc.ForwardingServerCall.SimpleForwardingServerCall;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;

final class Server extends TestServiceGrpc.TestServiceImplBase {
  private final String name;

  private Server(String name) {
    this.name = name;
  }

  @Override
  public void unaryCall(SimpleRequest request, StreamObserver<SimpleResponse> client) {
    client.onNext(SimpleResponse.newBuilder().setUsername(name).setServerId(name).build());
    client.onCompleted();
  }

  // The RPC is held until its client ends it; each request is answered by another response.
  @Override
  public StreamObserver<StreamingOutputCallRequest> fullDuplexCall(StreamObserver<StreamingOutputCallResponse> client) {
    client.onNext(StreamingOutputCallResponse.getDefaultInstance());
    return new StreamObserver<StreamingOutputCallRequest>() {
      @Override
      public void onNext(StreamingOutputCallRequest request) {
        client.onNext(StreamingOutputCallResponse.getDefaultInstance());
      }

      @Override
      public void onError(Throwable gone) {}

      @Override
      public void onCompleted() {
        client.onCompleted();
      }
    };
  }

  /** Tells clients at once who handles their RPCs. */
  private ServerInterceptor named() {
    return new ServerInterceptor() {
      @Override
      public <Q, S> ServerCall.Listener<Q> interceptCall(ServerCall<Q, S> call, Metadata headers, ServerCallHandler<Q, S> next) {
        return next.startCall(new SimpleForwardingServerCall<Q, S>(call) {
          @Override
          public void sendHeaders(Metadata sent) {
            sent.put(Metadata.Key.of("node", Metadata.ASCII_STRING_MARSHALLER), name);
            super.sendHeaders(sent);
          }
        }, headers);
      }
    };
  }

  public static void main(String[] args) throws Exception {
    int port = 0;
    String name = "java";
    for (int i = 0; i + 1 < args.length; i += 2) {
      switch (args[i]) {
        case "--port": port = Integer.parseInt(args[i + 1]); break;
        case "--name": name = args[i + 1]; break;
        default: throw new IllegalArgumentException(args[i] + ": allowed are --port and --name");
      }
    }
    Server service = new Server(name);
    Load load = new Load();
    NettyServerBuilder builder = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port));
    load.addTo(builder);
    io.grpc.Server server = builder.addService(service).intercept(service.named()).build().start();
    System.out.println("listening " + server.getPort());

    Thread obey = new Thread(() -> {
      try (BufferedReader orders = new BufferedReader(new InputStreamReader(System.in))) {
        while (orders.readLine() != null) {
          System.out.println("live " + load.inFlight());
        }
      } catch (java.io.IOException closed) {
        // as if it had ended
      }
      Runtime.getRuntime().halt(0); // it does not outlive its parent
    });
    obey.setDaemon(true);
    obey.start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> { // SIGTERM
      server.shutdown();
      try {
        server.awaitTermination();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      Runtime.getRuntime().halt(0);
    }));
    server.awaitTermination();
  }
}
