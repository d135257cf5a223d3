package main

import (
	"bytes"
	"cmp"
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutant names a change by the text it is made in, so that it can be found again when lines have moved.
type mutant struct {
	Dir   string `json:"dir"` // of the package, from the module's root
	File  string `json:"file"`
	Func  string `json:"func"`  // a method as Receiver.Name
	Line  string `json:"line"`  // the line that the change begins in, without space around it and without comment
	Index int    `json:"index"` // how many lines of the function before it read the same
	Op    string `json:"op"`
	Site  int    `json:"site"` // how many places of the operator the line has before this one
	Old   string `json:"old"`  // on one line
	New   string `json:"new"`
}

// site is where a mutant stands in the tree today.
type site struct {
	mutant
	path     string
	from, to int // offsets in the file
	text     string
}

// mutated returns the file with the mutant in it.
func (s site) mutated() ([]byte, error) {
	src, err := os.ReadFile(s.path)
	if err != nil {
		return nil, err
	}
	return slices.Concat(src[:s.from], []byte(s.text), src[s.to:]), nil
}

// tree is the product: all sites of its packages, in source order, and how many lines of code each package has.
type tree struct {
	sites []site
	lines map[string]int
}

// readTree reads the packages of the module at root that are the product.
func readTree(root string) (*tree, error) {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return nil, err
	}
	t := &tree{lines: map[string]int{}}
	return t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if dir := filepath.ToSlash(rel); product(dir) {
			return t.readPackage(root, dir)
		}
		return fs.SkipDir
	})
}

// product reports whether a directory may hold packages of the product: no programs, no kits for tests, no tools.
func product(dir string) bool {
	switch base := path.Base(dir); base {
	case "testdata", "docs", "examples", "interop", "integration", "benchtable":
		return false
	default:
		return !strings.HasPrefix(base, ".") && !strings.HasSuffix(base, "test")
	}
}

func (t *tree) readPackage(root, dir string) error {
	pkg, err := build.ImportDir(filepath.Join(root, dir), 0)
	if none := (*build.NoGoError)(nil); errors.As(err, &none) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range pkg.GoFiles {
		if err := t.readFile(dir, filepath.Join(pkg.Dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) readFile(dir, path string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments)
	if err != nil {
		return err
	}
	offset := func(p token.Pos) int { return fset.PositionFor(p, false).Offset }
	line := func(p token.Pos) int { return fset.PositionFor(p, false).Line - 1 }
	text := func(n ast.Node) string { return string(src[offset(n.Pos()):offset(n.End())]) }
	lines := codeLines(src, file, offset)
	for _, l := range lines {
		if l != "" {
			t.lines[dir]++
		}
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		type place struct {
			line int
			op   string
		}
		seen := map[place]int{}
		for _, e := range edits(fn, text) {
			at := place{line(e.from), e.op}
			m := mutant{
				Dir: dir, File: filepath.Base(path), Func: funcName(fn), Line: lines[at.line], Op: e.op, Site: seen[at],
				Index: count(lines[line(fn.Pos()):at.line], lines[at.line]),
				New:   oneLine(e.text),
			}
			seen[at]++
			s := site{mutant: m, path: path, from: offset(e.from), to: offset(e.to), text: e.text}
			s.Old = oneLine(string(src[s.from:s.to]))
			t.sites = append(t.sites, s)
		}
	}
	return nil
}

// codeLines returns the lines of a file without comments and the space around them.
func codeLines(src []byte, file *ast.File, offset func(token.Pos) int) []string {
	src = bytes.Clone(src)
	for _, group := range file.Comments {
		for _, c := range group.List {
			for i := offset(c.Pos()); i < offset(c.End()); i++ {
				if src[i] != '\n' {
					src[i] = ' '
				}
			}
		}
	}
	lines := strings.Split(string(src), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return lines
}

func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch u := t.(type) {
		case *ast.StarExpr:
			t = u.X
		case *ast.IndexExpr:
			t = u.X
		case *ast.IndexListExpr:
			t = u.X
		case *ast.Ident:
			return u.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

func count(lines []string, line string) (n int) {
	for _, l := range lines {
		if l == line {
			n++
		}
	}
	return n
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// find returns where a mutant stands now: in its function, also in another file; else in a function of that name in a
// package below; else at the one line that reads the same, in its package or below.
func (t *tree) find(m mutant) (site, bool) {
	var below []site
	for _, s := range t.sites {
		if s.Dir != m.Dir && !strings.HasPrefix(s.Dir, m.Dir+"/") {
			continue
		}
		if s.Line == m.Line && s.Op == m.Op && s.Site == m.Site && s.Old == m.Old && s.New == m.New {
			below = append(below, s)
		}
	}
	there := func(s site) bool { return s.Func == m.Func && s.Index == m.Index }
	for _, is := range []func(site) bool{
		func(s site) bool { return there(s) && s.Dir == m.Dir && s.File == m.File },
		func(s site) bool { return there(s) && s.Dir == m.Dir },
		there,
		func(site) bool { return true },
	} {
		found := slices.DeleteFunc(slices.Clone(below), func(s site) bool { return !is(s) })
		if len(found) == 1 {
			return found[0], true
		}
	}
	return site{}, false
}

func compareSites(a, b site) int {
	return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.from, b.from))
}
