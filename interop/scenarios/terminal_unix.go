//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// terminalSize returns a terminal's columns and lines, 0 where it does not say.
func terminalSize(f *os.File) (width, height int) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, 0
	}
	var size struct{ lines, columns, x, y uint16 }
	_ = raw.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size))) // which leaves 0
	})
	return int(size.columns), int(size.lines)
}

// terminalResized returns what tells that the terminal has another size, until stop is called.
func terminalResized() (resized <-chan os.Signal, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	return signals, func() { signal.Stop(signals) }
}
