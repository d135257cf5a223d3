package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// loadRow is what a frame says of an endpoint.
type loadRow struct {
	server, endpoint, state, weight, score, bar string
	inFlight, picks                             int
}

var loads = regexp.MustCompile(`(?m)^(\S+) +(\S+:\d+) +(ready|draining|not ready|departed) +(\S+) +(\d+) +(\d+) +(\S+) *(\S*)$`)

// loadRows reads a frame, by endpoint.
func loadRows(t *testing.T, frame string) map[string]loadRow {
	rows := map[string]loadRow{}
	for _, m := range loads.FindAllStringSubmatch(frame, -1) {
		row := loadRow{server: m[1], endpoint: m[2], state: m[3], weight: m[4], score: m[7], bar: m[8]}
		var err error
		row.inFlight, err = strconv.Atoi(m[5])
		require.NoError(t, err)
		row.picks, err = strconv.Atoi(m[6])
		require.NoError(t, err)
		rows[row.endpoint] = row
	}
	return rows
}

func member(weight uint32, inFlight int64) leastconnbalancer.MemberSnapshot {
	return leastconnbalancer.MemberSnapshot{Ready: true, Draining: weight == 0, Weight: weight, SlowStartFactor: 1, Score: float64(inFlight+1) / float64(max(1, weight))}
}

func frameOf(nodes ...leastconnbalancer.EndpointSnapshot) string {
	w := &watch{begun: time.Now(), names: map[string]string{"h:1": "one"}, screen: openScreen(&bytes.Buffer{}), recent: []string{"an event"}}
	return w.frame([]leastconnbalancer.Snapshot{{ResourceKey: "key\x1b[2J", Endpoints: nodes}})
}

func TestFrame(t *testing.T) {
	full := member(1, 0)
	full.Full, full.Score = true, 0
	next := member(2, 5)
	next.Next = true
	lower := member(1, 0)
	lower.Next = true
	lower.Priority = 1
	frame := frameOf(
		leastconnbalancer.EndpointSnapshot{Addresses: []string{"g:1", "h:1"}, State: leastconnbalancer.EndpointReady, InFlight: 5, Members: []leastconnbalancer.MemberSnapshot{next}},
		leastconnbalancer.EndpointSnapshot{Addresses: []string{"i:1"}, State: leastconnbalancer.EndpointReady, InFlight: 2, Penalty: 1, Members: []leastconnbalancer.MemberSnapshot{member(1, 3)}},
		leastconnbalancer.EndpointSnapshot{Addresses: []string{"j:1"}, State: leastconnbalancer.EndpointDraining, InFlight: 60, Members: []leastconnbalancer.MemberSnapshot{member(0, 0)}},
		leastconnbalancer.EndpointSnapshot{Addresses: []string{"k:1"}, State: leastconnbalancer.EndpointReady, Members: []leastconnbalancer.MemberSnapshot{full}},
		leastconnbalancer.EndpointSnapshot{Addresses: []string{"l:1"}, State: leastconnbalancer.EndpointReady, Members: []leastconnbalancer.MemberSnapshot{lower}},
		leastconnbalancer.EndpointSnapshot{Addresses: []string{"m:1"}, State: leastconnbalancer.EndpointNotReady, Members: []leastconnbalancer.MemberSnapshot{{}}},
		leastconnbalancer.EndpointSnapshot{Addresses: []string{"n:1"}, State: leastconnbalancer.EndpointDeparted, InFlight: 3},
	)
	require.NotContains(t, frame, "\x1b")
	require.Contains(t, frame, `"key\x1b[2J"  0 in flight`)
	require.Contains(t, frame, "an event")
	rows := loadRows(t, frame)
	require.Equal(t, loadRow{"one", "g:1", "ready", "2", "▸3", "▌", 5, 0}, rows["g:1"], "the next of the highest level")
	require.Equal(t, loadRow{noName, "i:1", "ready", "1", "4", "▍░", 2, 0}, rows["i:1"])
	require.Equal(t, loadRow{noName, "j:1", "draining", "-", "-", strings.Repeat("█", printed.bar), 60, 0}, rows["j:1"])
	require.Equal(t, loadRow{noName, "k:1", "ready", "1", "-", "", 0, 0}, rows["k:1"])
	require.Equal(t, loadRow{noName, "l:1", "ready", "1", "1", "", 0, 0}, rows["l:1"])
	require.Equal(t, loadRow{noName, "m:1", "not ready", "-", "-", "", 0, 0}, rows["m:1"])
	require.Equal(t, loadRow{noName, "n:1", "departed", "-", "-", "▋", 3, 0}, rows["n:1"])
}

