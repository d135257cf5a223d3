package rows

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
	"github.com/leastconn/grpc-leastconn/leastconnbalancer/leastconntest"
	"github.com/leastconn/grpc-leastconn/state"
)

// units are figures: what the calls on each server cost together, the most first. Which server has which is chance.
type units []int

func (u units) String() string {
	most, fewest := slices.Max(u), slices.Min(u)
	return fmt.Sprintf("%d…%d (%d)", fewest, most, most-fewest)
}

// MarshalJSON gives the units by server.
func (u units) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Units []int `json:"units"`
	}{u})
}

// What a prompt costs. Every tenth one is long, until there are ten of these.
const (
	longPrompt, longPrompts   = 500, 10
	shortPrompt, shortPrompts = 5, 100
)

func promptCost(i int) int {
	if i%10 == 0 && i < 10*longPrompts {
		return longPrompt
	}
	return shortPrompt
}

// promptsRow is calls of which few cost a hundred times as much as the others: servers end level in what they cost, within
// the largest.
func promptsRow() Row {
	exact := units(make([]int, 4))
	for i := range longPrompts + shortPrompts {
		least := slices.Index(exact, slices.Min(exact))
		exact[least] += promptCost(i)
	}
	return Row{
		Name:    "long prompts",
		Change:  fmt.Sprintf("%d prompts of %d tokens and %d of %d, every tenth a long one", longPrompts, longPrompt, shortPrompts, shortPrompt),
		Measure: "tokens by server, the most first", Want: exact.sorted().String(), Exact: exact.sorted(),
		Play: onNodes(func(ctx context.Context, e *env) (Figures, []string, error) {
			if err := e.list(ctx, leastconntest.Endpoints(e.nodes...), e.nodes...); err != nil {
				return nil, nil, err
			}
			by := map[string]int{}
			for i := range longPrompts + shortPrompts {
				s, err := e.Open(leastconnbalancer.WithCost(ctx, promptCost(i)))
				if err != nil {
					return nil, nil, err
				}
				by[s.Node()] += promptCost(i)
			}
			for _, n := range e.nodes {
				by[n.Name()] += 0
			}
			got := units(slices.Collect(maps.Values(by))).sorted()
			return got, append(got.differs(exact.sorted()), countedUnits(e.Key(), got)...), nil
		}, nil, leastconntest.Options{Name: "a"}, leastconntest.Options{Name: "b"}, leastconntest.Options{Name: "c"}, leastconntest.Options{Name: "d"}),
	}
}

func (u units) sorted() units {
	all := slices.Sorted(slices.Values(u))
	slices.Reverse(all)
	return all
}

// differs says how u is not as exact has it.
func (u units) differs(exact units) []string {
	if slices.Equal(u, exact) {
		return nil
	}
	return []string{fmt.Sprintf("servers hold %v tokens, exact gives %v", []int(u), []int(exact))}
}

// countedUnits says how what least_conn counts in the ledger of a key, if there is one, is not what the servers hold.
func countedUnits(key string, held units) []string {
	for _, s := range state.Snapshots() {
		if s.ResourceKey != key {
			continue
		}
		var counted units
		for _, n := range s.Endpoints {
			counted = append(counted, int(n.Units))
		}
		if counted = counted.sorted(); !slices.Equal(counted, held) {
			return []string{fmt.Sprintf("least_conn counts %v tokens, servers hold %v", []int(counted), []int(held))}
		}
	}
	return nil
}
