// Metrics is a client that exports the metrics of least_conn to Prometheus: gRPC's OpenTelemetry plugin, OpenTelemetry's
// SDK and its Prometheus exporter. It opens a stream over -target every -every, and serves /metrics and the debug page.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/resolver/file" // registers nodes
)

// metricsOption lets a channel record its metrics, in-flight counts by endpoint among them. Prometheus' default registry
// has them then.
func metricsOption() (grpc.DialOption, error) {
	exporter, err := otelprometheus.New()
	if err != nil {
		return nil, err
	}
	return opentelemetry.DialOption(opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)),
		Metrics:        opentelemetry.DefaultMetrics().Join(leastconnbalancer.Metrics()),
		OptionalLabels: []string{"grpc.lb.least_conn.endpoint"},
	}}), nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	target := flag.String("target", "", "gRPC `target`")
	every := flag.Duration("every", time.Second, "how often to open a stream")
	addr := flag.String("http", "127.0.0.1:0", "TCP `address` of /metrics and the page")
	flag.Parse()
	if err := run(ctx, *target, *every, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, target string, every time.Duration, addr string) error {
	metrics, err := metricsOption()
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(target, metrics,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()))
	if err != nil {
		return err
	}
	defer conn.Close()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/{$}", debugpage.Handler())
	mux.Handle("/metrics", promhttp.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	go server.Serve(listener)
	fmt.Printf("page http://%[1]s/  metrics http://%[1]s/metrics\n", listener.Addr())
	for next := time.NewTicker(every); ; {
		if _, err := leastconntest.Open(ctx, conn); err != nil && ctx.Err() == nil {
			log.Print("no stream: ", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
	}
}
