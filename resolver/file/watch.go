package file

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// watch announces changes of what a path leads to. It is for one goroutine at a
// time and must be closed.
type watch struct {
	path     string
	watcher  *fsnotify.Watcher   // nil if there is none
	events   chan fsnotify.Event // nil without a watcher: never ready
	overflow chan struct{}       // holds that events may be lost
	drained  chan struct{}       // closed when the watcher's errors have ended
	paths    []string            // names that concern the path
	dirs     []string            // where they are: what is watched
	warned   bool
}

// newWatch returns a watch that announces nothing before follow is called.
func newWatch(path string) *watch {
	w := &watch{path: path, overflow: make(chan struct{}, 1), drained: make(chan struct{})}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.warn(err)
		return w
	}
	w.watcher, w.events = watcher, watcher.Events
	go w.drain()
	return w
}

// drain takes the watcher's errors whenever they come: it sends them with the
// lock held that follow needs.
func (w *watch) drain() {
	defer close(w.drained)
	for range w.watcher.Errors {
		select {
		case w.overflow <- struct{}{}:
		default:
		}
	}
}

// follow finds out anew which names concern the path and watches them.
func (w *watch) follow() {
	if w.watcher == nil {
		return
	}
	old := w.dirs
	w.paths, w.dirs = watchPaths(w.path), nil
	for _, path := range w.paths {
		if dir := filepath.Dir(path); !slices.Contains(w.dirs, dir) {
			w.dirs = append(w.dirs, dir)
		}
	}
	for _, dir := range old {
		if !slices.Contains(w.dirs, dir) {
			// It fails if the directory is gone, and with it the watch.
			_ = w.watcher.Remove(dir)
		}
	}
	for _, dir := range w.dirs {
		// Also those of before: another directory may have taken the name.
		if err := w.watcher.Add(dir); err != nil {
			w.warn(err)
		}
	}
}

// isAbout reports whether an event is about the path: others happen in the same
// directories.
func (w *watch) isAbout(e fsnotify.Event) bool {
	name := filepath.Clean(e.Name)
	return slices.Contains(w.paths, name) || slices.Contains(w.dirs, name)
}

// warn says once that changes may be seen late.
func (w *watch) warn(err error) {
	if !w.warned {
		logger.Warningf("%s: %s: changes may be seen %v late: %v", Scheme, w.path, defaultIntervals.poll, err)
	}
	w.warned = true
}

// close ends the watch and what it has started.
func (w *watch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
		<-w.drained
	}
}

// maxLinks is how many symbolic links are followed, as in Linux.
const maxLinks = 40

// watchPaths returns the names whose change can change what an absolute path leads
// to: the file's own, those of the symbolic links on the way, or of what is
// missing.
func watchPaths(path string) []string {
	var paths []string
	separator := string(filepath.Separator)
	split := func(s string) []string { return strings.Split(s, separator) }
	root := filepath.VolumeName(path) + separator
	at, rest, links := root, split(strings.TrimPrefix(path, root)), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := os.Lstat(next)
		if err != nil {
			return append(paths, next)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		paths = append(paths, next)
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return paths
		}
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + separator
		}
		rest = append(split(strings.TrimPrefix(to, filepath.VolumeName(to))), rest...)
	}
	return append(paths, at)
}
