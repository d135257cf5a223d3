package dns

import (
	"fmt"
	"strings"
)

// isName reports whether DNS can be asked for the name: labels of 1 to 63
// letters, digits, hyphens and underscores, 253 bytes without a dot at the end,
// and not only digits and dots, as a mistyped IPv4 address is.
func isName(name string) bool {
	name = strings.TrimSuffix(name, ".")
	if len(name) > 253 || strings.Trim(name, "0123456789.") == "" {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) == 0 || len(label) > 63 || strings.Trim(label, alphanumeric+"-_") != "" {
			return false
		}
	}
	return true
}

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// inAuthority are the characters that stand for themselves in an authority, RFC
// 3986 section 3.2.
const inAuthority = alphanumeric + "-._~" + "!$&'()*+,;=" + ":[]@"

// encodeAuthority escapes all but the characters that an authority may have.
func encodeAuthority(authority string) string {
	var b strings.Builder
	for _, c := range []byte(authority) {
		if strings.IndexByte(inAuthority, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
