package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	header = "package a\n\n"
	counts = `// count adds up what is positive.
func (s *set) count(all []int) (n int) {
	for _, v := range all { // each
		if v > 0 && v != 7 {
			n++
		} else if v == -1 {
			break
		}
	}
	s.last = n
	return n
}

func (s *set) empty() bool {
	if s.last == 0 {
		return true
	}
	return false
}
`
	sets  = "type set struct{ last int }\n\n"
	tests = header + `import "testing"

func TestCount(t *testing.T) {
	var s set
	if s.count([]int{1, 2, 0}) != 2 || s.empty() {
		t.Fatal("wrong")
	}
}
`
)

// module makes a module of the files and returns its root.
func module(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("go.mod", "module example.com/m\n\ngo 1.25\n")
	for name, text := range files {
		write(name, text)
	}
	return root
}

func read(t *testing.T, files map[string]string) *tree {
	tr, err := readTree(module(t, files))
	require.NoError(t, err)
	return tr
}

func every(site) (bool, error) { return true, nil }

func mutants(sites []site) (all []mutant) {
	for _, s := range sites {
		all = append(all, s.mutant)
	}
	return all
}

func TestOperators(t *testing.T) {
	var got []string
	for _, s := range read(t, map[string]string{"a/a.go": header + sets + counts}).sites {
		got = append(got, s.Op+": "+s.Old+" to "+s.New)
	}
	require.ElementsMatch(t, []string{
		"negate: v > 0 && v != 7 to !(v > 0 && v != 7)", "compare: > to >=", "logic: && to ||", "compare: != to ==",
		"integer: 0 to 1", "integer: 7 to 8", "delete: n++ to ", "compare: == to !=", "integer: 1 to 2", "loop: break to continue",
		"delete: s.last = n to ", "compare: == to !=", "integer: 0 to 1", "bool: true to false", "bool: false to true",
	}, got)
}

func TestDrawing(t *testing.T) {
	files := map[string]string{
		"a/a.go": header + sets + counts, "a/a_test.go": tests, "a/b/b.go": header + sets + counts + sets,
		"a/atest/kit.go": header + counts, "interop/p/p.go": header + counts,
	}
	draw := func(seed uint64, builds func(site) (bool, error)) []mutant {
		drawn, err := read(t, files).draw(seed, 10, builds)
		require.NoError(t, err)
		return mutants(drawn)
	}
	first := draw(7, every)
	require.Len(t, first, 10)
	require.Equal(t, first, draw(7, every))
	require.NotEqual(t, first, draw(8, every))
	for _, m := range first {
		require.Contains(t, []string{"a", "a/b"}, m.Dir)
	}
	require.Len(t, draw(7, func(s site) (bool, error) { return s.Op != "delete", nil }), 10)
	require.False(t, slices.ContainsFunc(draw(7, func(s site) (bool, error) { return s.Op != "delete", nil }),
		func(m mutant) bool { return m.Op == "delete" }))
	require.Equal(t, map[string]int{"a": 7, "b": 2, "c": 1}, share(map[string]int{"a": 70, "b": 20, "c": 14}, 10))
}

// A mutant is found where its function went, and nowhere else.
func TestFinding(t *testing.T) {
	all := mutants(read(t, map[string]string{"a/a.go": header + sets + counts}).sites)
	for name, files := range map[string]map[string]string{
		"where it was":              {"a/a.go": header + sets + counts},
		"further down":              {"a/a.go": header + "func f() {}\n\n" + sets + counts},
		"in another file":           {"a/a.go": header + sets, "a/c.go": header + counts},
		"in a package below":        {"a/a.go": header, "a/internal/b/b.go": header + sets + counts},
		"beside one of that name":   {"a/a.go": header + sets + counts, "a/b/b.go": header + sets + counts},
		"in a function of new name": {"a/a.go": header + sets + "func f()" + counts[len("// count adds up what is positive.\nfunc (s *set) count(all []int)"):]},
	} {
		tr := read(t, files)
		for _, m := range all {
			s, ok := tr.find(m)
			require.True(t, ok, "%s: %v", name, m)
			require.Equal(t, m.Line, s.Line)
			src, err := s.mutated()
			require.NoError(t, err)
			require.NotEqual(t, files[s.Dir+"/"+s.File], string(src))
		}
	}
	for name, files := range map[string]map[string]string{
		"in no package below": {"b/b.go": header + sets + counts},
		"in two":              {"a/b/b.go": header + sets + counts, "a/c/c.go": header + sets + counts},
		"in a kit":            {"a/atest/b.go": header + sets + counts},
	} {
		for _, m := range all {
			_, ok := read(t, files).find(m)
			require.False(t, ok, "%s: %v", name, m)
		}
	}
}

func TestRunning(t *testing.T) {
	t.Chdir(module(t, map[string]string{"a/a.go": header + sets + counts, "a/a_test.go": tests}))
	tr, err := readTree(".")
	require.NoError(t, err)
	pick := func(line, op string) mutant {
		i := slices.IndexFunc(tr.sites, func(s site) bool { return s.Line == line && s.Op == op })
		return tr.sites[i].mutant
	}
	lost := pick("n++", "delete")
	lost.Line = "n--"
	list := []mutant{pick("n++", "delete"), pick("if v > 0 && v != 7 {", "integer"), pick("return true", "bool"), lost}
	r := &runner{tree: tr, timeout: time.Minute, results: json.NewEncoder(io.Discard)}
	all, err := r.run(t.Context(), list, []result{{mutant: list[2], Result: killed}}, 2)
	require.NoError(t, err)
	got := map[mutant]string{}
	for _, res := range all {
		got[res.mutant] = res.Result + res.By
	}
	require.Equal(t, map[mutant]string{list[0]: "killeda", list[1]: "killeda", list[2]: "killed", lost: gone}, got)
	res, err := r.one(t.Context(), list[2])
	require.NoError(t, err)
	require.Equal(t, survived, res.Result, "it runs nothing that has a result")

	r.timeout = time.Nanosecond
	res, err = r.one(t.Context(), list[0])
	require.NoError(t, err)
	require.True(t, res.Result == killed && res.Timeout, res)
	require.ErrorContains(t, r.green(t.Context(), list[:1]), "fails without a mutant")
}

// What a test started ends with it: the pipe has no writer left.
func TestEnding(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() {
		_, failed, _ := quietly(ctx, ".", "sh", "-c", `exec 3>"$0"; sleep 600 & sleep 600`, pipe)
		ended <- failed
	}()
	f, err := os.Open(pipe) // waits for the writer
	require.NoError(t, err)
	defer f.Close()
	cancel()
	require.True(t, <-ended)
	_, err = io.ReadAll(f)
	require.NoError(t, err)
}
