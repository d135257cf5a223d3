package order

import "math"

// fan is the number of classes or groups that one match is between: eight scores
// are one cache line of most machines.
const fan = 8

// classTree finds the class whose head is to be chosen next: a tournament tree (D.
// Knuth, The Art of Computer Programming 3, 5.4.1) with class i as leaf i. Where
// there are many, a heap is slower: where it goes next depends on what it has
// compared.
type classTree struct {
	size int   // classes in it
	best int32 // the winner, when there is one

	// scores[0] are the leaves', +Inf for a class that is not there; scores[k][g]
	// is the best of group g on level k−1 and winners[k][g] the class that has it.
	// The last level is the root.
	scores  [][]float64
	winners [][]int32
	stamps  []uint64 // by class
}

// classKey is what a class is compared by. Of equal scores the older stamp, which
// is its head's, wins.
type classKey struct {
	score float64
	stamp uint64
}

// add makes room for class c, which has no score yet.
func (t *classTree) add(c int32) {
	for int(c) >= len(t.stamps) {
		t.grow()
	}
	if t.size++; t.size == 1 {
		t.best = c
	}
}

// remove takes class c out.
func (t *classTree) remove(c int32) {
	t.size--
	t.set(c, classKey{score: math.Inf(1)})
}

// set gives class c its key and plays its matches up to the root again. Where the
// outcome is plain from the score alone, the others are not looked at.
func (t *classTree) set(c int32, key classKey) {
	t.stamps[c] = key.stamp
	t.scores[0][c] = key.score
	won, score, i := c, key.score, int(c)
	for k := 1; k < len(t.scores); k++ {
		i /= fan
		had, best := t.winners[k][i], t.scores[k][i]
		switch {
		case score < best && won == c:
		case score > best && had != c && won == c:
			return
		default:
			won, score = t.play(k-1, i)
			if had == won && won != c {
				return
			}
		}
		t.winners[k][i], t.scores[k][i] = won, score
	}
	t.best = won
}

// play returns the winner of group g on level k and its score.
func (t *classTree) play(k, g int) (int32, float64) {
	group := (*[fan]float64)(t.scores[k][g*fan:])
	best, score := 0, group[0]
	for i := 1; i < fan; i++ {
		if group[i] < score {
			best, score = i, group[i]
		}
	}
	won := t.from(k, g*fan+best)
	if math.IsInf(score, 1) {
		return won, score
	}
	for i := best + 1; i < fan; i++ {
		if group[i] != score {
			continue
		}
		if c := t.from(k, g*fan+i); t.stamps[c] < t.stamps[won] {
			won = c
		}
	}
	return won, score
}

// from returns the class that stands at place i of level k.
func (t *classTree) from(k, i int) int32 {
	if k == 0 {
		return int32(i)
	}
	return t.winners[k][i]
}

// grow makes room for eight times the classes: the tree so far becomes the first
// group of one a level higher.
func (t *classTree) grow() {
	if len(t.scores) == 0 {
		t.scores = [][]float64{{math.Inf(1)}}
		t.winners = [][]int32{{0}}
	}
	for k, level := range t.scores {
		size := len(level) * fan
		wide := make([]float64, size)
		for i := copy(wide, level); i < size; i++ {
			wide[i] = math.Inf(1)
		}
		t.scores[k] = wide
		t.winners[k] = append(make([]int32, 0, size), t.winners[k]...)[:size]
	}
	t.stamps = append(make([]uint64, 0, len(t.scores[0])), t.stamps...)[:len(t.scores[0])]
	top := len(t.scores) - 1
	t.scores = append(t.scores, []float64{t.scores[top][0]})
	t.winners = append(t.winners, []int32{t.from(top, 0)})
}
