// Metrics is a client that exports the metrics of least_conn to Prometheus: gRPC's OpenTelemetry plugin, OpenTelemetry's
// SDK and its Prometheus exporter. It serves /metrics and the debug page, opens a stream over -target every -every and
// prints what is in flight then. Without -target it starts three servers of its own.
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
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/debugpage"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	_ "github.com/leastconn/grpc-leastconn/resolver/dns"  // registers dns-poll and srv
	_ "github.com/leastconn/grpc-leastconn/resolver/file" // registers nodes
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	target := flag.String("target", "", "gRPC `target`; default: three servers of its own")
	every := flag.Duration("every", time.Second, "how often to open a stream")
	addr := flag.String("http", "127.0.0.1:0", "TCP `address` of /metrics and the page")
	flag.Parse()
	if err := run(ctx, *target, *every, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, target string, every time.Duration, addr string) error {
	if target == "" {
		var end func()
		var err error
		if target, end, err = startServers(); err != nil {
			return err
		}
		defer end()
	}
	registry := prometheus.NewRegistry()
	conn, err := dialMeasured(target, registry)
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
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	go server.Serve(listener)
	fmt.Printf("page http://%[1]s/  metrics http://%[1]s/metrics\n", listener.Addr())
	for next := time.NewTicker(every); ; {
		hold(ctx, conn)
		if err := printInFlight(registry); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		}
	}
}

// startServers starts three servers and returns the target of a file that lists them.
func startServers() (target string, end func(), err error) {
	dir, err := os.MkdirTemp("", "metrics")
	if err != nil {
		return "", nil, err
	}
	nodes, err := leastconntest.StartNodes(leastconntest.Options{}, "a", "b", "c")
	end = func() {
		leastconntest.CloseNodes(nodes...)
		os.RemoveAll(dir)
	}
	list := "nodes:\n"
	for _, n := range nodes {
		list += "- address: " + n.Addr() + "\n"
	}
	file := filepath.Join(dir, "nodes.yaml")
	if err == nil {
		err = os.WriteFile(file, []byte(list), 0o600)
	}
	if err != nil {
		end()
		return "", nil, err
	}
	return "nodes://" + file, end, nil
}

// hold opens a stream and reads it until it ends.
func hold(ctx context.Context, conn *grpc.ClientConn) {
	s, err := leastconntest.Open(ctx, conn)
	if err == nil {
		go s.Wait()
	} else if ctx.Err() == nil {
		log.Print("no stream: ", err)
	}
}

// printInFlight prints the series of in_flight as they are exported now.
func printInFlight(registry prometheus.Gatherer) error {
	families, err := registry.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if f.GetName() != "grpc_lb_least_conn_in_flight" {
			continue
		}
		for _, series := range f.GetMetric() {
			var labels []string
			for _, l := range series.GetLabel() {
				if strings.HasPrefix(l.GetName(), "grpc_") {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			fmt.Printf("%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), series.GetGauge().GetValue())
		}
	}
	return nil
}
