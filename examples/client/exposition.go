package main

import (
	"bytes"
	"fmt"
	"strings"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// exposition renders samples in Prometheus' text format, version 0.0.4, under the names that OpenTelemetry's exporter
// gives them. A program of your own takes that exporter; this one is here so that the example needs no more modules.
func exposition(samples []leastconntest.Sample) []byte {
	var buf bytes.Buffer
	last := ""
	for _, s := range samples {
		name, kind := exposed(s.Metric)
		if name != last {
			fmt.Fprintf(&buf, "# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n", name, helpEscapes.Replace(s.Metric.Description), kind)
			last = name
		}
		buf.WriteString(name)
		separator := "{"
		for i, label := range s.Names() {
			fmt.Fprintf(&buf, `%s%s="%s"`, separator, strings.ReplaceAll(label, ".", "_"), labelEscapes.Replace(s.Labels[i]))
			separator = ","
		}
		fmt.Fprintf(&buf, "} %d\n", s.Value)
	}
	return buf.Bytes()
}

// exposed returns a metric's name and type.
func exposed(m *estats.MetricDescriptor) (name, kind string) {
	name = strings.ReplaceAll(m.Name, ".", "_")
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Type == estats.MetricTypeIntCount {
		return name + "_total", "counter"
	}
	return name, "gauge"
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)
