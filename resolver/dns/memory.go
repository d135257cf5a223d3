package dns

// memory is the last good answer to one question. It is not safe for concurrent
// use.
type memory[T any] struct {
	good   []T
	misses int // answers in a row that there are no such records
}

// settle takes what came of asking again and returns what to use: a failure
// changes nothing, and a missing answer nothing until there were emptyAfter in a
// row. It also reports whether that is all there is: not when it failed or is
// not believed yet.
func (m *memory[T]) settle(got []T, err error, emptyAfter int) (use []T, settled bool) {
	if err == nil {
		m.good, m.misses = got, 0
		return got, true
	}
	if !missing(err) {
		m.misses = 0
		return m.good, false
	}
	if m.misses < emptyAfter {
		m.misses++
	}
	if m.misses < emptyAfter {
		return m.good, false
	}
	m.good = nil
	return nil, true
}
