//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import "os"

// terminalSize would return the terminal's columns and lines. It does not know.
func terminalSize(*os.File) (width, height int) { return 0, 0 }

// terminalResized would tell that the terminal has another size.
func terminalResized() (resized <-chan os.Signal, stop func()) { return nil, func() {} }
