package file

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/resolver"
)

// pathOf returns the absolute path of the file that the target names.
func pathOf(target resolver.Target) (string, error) {
	u := target.URL
	refuse := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("%s: target %q: %s: want nodes:///path/to/nodes.yaml or nodes:relative/nodes.yaml", Scheme, u.String(), fmt.Sprintf(format, args...))
	}
	switch {
	case u.User != nil || u.Host != "":
		return refuse("there is an authority, %q", strings.TrimPrefix((&url.URL{User: u.User, Host: u.Host}).String(), "//"))
	case u.RawQuery != "" || u.ForceQuery:
		return refuse("there is a query, %q", u.RawQuery)
	case u.Fragment != "":
		return refuse("there is a fragment, %q", u.Fragment)
	}
	path := u.Path
	if path == "" {
		var err error
		if path, err = url.PathUnescape(u.Opaque); err != nil {
			return refuse("%v", err)
		}
	}
	if path == "" || strings.HasSuffix(path, "/") || strings.ContainsRune(path, 0) {
		return refuse("it names no file")
	}
	abs, err := filepath.Abs(filepath.FromSlash(path))
	if err != nil {
		return refuse("%v", err)
	}
	return abs, nil
}
