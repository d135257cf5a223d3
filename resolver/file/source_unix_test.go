//go:build unix

package file

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/resolver"
)

// A FIFO that nobody writes to blocks whoever opens it as a file. It may take
// the place of a regular one after a look at it.
func TestFIFO(t *testing.T) {
	b := newFollowerEnv(t)
	b.waitForErrors(1, noFile)
	require.NoError(t, syscall.Mkfifo(b.path, 0o600))
	b.waitForErrors(2, ": want a regular file")
	_, err := open(b.path)
	require.EqualError(t, err, "want a regular file")
}

// Close does not wait for a file system that does not answer. Whoever does wait
// for it closes the watch in the end.
func TestCloseWhileReadingHangs(t *testing.T) {
	e := newEnv(t)
	e.write(fileA)
	began, answer := make(chan struct{}), make(chan struct{})
	c := &recordingConn{}
	r := newFollower(e.path, c, resolver.BuildOptions{})
	r.read = func(path string) ([]byte, error) {
		close(began)
		<-answer
		return read(path)
	}
	w := newWatch(e.path)
	r.start(w)
	<-began
	r.Close()
	close(answer)
	<-w.drained
	require.Empty(t, c.addresses())
	require.Empty(t, c.errors())
}
