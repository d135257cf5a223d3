package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// frameOn is a frame of a service with some endpoints, on a terminal of a size.
func frameOn(width, height, endpoints int, reports bool) (lines []string) {
	s := &screen{out: &bytes.Buffer{}, terminal: true, size: func() (int, int) { return width, height }, end: func() {}}
	w := &watch{begun: time.Now(), names: map[string]string{}, screen: s}
	for i := range recentEvents {
		w.recent = append(w.recent, fmt.Sprintf("event %d %s", i, strings.Repeat("that is long ", 10)))
	}
	service := leastconnbalancer.Snapshot{ResourceKey: "nodes:///a/long/path/to/a/file/of/nodes.yaml"}
	if reports {
		service.Fleet.IntervalSeconds = 1
	}
	for i := range endpoints {
		service.Endpoints = append(service.Endpoints, leastconnbalancer.EndpointSnapshot{
			Addresses: []string{fmt.Sprintf("[2001:db8::1:%02d]:50051", i)}, State: leastconnbalancer.EndpointReady, InFlight: int64(1000 + i), Picks: 12345,
			Members: []leastconnbalancer.MemberSnapshot{member(1, 1000)},
		})
	}
	return strings.Split(strings.TrimSuffix(w.frame([]leastconnbalancer.Snapshot{service}), "\n"), "\n")
}

// A frame fits any terminal that is not tiny. Its endpoints and what they have in flight are
// always there.
func TestFrameFitsTerminals(t *testing.T) {
	for _, reports := range []bool{false, true} {
		for _, endpoints := range []int{1, 3, 9, 12, 250} {
			for _, width := range []int{24, 30, 40, 60, 80, 120, 250} {
				for _, height := range []int{4, 6, 8, 10, 15, 24, 50, 100} {
					lines := frameOn(width, height, endpoints, reports)
					text := fmt.Sprintf("%d endpoints on %d × %d\n%s", endpoints, width, height, strings.Join(lines, "\n"))
					require.LessOrEqual(t, len(lines), height, text)
					for _, line := range lines {
						require.LessOrEqual(t, utf8.RuneCountInString(line), width, text)
					}
					require.Contains(t, text, "in flight", text)
					require.Contains(t, text, fmt.Sprint(1000+endpoints-1), "the busiest")
				}
			}
		}
	}
}

// contain returns which of some texts are in a frame.
func contain(lines []string, texts ...string) (got []string) {
	for _, text := range texts {
		if strings.Contains(strings.Join(lines, "\n"), text) {
			got = append(got, text)
		}
	}
	return got
}

// In a low terminal events go before anything of the table does; in a narrow one columns go, the
// least important first, before addresses are cut. A large one shows more endpoints and longer bars.
func TestWhatAFrameLeavesOut(t *testing.T) {
	parts := []string{"event 0", "event 4", "penalty", "in this process", ":05]", "score"}
	for height, want := range map[int][]string{
		24: parts,
		16: {"event 4", "penalty", "in this process", ":05]", "score"},
		14: {"penalty", "in this process", ":05]", "score"},
		11: {"in this process", ":05]", "score"},
		9:  {":05]", "score"},
		5:  {":05]", "score"}, // the busiest
	} {
		lines := frameOn(100, height, 6, false)
		require.Equal(t, want, contain(lines, parts...), "%d lines\n%s", height, strings.Join(lines, "\n"))
	}
	columns := []string{"server", "endpoint", "state", "weight", "in flight", "picks", "score", "[2001:db8::1:05]:50051", "█"}
	for width, want := range map[int][]string{
		120: columns,
		80:  columns,
		70:  {"server", "endpoint", "state", "in flight", "picks", "score", "[2001:db8::1:05]:50051", "█"},
		60:  {"server", "endpoint", "state", "in flight", "[2001:db8::1:05]:50051", "█"},
		44:  {"endpoint", "in flight", "[2001:db8::1:05]:50051", "█"},
		26:  {"endpoint", "in flight"},
	} {
		lines := frameOn(width, 24, 6, false)
		require.Equal(t, want, contain(lines[4:11], columns...), "%d columns\n%s", width, strings.Join(lines, "\n"))
	}
	require.Contains(t, strings.Join(frameOn(26, 24, 6, false), "\n"), "…:1:05]:50051  ")
	require.Empty(t, contain(frameOn(100, 40, 250, false), "[2001:db8::1:50]"))
	require.NotEmpty(t, contain(frameOn(100, 300, 250, false), "[2001:db8::1:00]"))
	require.NotEmpty(t, contain(frameOn(200, 24, 6, false), strings.Repeat("█", 100)))
}
