package state

import "math"

// fan is the number of contestants of one match: eight scores are one cache
// line of most machines.
const fan = 8

// winners finds the class with the lowest score: a tournament tree (D. Knuth,
// The Art of Computer Programming 3, 5.4.1) with class i as leaf i. Between equal
// scores the class whose head waits longest wins.
type winners struct {
	// scores[0] are the leaves', +Inf for a class that is not in use; scores[k][g]
	// is the best of group g on level k−1 and leaf[k][g] where it comes from. The
	// last level is the root.
	scores [][]float64
	leaf   [][]int32
}

// best returns the class with the lowest score. There must be one.
func (w *winners) best() int32 { return w.leaf[len(w.leaf)-1][0] }

// set gives class c its score and plays its matches up to the root again. Where
// the outcome is plain from the score alone, the others are not looked at.
func (w *winners) set(o *order, c int32, score float64) {
	for len(w.scores) == 0 || int(c) >= len(w.scores[0]) {
		w.grow()
	}
	w.scores[0][c] = score
	won, i := c, int(c)
	for k := 1; k < len(w.scores); k++ {
		i /= fan
		had, best := w.leaf[k][i], w.scores[k][i]
		switch {
		case score < best && won == c:
		case score > best && had != c && won == c:
			return
		default:
			won, score = w.play(o, k-1, i)
			if had == won && won != c && best == score {
				return
			}
		}
		w.leaf[k][i], w.scores[k][i] = won, score
	}
}

// play returns the winner of group g on level k and its score.
func (w *winners) play(o *order, k, g int) (int32, float64) {
	group := (*[fan]float64)(w.scores[k][g*fan:])
	best, score := 0, group[0]
	for i := 1; i < fan; i++ {
		if group[i] < score {
			best, score = i, group[i]
		}
	}
	won := w.from(k, g*fan+best)
	if math.IsInf(score, 1) {
		return won, score
	}
	for i := best + 1; i < fan; i++ {
		if group[i] != score {
			continue
		}
		if c := w.from(k, g*fan+i); o.headStamp(c) < o.headStamp(won) {
			won = c
		}
	}
	return won, score
}

// from returns the leaf that stands at place i of level k.
func (w *winners) from(k, i int) int32 {
	if k == 0 {
		return int32(i)
	}
	return w.leaf[k][i]
}

// grow makes room for eight times the leaves: the tree so far becomes the first
// group of one a level higher.
func (w *winners) grow() {
	if len(w.scores) == 0 {
		w.scores = [][]float64{{math.Inf(1)}}
		w.leaf = [][]int32{{0}}
	}
	for k, level := range w.scores {
		size := len(level) * fan
		wide := make([]float64, size)
		for i := copy(wide, level); i < size; i++ {
			wide[i] = math.Inf(1)
		}
		w.scores[k] = wide
		leaf := make([]int32, size)
		copy(leaf, w.leaf[k])
		w.leaf[k] = leaf
	}
	top := len(w.scores) - 1
	w.scores = append(w.scores, []float64{w.scores[top][0]})
	w.leaf = append(w.leaf, []int32{w.from(top, 0)})
}
