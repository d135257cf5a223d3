package main

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
)

// draw draws n sites from the packages in proportion to their lines of code. A package with fewer sites gives all. A
// site whose mutant does not build is drawn anew. What one package gives depends on the seed, its share and itself.
func (t *tree) draw(seed uint64, n int, builds func(site) (bool, error)) ([]site, error) {
	byDir := map[string][]site{}
	for _, s := range t.sites {
		byDir[s.Dir] = append(byDir[s.Dir], s)
	}
	var drawn []site
	shares := share(t.lines, n)
	for _, dir := range slices.Sorted(maps.Keys(shares)) {
		name := fnv.New64a()
		name.Write([]byte(dir))
		random := rand.New(rand.NewPCG(seed, name.Sum64()))
		sites := byDir[dir]
		random.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
		var took []site
		for _, s := range sites {
			if len(took) == shares[dir] {
				break
			}
			ok, err := builds(s)
			if err != nil {
				return nil, err
			}
			if ok {
				took = append(took, s)
			}
		}
		slices.SortFunc(took, compareSites)
		drawn = append(drawn, took...)
	}
	return drawn, nil
}

// share splits n in proportion to the lines; what is left goes to the largest remainders.
func share(lines map[string]int, n int) map[string]int {
	total := 0
	for _, l := range lines {
		total += l
	}
	shares := map[string]int{}
	left := n
	for dir, l := range lines {
		shares[dir] = n * l / total
		left -= shares[dir]
	}
	dirs := slices.Sorted(maps.Keys(lines))
	slices.SortStableFunc(dirs, func(a, b string) int { return n*lines[b]%total - n*lines[a]%total })
	for _, dir := range dirs[:left] {
		shares[dir]++
	}
	return shares
}
