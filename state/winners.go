package state

import "math"

// fan is the number of contestants of one match: eight scores are one cache
// line of most machines.
const fan = 8

// winners finds the class with the lowest score: a tournament tree (D. Knuth,
// The Art of Computer Programming 3, 5.4.1) with the classes as its leaves.
// Between equal scores the class whose head waits longest wins.
type winners struct {
	classes []*class // class i is leaf i

	// scores[0] are the leaves', +Inf without one; scores[k][g] is the best of
	// group g on level k−1 and leaf[k][g] where it comes from. The last level is
	// the root.
	scores [][]float64
	leaf   [][]int32
}

func (w *winners) add(c *class) {
	c.slot = len(w.classes)
	w.classes = append(w.classes, c)
	if len(w.scores) == 0 || len(w.classes) > len(w.scores[0]) {
		w.grow()
		return
	}
	if c.slot == 1 { // the first one competes from now on
		w.fix(w.classes[0])
	}
	w.fix(c)
}

// drop takes c out; the last leaf moves to its place.
func (w *winners) drop(c *class) {
	last := len(w.classes) - 1
	moved := w.classes[last]
	w.classes[c.slot] = moved
	w.classes[last] = nil
	w.classes = w.classes[:last]
	w.scores[0][last] = math.Inf(1)
	if moved != c {
		moved.slot = c.slot
		w.scores[0][c.slot] = moved.score()
	}
	w.climb(last)
	if moved != c {
		w.climb(c.slot)
	}
}

// best returns the class with the lowest score, nil without one.
func (w *winners) best() *class {
	switch len(w.classes) {
	case 0:
		return nil
	case 1:
		return w.classes[0] // nobody to beat: the tree is not kept in step
	}
	return w.classes[w.leaf[len(w.leaf)-1][0]]
}

// fix takes up a change of c's score or head.
func (w *winners) fix(c *class) {
	if len(w.classes) < 2 {
		return
	}
	w.scores[0][c.slot] = c.score()
	w.climb(c.slot)
}

// climb plays the matches from leaf i to the root again. Where the outcome is
// plain from the score alone, the other contestants are not looked at.
func (w *winners) climb(i int) {
	won, score := int32(i), w.scores[0][i]
	from := won
	for k := 1; k < len(w.scores); k++ {
		i /= fan
		had, best := w.leaf[k][i], w.scores[k][i]
		switch {
		case score < best && won == from:
		case score > best && had != from && won == from:
			return
		default:
			won, score = w.play(k-1, i)
			if had == won && won != from && best == score {
				return
			}
		}
		w.leaf[k][i], w.scores[k][i] = won, score
	}
}

// play returns the winner of group g on level k and its score.
func (w *winners) play(k, g int) (int32, float64) {
	group := (*[fan]float64)(w.scores[k][g*fan:])
	best, score := 0, group[0]
	for i := 1; i < fan; i++ {
		if group[i] < score {
			best, score = i, group[i]
		}
	}
	for i := best + 1; i < fan; i++ {
		if group[i] == score && w.waitsLonger(k, g*fan+i, g*fan+best) {
			best = i
		}
	}
	return w.from(k, g*fan+best), score
}

// from returns the leaf that stands at place i of level k.
func (w *winners) from(k, i int) int32 {
	if k == 0 {
		return int32(i)
	}
	return w.leaf[k][i]
}

func (w *winners) waitsLonger(k, i, j int) bool {
	if math.IsInf(w.scores[k][i], 1) {
		return false
	}
	a, b := w.classes[w.from(k, i)], w.classes[w.from(k, j)]
	return a.low.head.stamp < b.low.head.stamp
}

// grow makes room for eight times the leaves and plays all matches.
func (w *winners) grow() {
	size := fan
	if len(w.scores) > 0 {
		size = len(w.scores[0]) * fan
	}
	w.scores, w.leaf = nil, nil
	for n := size; ; n /= fan {
		level := make([]float64, n)
		for i := range level {
			level[i] = math.Inf(1)
		}
		w.scores = append(w.scores, level)
		w.leaf = append(w.leaf, make([]int32, n))
		if n == 1 {
			break
		}
	}
	for i, c := range w.classes {
		w.scores[0][i] = c.score()
	}
	for k := 1; k < len(w.scores); k++ {
		for g := range w.scores[k] {
			w.leaf[k][g], w.scores[k][g] = w.play(k-1, g)
		}
	}
}
