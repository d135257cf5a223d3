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
	handle    Handle
	weight    float64
	class     float64 // the weight that it is taken as having
	load      int64
	since     uint64
	suspended bool
	aside     bool // it is excluded now
}

// model is the rules said naively: one list by how long the items wait, and the turns
// of the classes. Where chance decides it follows the order, after it has seen that
// nothing else moved.
type model struct {
	*testing.T
	order Order[*item]
	items []*item
	clock uint64
	turns map[float64]float64 // by class
	now   float64
	drawn bool
}

func newModel(t *testing.T) *model { return &model{T: t, turns: map[float64]float64{}} }

// those returns the items of a class, 0 for all, that are so.
func (m *model) those(class float64, are func(i *item) bool) []*item {
	var is []*item
	for _, i := range m.items {
		if (class == 0 || i.class == class) && are(i) {
			is = append(is, i)
		}
	}
	return is
}

func (m *model) takers(class float64) float64 {
	return float64(len(m.those(class, func(i *item) bool { return !i.suspended })))
}

func free(i *item) bool { return !i.suspended && !i.aside }

// level returns load over weight of a class, with so many more; +Inf where nobody is
// to be chosen.
func (m *model) level(class, more float64) float64 {
	is := m.those(class, free)
	if len(is) == 0 {
		return math.Inf(1)
	}
	low := slices.MinFunc(is, func(a, b *item) int { return int(a.load - b.load) }).load
	above := m.those(class, func(i *item) bool { return free(i) && i.load > low })
	return (float64(low) + (float64(len(above))+more)/float64(len(is))) / class
}

// limit returns the level below which a class may be chosen.
func (m *model) limit() float64 {
	load, weight, limit := 1.0, 0.0, math.Inf(1)
	for _, i := range m.those(0, free) {
		load += float64(i.load)
		weight += i.class
	}
	for class := range m.turns {
		limit = min(limit, m.level(class, 1))
	}
	return min(limit, load/weight)
}

// resized tells that by more items of a class take turns.
func (m *model) resized(class, by float64) {
	is, wait := m.takers(class), max(0, m.turns[class]-m.now)
	switch was := is - by; {
	case is == 0:
	case was == 0:
		m.turns[class] = m.now + min(wait, 1/(is*class))
	default:
		m.turns[class] = m.now + wait*was/is
	}
}

// joined takes i up, and where chance has put the turn of a class that is new.
func (m *model) joined(i *item) {
	i.class = m.near(i.weight)
	if _, ok := m.turns[i.class]; ok {
		return
	}
	turn := m.order.classes[m.order.slots[i.handle].class].turn
	require.Greater(m, turn, m.now)
	require.LessOrEqual(m, turn, m.now+1/i.class*(1+1e-9))
	m.turns[i.class] = turn
}

