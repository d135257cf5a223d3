package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// What became of a mutant.
const (
	killed   = "killed"
	survived = "survived"
	gone     = "gone" // it is found no more, or does not build
)

type result struct {
	mutant
	Result  string  `json:"result"`
	By      string  `json:"by,omitempty"` // the package whose tests killed it
	Why     string  `json:"why,omitempty"`
	Timeout bool    `json:"timeout,omitempty"`
	Seconds float64 `json:"seconds"`
}

type runner struct {
	tree    *tree
	short   bool
	timeout time.Duration

	mu      sync.Mutex
	results *json.Encoder
}

// run runs the mutants that before does not hold, some at a time, and returns the results of all.
func (r *runner) run(ctx context.Context, mutants []mutant, before []result, jobs int) ([]result, error) {
	known := map[mutant]result{}
	for _, b := range before {
		known[b.mutant] = b
	}
	var all []result
	var left []mutant
	for _, m := range mutants {
		if b, ok := known[m]; ok {
			all = append(all, b)
		} else {
			left = append(left, m)
		}
	}
	if err := r.green(ctx, left); err != nil {
		return all, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan mutant)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for m := range next {
				res, err := r.one(ctx, m)
				if err == nil {
					err = r.keep(res, &all)
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, m := range left {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	workers.Wait()
	return all, context.Cause(ctx)
}

func (r *runner) keep(res result, all *[]result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	*all = append(*all, res)
	return r.results.Encode(res)
}

// green runs the tests without a mutant: where they fail anyway, a failure says nothing.
func (r *runner) green(ctx context.Context, mutants []mutant) error {
	dirs := map[string]bool{}
	for _, m := range mutants {
		if s, ok := r.tree.find(m); ok {
			for _, dir := range testers(m, s) {
				dirs[dir] = true
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		v, err := r.test(ctx, dir, "")
		if err != nil {
			return err
		}
		if v.failed || v.unbuilt {
			return fmt.Errorf("%s fails without a mutant: %s", dir, v.why)
		}
		fmt.Fprintf(os.Stderr, "%s passes without a mutant in %.1f s\n", dir, v.took.Seconds())
	}
	return nil
}

// testers returns the packages whose tests have to notice a mutant: the one it stands in and the one it was drawn in.
func testers(m mutant, s site) []string { return slices.Compact([]string{s.Dir, m.Dir}) }

func (r *runner) one(ctx context.Context, m mutant) (result, error) {
	res := result{mutant: m, Result: gone}
	s, ok := r.tree.find(m)
	if !ok {
		return res, nil
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return res, err
	}
	defer os.RemoveAll(dir)
	overlay, err := s.overlay(dir)
	if err != nil {
		return res, err
	}
	start := time.Now()
	res.Result = survived
	for _, dir := range testers(m, s) {
		v, err := r.test(ctx, dir, overlay)
		if err != nil {
			return res, err
		}
		res.Seconds = float64(time.Since(start).Milliseconds()) / 1000
		if v.unbuilt {
			res.Result, res.Why = gone, v.why
			return res, nil
		}
		if v.failed {
			res.Result, res.By, res.Why, res.Timeout = killed, dir, v.why, v.timeout
			return res, nil
		}
	}
	return res, nil
}

// overlay writes the changed file and the list that the go command reads it by into dir.
func (s site) overlay(dir string) (string, error) {
	src, err := s.mutated()
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(s.path)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(s.path))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, errors.Join(os.WriteFile(changed, src, 0o644), os.WriteFile(overlay, list, 0o644))
}

// totals tells what became of the mutants, by package and together.
func totals(all []result, listed int) string {
	byDir := map[string][]result{}
	for _, r := range all {
		byDir[r.Dir] = append(byDir[r.Dir], r)
	}
	var b strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		fmt.Fprintf(&b, "%s: %s\n", dir, tally(byDir[dir]))
	}
	fmt.Fprintf(&b, "total: %s; %d not run\n", tally(all), listed-len(all))
	return b.String()
}

func tally(all []result) string {
	n := map[string]int{}
	timeouts := 0
	for _, r := range all {
		n[r.Result]++
		if r.Timeout {
			timeouts++
		}
	}
	return fmt.Sprintf("%d mutants, %d killed (%d by time), %d survived, %d gone",
		len(all), n[killed], timeouts, n[survived], n[gone])
}
