package file

import (
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
)

// watch announces changes of what a path leads to. It is for one goroutine at a
// time and must be closed.
type watch struct {
	path    string
	watcher *fsnotify.Watcher   // nil if there is none
	events  chan fsnotify.Event // nil without a watcher: never ready
	lost    chan struct{}       // holds that events may be lost
	drained chan struct{}       // closed when the watcher's errors have ended
	places  []string            // names that concern the path
	dirs    []string            // where they are: what is watched
	warned  bool
}

// newWatch returns a watch that announces nothing before follow is called.
func newWatch(path string) *watch {
	w := &watch{path: path, lost: make(chan struct{}, 1), drained: make(chan struct{})}
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
		case w.lost <- struct{}{}:
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
	w.places, w.dirs = placesOf(w.path), nil
	for _, place := range w.places {
		if dir := filepath.Dir(place); !slices.Contains(w.dirs, dir) {
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

// concerns reports whether an event is about the path: others happen in the same
// directories.
func (w *watch) concerns(e fsnotify.Event) bool {
	name := filepath.Clean(e.Name)
	return slices.Contains(w.places, name) || slices.Contains(w.dirs, name)
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