// left forgets what nobody is of.
func (m *model) left(class float64) {
	if len(m.those(class, func(*item) bool { return true })) == 0 {
		delete(m.turns, class)
	}
	if len(m.items) == 0 {
		m.now, m.drawn = 0, false
	}
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
		if i.class == class && i.load == load && free(i) {
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
	i := &item{weight: weight, load: load}
	i.handle = m.order.Append(weight, load, i)
	m.joined(i)
	m.requeue(i)
	m.resized(i.class, 1)
}

func (m *model) insert(weight float64, load int64) {
	i := &item{weight: weight, load: load}
	equals := m.bucket(m.near(weight), load)
	i.handle = m.order.Insert(weight, load, i)
	m.joined(i)
	m.placed(i, equals)
	m.resized(i.class, 1)
}

// placed takes over where among its equals chance has put the value.
func (m *model) placed(i *item, equals []*item) {
	m.clock++
	s := m.order.slots[i.handle]
	i.since = s.stamp
	switch {
	case len(equals) == 0:
		require.LessOrEqual(m, i.since, m.clock)
		m.putBack(i)
	case s.next == None:
		require.Equal(m, m.clock, i.since)
		m.items = append(m.items, i)
	default:
		before := m.order.slots[s.next].value
		require.Contains(m, equals, before)
		require.Equal(m, before.since, i.since)
		m.items = slices.Insert(m.items, slices.Index(m.items, before), i)
	}
}

func (m *model) remove(i *item) {
	m.order.Remove(i.handle)
	m.drop(i)
	if !i.suspended {
		m.resized(i.class, -1)
	}
	m.left(i.class)
}

func (m *model) suspend(i *item) {
	if i.suspended {
		m.order.Resume(i.handle, i.load)
		m.drop(i)
		m.requeue(i)
	} else {
		m.order.Suspend(i.handle)
	}
	i.suspended = !i.suspended
	m.resized(i.class, map[bool]float64{true: -1, false: 1}[i.suspended])
}

func (m *model) setLoad(i *item, load int64) {
	i.load = load
	if i.suspended {
		return // it says so when it is back
	}
	m.order.SetLoad(i.handle, load)
	m.drop(i)
	m.requeue(i)
}

func (m *model) setWeight(i *item, weight float64, renew bool) {
	was, wait := i.class, max(0, m.turns[i.class]-m.now)*i.class
	alone := len(m.those(was, func(*item) bool { return true })) == 1
	if renew {
		m.order.Renew(i.handle, weight)
	} else {
		m.order.SetWeight(i.handle, weight)
	}
	i.weight = weight
	place := func() {
		if renew && !i.suspended {
			m.placed(i, m.bucket(i.class, i.load))
		} else {
			m.putBack(i)
		}
	}
	if !alone && m.near(weight) == was {
		if renew {
			m.drop(i)
			place()
		}
		return
	}
	now, drawn := m.now, m.drawn
	m.drop(i)
	if !i.suspended {
		m.resized(was, -1)
	}
	m.left(was)
	m.now, m.drawn = now, drawn
	i.class = m.near(weight)
	_, there := m.turns[i.class]
	switch {
	case there:
	case alone:
		m.turns[i.class] = m.now + wait/i.class
	default:
		m.joined(i)
	}
	place()
	if !i.suspended && there {
		m.resized(i.class, 1)
	}
}

// choose has the value that is next, but for some, take one load more.
func (m *model) choose(forced bool, but ...*item) {
	but = slices.DeleteFunc(but, func(i *item) bool { return i.suspended })
	var hs []Handle
	for _, i := range but {
		hs = append(hs, i.handle)
		i.aside = true
	}
	m.order.Excluding(hs, func() { m.chooseOne(forced || len(but) > 0) })
	for _, i := range but {
		i.aside = false
		m.drop(i)
		m.requeue(i)
	}
}

func (m *model) chooseOne(forced bool) {
	m.requireFirst()
	limit, chance := m.limit(), !m.drawn && !forced
	h := m.order.Next(forced)
	if len(m.those(0, free)) == 0 {
		require.Equal(m, None, h)
		return
	}
	i := m.order.Value(h)
	m.requireNext(i, limit, chance)
	m.chosen(i, forced)
}

// take has the value that Peek returns take one load more, or another one.
func (m *model) take(i *item) {
	m.requireFirst()
	for _, i := range m.items {
		load, weight, ok := m.order.Standing(i.handle)
		require.Equal(m, !i.suspended, ok)
		if ok {
			require.Equal(m, i.load, load)
			require.Equal(m, i.class, weight)
		}
	}
	h := m.order.Peek()
	if len(m.those(0, free)) == 0 {
		require.Equal(m, None, h)
		return
	}
	next := m.order.Value(h)
	m.requireNext(next, m.limit(), !m.drawn)
	if i.suspended {
		i = next
	}
	m.order.Take(i.handle, i != next)
	m.chosen(i, i != next)
}

// chosen takes up that i is chosen.
func (m *model) chosen(i *item, forced bool) {
	if len(m.turns) > 1 {
		if !m.drawn && !forced {
			m.turns[i.class] = min(m.now, m.turns[i.class])
		}
		from, step := max(m.now, m.turns[i.class]), 1/(m.takers(i.class)*i.class)
		if !forced {
			m.now, m.drawn = from, true
		}
		if step < from*fineness { // time begins anew
			for class, turn := range m.turns {
				m.turns[class] = max(0, turn-m.now)
			}
			from, m.now = from-m.now, 0
		}
		m.turns[i.class] = from + step
	}
	m.setLoad(i, i.load+1)
}

// requireFirst compares what is to be chosen next with the best of all.
func (m *model) requireFirst() {
	first := m.order.First()
	if len(m.those(0, free)) == 0 || len(m.turns) > 1 && !m.drawn {
		require.Equal(m, None, first)
		return
	}
	require.NotEqual(m, None, first)
	m.requireNext(m.order.Value(first), m.limit(), false)
}

// requireNext requires that an item is the one to be chosen: its class is below the
// limit and, but for chance, no class below it has an earlier turn. What is near by
// rounding is taken as either.
func (m *model) requireNext(i *item, limit float64, chance bool) {
	const little = 1e-12
	low := slices.MinFunc(m.those(i.class, free), func(a, b *item) int { return int(a.load - b.load) }).load
	require.Same(m, m.bucket(i.class, low)[0], i)
	if len(m.turns) == 1 {
		return
	}
	require.Less(m, m.level(i.class, 0), limit*(1+little))
	for class, turn := range m.turns {
		if !chance && m.level(class, 0) < limit*(1-little) {
			require.LessOrEqual(m, m.turns[i.class], turn+little*(1+turn), "%v before %v", i.class, class)
		}
	}
}

func (m *model) check() {
	require.NoError(m, m.order.Check(func(i *item) Standing { return Standing{i.weight, i.load, i.suspended} }))
	require.Equal(m, m.takers(0), float64(m.order.Len()))
	sum := int64(0)
	for _, i := range m.those(0, free) {
		sum += i.load
	}
	require.Equal(m, sum, m.order.Load())
	m.requireFirst()
	for _, i := range m.items {
		require.Same(m, i, m.order.Value(i.handle))
		require.Equal(m, i.class, m.order.ClassWeight(i.handle))
		if !i.suspended {
			require.Equal(m, i.since, m.order.slots[i.handle].stamp)
		}
		require.InEpsilon(m, 1+m.turns[i.class], 1+m.order.classes[m.order.slots[i.handle].class].turn, 1e-9)
		if i.suspended {
			continue
		}
		higher := slices.ContainsFunc(m.items, func(o *item) bool {
			return o != i && !o.suspended && float64(o.load+1)/o.class > float64(i.load)/i.class
		})
		require.Equal(m, !higher, m.order.IsWorst(i.handle))
		phase := 1.0
		if len(m.turns) > 1 {
			phase = max(leastPhase, (m.turns[i.class]-m.now)*m.takers(i.class)*i.class)
		}
		require.InEpsilon(m, (float64(i.load)+phase)/i.class, m.order.Score(i.handle), 1e-6)
	}
}

// drain removes, from the next one on, until nothing is left.
func (m *model) drain() {
	for len(m.items) > 0 {
		i := m.items[0]
		if first := m.order.First(); first != None {
			i = m.order.Value(first)
		}
		m.remove(i)
		m.requireFirst()
	}
	m.check()
}

// weights are of a few classes with equal scores, some near each other.
var weights = []float64{1, 2, 3, 5, 0.1, 1 << 30, 1<<30 + 1<<14, 1<<30 + 1<<15, 1<<30 + 1<<14 + 1, 7, 1.0 / 3, 12}

// run plays a script: four bytes are one step.
func (m *model) run(script []byte) {
	step := 0
	for ; len(script) >= 4; script = script[4:] {
		step++
		op, arg, weight := script[0], int(script[1]), weights[int(script[2])%len(weights)]
		load := int64(script[3] % 8)
		if script[3] >= 192 {
			load = int64(script[3]-191)*int64(math.Ceil(weight)) - 1 // a whole score
		}
		if len(m.items) < 2 {
			op %= 2
		}
		pick := func() *item { return m.items[arg%len(m.items)] }
		switch op % 16 {
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
			m.setWeight(pick(), weight, step%2 == 0)
		case 8:
			m.choose(false, pick())
		case 9:
			m.choose(false, m.items[0], m.items[len(m.items)-1])
		case 10, 11:
			m.suspend(pick())
		case 12:
			m.choose(true)
		case 13:
			m.take(pick())
		default:
			m.choose(false)
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
		newModel(t).run(script[:min(len(script), 400)])
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
				m := newModel(t)
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
