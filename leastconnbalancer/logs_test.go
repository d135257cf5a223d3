package leastconnbalancer_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/resolver"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// logScript names the script that a test binary is to run for another one:
// gRPC's logger is set up once for a process, from its environment.
const logScript = "LEAST_CONN_LOG_SCRIPT"

// logScripts say what to do, each in a process of its own. Their phases are set
// apart by what they call phase with.
var logScripts = map[string]func(e *env, phase func(string)){
	"changes":  logChanges,
	"empty":    logEmpty,
	"draining": logDraining,
	"resolver": logResolver,
	"moves":    logMoves,
	"costs":    logCosts,
}

// TestRunLogScript is what the other process runs.
func TestRunLogScript(t *testing.T) {
	if script := logScripts[os.Getenv(logScript)]; script != nil {
		script(newEnv(t), func(name string) { fmt.Fprintln(os.Stderr, "PHASE "+name) })
	}
}

// logged runs a script with gRPC's environment variables and returns what the
// policy has logged, by phase, without time and target, and with letters for nodes
// that the script has given some.
func logged(t *testing.T, script string, environment ...string) map[string][]string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestRunLogScript$")
	cmd.Env = append(os.Environ(), append(environment, logScript+"="+script)...)
	var out, logs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &logs
	require.NoError(t, cmd.Run(), "%s\n%s", out.String(), logs.String())
	phase, lines := "", map[string][]string{}
	var letters []string
	for _, m := range nodeLetters.FindAllStringSubmatch(logs.String(), -1) {
		letters = append(letters, m[1:]...)
	}
	for line := range strings.Lines(logs.String()) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "PHASE "); ok {
			phase = name
			lines[phase] = nil
			continue
		}
		severity, text, ok := strings.Cut(line, ": [least_conn] ")
		if !ok {
			continue
		}
		severity = severity[strings.LastIndex(severity, " ")+1:]
		text, ok = strings.CutPrefix(text, "[leastconntest:///logs] ")
		require.True(t, ok || script == "costs", "the target is named: %s", line)
		lines[phase] = append(lines[phase], severity+" "+strings.NewReplacer(letters...).Replace(text))
	}
	return lines
}

// nodeLetters are the lines that logLetters writes.
var nodeLetters = regexp.MustCompile(`(?m)^NODE (\S+) (\S+)$`)

// logLetters has the log show letters for the nodes.
func logLetters(ns []*leastconntest.Node) {
	for i, n := range ns {
		fmt.Fprintf(os.Stderr, "NODE %s %c\n", n.Addr(), 'a'+i)
	}
}

// Environment variables of gRPC's logger.
var (
	asDefault = []string{"GRPC_GO_LOG_SEVERITY_LEVEL=", "GRPC_GO_LOG_VERBOSITY_LEVEL="}
	atInfo    = []string{"GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_GO_LOG_VERBOSITY_LEVEL="}
	inDetail  = []string{"GRPC_GO_LOG_SEVERITY_LEVEL=info", "GRPC_GO_LOG_VERBOSITY_LEVEL=2"}
)

