package file

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lineError is what is wrong in a line of the file, 0 if that is not known.
type lineError struct {
	line int
	text string
}

// Error tells what is wrong, without the line.
func (e *lineError) Error() string { return e.text }

// lineOf returns the line that an error is about, 0 if there is none.
func lineOf(err error) int {
	var e *lineError
	if errors.As(err, &e) {
		return e.line
	}
	return 0
}

func errorAt(n *yaml.Node, format string, args ...any) error {
	return &lineError{line: n.Line, text: fmt.Sprintf(format, args...)}
}

// setters take the values of an object, by key.
type setters map[string]func(value *yaml.Node) error

func (s setters) String() string {
	return strings.Join(slices.Sorted(maps.Keys(s)), ", ")
}

// readObject hands the values of an object to their setters, in the file's order.
func readObject(n *yaml.Node, what string, set setters) error {
	if n.Kind != yaml.MappingNode {
		return errorAt(n, "%s: value %s: want an object with keys among %v", what, quote(n), set)
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolveAlias(n.Content[i]), resolveAlias(n.Content[i+1])
		name := key.Value
		to, known := set[name]
		if !known || key.Kind != yaml.ScalarNode {
			return errorAt(n.Content[i], "%s: unknown key %s: want one of %v", what, quote(key), set)
		}
		if line, again := first[name]; again {
			return errorAt(n.Content[i], "%s: key %q is there twice, first in line %d: want it once", what, name, line)
		}
		first[name] = n.Content[i].Line
		if err := to(value); err != nil {
			return err
		}
	}
	return nil
}

// stringField reads a string that is valid.
func stringField(key string, dst *string, want string, valid func(string) bool) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			return errorAt(n, "%s: value %s: want a string, in quotes if it looks like something else", key, quote(n))
		}
		if !valid(n.Value) {
			return errorAt(n, "%s: value %s: %s", key, quote(n), want)
		}
		*dst = n.Value
		return nil
	}
}

// integerField reads an integer from 0 to most.
func integerField(key string, dst *uint32, most uint32) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		var v int64
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&v) != nil || v < 0 || v > int64(most) {
			return errorAt(n, "%s: value %s: want an integer from 0 to %d", key, quote(n), most)
		}
		*dst = uint32(v)
		return nil
	}
}

// booleanField reads true or false.
func booleanField(key string, dst *bool) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(dst) != nil {
			return errorAt(n, "%s: value %s: want true or false", key, quote(n))
		}
		return nil
	}
}

// resolveAlias returns the node that an alias stands for, any other as it is.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// maxQuoted is how many bytes of a value an error shows.
const maxQuoted = 80

// quote returns a value as an error shows it.
func quote(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "[…]"
	case yaml.MappingNode:
		return "{…}"
	}
	value, more := n.Value, ""
	if len(value) > maxQuoted {
		value, more = value[:maxQuoted], "…"
	}
	switch n.ShortTag() {
	case "!!null":
		return "null"
	case "!!int", "!!float", "!!bool":
		return value + more
	}
	return strconv.Quote(value) + more
}
