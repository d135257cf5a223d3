package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// recovering returns what read does. The YAML library is other people's: a bug of
// its must not end the process.
func recovering(read func() (*list, error)) (l *list, err error) {
	defer func() {
		if v := recover(); v != nil {
			l, err = nil, &lineError{text: fmt.Sprintf("the parser fails: %v", v)}
		}
	}()
	return read()
}

// document returns the root of the one document that data holds.
func document(data []byte) (*yaml.Node, error) {
	if err := checkCharacters(data); err != nil {
		return nil, err
	}
	data = plainJSON(data)
	doc, more, err := decode(bytes.NewReader(data))
	switch {
	case err != nil:
		return nil, syntaxError(data, err)
	case doc == nil:
		return nil, &lineError{line: 1, text: "file: there is nothing in it: want an object with the key nodes"}
	case more != nil:
		return nil, errorAt(more, "file: a second document begins: want one")
	}
	return resolveAlias(doc.Content[0]), nil
}

// decode returns the first two documents, nil for what is not there.
func decode(r io.Reader) (doc, more *yaml.Node, err error) {
	d := yaml.NewDecoder(r)
	for _, to := range []**yaml.Node{&doc, &more} {
		n := new(yaml.Node)
		if err := d.Decode(n); errors.Is(err, io.EOF) {
			return doc, more, nil
		} else if err != nil {
			return nil, nil, err
		}
		*to = n
	}
	return doc, more, nil
}

// checkCharacters refuses the characters that YAML does, for which the library has no
// line.
func checkCharacters(data []byte) error {
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
//
// The library's text names the line where what it was reading began, the line of
// the mistake, or none, and often one too few.
func syntaxError(data []byte, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := inLine.FindStringSubmatch(text); m != nil {
		text = m[2]
	}
	line := 0
	if strings.HasPrefix(text, "found unexpected ") || strings.HasPrefix(text, "could not find expected ") {
		// What is not closed is to be looked for where it begins.
		line = beginning(data)
	} else {
		line = mistake(data)
	}
	return &lineError{line: line, text: "YAML: " + text}
}

// beginning returns the line where what the library was reading began. The text
// names it unless it is the first, which a line before all others prevents.
func beginning(data []byte) int {
	shifted := append([]byte("\n"), bytes.TrimPrefix(data, []byte(byteOrderMark))...)
	_, _, err := decode(bytes.NewReader(shifted))
	m := inLine.FindStringSubmatch(fmt.Sprint(err))
	if m == nil {
		return 1
	}
	line, _ := strconv.Atoi(m[1])
	return line - 1
}

// mistake returns the first line that is wrong whatever comes after it. If there
// is none, the file ends too early: then it is the line after the last.
func mistake(data []byte) int {
	fed := &lineReader{rest: data}
	_, _, err := decode(fed)
	fails := func(end int, more string) bool {
		_, _, e := decode(io.MultiReader(bytes.NewReader(data[:end]), strings.NewReader(more)))
		return e != nil && e.Error() == err.Error()
	}
	hopeless := func(end int) bool {
		for _, quote := range []string{"", `"`, "'"} {
			// A list or an object that is not closed yet can be.
			if fails(end, quote) && fails(end, quote+"\n]") && fails(end, quote+"\n}") {
				return true
			}
		}
		return false
	}
	// The library has read this far, which may be too far.
	end := len(data) - len(fed.rest)
	for hopeless(end) {
		end = 1 + bytes.LastIndexByte(data[:end-1], '\n')
	}
	return 1 + bytes.Count(data[:end], []byte("\n"))
}

// lineReader gives no more than a line at a time.
type lineReader struct{ rest []byte }

func (l *lineReader) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := 1 + bytes.IndexByte(l.rest, '\n')
	if n == 0 {
		n = len(l.rest)
	}
	n = copy(p, l.rest[:n])
	l.rest = l.rest[n:]
	return n, nil
}
