package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// barTable is a table with a bar at the end of each row, as long as there is room for.
type barTable struct {
	columns []column
	rows    [][]string
	bars    []func(cell float64) string // cell is how much a character stands for
	most    float64                     // that a bar shows
}

// column is one of a table.
type column struct {
	title  string
	number bool // it stands at the right
	drop   int  // 0: it stays; of others, the highest is the first to go where lines are too short
}

const (
	gap    = "  "
	minBar = 6 // characters, for which columns go
	minKey = 8 // characters of a name that is cut
)

// add adds a row.
func (t *barTable) add(bar func(cell float64) string, cells ...string) {
	t.rows, t.bars = append(t.rows, cells), append(t.bars, bar)
}

// write writes the table with the columns that there is room for.
func (t *barTable) write(text *strings.Builder, l layout) {
	widths := t.fit(l.width)
	used := 0
	for _, w := range widths {
		if w > 0 {
			used += w + len(gap)
		}
	}
	bar := l.bar
	if bar == 0 {
		bar = l.width - used
	}
	titles := make([]string, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
	}
	t.line(text, titles, widths)
	text.WriteString("\n")
	for i, cells := range t.rows {
		t.line(text, cells, widths)
		if bar > 0 {
			text.WriteString(t.bars[i](max(1, t.most/float64(bar))))
		}
		text.WriteString("\n")
	}
}

// fit returns how wide each column is, 0 for those that there is no room for.
func (t *barTable) fit(width int) []int {
	widths := make([]int, len(t.columns))
	longest := 0 // of those that stay
	sum := minBar
	for i, c := range t.columns {
		widths[i] = utf8.RuneCountInString(c.title)
		for _, cells := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[i]))
		}
		sum += widths[i] + len(gap)
	}
	for sum > width {
		first := -1
		for i, c := range t.columns {
			if widths[i] > 0 && c.drop > 0 && (first < 0 || c.drop > t.columns[first].drop) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		sum -= widths[first] + len(gap)
		widths[first] = 0
	}
	for i, c := range t.columns {
		if c.drop == 0 && widths[i] > widths[longest] {
			longest = i
		}
	}
	if over := sum - minBar - width; over > 0 {
		widths[longest] = max(minKey, widths[longest]-over)
	}
	return widths
}

func (t *barTable) line(text io.StringWriter, cells []string, widths []int) {
	for i, cell := range cells {
		if widths[i] == 0 {
			continue
		}
		cell = cutFront(cell, widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if t.columns[i].number {
			cell = pad + cell + gap
		} else {
			cell += pad + gap
		}
		_, _ = text.WriteString(cell) // to memory
	}
}

// cutFront returns the end of text, which tells addresses apart, where it is longer than width.
func cutFront(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return "…" + string(runes[len(runes)-width+1:])
	}
	return text
}

// cutEnd returns the beginning of text, where it is longer than width.
func cutEnd(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
