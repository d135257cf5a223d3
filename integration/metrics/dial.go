package main

import (
	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats/opentelemetry"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// dialMeasured dials target and exports its metrics through registry.
func dialMeasured(target string, registry prometheus.Registerer) (*grpc.ClientConn, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(leastconnbalancer.Config{}.ServiceConfig()),
		opentelemetry.DialOption(opentelemetry.Options{MetricsOptions: opentelemetry.MetricsOptions{
			MeterProvider:  metric.NewMeterProvider(metric.WithReader(exporter)),
			Metrics:        opentelemetry.DefaultMetrics().Join(leastconnbalancer.Metrics()),
			OptionalLabels: []string{"grpc.lb.least_conn.endpoint"},
		}}))
}
