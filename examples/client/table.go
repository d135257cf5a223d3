package main

import (
	"strings"
	"unicode/utf8"
)

// block is a cell of text, line by line.
type block []string

// table is plain text in columns. Every row has as many blocks as the head.
type table struct {
	head []block
	rows [][]block
}

const columnGap = "   "

// String aligns the columns and draws a line below the head and between rows.
func (t table) String() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]block{t.head}, t.rows...) {
		for c, cell := range row {
			for _, line := range cell {
				widths[c] = max(widths[c], utf8.RuneCountInString(line))
			}
		}
	}
	var b strings.Builder
	writeRow(&b, widths, t.head)
	writeRule(&b, widths, "━")
	for r, row := range t.rows {
		if r > 0 {
			writeRule(&b, widths, "─")
		}
		writeRow(&b, widths, row)
	}
	writeRule(&b, widths, "━")
	return b.String()
}

func writeRow(b *strings.Builder, widths []int, row []block) {
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
			line.WriteString(strings.Repeat(" ", widths[c]-utf8.RuneCountInString(text)))
			line.WriteString(columnGap)
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
}

func writeRule(b *strings.Builder, widths []int, stroke string) {
	for c, w := range widths {
		if c > 0 {
			b.WriteString(strings.Repeat(stroke, len(columnGap)))
		}
		b.WriteString(strings.Repeat(stroke, w))
	}
	b.WriteByte('\n')
}
