package order

import (
	"fmt"
	"testing"
)

var benchWeights = map[string]func(int) float64{
	"equal":    func(int) float64 { return 1 },
	"four":     func(i int) float64 { return []float64{1, 2, 3, 5}[i%4] },
	"distinct": func(i int) float64 { return float64((i + 1) << 10) },
}

func newBench(n int, weightOf func(int) float64) (*Order[*int], []Handle) {
	o := new(Order[*int])
	var hs []Handle
	for i := range n {
		hs = append(hs, o.Insert(weightOf(i), 0, new(int)))
	}
	return o, hs
}

// BenchmarkSetLoad is one choice and the end of the one that is the oldest of
// twice as many as there are values.
func BenchmarkSetLoad(b *testing.B) {
	for _, weights := range []string{"equal", "four", "distinct"} {
		for _, n := range []int{1, 10, 1000, 10000} {
			b.Run(fmt.Sprintf("weights=%s/n=%d", weights, n), func(b *testing.B) {
				o, _ := newBench(n, benchWeights[weights])
				loads := make([]int64, n)
				choose := func() Handle {
					h := o.Next(false)
					loads[h]++
					o.SetLoad(h, loads[h])
					return h
				}
				ring := make([]Handle, 2*n)
				for i := range ring {
					ring[i] = choose()
				}
				i := 0
				for b.Loop() {
					h := ring[i]
					loads[h]--
					o.SetLoad(h, loads[h])
					ring[i] = choose()
					if i++; i == len(ring) {
						i = 0
					}
				}
			})
		}
	}
}