// A frame fits a terminal of 24 lines and 80 columns, however much there is.
func TestFrameFits(t *testing.T) {
	var nodes []leastconnbalancer.EndpointSnapshot
	for i := range int64(250) {
		nodes = append(nodes, leastconnbalancer.EndpointSnapshot{
			Addresses: []string{fmt.Sprintf("10.1.1.%d:50051", i)}, State: leastconnbalancer.EndpointReady, InFlight: i,
			Members: []leastconnbalancer.MemberSnapshot{member(1, i)},
		})
	}
	frame := frameOf(nodes...)
	require.Contains(t, frame, "… and 240 more")
	for _, n := range nodes[240:] {
		require.Contains(t, frame, n.Addresses[0])
	}
	lines := strings.Split(frame, "\n")
	require.LessOrEqual(t, len(lines)+recentEvents-1, 25, "the last of these is empty")
	for _, line := range lines {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
}

// On a terminal a frame overwrites the one before, line by line, and the last
// one stays.
func TestScreenOfATerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	device := openScreen(null)
	device.end()
	require.True(t, device.terminal, "a character device")

	var out bytes.Buffer
	s := &screen{out: &out, terminal: true, end: func() {}}
	s.draw("one\ntwo\n")
	require.Equal(t, "\x1b[Hone\x1b[K\ntwo\x1b[K\x1b[J", out.String())
	out.Reset()
	s.close()
	require.Equal(t, leaveScreen+"one\ntwo\n", out.String())
	require.Equal(t, "text", s.paint(green, "text"))
	s.colours = true
	require.Equal(t, "\x1b[32mtext\x1b[0m", s.paint(green, "text"))
}

// With reports a frame tells what others have in flight in the place of picks and scores, and fits as well.
func TestFrameWithReports(t *testing.T) {
	told := func(others int64, age float64) leastconnbalancer.MemberSnapshot {
		m := member(1, 0)
		m.Report = leastconnbalancer.ReportSnapshot{Told: true, Others: others, AgeSeconds: age}
		return m
	}
	silent := member(1, 0)
	silent.Report.Silent = true
	var nodes []leastconnbalancer.EndpointSnapshot
	for i, m := range []leastconnbalancer.MemberSnapshot{told(18, 0.3), told(3, 12.7), silent, member(1, 0)} {
		nodes = append(nodes, leastconnbalancer.EndpointSnapshot{
			Addresses: []string{fmt.Sprintf("10.111.111.11%d:50051", i)}, State: leastconnbalancer.EndpointReady,
			InFlight: 6, Penalty: 1, Members: []leastconnbalancer.MemberSnapshot{m},
		})
	}
	w := &watch{begun: time.Now(), names: map[string]string{}, screen: openScreen(&bytes.Buffer{})}
	frame := w.frame([]leastconnbalancer.Snapshot{{
		ResourceKey: "key", Endpoints: nodes, Fleet: leastconnbalancer.FleetSnapshot{IntervalSeconds: 1, Imbalance: 15, Silent: 1},
	}})
	require.Contains(t, frame, "spread 0, of the fleet 15, 1 silent\n")
	require.Contains(t, frame, "▒ of others\n")
	require.NotContains(t, frame, "next")
	for i, want := range []string{"6      18    0.3s  ██▉▒▒▒▒▒▒▒▒▒░", "6       3     12s  ██▉▒▒░", "6       -  silent  ██▉░", "6       -       -  ██▉░"} {
		require.Contains(t, frame, nodes[i].Addresses[0]+"  ready          "+want+"\n")
	}
	for _, line := range strings.Split(frame, "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
	require.Equal(t, nodes[0].Addresses, busiest(nodes)[0].Addresses)
	require.Equal(t, nodes[1].Addresses, busiest(nodes)[1].Addresses)
}
