package leastconnbalancer_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// keeping dials with a metrics plugin that keeps reporters for ever.
func keeping(cfg leastconntest.ChannelConfig) (leastconntest.ChannelConfig, *journal) {
	j := newJournal()
	j.keeps = true
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithStatsHandler(j))
	return cfg, j
}

// A reporter that a plugin keeps holds no ledger, and reports nothing any more.
func TestReporterHoldsNoLedger(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a", "b")
	cfg, j := keeping(leastconntest.ChannelConfig{})
	c := l.dialWith(cfg, ns...)
	ledger := c.ledger()
	c.hold(2)
	require.NotEmpty(t, gaugesOf(j.Collect()))
	require.NoError(t, c.Close())
	l.collected(ledger)
	require.Len(t, j.kept, 1)
	require.Empty(t, gaugesOf(j.Collect()))
	require.Equal(t, map[string]int{"picks": 2}, j.seen())
	runtime.KeepAlive(j)
}

// Nor does the channel's reporter hold the ledger of a key that it has left.
func TestReporterHoldsNoEarlierLedger(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	cfg, j := keeping(keyed("old " + t.Name()))
	c := l.dialAs("old "+t.Name(), cfg, ns...)
	ledger := c.ledger()
	c.calls(3)
	c.reconfigure(leastconnbalancer.Config{ResourceKey: "new " + t.Name()}, ns...)
	l.collected(ledger)
	c.key = "new " + t.Name()
	c.waitReady(ns...)
	c.calls(2)
	require.NotEmpty(t, gaugesOf(j.Collect()))
	require.Equal(t, map[string]int{"picks": 5}, j.seen())
}

// With the policy switched away while streams live on, the ledger is theirs.
func TestReporterEndsWithThePolicy(t *testing.T) {
	l := newLab(t)
	ns := l.nodes("a")
	cfg, j := keeping(leastconntest.ChannelConfig{})
	c := l.dialWith(cfg, ns...)
	ledger := c.ledger()
	held, _ := c.hold(2)
	c.switchAway(ns...)
	require.Empty(t, gaugesOf(j.Collect()))
	require.Equal(t, map[string]int{"picks": 2}, j.seen())
	require.NoError(t, leastconntest.EndAll(held))
	l.collected(ledger)
}
