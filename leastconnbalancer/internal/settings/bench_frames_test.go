package settings

import (
	"bytes"
	"strconv"
	"testing"
)

// BenchmarkFrames reads along in buffers of the size of gRPC's, which hold frames
// with a payload of a size. The cost is per frame.
func BenchmarkFrames(b *testing.B) {
	for _, payload := range []int{0, 8, 100, 16384} {
		b.Run("payload="+strconv.Itoa(payload), func(b *testing.B) {
			one := data(payload)
			stream := bytes.Repeat(one, 1<<20/len(one)+1)
			var heard limits
			f := frames{transport: &heard}
			f.read(settingsFrame())
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				for rest := stream; len(rest) > 0; {
					cut := min(len(rest), 32<<10)
					f.read(rest[:cut])
					rest = rest[cut:]
				}
				n += len(stream) / len(one)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/frame")
		})
	}
}
