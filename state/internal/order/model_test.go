package order

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// item is a value of the model, and of the order that is compared with it.
type item struct {
	handle Handle
	weight float64
	class  float64 // the weight that it is taken as having
	load   int64
	since  uint64
}

func (i *item) score() float64 { return float64(i.load+1) / i.class }

// model is the rules said naively: one list by how long the items wait. Where
// chance decides it follows the order, after it has seen that nothing else moved.
type model struct {
	*testing.T
	order Order[*item]
	items []*item
	clock uint64
}

// near returns the class that a new value of the weight is in.
func (m *model) near(weight float64) float64 {
	class, distance := weight, math.Inf(1)
	for _, i := range m.items {
		d := math.Abs(i.class - weight)
		if d <= nearWeight*i.class && (d < distance || d == distance && i.class < class) {
			class, distance = i.class, d
		}
	}
	return class
}

// bucket returns the items of a class and a load, the one that waits longest first.
func (m *model) bucket(class float64, load int64) []*item {
	var equals []*item
	for _, i := range m.items {
		if i.class == class && i.load == load {
			equals = append(equals, i)
		}
	}
	return equals
}

func (m *model) drop(i *item) {
	at := slices.Index(m.items, i)
	m.items = slices.Delete(m.items, at, at+1)
}

// putBack puts i behind all that wait as long as it does.
func (m *model) putBack(i *item) {
	at := slices.IndexFunc(m.items, func(other *item) bool { return other.since > i.since })
	if at < 0 {
		at = len(m.items)
	}
	m.items = slices.Insert(m.items, at, i)
}

func (m *model) requeue(i *item) {
	m.clock++
	i.since = m.clock
	m.items = append(m.items, i)
}

func (m *model) append(weight float64, load int64) {
	i := &item{weight: weight, class: m.near(weight), load: load}
	i.handle = m.order.Append(weight, load, i)
	m.requeue(i)
}

// insert takes over where chance has put the value.
func (m *model) insert(weight float64, load int64) {
	i := &item{weight: weight, class: m.near(weight), load: load}
	equals := m.bucket(i.class, load)
	i.handle = m.order.Insert(weight, load, i)
	m.clock++
	s := m.order.slots[i.handle]
	i.since = s.stamp
	if len(equals) == 0 {
		require.LessOrEqual(m, i.since, m.clock)
		m.putBack(i)
		return
	}
	if s.next == None {
		require.Equal(m, m.clock, i.since)
		m.items = append(m.items, i)
		return
	}
	before := m.order.slots[s.next].value
	require.Contains(m, equals, before)
	require.Equal(m, before.since, i.since)
	m.items = slices.Insert(m.items, slices.Index(m.items, before), i)
}

func (m *model) remove(i *item) {
	m.order.Remove(i.handle)
	m.drop(i)
}

func (m *model) setLoad(i *item, load int64) {
	m.order.SetLoad(i.handle, load)
	m.drop(i)
	i.load = load
	m.requeue(i)
}

func (m *model) setWeight(i *item, weight float64) {
	m.order.SetWeight(i.handle, weight)
	m.drop(i)
	i.weight, i.class = weight, m.near(weight)
	m.putBack(i)
}

// choose has the value that is first, but for some, take one load more.
func (m *model) choose(but ...*item) {
	var hs []Handle
	for _, i := range but {
		hs = append(hs, i.handle)
		m.drop(i)
	}
	m.order.Excluding(hs, func() {
		m.requireFirst()
		if first := m.order.First(); first != None {
			i := m.order.Value(first)
			m.setLoad(i, i.load+1)
		}
	})
	for _, i := range but {
		i.class = m.near(i.class)
		m.requeue(i)
	}
}

// requireFirst compares what is to be chosen next with the best of all. Of those
// that have the same score and have waited equally long, any class may be first.
func (m *model) requireFirst() {
	first := m.order.First()
	if len(m.items) == 0 {
		require.Equal(m, None, first)
		return
	}
	require.NotEqual(m, None, first)
	best := slices.MinFunc(m.items, func(a, b *item) int {
		if a.score() != b.score() {
			return int(math.Copysign(1, a.score()-b.score()))
		}
		return int(int64(a.since - b.since))
	})
	got := m.order.Value(first)
	require.Equal(m, best.score(), got.score())
	require.Equal(m, best.since, got.since)
	require.Same(m, m.bucket(got.class, got.load)[0], got)
}

