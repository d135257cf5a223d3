package kubernetes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	discovery "k8s.io/api/discovery/v1"
)

// step is what slices are from a time on, and what the channel then uses.
type step struct {
	at     time.Duration
	slices []*discovery.EndpointSlice
	want   []string
	next   time.Duration // when the list changes by itself; 0: never
}

func runSteps(t *testing.T, steps ...step) {
	t.Helper()
	l, start := list{}, time.Now()
	for i, s := range steps {
		next := l.update(start.Add(s.at), mergeOf(t, "k8s:///chat:grpc", s.slices...))
		require.Equal(t, s.want, show(l.endpoints()), "step %d", i)
		if s.next == 0 {
			require.Zero(t, next, "step %d", i)
		} else {
			require.Equal(t, s.next, next.Sub(start), "step %d", i)
		}
	}
}

type known = []*discovery.EndpointSlice

var (
	podA, podB, podC = pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), pod("c", "10.0.0.3")
	a, b, c          = "a@10.0.0.1:50051", "b@10.0.0.2:50051", "c@10.0.0.3:50051"
)

// Pods that swap slices are there all the time, whichever event comes first.
func TestPodsSwapSlices(t *testing.T) {
	before, after := known{slice("1", podA), slice("2", podB)}, known{slice("1", podB), slice("2", podA)}
	for name, between := range map[string]known{
		"first: 1 has b, which 2 has, too; nobody has a": {slice("1", podB), slice("2", podB)},
		"first: 2 has a, which 1 has, too; nobody has b": {slice("1", podA), slice("2", podA)},
		"both are emptied first":                         {slice("1"), slice("2")},
		"both are gone first":                            nil,
	} {
		t.Run(name, func(t *testing.T) {
			runSteps(t,
				step{0, before, []string{a, b}, 0},
				step{time.Second, between, []string{a, b}, time.Second + settle},
				step{time.Second + settle - 1, between, []string{a, b}, time.Second + settle},
				step{time.Second + settle - 1, after, []string{a, b}, 0})
		})
	}
}

// A slice is deleted while another one takes its endpoints, in either order.
func TestSliceTakesThoseOfAnother(t *testing.T) {
	both, one := known{slice("1", podA), slice("2", podB)}, known{slice("1", podA, podB)}
	runSteps(t,
		step{0, both, []string{a, b}, 0},
		step{1, known{slice("1", podA)}, []string{a, b}, 1 + settle},
		step{2, one, []string{a, b}, 0})
	runSteps(t,
		step{0, both, []string{a, b}, 0},
		step{1, known{slice("1", podA, podB), slice("2", podB)}, []string{a, b}, 0},
		step{2, one, []string{a, b}, 0})
}

// What no slice has stays for a while, and each endpoint for its own; what joins
// or changes does so at once.
func TestRemovalsSettle(t *testing.T) {
	runSteps(t,
		step{0, known{slice("1", podA, podB)}, []string{a, b}, 0},
		step{1 * time.Second, known{slice("1", podB, podC)}, []string{a, b, c}, 1*time.Second + settle},
		step{2 * time.Second, known{slice("1", ending("c", "10.0.0.3"))}, []string{a, b, c + " draining"}, 1*time.Second + settle},
		step{1*time.Second + settle, known{slice("1", podC)}, []string{b, c}, 2*time.Second + settle},
		step{2*time.Second + settle, known{slice("1", podC)}, []string{c}, 0})
}

// What a slice calls unready is no move: it leaves at once. So does one whose
// address another one has.
func TestRemovalsThatDoNotSettle(t *testing.T) {
	runSteps(t,
		step{0, known{slice("1", podA, podB)}, []string{a, b}, 0},
		step{1, known{slice("1", podA, down("b", "10.0.0.2"))}, []string{a}, 0},
		step{2, known{slice("1", pod("b", "10.0.0.1"))}, []string{"b@10.0.0.1:50051"}, 0})
}

// The slices of one family swap a pod: it keeps both addresses. With another
// address of the same family it has that one alone.
func TestAddressesSettle(t *testing.T) {
	four, dual := slice("4", podA), "a@[2001:db8::1]:50051,10.0.0.1:50051"
	six := func(ip string) *discovery.EndpointSlice { return ipv6(slice("6", pod("a", ip))) }
	runSteps(t,
		step{0, known{four, six("2001:db8::1")}, []string{dual}, 0},
		step{1, known{four}, []string{dual}, 1 + settle},
		step{2, known{four, six("2001:db8::1")}, []string{dual}, 0},
		step{3, known{four}, []string{dual}, 3 + settle},
		step{4, known{slice("4", ending("a", "10.0.0.1"))}, []string{dual + " draining"}, 3 + settle},
		step{5, known{four, six("2001:db8::7")}, []string{"a@[2001:db8::7]:50051,10.0.0.1:50051"}, 0},
		step{6, known{four}, []string{"a@[2001:db8::7]:50051,10.0.0.1:50051"}, 6 + settle},
		step{6 + settle, known{four}, []string{a}, 0})
}
