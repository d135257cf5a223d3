package dns

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// show renders what a policy gets of a list: level, weight and addresses.
func show(list []endpoint) (shown []string) {
	for _, ep := range stateOf(list).Endpoints {
		s := fmt.Sprint("level ", lcresolver.Priority(ep), " weight ", lcresolver.Weight(ep))
		for _, a := range ep.Addresses {
			s += " " + a.Addr
		}
		shown = append(shown, s)
	}
	return shown
}

func TestSRVRecordsAreEndpoints(t *testing.T) {
	hosts := map[string]addresses{
		"one.":   {addrs: parseAddrs("10.0.0.1")},
		"two.":   {addrs: parseAddrs("10.0.0.2")},
		"three.": {addrs: parseAddrs("10.0.0.3")},
		"dual.":  {addrs: parseAddrs("10.0.0.4", "fd00::4")},
		"v4s.":   {addrs: parseAddrs("10.0.0.5", "10.0.0.6")},
		"v6s.":   {addrs: parseAddrs("fd00::5", "fd00::6")},
		"mixed.": {addrs: parseAddrs("10.0.0.7", "10.0.0.8", "fd00::7")},
		"none.":  {},
	}
	for name, test := range map[string]struct {
		records []*net.SRV
		want    []string
	}{
		"priority and weight": {
			[]*net.SRV{{Target: "one.", Port: 1, Priority: 20, Weight: 65535}, {Target: "two.", Port: 2, Weight: 7}, {Target: "three.", Port: 3, Priority: 65535, Weight: 1}},
			[]string{"level 0 weight 7 10.0.0.2:2", "level 20 weight 65535 10.0.0.1:1", "level 65535 weight 1 10.0.0.3:3"},
		},
		"weight 0 among others is the lowest": {
			[]*net.SRV{{Target: "one.", Port: 1, Weight: 10}, {Target: "two.", Port: 1}},
			[]string{"level 0 weight 10 10.0.0.1:1", "level 0 weight 1 10.0.0.2:1"},
		},
		"weight 0 of all is equal": {
			[]*net.SRV{{Target: "one.", Port: 1, Priority: 5}, {Target: "two.", Port: 1, Priority: 5}},
			[]string{"level 5 weight 1 10.0.0.1:1", "level 5 weight 1 10.0.0.2:1"},
		},
		"one A and one AAAA": {
			[]*net.SRV{{Target: "dual.", Port: 1, Weight: 2}},
			[]string{"level 0 weight 2 [fd00::4]:1 10.0.0.4:1"},
		},
		"two of one family": {
			[]*net.SRV{{Target: "v4s.", Port: 1, Weight: 2}, {Target: "v6s.", Port: 1, Weight: 3}},
			[]string{"level 0 weight 2 10.0.0.5:1", "level 0 weight 2 10.0.0.6:1", "level 0 weight 3 [fd00::5]:1", "level 0 weight 3 [fd00::6]:1"},
		},
		"two and one": {
			[]*net.SRV{{Target: "mixed.", Port: 1}},
			[]string{"level 0 weight 1 10.0.0.7:1", "level 0 weight 1 10.0.0.8:1", "level 0 weight 1 [fd00::7]:1"},
		},
		"a target without addresses": {
			[]*net.SRV{{Target: "none.", Port: 1}, {Target: "one.", Port: 1}},
			[]string{"level 0 weight 1 10.0.0.1:1"},
		},
		"several ports of a target": {
			[]*net.SRV{{Target: "dual.", Port: 2}, {Target: "dual.", Port: 1}},
			[]string{"level 0 weight 1 [fd00::4]:1 10.0.0.4:1", "level 0 weight 1 [fd00::4]:2 10.0.0.4:2"},
		},
		"repeats": {
			[]*net.SRV{{Target: "one.", Port: 1, Priority: 1, Weight: 9}, {Target: "one.", Port: 1, Weight: 3}, {Target: "one.", Port: 1, Weight: 4}},
			[]string{"level 0 weight 4 10.0.0.1:1"},
		},
	} {
		require.Equal(t, test.want, show(endpointsOf(test.records, hosts)), name)
		for i, j := 0, len(test.records)-1; i < j; i, j = i+1, j-1 {
			test.records[i], test.records[j] = test.records[j], test.records[i]
		}
		require.Equal(t, test.want, show(endpointsOf(test.records, hosts)), "%s, in another order", name)
	}
}

func parseAddrs(written ...string) (addrs []netip.Addr) {
	for _, a := range written {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs
}

// Addresses are there for policies that know no endpoints.
func TestStateHasAddressesToo(t *testing.T) {
	s := stateOf(endpointsOf([]*net.SRV{{Target: "dual.", Port: 1}}, map[string]addresses{"dual.": {addrs: parseAddrs("10.0.0.4", "fd00::4")}}))
	require.Len(t, s.Endpoints, 1)
	require.Equal(t, s.Endpoints[0].Addresses, s.Addresses)
	require.NotNil(t, stateOf(nil).Endpoints)
}

const (
	srvDial    = "srv://ns.test/_grpc._tcp.api.test"
	srvMissing = "error: srv: SRV records of _grpc._tcp.api.test from ns.test:53: no such host"
)

func TestSRVChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{
			addrs: map[string][]string{"A a.test.": {"10.0.0.1"}, "A b.test.": {"10.0.0.2"}},
			srv:   []*net.SRV{{Target: "a.test.", Port: 80}, {Target: "b.test.", Port: 80, Priority: 1}},
		}
		step := runResolver(t, srvDial, z)
		require.Equal(t, []string{"10.0.0.1:80 10.0.0.2:80"}, step())
		require.Empty(t, step())
		z.srv = []*net.SRV{{Target: "b.test.", Port: 80, Priority: 1}, {Target: "a.test.", Port: 80}}
		require.Empty(t, step(), "the order of records is no change")
		z.srv = []*net.SRV{{Target: "a.test.", Port: 80, Weight: 2}, {Target: "b.test.", Port: 80, Priority: 1}}
		require.Equal(t, []string{"10.0.0.1:80 10.0.0.2:80"}, step(), "a weight is a change")
		z.srv = []*net.SRV{{Target: "a.test.", Port: 80, Weight: 2, Priority: 2}, {Target: "b.test.", Port: 80, Priority: 1}}
		require.Equal(t, []string{"10.0.0.2:80 10.0.0.1:80"}, step(), "a priority is a change")
		z.srv = z.srv[:1]
		require.Equal(t, []string{"10.0.0.1:80"}, step())
	})
}

func TestSRVFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{
			addrs: map[string][]string{"A a.test.": {"10.0.0.1"}, "A b.test.": {"10.0.0.2"}},
			srv:   []*net.SRV{{Target: "a.test.", Port: 80}, {Target: "b.test.", Port: 80}},
			fails: map[string]error{"A b.test.": servFail},
		}
		const bFailed = "error: srv: A records of b.test. from ns.test:53: server misbehaving"
		step := runResolver(t, srvDial, z)
		require.Equal(t, []string{"10.0.0.1:80", bFailed}, step(), "a target that was never known is left out")
		z.fails = nil
		require.Equal(t, []string{"10.0.0.1:80 10.0.0.2:80"}, step())
		z.fails = map[string]error{"A b.test.": servFail}
		require.Equal(t, []string{bFailed}, step(), "one that was stays")

		// Without SRV records the last ones hold, and targets are still looked up.
		z.fails = map[string]error{"SRV": servFail}
		z.addrs["A a.test."] = []string{"10.0.0.3"}
		const srvFailed = "error: srv: SRV records of _grpc._tcp.api.test from ns.test:53: server misbehaving"
		require.Equal(t, []string{"10.0.0.2:80 10.0.0.3:80", srvFailed}, step())
		for range 5 {
			require.Equal(t, []string{srvFailed}, step())
		}

		// New targets that nothing is known of do not empty the list.
		z.fails = map[string]error{"A c.test.": servFail}
		z.srv = []*net.SRV{{Target: "c.test.", Port: 80}}
		for range 5 {
			require.Equal(t, []string{"error: srv: A records of c.test. from ns.test:53: server misbehaving"}, step())
		}
	})
}

func TestSRVMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{
			addrs: map[string][]string{"A a.test.": {"10.0.0.1"}},
			srv:   []*net.SRV{{Target: "a.test.", Port: 80}},
		}
		step := runResolver(t, srvDial, z)
		require.Equal(t, []string{"10.0.0.1:80"}, step())
		z.fails = map[string]error{"SRV": nxDomain}
		require.Equal(t, []string{srvMissing}, step())
		require.Equal(t, []string{srvMissing}, step())
		require.Equal(t, []string{"", srvMissing}, step())
		z.fails = nil
		require.Equal(t, []string{"10.0.0.1:80"}, step())

		// The root as target says that there is no service, as no record does.
		z.srv = []*net.SRV{{Target: "."}}
		const none = "error: srv: SRV records of _grpc._tcp.api.test from ns.test:53: there are none"
		require.Equal(t, []string{none}, step())
		require.Equal(t, []string{none}, step())
		require.Equal(t, []string{"", none}, step())

		// A target that is not there is missed like any name, new or not.
		z.srv = []*net.SRV{{Target: "a.test.", Port: 80}}
		require.Equal(t, []string{"10.0.0.1:80"}, step())
		z.srv = []*net.SRV{{Target: "c.test.", Port: 80}}
		const cMissing = "error: srv: A records of c.test. from ns.test:53: there are none"
		require.Equal(t, []string{cMissing}, step())
		require.Equal(t, []string{cMissing}, step())
		require.Equal(t, []string{"", cMissing}, step())
	})
}

// Malformed records are left out, and said to be there.
func TestSRVMalformed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := &fakeDNS{
			addrs: map[string][]string{"A a.test.": {"10.0.0.1"}, "A b.test.": {"10.0.0.2"}},
			srv:   []*net.SRV{{Target: "a.test.", Port: 80}},
			fails: map[string]error{"SRV": servMalformed},
		}
		const malformed = "error: srv: SRV records of _grpc._tcp.api.test from ns.test:53: DNS response contained records which contain invalid names"
		step := runResolver(t, srvDial, z)
		require.Equal(t, []string{"10.0.0.1:80", malformed}, step())
		z.srv = []*net.SRV{{Target: "b.test.", Port: 80}}
		require.Equal(t, []string{"10.0.0.2:80", malformed}, step())
		z.srv = nil
		require.Equal(t, []string{malformed}, step())
	})
}

// What is known of a target goes with its records.
func TestTargetsAreForgotten(t *testing.T) {
	z := &fakeDNS{addrs: map[string][]string{}}
	l := &srvLookup{hosts: &hosts{source: source{netResolver: z, scheme: SRVScheme}, params: defaults()}, name: "_grpc._tcp.api.test"}
	for i := range 100 {
		target := fmt.Sprint("pod-", i, ".test.")
		z.addrs["A "+target] = []string{"10.0.0.1"}
		z.srv = []*net.SRV{{Target: target, Port: 80}, {Target: target, Port: 81}}
		require.Len(t, l.lookup(t.Context()).endpoints, 2)
		require.Len(t, l.hosts.byName, 1)
		require.Equal(t, 1, z.asked["A "+target], "a target is looked up once a lookup")
	}
}
