package file

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links are followed, as in Linux.
const maxLinks = 40

// placesOf returns the names whose change can change what an absolute path leads
// to: the file's own, those of the symbolic links on the way, or of what is
// missing.
func placesOf(path string) []string {
	var places []string
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
			return append(places, next)
		}
		if info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		places = append(places, next)
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return places
		}
		if filepath.IsAbs(to) {
			at = filepath.VolumeName(to) + separator
		}
		rest = append(split(strings.TrimPrefix(to, filepath.VolumeName(to))), rest...)
	}
	return append(places, at)
}
