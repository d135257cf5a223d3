package file

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

const byteOrderMark = "\ufeff"

// plainJSON returns data as it is, unless it is JSON: then strings are written
// in the escapes that YAML knows, too, which has no surrogate pairs and other
// line ends than JSON. Lines stay lines.
func plainJSON(data []byte) []byte {
	rest := bytes.TrimPrefix(data, []byte(byteOrderMark))
	if !json.Valid(rest) {
		return data
	}
	var plain bytes.Buffer
	for {
		begin := bytes.IndexByte(rest, '"')
		if begin < 0 {
			plain.Write(rest)
			return plain.Bytes()
		}
		end := begin + 1
		for ; rest[end] != '"'; end++ {
			if rest[end] == '\\' {
				end++
			}
		}
		plain.Write(rest[:begin])
		plain.Write(plainString(rest[begin : end+1]))
		rest = rest[end+1:]
	}
}

// plainString returns a JSON string in other escapes. One with half a surrogate
// pair stays as it is, for YAML to refuse it.
func plainString(literal []byte) []byte {
	var s string
	if json.Unmarshal(literal, &s) != nil || bytes.ContainsRune([]byte(s), utf8.RuneError) {
		return literal
	}
	return strconv.AppendQuoteToASCII(nil, s)
}