func logChanges(e *env, phase func(string)) {
	ns := e.nodes("a", "b", "c")
	slices.SortFunc(ns, func(a, b *leastconntest.Node) int { return strings.Compare(a.Addr(), b.Addr()) })
	logLetters(ns)
	phase("dial")
	c := e.dialWith(leastconntest.ChannelConfig{Target: "logs"}, ns[:2]...)
	phase("calls")
	c.calls(1000)
	phase("same list")
	c.update(ns[:2]...)
	phase("scale-out")
	c.update(ns...)
	phase("replaced")
	c.update(ns[1:]...)
	phase("reconnected")
	conns := ns[1].Conns()
	ns[1].GoAway()
	e.wait("another connection", func() bool { return ns[1].Conns() > conns })
	c.waitReady(ns[1])
	phase("other endpoints")
	b := ns[1].Endpoint()
	strange := leastconntest.Endpoints(ns[1:]...)
	for i := range 12 {
		strange = append(strange, resolver.Endpoint{Addresses: []resolver.Address{{Addr: fmt.Sprintf("10.0.0.%d:1\n\x1b[2J%s", 10+i, strings.Repeat("é", 100))}}})
	}
	require.NoError(e, c.Update(strange...))
	require.NoError(e, c.Update(b))
	require.NoError(e, c.Update(leastconntest.Endpoints(ns[1:]...)...))
	phase("weights")
	require.NoError(e, c.UpdateState(weighted(ns[1:], 2, 3)))
	phase("drained")
	undrain, err := leastconnbalancer.Drain("leastconntest:///logs", ns[1].Addr())
	require.NoError(e, err)
	e.wait("the drain is known", func() bool { return c.of(ns[1].Addr()).Drained })
	require.NoError(e, c.UpdateState(weighted(ns[1:], 2, 3)))
	undrain()
	require.NoError(e, c.UpdateState(weighted(ns[1:], 2, 3)))
	phase("configuration")
	c.reconfigure(leastconnbalancer.Config{ResourceKey: "other\nkey", MaxInFlight: 7}, ns[1:]...)
	c.reconfigure(leastconnbalancer.Config{ResourceKey: "other\nkey", MaxInFlight: 7}, ns[1:]...)
	phase("refused")
	wrong := leastconntest.Endpoints(ns...)
	wrong[0] = lcresolver.SetWeight(wrong[0], 1<<31+1)
	require.ErrorIs(e, c.Update(wrong...), balancer.ErrBadResolverState)
	phase("close")
	require.NoError(e, c.Close())
}

// Who has joined and left is named, in lines that stay short, whatever a resolver calls them.
func TestLogsOneLineForEachChange(t *testing.T) {
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprintf(`"10.0.0.%d:1\n\x1b[2J%s…"`, 10+i, strings.Repeat("é", 24)))
	}
	strange := strings.Join(names, ", ")
	require.Equal(t, map[string][]string{
		"dial": {
			`INFO resource key "leastconntest:///logs", configuration {}`,
			`INFO 2 endpoints: 2 joined ("a", "b"), 0 left, 0 changed`,
		},
		"calls":       nil,
		"same list":   nil,
		"scale-out":   {`INFO 3 endpoints: 1 joined ("c"), 0 left, 0 changed`},
		"replaced":    {`INFO 2 endpoints: 0 joined, 1 left ("a"), 0 changed`},
		"reconnected": nil,
		"other endpoints": {
			`INFO 14 endpoints: 12 joined (` + strange + ` and 7 more), 0 left, 0 changed`,
			`INFO 1 endpoints: 0 joined, 13 left (` + strange + ` and 8 more), 0 changed`,
			`INFO 2 endpoints: 1 joined ("c"), 0 left, 0 changed`,
		},
		"weights": {`INFO 2 endpoints: 0 joined, 0 left, 2 changed`},
		"drained": {`INFO "b" is drained`, `INFO "b" is not drained any more`},
		"configuration": {
			`INFO resource key "other\nkey", configuration {"resourceKey":"other\nkey","maxInFlight":7}`,
			`INFO 2 endpoints: 0 joined, 0 left, 2 changed`, // without weights
		},
		"refused": nil, // gRPC logs it
		"close":   nil,
	}, logged(t, "changes", inDetail...))
	for phase, lines := range logged(t, "changes", atInfo...) {
		require.Empty(t, lines, phase)
	}
}

// failFast makes n RPCs that fail.
func (c *channel) failFast(n int) {
	c.env.Helper()
	for range n {
		_, err := c.Unary(c.env.ctx)
		require.Error(c.env, err)
	}
}

func logEmpty(e *env, phase func(string)) {
	ns := e.nodes("a", "b")
	c := e.dialWith(leastconntest.ChannelConfig{Target: "logs"}, ns...)
	for _, name := range []string{"first", "second"} {
		phase(name)
		for range 10 {
			require.ErrorIs(e, c.Update(), balancer.ErrBadResolverState)
		}
		c.failFast(100)
		phase("after " + name)
		c.update(ns...)
		c.calls(10)
	}
	phase("before any list")
	other := e.unused(leastconntest.ChannelConfig{Target: "logs"})
	other.Connect()
	require.ErrorIs(e, other.Update(), balancer.ErrBadResolverState)
	other.failFast(10)
}