func (m *model) check() {
	require.NoError(m, m.order.Check(func(i *item) (float64, int64) { return i.weight, i.load }))
	require.Equal(m, len(m.items), m.order.Len())
	m.requireFirst()
	highest, several := 0.0, false
	for _, i := range m.items {
		several = several && i.score() <= highest || i.score() == highest
		highest = max(highest, i.score())
	}
	for _, i := range m.items {
		require.Same(m, i, m.order.Value(i.handle))
		require.Equal(m, i.class, m.order.ClassWeight(i.handle))
		require.Equal(m, i.since, m.order.slots[i.handle].stamp)
		require.Equal(m, i.score() == highest && !several, m.order.IsWorst(i.handle))
	}
}

// drain chooses and removes until nothing is left.
func (m *model) drain() {
	for len(m.items) > 0 {
		m.requireFirst()
		m.remove(m.order.Value(m.order.First()))
	}
	m.check()
}

// weights are of a few classes with equal scores, some near each other.
var weights = []float64{1, 2, 3, 5, 0.1, 1 << 30, 1<<30 + 1<<14, 1<<30 + 1<<15, 1<<30 + 1<<14 + 1, 7, 1.0 / 3, 12}

// run plays a script: four bytes are one step.
func (m *model) run(script []byte) {
	for ; len(script) >= 4; script = script[4:] {
		op, arg, weight := script[0], int(script[1]), weights[int(script[2])%len(weights)]
		load := int64(script[3] % 8)
		if script[3] >= 192 {
			load = int64(script[3]-191)*int64(math.Ceil(weight)) - 1 // a whole score
		}
		if len(m.items) < 2 {
			op %= 2
		}
		pick := func() *item { return m.items[arg%len(m.items)] }
		switch op % 12 {
		case 0:
			m.insert(weight, load)
		case 1, 2:
			m.append(weight, load)
		case 3:
			m.remove(pick())
		case 4, 5:
			m.setLoad(pick(), load)
		case 6:
			i := pick()
			m.setLoad(i, max(i.load-1, 0))
		case 7:
			m.setWeight(pick(), weight)
		case 8:
			m.choose(pick())
		case 9:
			m.choose(m.items[0], m.items[len(m.items)-1])
		default:
			m.choose()
		}
		m.check()
	}
	m.drain()
}

// An order does what the model does, whatever happens to it.
func FuzzOrderAgreesWithTheModel(f *testing.F) {
	for range 100 {
		script := make([]byte, 4*(1+rand.IntN(100)))
		for i := range script {
			script[i] = byte(rand.Uint32())
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		(&model{T: t}).run(script[:min(len(script), 400)])
	})
}

// So does one of many values, whose loads are anything. Scores are whole numbers:
// equals of several weights abound where loads are few.
func TestManyValuesAgreeWithTheModel(t *testing.T) {
	for name, weightOf := range map[string]func(i int) float64{
		"equal":    func(int) float64 { return 1 },
		"four":     func(i int) float64 { return []float64{1, 2, 3, 5}[i%4] },
		"seventy":  func(i int) float64 { return float64(i%70 + 1) },
		"distinct": func(i int) float64 { return float64(i + 1) },
	} {
		for _, widest := range []int64{3, 1200} {
			t.Run(name, func(t *testing.T) {
				const n, steps = 300, 2000
				m := &model{T: t}
				for i := range n {
					m.insert(weightOf(i), 0)
				}
				for step := range steps {
					i := m.items[rand.IntN(len(m.items))]
					if step%7 == 0 {
						m.remove(i)
						m.insert(i.weight, i.load)
					} else {
						m.setLoad(i, (rand.Int64N(rand.Int64N(widest)+1)+1)*int64(i.weight)-1)
					}
					m.requireFirst()
				}
				m.check()
				m.drain()
			})
		}
	}
}
