package main

import (
	"cmp"
	"io"
	"os"
	"strings"
	"time"

	"github.com/leastconn/grpc-leastconn/leastconnbalancer"
)

// framePeriod is how often the table is drawn.
const framePeriod = 250 * time.Millisecond

// Control sequences that terminals understand. A line that is too long is cut, not wrapped, so that a frame has as many
// lines as it should.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l" // alternate screen, no cursor, no wrapping
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	restOfLine  = "\x1b[K"
	restBelow   = "\x1b[J"
)

// screen is what frames are drawn on. A terminal shows each in the place of the one before, and keeps the last one when
// the screen is closed; anything else gets one after another.
type screen struct {
	out      io.Writer
	terminal bool
	size     func() (width, height int) // of the terminal, asked for each frame; 0 where it is not known
	resized  <-chan os.Signal           // may be nil
	end      func()                     // of the signals
	colours  bool
	last     string
}

func openScreen(out io.Writer) *screen {
	s := &screen{out: out, terminal: terminal(out), end: func() {}}
	if s.terminal {
		s.size = func() (width, height int) { return terminalSize(out.(*os.File)) }
		s.resized, s.end = terminalResized()
		s.colours = os.Getenv("NO_COLOR") == ""
		s.write(enterScreen)
	}
	return s
}

// layout returns what a frame of the services has room for.
func (s *screen) layout(services []leastconnbalancer.Snapshot) layout {
	if !s.terminal {
		return printed
	}
	width, height := s.size()
	return layoutOf(cmp.Or(width, 80), cmp.Or(height, 24), services)
}

// draw shows a frame, which ends with a newline.
func (s *screen) draw(frame string) {
	s.last = frame
	if s.terminal {
		// What is there is overwritten, never cleared before: it does not flicker.
		frame = home + strings.ReplaceAll(strings.TrimSuffix(frame, "\n"), "\n", restOfLine+"\n") + restOfLine + restBelow
	} else {
		frame += "\n"
	}
	s.write(frame)
}

func (s *screen) close() {
	s.end()
	if s.terminal {
		s.write(leaveScreen + s.last)
	}
}

func (s *screen) write(text string) {
	_, _ = io.WriteString(s.out, text) // nobody watches, if this fails
}

// paint gives text a colour, by its SGR code, where there are colours.
func (s *screen) paint(colour, text string) string {
	if !s.colours || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
