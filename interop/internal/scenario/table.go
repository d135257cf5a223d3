package scenario

import (
	"strings"
	"unicode/utf8"
)

// Block is a cell of text, line by line.
type Block []string

// Table is plain text in columns. Every row has as many blocks as the head.
type Table struct {
	Head  []Block
	Rows  [][]Block
	Dense bool // no lines between rows, and little space between columns
}

// gap is the space between columns.
func (t Table) gap() int {
	if t.Dense {
		return 2
	}
	return 3
}

// String aligns the columns and draws a line below the head, between rows and at the end.
func (t Table) String() string {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]Block{t.Head}, t.Rows...) {
		for c, cell := range row {
			for _, line := range cell {
				widths[c] = max(widths[c], utf8.RuneCountInString(line))
			}
		}
	}
	var b strings.Builder
	t.writeRow(&b, widths, t.Head)
	t.writeRule(&b, widths, "━")
	for r, row := range t.Rows {
		if r > 0 && !t.Dense {
			t.writeRule(&b, widths, "─")
		}
		t.writeRow(&b, widths, row)
	}
	t.writeRule(&b, widths, "━")
	return b.String()
}

func (t Table) writeRow(b *strings.Builder, widths []int, row []Block) {
	height := 0
	for _, cell := range row {
		height = max(height, len(cell))
	}
	for l := range height {
		var line strings.Builder
		for c, cell := range row {
			text := ""
			if l < len(cell) {
				text = cell[l]
			}
			line.WriteString(text)
			line.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text)+t.gap()))
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}

func (t Table) writeRule(b *strings.Builder, widths []int, stroke string) {
	width := (len(widths) - 1) * t.gap()
	for _, w := range widths {
		width += w
	}
	b.WriteString(strings.Repeat(stroke, width))
	b.WriteByte('\n')
}
