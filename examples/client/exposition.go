package main

import (
	"bytes"
	"fmt"
	"strings"

	estats "google.golang.org/grpc/experimental/stats"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// exposition renders samples, ordered by metric, in Prometheus' text format, version 0.0.4, under the names that
// OpenTelemetry's exporter gives them. A program of your own takes that exporter; this one is here so that the example
// needs no more modules.
func exposition(samples []leastconntest.Sample) []byte {
	var buf bytes.Buffer
	var last *estats.MetricDescriptor
	for _, s := range samples {
		name, kind := exposed(s.Metric)
		if s.Metric != last {
			fmt.Fprintf(&buf, "# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n", name, escaped(helpEscapes, s.Metric.Description), kind)
			last = s.Metric
		}
		labels := s.Names()
		for i, label := range labels {
			labels[i] = fmt.Sprintf(`%s="%s"`, word(label), escaped(labelEscapes, s.Labels[i]))
		}
		if len(labels) > 0 {
			name += "{" + strings.Join(labels, ",") + "}"
		}
		fmt.Fprintf(&buf, "%s %d\n", name, s.Value)
	}
	return buf.Bytes()
}

// exposed returns a metric's name and type.
func exposed(m *estats.MetricDescriptor) (name, kind string) {
	name = word(m.Name)
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Type == estats.MetricTypeIntCount {
		return name + "_total", "counter"
	}
	return name, "gauge"
}

// word returns name with an underscore for each character that the format's names do not have.
func word(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// escaped returns text as UTF-8 with escapes.
func escaped(by *strings.Replacer, text string) string {
	return by.Replace(strings.ToValidUTF8(text, "\uFFFD"))
}