func logDraining(e *env, phase func(string)) {
	ns := e.nodes("a", "b", "c")
	c := e.dialWith(leastconntest.ChannelConfig{Target: "logs"}, ns...)
	for _, name := range []string{"first", "second"} {
		phase(name)
		require.NoError(e, c.UpdateState(weighted(ns, 0, 0, 0)))
		require.NoError(e, c.UpdateState(weighted(ns, 0, 0, 0)))
		c.failFast(100)
		require.NoError(e, c.UpdateState(weighted(ns[:2], 0, 0)))
		require.NoError(e, c.UpdateState(weighted(ns, 0, 0, 0)))
		c.waitReady(ns...)
		c.failFast(10)
		phase("after " + name)
		require.NoError(e, c.UpdateState(weighted(ns, 1, 1, 1)))
		c.calls(10)
	}
}

// told has the resolver report an error and waits until RPCs fail with it.
func (c *channel) told(err error) {
	c.env.Helper()
	c.ReportError(err)
	c.env.wait("RPCs fail with "+err.Error(), func() bool { return strings.Contains(c.unavailable().Error(), err.Error()) })
}

func logResolver(e *env, phase func(string)) {
	ns := e.nodes("a")
	c := e.dialWith(leastconntest.ChannelConfig{Target: "logs"}, ns...)
	phase("errors with a list")
	c.ReportError(errors.New("no such host"))
	c.calls(10)
	phase("empty")
	require.ErrorIs(e, c.Update(), balancer.ErrBadResolverState)
	phase("errors")
	for port := range 20 {
		c.told(fmt.Errorf("lookup api on 10.0.0.53:53: read udp 10.0.0.1:%d: i/o timeout", 40000+port))
	}
	phase("others in turn")
	for range 10 {
		require.ErrorIs(e, c.Update(), balancer.ErrBadResolverState)
		c.told(errors.New("no such host"))
	}
	phase("list")
	c.update(ns...)
	c.calls(10)
	phase("never the same")
	require.ErrorIs(e, c.Update(), balancer.ErrBadResolverState)
	for range 1000 {
		c.ReportError(errors.New(strings.Repeat("x", 100) + rand.Text()))
	}
	c.told(errors.New("the last one"))
}

// A cause is told once, however many RPCs fail and updates say the same, and
// again when it is back after RPCs could be sent.
func TestWarnsOncePerCause(t *testing.T) {
	empty := []string{`WARNING RPCs fail: name resolver produced zero addresses`}
	draining := []string{`WARNING RPCs fail: least_conn: all 3 endpoints are draining (weight 0)`}
	for script, want := range map[string]map[string][]string{
		"empty": {
			"first": empty, "after first": nil, "second": empty, "after second": nil, "before any list": empty,
		},
		"draining": {
			"first": draining, "after first": nil, "second": draining, "after second": nil,
		},
		"resolver": {
			"errors with a list": nil,
			"empty":              empty,
			"errors":             {`WARNING RPCs fail: name resolver error: lookup api on 10.0.0.53:53: read udp 10.0.0.1:40000: i/o timeout`},
			"others in turn":     {`WARNING RPCs fail: name resolver error: no such host`},
			"list":               nil,
			"never the same":     nil,
		},
	} {
		t.Run(script, func(t *testing.T) {
			got := logged(t, script, atInfo...)
			if last := got["never the same"]; last != nil {
				require.Less(t, len(last), 50, "of 1,000 that are all different")
				require.Greater(t, len(last), 10)
				got["never the same"] = nil
			}
			require.Equal(t, want, got)
		})
	}
	for phase, lines := range logged(t, "draining", asDefault...) {
		require.Empty(t, lines, phase)
	}
}
