package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/interop/internal/flags"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state/statetest"
)

func TestMain(m *testing.M) {
	if isClient() { // of a fleet that a test runs
		clientMain()
		return
	}
	statetest.Main(m)
}

// A small fleet of every policy: all streams open, a server joins, one breaks and returns, no stream fails, nothing stays.
func TestSmallFleets(t *testing.T) {
	t.Parallel()
	all := policies()
	for _, p := range all[:len(all)-1] { // the last one waits for reports that are rare
		t.Run(p.id, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			args := "-json -seed 7 -servers 3 -clients 2 -streams 6 -life 100ms -duration 3s -policy " + p.id
			require.Equal(t, exitWell, run(t.Context(), strings.Fields(args), &out, &errs), "%s%s", &out, &errs)
			var got struct {
				Servers, Clients, StreamsPerClient int
				Seed                               string
				Results                            []result
			}
			require.NoError(t, json.Unmarshal(out.Bytes(), &got))
			assert.Equal(t, []int{3, 2, 6}, []int{got.Servers, got.Clients, got.StreamsPerClient})
			assert.Equal(t, "7", got.Seed)
			require.Len(t, got.Results, 1)
			r := got.Results[0]
			assert.Equal(t, p.id, r.Policy)
			assert.Less(t, r.CV, 1.0, "it is 1.4 when one server has all; few streams may be level whenever they are looked at")
			assert.Positive(t, r.CVInAll)
			assert.Greater(t, r.Opened, 12)
			assert.Positive(t, r.Newcomer.Peak, "the server that joined got streams")
			assert.LessOrEqual(t, r.Streams, 12.0)
			assert.Empty(t, r.Errors)
		})
	}
}

// A client that fails is an error, and streams that fail are told.
func TestFailures(t *testing.T) {
	f := &fleet{broken: "1"}
	f.failed(failure{"1", "cut"})
	f.failed(failure{"2", "no reason"})
	f.failed(failure{"", "no server"})
	var got result
	require.NoError(t, f.finish(t.Context(), &got))
	assert.Equal(t, result{Cut: 1, Errors: []string{"2: no reason", ": no server"}}, got)
	r := report{results: []result{got}}
	assert.Equal(t, exitErrors, r.status())
	var text strings.Builder
	require.NoError(t, r.print(&text))
	assert.Contains(t, text.String(), "FAILED : 2: no reason\n")

	c, err := startProcess(t.Context(), order{ServiceConfig: "{", Streams: 1}, nil)
	require.NoError(t, err)
	_, err = c.end()
	assert.ErrorContains(t, err, "fleet client: leastconntest: ")
}

// A client ends when its parent does not hold its pipe any more, whatever it waits for.
func TestClientsEndWithTheirParent(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for _, said := range []string{"", `{"addrs":["127.0.0.1:1"],"streams":3}`} {
		cmd := exec.CommandContext(t.Context(), exe)
		cmd.Env = append(os.Environ(), clientMark+"=1")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.WriteString(in, said)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			assert.Equal(t, said == "", err != nil)
		case <-time.After(leastconntest.DefaultTimeout):
			t.Fatal("it lives on")
		}
	}
}

// An interrupted run says so, and leaves no client.
func TestInterrupt(t *testing.T) {
	for _, after := range []time.Duration{0, 300 * time.Millisecond} { // however far it has come
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		_, err := play(ctx, options{servers: 2, clients: 3, streams: 2, life: time.Second, duration: time.Hour}, policies()[0])
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// The figures of loads.
func TestLoads(t *testing.T) {
	s := &servers{}
	defer s.close()
	require.NoError(t, s.start(3))
	c, err := leastconntest.Dial(leastconntest.ChannelConfig{Endpoints: leastconntest.Endpoints(s.nodes...)})
	require.NoError(t, err)
	defer c.Close()
	_, sum, cv := s.loads()
	assert.Zero(t, sum)
	assert.Zero(t, cv)
	require.NoError(t, c.WaitServed(t.Context(), s.nodes...))
	held, err := c.OpenN(t.Context(), 6)
	require.NoError(t, err)
	for _, h := range held {
		if h.Node() == s.nodes[0].Name() {
			require.NoError(t, h.End())
		}
	}
	loads, sum, cv := s.loads()
	assert.Equal(t, []float64{0, 2, 2}, loads)
	assert.Equal(t, 4.0, sum)
	assert.InDelta(t, 0.7071, cv, 0.0001)
	s.down = s.nodes[0]
	loads, _, cv = s.loads()
	assert.Equal(t, []float64{2, 2}, loads)
	assert.Zero(t, cv)
}

func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-policy none":       `-policy is "none", want one of round_robin, least_request, weighted_round_robin, least_conn, reports, reports/100ms, reports/1s, reports/5s`,
		"-servers 1":         `invalid value "1" for flag -servers: want a whole number from 2 to 100`,
		"-clients 0":         `invalid value "0" for flag -clients: want a whole number from 1 to 200`,
		"-streams 1001":      `invalid value "1001" for flag -streams: want a whole number from 1 to 1000`,
		"-life 1ms":          `invalid value "1ms" for flag -life: want 50ms to 10m0s`,
		"-duration 2h":       `invalid value "2h" for flag -duration: want 1s to 1h0m0s`,
		"-seed -1":           `invalid value "-1" for flag -seed: want 0 to 2^64-1`,
		"-json surplus":      `unexpected argument "surplus"`,
		"-policy reports -x": "flag provided but not defined: -x",
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, flags.ExitUsage, run(t.Context(), strings.Fields(args), &out, &errs), args)
		assert.Contains(t, errs.String(), "fleet: "+want, args)
		assert.Empty(t, out.String(), args)
	}
	chosen, err := selectPolicies("reports")
	require.NoError(t, err)
	assert.Len(t, chosen, 3)
}
