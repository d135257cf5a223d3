package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
)

// waysToChange are how people change a file.
var waysToChange = map[string]func(s *env) (change func(content string)){
	"write": func(s *env) func(string) {
		return func(content string) {
			require.NoError(s, os.WriteFile(s.path, []byte(content), 0o600))
		}
	},
	"rename": func(s *env) func(string) { return s.put },
	"symlink swap": func(s *env) func(string) {
		dir, version := filepath.Dir(s.path), 0
		return func(content string) {
			version++
			name, data := fmt.Sprintf("..%d", version), filepath.Join(dir, "..data")
			require.NoError(s, os.Mkdir(filepath.Join(dir, name), 0o700))
			require.NoError(s, os.WriteFile(filepath.Join(dir, name, "nodes.yaml"), []byte(content), 0o600))
			require.NoError(s, os.Symlink(name, data+"_tmp"))
			require.NoError(s, os.Rename(data+"_tmp", data))
			if version == 1 {
				require.NoError(s, os.Symlink("..data/nodes.yaml", s.path))
				return
			}
			require.NoError(s, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..%d", version-1))))
		}
	},
}

// A node that joins the file takes the next streams; those that are open stay
// where they are, also those of a node that leaves.
func TestScaleOut(t *testing.T) {
	for way, of := range waysToChange {
		t.Run(way, func(t *testing.T) {
			s := newEnv(t)
			change := of(s)
			nodes := s.nodes("a", "b", "c")
			a, b, c := nodes[0], nodes[1], nodes[2]
			change(fileOf(a, b))
			ch := s.dial()
			ch.Connect()
			s.waitForReady(a, b)
			old, by := ch.openStreams(4)
			require.Equal(t, map[string]int{"a": 2, "b": 2}, by)
			change(fileOf(a, b, c))
			s.waitForReady(a, b, c)
			next, by := ch.openStreams(2)
			require.Equal(t, map[string]int{"c": 2}, by)
			change(fileOf(b, c))
			s.waitForReady(b, c)
			_, by = ch.openStreams(2)
			require.Equal(t, map[string]int{"b": 1, "c": 1}, by)
			ch.checkStreams(append(old, next...))
			require.Equal(t, []int{1, 1, 1}, []int{a.Conns(), b.Conns(), c.Conns()})
		})
	}
}

// A rolling update that replaces every node at once, three times over, costs no
// RPC, and the streams on the nodes that have left live on.
func TestReplacement(t *testing.T) {
	s := newEnv(t)
	var rounds [][]*leastconntest.Node
	for round := range 4 {
		var names []string
		for i := range 3 {
			names = append(names, fmt.Sprint(round, ".", i))
		}
		rounds = append(rounds, s.nodes(names...))
	}
	s.put(fileOf(rounds[0]...))
	ch := s.dial()
	ch.Connect()
	s.waitForReady(rounds[0]...)
	calls := ch.startCalls()
	var streams []stream
	for i, nodes := range rounds {
		s.put(fileOf(nodes...))
		s.waitForReady(nodes...)
		held, by := ch.openStreams(6)
		on := 0
		for _, n := range nodes {
			on += by[n.Name()]
		}
		require.Equal(t, 6, on, "round %d: %v", i, by)
		streams = append(streams, held...)
		before := calls.made.Load()
		s.wait("calls", func() bool { return calls.made.Load() > before+30 })
	}
	calls.stop()
	ch.checkStreams(streams)
	require.Zero(t, calls.failed.Load(), "of %d", calls.made.Load())
}

// callers are unary RPCs at 100 a second.
type callers struct {
	made, failed atomic.Int64
	stop         func() // ends them and waits for the last
}

func (c *channel) startCalls() *callers {
	b := &callers{}
	var calls sync.WaitGroup
	over := make(chan struct{})
	b.stop = sync.OnceFunc(func() { close(over); calls.Wait() })
	c.env.Cleanup(b.stop)
	calls.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-over:
				return
			}
			calls.Go(func() {
				if _, err := c.call(); err != nil {
					b.failed.Add(1)
					c.env.Error(err)
				}
				b.made.Add(1)
			})
		}
	})
	return b
}

// Weight and priority change on the connections that there are.
func TestWeightAndPriority(t *testing.T) {
	s := newEnv(t)
	nodes := s.nodes("a", "b")
	a, b := nodes[0], nodes[1]
	rated := func(weightA, priorityA uint32) string {
		return fmt.Sprintf("nodes:\n  - {address: %q, weight: %d, priority: %d}\n  - address: %q\n", a.Addr(), weightA, priorityA, b.Addr())
	}
	s.put(rated(3, 0))
	ch := s.dial()
	ch.Connect()
	s.waitForWeight(a, 3, 0)
	s.waitForWeight(b, 1, 0)
	streams, by := ch.openStreams(8)
	require.Equal(t, map[string]int{"a": 6, "b": 2}, by)
	s.put(rated(1, 0))
	s.waitForWeight(a, 1, 0)
	more, by := ch.openStreams(4)
	require.Equal(t, map[string]int{"b": 4}, by)
	streams = append(streams, more...)
	s.put(rated(0, 0))
	s.waitForWeight(a, 0, 0)
	more, by = ch.openStreams(2)
	require.Equal(t, map[string]int{"b": 2}, by, "a drains")
	streams = append(streams, more...)
	s.put(rated(1, 1))
	s.waitForWeight(a, 1, 1)
	more, by = ch.openStreams(2)
	require.Equal(t, map[string]int{"b": 2}, by, "b is the highest level")
	ch.checkStreams(append(streams, more...))
	require.Equal(t, []int{1, 1}, []int{a.Conns(), b.Conns()})
}

// Hundreds of edits move nothing but the weights.
func TestManyEdits(t *testing.T) {
	s := newEnv(t)
	nodes := s.nodes("a", "b")
	s.put(fileOf(nodes...))
	ch := s.dial()
	ch.Connect()
	s.waitForReady(nodes...)
	streams, _ := ch.openStreams(4)
	calls := ch.startCalls()
	for i := range 400 {
		s.put(fmt.Sprintf("# %d\nnodes:\n  - {address: %q, weight: %d}\n  - address: %q\n", i, nodes[0].Addr(), i%5+1, nodes[1].Addr()))
	}
	s.put(fmt.Sprintf("nodes:\n  - {address: %q, weight: 7}\n  - address: %q\n", nodes[0].Addr(), nodes[1].Addr()))
	s.waitForWeight(nodes[0], 7, 0)
	calls.stop()
	ch.checkStreams(streams)
	require.Zero(t, calls.failed.Load())
	require.Equal(t, []int{1, 1}, []int{nodes[0].Conns(), nodes[1].Conns()})
}

// RPCs of an empty list fail, its streams live on.
func TestEmptyList(t *testing.T) {
	s := newEnv(t)
	nodes := s.nodes("a")
	s.put(fileOf(nodes...))
	ch := s.dial()
	require.Equal(t, "a", ch.answers())
	streams, _ := ch.openStreams(2)
	s.put(fileOf())
	ch.refuses("name resolver produced zero addresses")
	ch.checkStreams(streams)
	s.put(fileOf(nodes...))
	s.wait("answer", func() bool { name, _ := ch.call(); return name == "a" })
	ch.checkStreams(streams)
}
