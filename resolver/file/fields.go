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

func wrong(n *yaml.Node, format string, args ...any) error {
	return &lineError{line: n.Line, text: fmt.Sprintf(format, args...)}
}

// setters take the values of an object, by key.
type setters map[string]func(value *yaml.Node) error

func (s setters) String() string {
	return strings.Join(slices.Sorted(maps.Keys(s)), ", ")
}

// object hands the values of an object to their setters, in the file's order.
func object(n *yaml.Node, what string, set setters) error {
	if n.Kind != yaml.MappingNode {
		return wrong(n, "%s: value %s: want an object with keys among %v", what, shown(n), set)
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := meant(n.Content[i]), meant(n.Content[i+1])
		name := key.Value
		to, known := set[name]
		if !known || key.Kind != yaml.ScalarNode {
			return wrong(n.Content[i], "%s: unknown key %s: want one of %v", what, shown(key), set)
		}
		if line, again := first[name]; again {
			return wrong(n.Content[i], "%s: key %q is there twice, first in line %d: want it once", what, name, line)
		}
		first[name] = n.Content[i].Line
		if err := to(value); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string that is valid.
func text(key string, dst *string, want string, valid func(string) bool) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			return wrong(n, "%s: value %s: want a string, in quotes if it looks like something else", key, shown(n))
		}
		if !valid(n.Value) {
			return wrong(n, "%s: value %s: %s", key, shown(n), want)
		}
		*dst = n.Value
		return nil
	}
}

// number reads an integer from 0 to most.
func number(key string, dst *uint32, most uint32) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		var v int64
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || n.Decode(&v) != nil || v < 0 || v > int64(most) {
			return wrong(n, "%s: value %s: want an integer from 0 to %d", key, shown(n), most)
		}
		*dst = uint32(v)
		return nil
	}
}

// meant returns the node that an alias stands for, any other as it is.
func meant(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// longestShown is how many bytes of a value an error shows.
const longestShown = 80

// shown returns a value as an error shows it.
func shown(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "[…]"
	case yaml.MappingNode:
		return "{…}"
	}
	value, more := n.Value, ""
	if len(value) > longestShown {
		value, more = value[:longestShown], "…"
	}
	switch n.ShortTag() {
	case "!!null":
		return "null"
	case "!!int", "!!float", "!!bool":
		return value + more
	}
	return strconv.Quote(value) + more
}
