package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// guarded returns what read does. The YAML library is other people's: a bug of
// its must not end the process.
func guarded(read func() (*list, error)) (l *list, err error) {
	defer func() {
		if v := recover(); v != nil {
			l, err = nil, &lineError{text: fmt.Sprintf("the parser fails: %v", v)}
		}
	}()
	return read()
}

// document returns the root of the one document that data holds.
func document(data []byte) (*yaml.Node, error) {
	if err := readable(data); err != nil {
		return nil, err
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, &lineError{line: 1, text: "file: there is nothing in it: want an object with the key nodes"}
	} else if err != nil {
		return nil, syntaxError(d, err)
	}
	if err := d.Decode(&more); err == nil {
		return nil, wrong(&more, "file: a second document begins: want one")
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxError(d, err)
	}
	return meant(doc.Content[0]), nil
}

// readable refuses the characters that YAML does, for which the library has no
// line.
func readable(data []byte) error {
	line := 1
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			return &lineError{line: line, text: fmt.Sprintf("byte %#02x: want UTF-8", rest[0])}
		case !inYAML(r):
			return &lineError{line: line, text: fmt.Sprintf("character %U: want it as an escape in double quotes", r)}
		case r == '\n':
			line++
		}
		rest = rest[size:]
	}
	return nil
}

// inYAML reports whether a character may stand in a document: no control
// characters except for line ends and tabs, and no non-characters.
func inYAML(r rune) bool {
	switch {
	case r == '\t', r == '\n', r == '\r', r == 0x85:
		return true
	case r < ' ', 0x7f <= r && r < 0xa0, r == 0xfffe, r == 0xffff:
		return false
	}
	return true
}

// syntaxError is an error of the library with the line that it is about.
func syntaxError(d *yaml.Decoder, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := inLine.FindStringSubmatch(text); m != nil {
		fmt.Sscan(m[1], &line)
		text = m[2]
	}
	// What is not closed is to be looked for where it begins.
	open := strings.HasPrefix(text, "found unexpected ") || strings.HasPrefix(text, "could not find expected ")
	if exact := failedLine(d, open); exact != 0 {
		line = exact
	}
	return &lineError{line: line, text: "YAML: " + text}
}

// failedLine returns the line at which a decoder failed, or that where what it
// was reading began; 0 if it cannot tell.
//
// The library's text names the one or the other, often one too few, or none. The
// decoder itself knows better; it is looked into for want of an API, and a field
// that is not as expected is done without.
func failedLine(d *yaml.Decoder, began bool) (line int) {
	defer func() {
		if recover() != nil {
			line = 0
		}
	}()
	p := reflect.ValueOf(d).Elem().FieldByName("parser").Elem()
	state := p.FieldByName("parser")
	mark := state.FieldByName("problem_mark")
	switch {
	case state.FieldByName("error").Int() == 0:
		mark = p.FieldByName("event").FieldByName("start_mark") // well-formed, but not meaningful
	case began && state.FieldByName("context").String() != "":
		mark = state.FieldByName("context_mark")
	}
	return int(mark.FieldByName("line").Int()) + 1
}
