package dns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	lcresolver "github.com/leastconn/grpc-leastconn/resolver"
)

// What a policy gets of records: level, weight and addresses of each endpoint.
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
		records string // target:port/priority/weight
		want    []string
	}{
		"priority and weight": {
			"one.:1/20/65535 two.:2/0/7 three.:3/65535/1",
			[]string{"0 weight 7 10.0.0.2:2", "20 weight 65535 10.0.0.1:1", "65535 weight 1 10.0.0.3:3"},
		},
		"weight 0 among others is the lowest": {"one.:1/0/10 two.:1", []string{"0 weight 10 10.0.0.1:1", "0 weight 1 10.0.0.2:1"}},
		"weight 0 of all is equal":            {"one.:1/5 two.:1/5", []string{"5 weight 1 10.0.0.1:1", "5 weight 1 10.0.0.2:1"}},
		"one A and one AAAA":                  {"dual.:1/0/2", []string{"0 weight 2 [fd00::4]:1 10.0.0.4:1"}},
		"two of one family": {
			"v4s.:1/0/2 v6s.:1/0/3",
			[]string{"0 weight 2 10.0.0.5:1", "0 weight 2 10.0.0.6:1", "0 weight 3 [fd00::5]:1", "0 weight 3 [fd00::6]:1"},
		},
		"two and one":                {"mixed.:1", []string{"0 weight 1 10.0.0.7:1", "0 weight 1 10.0.0.8:1", "0 weight 1 [fd00::7]:1"}},
		"a target without addresses": {"none.:1 one.:1", []string{"0 weight 1 10.0.0.1:1"}},
		"several ports of a target":  {"dual.:2 dual.:1", []string{"0 weight 1 [fd00::4]:1 10.0.0.4:1", "0 weight 1 [fd00::4]:2 10.0.0.4:2"}},
		"repeats":                    {"one.:1/1/9 one.:1/0/3 one.:1/0/4", []string{"0 weight 4 10.0.0.1:1"}},
	} {
		records := parseSRVs(strings.Fields(test.records)...)
		for _, order := range []string{"as written", "reversed"} {
			state := stateOf(endpointsOf(records, hosts))
			var got []string
			addresses := state.Addresses[:0:0]
			for _, ep := range state.Endpoints {
				s := fmt.Sprint(lcresolver.Priority(ep), " weight ", lcresolver.Weight(ep))
				for _, a := range ep.Addresses {
					s += " " + a.Addr
				}
				got = append(got, s)
				addresses = append(addresses, ep.Addresses...)
			}
			require.Equal(t, test.want, got, "%s, %s", name, order)
			require.Equal(t, addresses, state.Addresses, "they are there for policies that know no endpoints")
			slices.Reverse(records)
		}
	}
	require.NotNil(t, stateOf(nil).Endpoints)
}
