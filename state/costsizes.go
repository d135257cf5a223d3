package state

import "math/bits"

// costSizes counts leases by what they cost, so that the largest cost is known. Each size
// up to exactUnits is counted by itself; of larger ones those that are up to a 128th apart
// are counted together.
type costSizes struct {
	leases [costSizeOfMost + 1]int32
	most   [costSizeOfMost + 1]int32 // units, since there were none
	top    int                       // no size above has leases
}

const (
	exactUnits     = 256
	sizesPerDouble = 128
	costSizeOfMost = exactUnits + 12*sizesPerDouble - 1
)

// costSize returns where units are counted.
func costSize(units int64) int {
	if units < exactUnits {
		return int(units)
	}
	doubles := bits.Len64(uint64(units)) - bits.Len64(exactUnits-1) // 1 below twice exactUnits
	return exactUnits + (doubles-1)*sizesPerDouble + int(units>>doubles) - sizesPerDouble
}

func (c *costSizes) add(units int64) {
	i := costSize(units)
	c.leases[i]++
	c.most[i] = max(c.most[i], int32(units))
	c.top = max(c.top, i)
}

func (c *costSizes) remove(units int64) {
	i := costSize(units)
	if c.leases[i]--; c.leases[i] == 0 {
		c.most[i] = 0
	}
}

// largestCost returns what the costliest RPC of the ledger costs, or has cost while others
// that cost about as much are still there.
func (l *Ledger) largestCost() int64 {
	c := l.costs
	if c == nil {
		return 1
	}
	for c.top > 0 && c.leases[c.top] == 0 {
		c.top--
	}
	return max(1, int64(c.most[c.top]))
}
