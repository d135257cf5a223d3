package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

// The file may be replaced, written in place, removed and made again.
func TestFileChanges(t *testing.T) {
	b := newFollowerEnv(t)
	b.waitForErrors(1, noFile)
	b.write(fileA)
	b.waitForList(nodeA)
	b.put(fileB)
	b.waitForList(nodeB)
	b.write(fileAB)
	b.waitForList(nodeA, nodeB)
	b.write("nodes: []\n")
	b.waitForList()
	require.NotNil(t, b.state().Endpoints, "an empty list is one")
	b.write(fileA)
	b.waitForList(nodeA)
	updates := b.updates()
	require.NoError(t, os.Remove(b.path))
	b.waitForErrors(2, noFile)
	b.put(fileA)
	b.wait("the list again", func() bool { return b.updates() == updates+1 })
	require.NoError(t, os.Truncate(b.path, 0))
	b.wait("the error", func() bool { return strings.HasSuffix(b.errors()[len(b.errors())-1], emptyFile) })
	b.write(fileA)
	b.waitForList(nodeA)
}

// A directory may come later than the resolver, and with it the file.
func TestDirectoryAppears(t *testing.T) {
	b := newFollowerEnv(t, "etc", "app", "conf")
	b.waitForErrors(1, noFile)
	require.NoError(t, os.MkdirAll(filepath.Dir(b.path), 0o700))
	b.write(fileA)
	b.waitForList(nodeA)
	// Another directory takes its name.
	dir := filepath.Dir(b.path)
	require.NoError(t, os.Rename(dir, dir+".old"))
	b.waitForErrors(2, noFile)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	b.write(fileB)
	b.waitForList(nodeB)
	require.NoError(t, os.RemoveAll(filepath.Dir(dir)))
	b.waitForErrors(3, noFile)
	// A file takes the name of a directory.
	require.NoError(t, os.WriteFile(filepath.Dir(dir), nil, 0o600))
	b.waitForErrors(4, ": not a directory")
	require.NoError(t, os.Remove(filepath.Dir(dir)))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	b.put(fileA)
	b.waitForList(nodeA)
}

// A mounted ConfigMap: nodes.yaml -> ..data/nodes.yaml, ..data -> ..1, where
// ..data is swapped by a rename and the old directory removed.
func TestConfigMap(t *testing.T) {
	b := newFollowerEnv(t)
	b.waitForErrors(1, noFile)
	dir := filepath.Dir(b.path)
	version := 0
	swap := func(content string) {
		version++
		name := fmt.Sprintf("..%d", version)
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "nodes.yaml"), []byte(content), 0o600))
		require.NoError(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..%d", version-1))))
	}
	swap(fileA)
	require.NoError(t, os.Symlink("..data/nodes.yaml", b.path))
	b.waitForList(nodeA)
	swap(fileB)
	b.waitForList(nodeB)
	swap(fileAB)
	b.waitForList(nodeA, nodeB)
	updates := b.updates()
	swap(fileAB)
	b.waitForReread()
	require.Equal(t, updates, b.updates(), "the same contents are no news")
	require.Len(t, b.errors(), 1, "the file was missing only at the start")
}

// The directories that the path leads through are swapped, too.
func TestSwappedDirectory(t *testing.T) {
	b := newFollowerEnv(t, "current", "conf")
	root := filepath.Dir(filepath.Dir(filepath.Dir(b.path)))
	for name, content := range map[string]string{"v1": fileA, "v2": fileB} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, name, "conf"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name, "conf", "nodes.yaml"), []byte(content), 0o600))
	}
	current := filepath.Join(root, "current")
	require.NoError(t, os.Symlink(filepath.Join(root, "v1"), current))
	b.waitForList(nodeA)
	require.NoError(t, os.Symlink("x/../v2/.", current+".next"))
	require.NoError(t, os.Mkdir(filepath.Join(root, "x"), 0o700))
	require.NoError(t, os.Rename(current+".next", current))
	b.waitForList(nodeB)
	require.NoError(t, os.WriteFile(filepath.Join(root, "v2", "conf", "nodes.yaml"), []byte(fileAB), 0o600))
	b.waitForList(nodeA, nodeB)
}

// gRPC asks for the file, or it is polled, where nobody tells of changes.
func TestWithoutWatcher(t *testing.T) {
	unwatched := func(t *testing.T, poll time.Duration) *followerEnv {
		b := &followerEnv{env: newEnv(t), recordingConn: &recordingConn{}}
		b.write(fileA)
		b.resolver = newFollower(b.path, b.recordingConn, resolver.BuildOptions{})
		b.resolver.intervals = intervals{quiet: time.Millisecond, burst: time.Millisecond, poll: poll}
		b.resolver.start(&watch{path: b.path})
		t.Cleanup(b.resolver.Close)
		b.waitForList(nodeA)
		b.write(fileB)
		return b
	}
	t.Run("poll", func(t *testing.T) {
		unwatched(t, 10*time.Millisecond).waitForList(nodeB)
	})
	t.Run("ResolveNow", func(t *testing.T) {
		b := unwatched(t, time.Hour)
		b.resolver.ResolveNow(resolver.ResolveNowOptions{})
		b.waitForList(nodeB)
	})
}

// Other names in the directory are none of the resolver's business.
func TestOtherFiles(t *testing.T) {
	b := newFollowerEnv(t)
	b.put(fileA)
	b.waitForList(nodeA)
	w := newWatch(b.path)
	defer w.close()
	w.follow()
	for i := range 20 {
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s.%d", b.path, i), nil, 0o600))
	}
	b.write(fileB)
	for {
		e := <-w.events
		if w.isAbout(e) {
			require.Equal(t, b.path, e.Name)
			return
		}
		require.True(t, strings.HasPrefix(e.Name, b.path+"."), e)
	}
}

// A watch that cannot be had costs time and nothing else.
func TestWatchFails(t *testing.T) {
	b := newFollowerEnv(t)
	w := newWatch(b.path)
	w.follow()
	require.False(t, w.warned)
	w.close()
	w.follow()
	require.True(t, w.warned)
	w.close()
}

// When another directory takes the place of the watched one, unseen, the next
// look at it is enough.
func TestWatchFollowsDirectory(t *testing.T) {
	b := newFollowerEnv(t, "app", "conf")
	conf := filepath.Dir(b.path)
	require.NoError(t, os.MkdirAll(conf, 0o700))
	w := newWatch(b.path)
	defer w.close()
	w.follow()
	require.NoError(t, os.Rename(filepath.Dir(conf), filepath.Dir(conf)+".old"))
	require.NoError(t, os.MkdirAll(conf, 0o700))
	w.follow()
	b.write(fileA)
	b.wait("event", func() bool {
		select {
		case e := <-w.events:
			return w.isAbout(e)
		default:
			return false
		}
	})
}

// The watcher sends errors with a lock held that follow needs; so they are taken
// while nobody waits for events.
func TestWatcherErrorsAreTakenAtAnyTime(t *testing.T) {
	w := newWatch(filepath.Join(t.TempDir(), "nodes.yaml"))
	require.NotNil(t, w.watcher)
	w.follow()
	for range 3 {
		select {
		case w.watcher.Errors <- os.ErrClosed:
		case <-time.After(time.Minute):
			t.Fatal("the watcher cannot send its error")
		}
	}
	<-w.overflow
	w.follow()
	w.close()
}
