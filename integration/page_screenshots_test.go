package integration

import (
	"bytes"
	"context"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var screenshots = flag.String("screenshots", "", "directory that the page's screenshots are written to, such as ../docs, after a minute; by default none is, after seconds")

// The screenshots of docs are of a page that real servers have changed for a minute.
func pageScreenshots(t *testing.T, browser context.Context) {
	s := newScene(t, "screenshots.example.com")
	s.open(12)
	p := openPage(t, browser, "?key=screenshots.example.com")
	p.as("light", 1360)
	steps, pause := 1, time.Duration(0)
	if *screenshots != "" {
		steps, pause = 7, 2*time.Second
	}
	s.happens(steps, pause)
	p.becomes(`document.querySelectorAll(".mark.left").length >= 2`)
	for _, shot := range []struct {
		name, scheme string
		width, most  int64
	}{{"page-light", "light", 1360, 1200}, {"page-dark", "dark", 1360, 1200}, {"page-medium", "light", 800, 1200}, {"page-narrow", "light", 360, 820}} {
		p.as(shot.scheme, shot.width)
		height := min(shot.most, look[int64](p, "Math.ceil(document.body.getBoundingClientRect().bottom)"))
		require.NoError(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(shot.width, height)))
		p.becomes("document.getAnimations().length === 0")
		image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		size, err := png.DecodeConfig(bytes.NewReader(image))
		require.NoError(t, err)
		require.Equal(t, []int64{shot.width, height}, []int64{int64(size.Width), int64(size.Height)})
		require.Less(t, len(image), 200<<10, "small enough for docs")
		if *screenshots != "" {
			require.NoError(t, os.WriteFile(filepath.Join(*screenshots, shot.name+".png"), image, 0o644))
		}
	}
}
