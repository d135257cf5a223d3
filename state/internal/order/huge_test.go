package order

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Loads of 2^31 RPCs of a million units each are told apart by one, among equal weights and
// among others, on machines of 32 bits, too.
func TestHugeLoads(t *testing.T) {
	const most = int64(1<<31) * 1_000_000
	for name, weights := range map[string][2]float64{"equal": {1, 1}, "unequal": {1, 3}} {
		t.Run(name, func(t *testing.T) {
			var o Order[string]
			a := o.Append(weights[0], most/4, "a")
			b := o.Append(weights[1], most/4*int64(weights[1]), "b")
			o.Next(false) // the first class is drawn
			for _, step := range []struct {
				h    Handle
				by   int64
				want string
			}{{a, 2, "b"}, {a, -4, "a"}, {a, 2, ""}, {b, -4, "b"}, {b, 8, "a"}, {a, 1_000_000, "b"}, {b, 4_000_000, "a"}} {
				load, _, _ := o.Standing(step.h)
				o.SetLoad(step.h, load+step.by)
				require.NoError(t, o.Check(func(v string) Standing {
					h := map[string]Handle{"a": a, "b": b}[v]
					load, weight, _ := o.Standing(h)
					return Standing{Weight: weight, Load: load}
				}))
				if step.want != "" {
					require.Equal(t, step.want, o.Value(o.First()))
				}
			}
		})
	}
}
